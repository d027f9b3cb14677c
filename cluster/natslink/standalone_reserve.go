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
	path := filepath.Join(l.cfg.Dir, reserveName)
	for {
		info, statErr := os.Stat(path)
		if statErr != nil || info.Size() == 0 || os.Truncate(path, max(0, info.Size()-reserveLeft)) != nil {
			return err
		}
		if checkSpace(l.cfg.Dir, reserveLeft) == nil {
			return nil
		}
	}
}

// reserve makes the file when there is room for it. Some file systems cannot; then there is none.
func (l *link) reserve() {
	path := filepath.Join(l.cfg.Dir, reserveName)
	if info, err := os.Stat(path); err == nil && info.Size() >= reserveSize || checkSpace(l.cfg.Dir, l.cfg.MinFree+reserveSize) != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, fs.FileMode(0o600))
	if err != nil {
		return
	}
	if err = errors.Join(allocate(f, reserveSize), f.Close()); err != nil {
		os.Remove(path)
	}
}
