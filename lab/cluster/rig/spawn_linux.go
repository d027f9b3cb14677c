package rig

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawn starts a command so that it does not outlive this process, however that ends. The
// kernel ends such a child when the thread that made it ends: one thread makes them all and
// lives as long as the process.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	o := order{cmd, make(chan error)}
	spawner() <- o
	return <-o.done
}

type order struct {
	cmd  *exec.Cmd
	done chan error
}

var spawner = sync.OnceValue(func() chan<- order {
	orders := make(chan order)
	go func() {
		runtime.LockOSThread()
		for o := range orders {
			o.done <- o.cmd.Start()
		}
	}()
	return orders
})
