//go:build unix

package ticket

import (
	"errors"
	"os"
	"syscall"
)

// keepOwner gives f the owner and group of the file at path.
func keepOwner(f *os.File, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	old, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(old.Uid) == os.Geteuid() && int(old.Gid) == os.Getegid() {
		return nil
	}
	return f.Chown(int(old.Uid), int(old.Gid))
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
