//go:build race

package store

// fewer: the race detector makes the database, which is translated from C, ten times as slow.
const fewer = 8
