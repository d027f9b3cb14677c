package natslink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// NATS writes nothing more to a stream once the file system has refused a write of it, until
// the server starts again. So it is started again when there is room, or when a disk that was broken takes writes.
const (
	// mendAfter is how long after the first refused write the server is started again at the
	// earliest, and how long it then has at least.
	mendAfter = 10 * time.Second
	// mendEvery is how often the disk is tried meanwhile.
	mendEvery = 2 * time.Second
	// mendSeldom is how long the server of a disk that breaks again and again is left alone at most: each start of it makes the
	// others choose leaders.
	mendSeldom = 5 * time.Minute
	// mendRoom is what must fit on the disk then, in bytes.
	mendRoom = 4 << 20
)

// isFull reports whether a complaint of the server is about a full disk.
func isFull(complaint string) bool {
	return strings.Contains(complaint, "JetStream out of") || noSpace(complaint)
}

// noSpace reports whether a text has an error of a full file system.
func noSpace(text string) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}, func(full error) bool {
		return strings.Contains(text, full.Error())
	})
}

// brokenBy returns what else keeps the server from writing to its disk, by its complaint, or "". A directory that is not there is
// not among that: started again, the server would make an empty one.
func brokenBy(complaint string) string {
	for _, broken := range []error{syscall.EROFS, syscall.EIO, syscall.EACCES, syscall.EPERM} {
		if strings.Contains(complaint, "ritical write error: ") && strings.HasSuffix(complaint, ": "+broken.Error()) {
			return broken.Error()
		}
	}
	return ""
}

// heed notes a complaint of the server.
func (s *coreServer) heed(complaint string) {
	if strings.Contains(complaint, removal) {
		s.retire()
	}
	broken := ""
	if !isFull(complaint) {
		if broken = brokenBy(complaint); broken == "" {
			return
		}
	}
	if s.full.CompareAndSwap(0, time.Now().UnixNano()) {
		s.broken.Store(&broken)
		select {
		case s.refused <- struct{}{}:
		default:
		}
	}
}

// refuses says why the disk takes no writes.
func (s *coreServer) refuses() (full bool, broken string) {
	if s.full.Load() == 0 {
		return false, ""
	}
	if why := s.broken.Load(); why != nil && *why != "" {
		return false, *why
	}
	return true, ""
}

// mend starts the server again after its disk was full, until ctx ends.
func (s *coreServer) mend(ctx context.Context) {
	var mended time.Time
	seldom := mendAfter // before the server is started again for a broken disk
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.refused:
		}
		if s.full.Load() == 0 {
			continue // the server was started again since
		}
		after, again := mendAfter, "there is room on the disk of %s again: the embedded server is started again"
		if _, broken := s.refuses(); broken == "" {
			s.log.say(slog.LevelError, "the disk of %s is full: this core writes nothing down until there is room; delete files there or enlarge it", []any{s.cfg.Dir})
		} else {
			if seldom = 2 * seldom; time.Since(mended) > seldom {
				seldom = mendAfter
			}
			seldom = min(seldom, mendSeldom)
			after, again = seldom, "files can be written to %s again: the embedded server is started again"
			s.log.say(slog.LevelError, "%s cannot be written to: %s; this core writes nothing down until it can: check the disk, and who owns the directory", []any{s.cfg.Dir, broken})
		}
		for s.full.Load() != 0 && pause(ctx, mendEvery) {
			if time.Since(time.Unix(0, s.full.Load())) < after || tryRoom(s.cfg.Dir) != nil {
				continue
			}
			s.log.say(slog.LevelWarn, again, []any{s.cfg.Dir})
			mended = time.Now()
			if err := s.again(ctx); err != nil && ctx.Err() == nil {
				s.full.Store(time.Now().UnixNano())
				s.log.say(slog.LevelError, "the embedded server is tried again soon: %v", []any{err})
			}
		}
	}
}

// again ends the server and starts it. The connections to it come back by themselves.
func (s *coreServer) again(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	shut(s.srv())
	s.full.Store(0) // what it said at its end was about the same writes
	return s.launch(ctx)
}

// InProcessConn connects to the server that runs now.
func (s *coreServer) InProcessConn() (net.Conn, error) {
	srv := s.srv()
	if !srv.Running() {
		return nil, server.ErrServerNotRunning
	}
	return srv.InProcessConn()
}

// tryRoom writes a file of mendRoom bytes to the directory and removes it.
func tryRoom(dir string) error {
	f, err := os.CreateTemp(dir, "room-*")
	if err != nil {
		return fmt.Errorf("natslink: %w", err)
	}
	_, err = f.Write(make([]byte, mendRoom))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}
