//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package h1

// canProbe says that isQuiet can tell.
const canProbe = false

func isQuiet(uintptr) bool { return false }
