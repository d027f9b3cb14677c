//go:build unix

package server

import "syscall"

// openFiles returns how many files and connections this process may have open; 0 if that is not known.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur)
}
