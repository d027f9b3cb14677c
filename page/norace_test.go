//go:build !race

package page

const slowdown = 1
