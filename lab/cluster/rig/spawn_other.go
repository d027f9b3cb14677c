//go:build !linux

package rig

import (
	"os/exec"
	"syscall"
)

func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
