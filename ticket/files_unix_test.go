//go:build unix

package ticket

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/anteroom/anteroom"
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

func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "unmounted", "keys.json"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		kind       anteroom.Kind
		want       string
	}{
		{"directory", dir, anteroom.Invalid, "not a regular file"},
		{"pipe", pipe, anteroom.Invalid, "not a regular file"},
		{"device", "/dev/null", anteroom.Invalid, "not a regular file"},
		{"no directory", filepath.Join(dir, "a", "b"), anteroom.Unavailable, "directory has to exist"},
		{"link to nothing", dangling, anteroom.Unavailable, "link to nothing"},
	} {
		ring, created, err := LoadOrCreate(c.path, morning)
		if ring != nil || created || anteroom.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, %v", c.name, ring, created, err)
		}
	}
	if info, err := os.Lstat(dangling); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}
