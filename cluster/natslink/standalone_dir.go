package natslink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

const (
	lockName   = "lock"
	engineName = "jetstream" // NATS chooses this name
)

// dirLock keeps other processes out of the directory.
type dirLock struct{ f *os.File }

// lockPoll is how often a lock that somebody else holds is tried again.
const lockPoll = 20 * time.Millisecond

// lockDir makes the directory if need be and takes its lock. The kernel lets go of it when
// the process ends, however it ends.
func lockDir(dir string, wait time.Duration) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			return nil, fmt.Errorf("natslink: data directory %s: it, or a part of its path, is a file; choose another", dir)
		}
		return nil, fmt.Errorf("natslink: data directory cannot be made: %w", err)
	}
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("natslink: data directory %s cannot be written to: %w", dir, err)
	}
	for deadline := time.Now().Add(wait); ; time.Sleep(lockPoll) {
		err = lockFile(f)
		if err == nil {
			return &dirLock{f}, nil
		}
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if !errors.Is(err, errLocked) || !time.Now().Before(deadline) {
			break
		}
	}
	f.Close()
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("natslink: %s is locked: another anteroom runs on this data directory; stop it or choose another directory", path)
	}
	return nil, fmt.Errorf("natslink: %s cannot be locked: %w", path, err)
}

func (l *dirLock) release() error { return errors.Join(unlockFile(l.f), l.f.Close()) }

// checkLayout reports whether the directory is new, and refuses one that is not ours.
func checkLayout(dir string) (fresh bool, err error) {
	_, markErr := os.Stat(filepath.Join(dir, markName))
	_, engineErr := os.Stat(filepath.Join(dir, engineName))
	_, clusterErr := os.Stat(filepath.Join(dir, engineName, "$SYS", "_js_"))
	switch {
	case clusterErr == nil:
		return false, fmt.Errorf("natslink: %s holds a member of a NATS cluster; a single node does not open it, choose another data directory", dir)
	case markErr == nil:
		return false, nil
	case !errors.Is(markErr, fs.ErrNotExist):
		return false, fmt.Errorf("natslink: %w", markErr)
	case engineErr == nil:
		return false, &cluster.DamagedError{
			What: filepath.Join(dir, markName),
			Err:  errors.New("it is missing, but the directory holds a NATS store; restore the whole directory, or choose another if the store is not Anteroom's"),
		}
	case !errors.Is(engineErr, fs.ErrNotExist):
		return false, fmt.Errorf("natslink: %w", engineErr)
	}
	return true, nil
}

// bornName is a file that holds when it was born. In a copy of the directory it was born later.
const bornName = "anteroom-born"

// isCopy says that the directory was copied since it was made, or put back from a copy.
func isCopy(dir string) bool {
	path := filepath.Join(dir, bornName)
	text, err := os.ReadFile(path)
	if err != nil {
		return false // of an earlier release
	}
	born, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	now := birth(path)
	return err == nil && born != 0 && now != 0 && born != now
}

// original makes the directory one that is no copy.
func original(dir string) error {
	path := filepath.Join(dir, bornName)
	f, err := os.CreateTemp(dir, bornName+"-*")
	if err == nil {
		_, err = fmt.Fprintln(f, birth(f.Name()))
		if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			os.Remove(f.Name())
		}
	}
	if err != nil {
		return fmt.Errorf("natslink: %w", err)
	}
	return syncDir(dir)
}

// checkSpace returns an error that wraps cluster.ErrFull when less than min bytes are free.
// JetStream stops for good at a full disk, so it is not let run into one.
func checkSpace(dir string, min int64) error {
	free, err := freeSpace(dir)
	if err != nil {
		return fmt.Errorf("natslink: space of %s: %w", dir, err)
	}
	if free < uint64(min) {
		return fmt.Errorf("%w: %d bytes are free on the disk of %s and %d are left alone; delete files there or enlarge it", cluster.ErrFull, free, dir, min)
	}
	return nil
}

// Retire puts a store that was copied aside, under the name that it returns, so that nobody
// goes on with it by mistake. Its link must be closed. The operator deletes it.
func Retire(dir string) (aside string, err error) {
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	lock, err := lockDir(dir, 0)
	if err != nil {
		return "", err
	}
	defer lock.release()
	dir = filepath.Clean(dir)
	aside = dir + ".moved"
	if _, err := os.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cluster: %s is there already: move or delete it, then the store in %s can be put aside", aside, dir)
	}
	if err := os.Rename(dir, aside); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	return aside, syncDir(filepath.Dir(dir))
}
