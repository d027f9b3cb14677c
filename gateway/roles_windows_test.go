package gateway

import (
	"syscall"
	"time"
)

// processorTime returns what this process has used, user and system.
func processorTime() time.Duration {
	var created, ended, system, user syscall.Filetime
	if err := syscall.GetProcessTimes(syscall.Handle(^uintptr(0)), &created, &ended, &system, &user); err != nil { // -1 stands for this process
		panic(err)
	}
	of := func(t syscall.Filetime) time.Duration { // a Filetime counts 100 nanoseconds
		return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
	}
	return of(system) + of(user)
}
