package natslink

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anteroom/anteroom/cluster"
)

// When the disk is full, the keys and the last records of a process can still be written: they may take
// what is left below Config.MinFree, and a file that is kept for them in case others have taken that.
const (
	reserveName = "reserve"
	reserveSize = 16 << 20
	// reserveLeft is how much has to be free for a write, for the embedded server stops for good at a disk
	// that is really full; and the file is given up by so much at a time.
	reserveLeft = 1 << 20
)

// space returns an error that wraps cluster.ErrFull when there is none for a write.
func (l *link) space(urgent bool) error {
	err := checkSpace(l.cfg.Dir, l.cfg.MinFree)
	switch {
	case !errors.Is(err, cluster.ErrFull), !urgent:
		return err
	case checkSpace(l.cfg.Dir, reserveLeft) == nil:
		return nil
	}
	for yieldReserve(l.cfg.Dir, reserveLeft) {
		if checkSpace(l.cfg.Dir, reserveLeft) == nil {
			return nil
		}
	}
	return err
}

// yieldReserve gives up a part of the file of a directory, and reports whether there was one.
func yieldReserve(dir string, part int64) bool {
	path := filepath.Join(dir, reserveName)
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0 && os.Truncate(path, max(0, info.Size()-part)) == nil
}

// keepReserve makes the file when as much is free besides. Some file systems cannot; then there is none.
func keepReserve(dir string, size, free int64) {
	path := filepath.Join(dir, reserveName)
	if info, err := os.Stat(path); err == nil && info.Size() >= size || checkSpace(dir, free+size) != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, fs.FileMode(0o600))
	if err != nil {
		return
	}
	if err = errors.Join(allocate(f, size), f.Close()); err != nil {
		os.Remove(path)
	}
}
