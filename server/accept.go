package server

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/config"
)

const (
	// refusingFor is how long after a connection could not be accepted this process says that it is
	// not ready. net/http tries again within a second while connections wait.
	refusingFor = 5 * time.Second
	// refusedEvery bounds the log lines about it.
	refusedEvery = time.Minute
)

// watched notices connections that the system does not let it accept: net/http tries again without
// a word, and newcomers time out.
type watched struct {
	net.Listener
	s *Server
}

func (l watched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil && slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}, func(e error) bool { return errors.Is(err, e) }) {
		l.s.refused(l.Addr().String(), err)
	}
	return c, err
}

func (s *Server) refused(address string, err error) {
	now := time.Now()
	s.refusedAt.Store(now.UnixNano())
	if said := s.refusedSaid.Load(); now.Sub(time.Unix(0, said)) > refusedEvery && s.refusedSaid.CompareAndSwap(said, now.UnixNano()) {
		s.log.Error("cannot accept connections: new visitors time out and this node is not ready; raise the limit of open files (LimitNOFILE, ulimit -n)",
			"address", address, "error", err.Error(), "limit", openFiles())
	}
}

// refusing reports whether connections could not be accepted a moment ago.
func (s *Server) refusing() bool {
	return time.Since(time.Unix(0, s.refusedAt.Load())) < refusingFor
}

// sayOpenFiles logs the limit of open files, which the Go runtime has raised as far as it may; a warning if it
// is less than the requests in flight and their connections to origins need.
func sayOpenFiles(log *slog.Logger, cfg config.Config) {
	need := uint64(2*cfg.Limits.RequestsInFlight + 64)
	switch limit := openFiles(); {
	case limit == 0:
	case limit < need:
		log.Warn("limits.requests_in_flight can need more open files than this process may have: beyond them, connections wait and requests to the origin fail (raise LimitNOFILE or ulimit -n, or lower it)",
			"limit", limit, "needed", need)
	default:
		log.Debug("open files", "limit", limit)
	}
}
