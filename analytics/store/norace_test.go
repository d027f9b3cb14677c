//go:build !race

package store

const fewer = 1
