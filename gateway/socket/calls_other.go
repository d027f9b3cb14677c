//go:build (linux && !(amd64 || arm64)) || (linux && race) || darwin || freebsd || netbsd || openbsd

package socket

import "syscall"

// receiveNow reads into p.
func receiveNow(fd uintptr, p []byte, flags int) (int, error) {
	if flags == 0 {
		return syscall.Read(int(fd), p)
	}
	n, _, err := syscall.Recvfrom(int(fd), p, flags|syscall.MSG_DONTWAIT)
	return n, err
}

// sendNow writes a or, when it is empty, b, as far as the socket takes it. The race detector takes a write and the read at
// the other end for something that orders what is done before and after, but not a call with several parts.
func sendNow(fd uintptr, a, b []byte) (int, error) {
	if len(a) == 0 {
		a = b
	}
	return syscall.Write(int(fd), a)
}
