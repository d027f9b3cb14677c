package load

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/walltime"
)

// Faults that a run can have instead of a plain kill -9.
const (
	// faultStall freezes the file system of the data for stallFor, then kills the gateway.
	faultStall = "stall"
	// faultFull fills it for fullFor, then kills the gateway; faultTerm ends it by SIGTERM. The next start
	// finds room again.
	faultFull = "full"
	faultTerm = "full-term"
	// faultStart is faultFull, and there is room only fullFor after the next start.
	faultStart = "full-start"
	// faultRestore kills the gateway and puts back a copy of the data that is restoreAge old.
	faultRestore = "restore"

	stallFor   = 4 * time.Second
	fullFor    = 5 * time.Second
	restoreAge = 15 * time.Second

	diskSize = 512 << 20
)

// Faults are all of them.
var Faults = []string{faultStall, faultFull, faultTerm, faultStart, faultRestore}

// onDisk says that the data needs a file system of its own.
func (o Options) onDisk() bool { return o.Fault != "" && o.Fault != faultRestore }

func (p *process) data() string   { return filepath.Join(p.o.Dir, dataDir) }
func (p *process) filler() string { return filepath.Join(p.data(), "filler") }

// mount puts a file system of its own where the data will be.
func (p *process) mount() error {
	if os.Geteuid() != 0 {
		return errors.New("load: a file system of its own needs root")
	}
	image := filepath.Join(p.o.Dir, "disk")
	err := os.MkdirAll(p.data(), 0o755)
	if err == nil {
		err = os.WriteFile(image, nil, 0o600)
	}
	if err == nil {
		err = os.Truncate(image, diskSize)
	}
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	for _, c := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, p.data()}} {
		if err := tool(c...); err != nil {
			return err
		}
	}
	p.mounted = true
	return nil
}

func (p *process) unmount() error {
	if !p.mounted {
		return nil
	}
	p.mounted = false
	return tool("umount", p.data())
}

// tool runs a command of the system.
func tool(args ...string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("load: %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// fill takes all that is free on the file system of the data.
func (p *process) fill() error {
	f, err := os.Create(p.filler())
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer f.Close()
	part := make([]byte, 1<<20)
	for len(part) > 0 {
		if _, err = f.Write(part); err == nil {
			continue
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("load: %w", err)
		}
		part = part[:len(part)/2]
	}
	return nil
}

func (p *process) empty() error {
	if err := os.Remove(p.filler()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("load: %w", err)
	}
	return nil
}

// disaster does what the fault is, up to the end of the process, and says when that was.
func (p *process) disaster(ctx context.Context) (ended time.Time, err error) {
	backup := filepath.Join(p.o.Dir, "backup")
	switch p.o.Fault {
	case faultStall:
		if err := tool("fsfreeze", "-f", p.data()); err != nil {
			return ended, err
		}
		walltime.Sleep(ctx, stallFor)
		ended = time.Now()
		p.gateway.Process.Kill() // takes effect when its write returns
		err = tool("fsfreeze", "-u", p.data())
		p.ended()
		return ended, err
	case faultFull, faultTerm, faultStart:
		if err := p.fill(); err != nil {
			return ended, err
		}
		walltime.Sleep(ctx, fullFor)
	case faultRestore:
		if err := errors.Join(os.RemoveAll(backup), tool("cp", "-a", p.data(), backup)); err != nil {
			return ended, err
		}
		walltime.Sleep(ctx, restoreAge)
	}
	ended = time.Now()
	if p.o.Fault == faultTerm {
		p.gateway.Process.Signal(syscall.SIGTERM)
		p.ended()
	} else if err := p.kill(); err != nil {
		return ended, err
	}
	switch p.o.Fault {
	case faultFull, faultTerm:
		return ended, p.empty()
	case faultRestore:
		return ended, errors.Join(os.RemoveAll(p.data()), os.Rename(backup, p.data()))
	}
	return ended, nil
}

// after ends the fault when the gateway is ready again.
func (p *process) after(ctx context.Context) error {
	if p.o.Fault != faultStart {
		return nil
	}
	walltime.Sleep(ctx, fullFor)
	return p.empty()
}
