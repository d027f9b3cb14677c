//go:build race

package sim

// fewer: the race detector makes a world ten times as slow, and every run goes the same way.
const fewer = 8
