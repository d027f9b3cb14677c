//go:build !linux

package server

import "syscall"

// successor starts the new process as any other: there is no systemd.
func successor() *syscall.SysProcAttr { return nil }
