//go:build race

package h1

// writesParts says that several buffers may be written in one call. The race detector takes a write and the read at the
// other end for something that orders what is done before and after, but not writev.
const writesParts = false
