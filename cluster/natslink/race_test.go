//go:build race

package natslink

// sideBySide: the race detector makes servers so slow that more of them keep each other from answering in time.
const sideBySide = "5"
