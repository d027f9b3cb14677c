package natslink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// NATS writes nothing more to a stream once the file system has refused a write of it, until
// the server starts again. So it is started again when there is room.
const (
	// mendAfter is how long after the first refused write the server is started again at the
	// earliest, and how long it then has at least.
	mendAfter = 10 * time.Second
	// mendEvery is how often the disk is tried meanwhile.
	mendEvery = 2 * time.Second
	// mendRoom is what must fit on the disk then, in bytes.
	mendRoom = 4 << 20
)

// refusal says whether a complaint of the server is about a disk that takes nothing more.
func refusal(complaint string) bool {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if strings.Contains(complaint, full.Error()) {
			return true
		}
	}
	return strings.Contains(complaint, "JetStream out of")
}

// heed notes a complaint of the server.
func (s *coreServer) heed(complaint string) {
	if strings.Contains(complaint, removal) {
		s.retire()
	}
	if refusal(complaint) && s.full.CompareAndSwap(0, time.Now().UnixNano()) {
		select {
		case s.refused <- struct{}{}:
		default:
		}
	}
}

// mend starts the server again after its disk was full, until ctx ends.
func (s *coreServer) mend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.refused:
		}
		if s.full.Load() == 0 {
			continue // the server was started again since
		}
		s.log.say(slog.LevelError, "the disk of %s is full: this core writes nothing down until there is room; delete files there or enlarge it", []any{s.cfg.Dir})
		for s.full.Load() != 0 && pause(ctx, mendEvery) {
			if time.Since(time.Unix(0, s.full.Load())) < mendAfter || tryRoom(s.cfg.Dir) != nil {
				continue
			}
			s.log.say(slog.LevelWarn, "there is room on the disk of %s again: the embedded server is started again", []any{s.cfg.Dir})
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
