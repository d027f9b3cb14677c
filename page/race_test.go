//go:build race

package page

// slowdown is what the race detector costs where time is measured.
const slowdown = 20
