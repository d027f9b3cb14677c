//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWhatIsNoFileStays: pipes and devices are not replaced by a file, which root could do to /dev/stdout, and links stay.
func TestWhatIsNoFileStays(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	content := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	for _, name := range []string{pipe, dir} {
		before, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := saveWhole(name, content); err == nil || !strings.Contains(err.Error(), name+" is not a file: name a file, or - for standard output") {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(name); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: it was replaced: %v", name, err)
		}
	}

	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if n, err := saveWhole(link, content); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	if to, err := os.Readlink(link); err != nil || to != file {
		t.Errorf("the link: %q, %v", to, err)
	}
	got, err := os.ReadFile(file)
	if info, e := os.Stat(file); err != nil || e != nil || string(got) != "new" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", got, info.Mode(), err)
	}
}
