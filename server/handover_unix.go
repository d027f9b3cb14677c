//go:build unix

package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// duplicate returns another descriptor of a listener's socket. The listener's own File method
// would switch the socket to blocking mode, for this process too: its Accept would then hold
// a thread, and its end wait for a last connection.
func duplicate(l net.Listener) (f *os.File, err error) {
	t, ok := l.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("it is a %T", l)
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	ended := raw.Control(func(old uintptr) {
		syscall.ForkLock.RLock() // no process started meanwhile inherits it
		defer syscall.ForkLock.RUnlock()
		if fd, err = syscall.Dup(int(old)); err == nil {
			syscall.CloseOnExec(fd)
		}
	})
	if err = errors.Join(ended, err); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), t.Addr().String()), nil
}
