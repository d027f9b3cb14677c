//go:build linux || darwin || freebsd || netbsd || openbsd

package h1

import "syscall"

// canProbe says that isQuiet can tell.
const canProbe = true

// isQuiet reports whether a socket is open and has received nothing that was not read.
func isQuiet(fd uintptr) bool {
	var b [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			return err == syscall.EAGAIN
		}
	}
}
