//go:build linux && (amd64 || arm64) && !race

package socket

import (
	"syscall"
	"unsafe"
)

// receiveNow reads into p.
func receiveNow(fd uintptr, p []byte, flags uintptr) (int, error) {
	return result(syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags|syscall.MSG_DONTWAIT, 0, 0))
}

// sendNow writes a and b, as far as the socket takes them.
func sendNow(fd uintptr, a, b []byte) (int, error) {
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	if len(b) == 0 {
		return result(syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(len(a)), flags, 0, 0))
	}
	parts := [2]syscall.Iovec{{Base: unsafe.SliceData(a), Len: uint64(len(a))}, {Base: unsafe.SliceData(b), Len: uint64(len(b))}}
	msg := syscall.Msghdr{Iov: &parts[0], Iovlen: 2}
	return result(syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&msg)), flags))
}

func result(n, _ uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
