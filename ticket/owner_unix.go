//go:build unix

package ticket

import (
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
