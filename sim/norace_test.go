//go:build !race

package sim

const fewer = 1
