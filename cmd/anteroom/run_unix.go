//go:build unix

package main

import (
	"os"
	"syscall"
)

// handOverSignals make a process hand its listeners over to a new one.
var handOverSignals = []os.Signal{syscall.SIGUSR2}
