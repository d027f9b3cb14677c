//go:build unix

package natslink

import (
	"fmt"
	"os"
	"syscall"
)

// errLocked is what lockFile returns while another process has the lock.
var errLocked = syscall.EWOULDBLOCK

// lockFile takes the lock of a file without waiting. It ends with unlockFile, or with the last descriptor of the file.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// unlockFile gives the lock back. Closing the file is not enough: a process that is being forked in this moment
// has the descriptor, too, until it executes something.
func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// freeSpace returns how many bytes a process without privileges can still write below a directory.
func freeSpace(dir string) (uint64, error) {
	var st syscall.Statfs_t
	err := syscall.Statfs(dir, &st)
	return uint64(st.Bavail) * uint64(st.Bsize), err
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("natslink: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("natslink: %w", err)
	}
	return nil
}
