//go:build linux || darwin || freebsd || netbsd || openbsd

package h1

import (
	"io"
	"syscall"
)

// canProbe says that the others can tell.
const canProbe = true

// receive reads what a socket has received. Nothing says that there is nothing yet.
func receive(fd uintptr, p []byte) (n int, nothing bool, err error) {
	for {
		switch n, err = syscall.Read(int(fd), p); {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return 0, true, nil
		case err != nil:
			return 0, false, err
		case n == 0:
			return 0, false, io.EOF
		default:
			return n, false, nil
		}
	}
}

// isOver reports whether a socket's other end has closed it. Nothing says that it has not, and that nothing has come.
func isOver(fd uintptr) (over, nothing bool) {
	var b [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			return err == nil && n == 0 || err != nil && err != syscall.EAGAIN, err == syscall.EAGAIN
		}
	}
}
