package server

import (
	"os"
	"syscall"
)

// successor returns how the new process is started. It becomes a child of systemd, as this one is, and not of this one: systemd waits only for
// the end of its own children, and kills any other main process at once instead of letting it stop in good order. What is told by MAINPID
// later does not change that. The first process of a container has no parent to give it to.
func successor() *syscall.SysProcAttr {
	if os.Getenv("NOTIFY_SOCKET") == "" || os.Getpid() == 1 {
		return nil
	}
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_PARENT}
}
