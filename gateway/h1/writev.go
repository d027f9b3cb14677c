//go:build !race

package h1

// writesParts says that several buffers may be written in one call.
const writesParts = true
