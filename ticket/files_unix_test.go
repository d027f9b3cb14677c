//go:build unix

package ticket

import (
	"os"
	"syscall"
	"testing"
)

// Root rotates the file of the user who serves; that user has to be able to read it.
// Without root the file is one's own, and stays so.
func TestRotationKeepsTheOwner(t *testing.T) {
	path := keyPath(t)
	if _, _, err := LoadOrCreate(path, morning); err != nil {
		t.Fatal(err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 12345, 12346
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := RotateFile(path, morning, 0); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t); int(got.Uid) != uid || int(got.Gid) != gid || info.Mode() != 0o600 {
		t.Errorf("the file belongs to %d:%d, mode %v; want %d:%d, -rw-------", got.Uid, got.Gid, info.Mode(), uid, gid)
	}
}
