//go:build !race

package natslink

// sideBySide is how many tests run at a time.
const sideBySide = "10"
