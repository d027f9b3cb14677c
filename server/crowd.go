package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/sim/demo/crowd"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

// crowds sends simulated visitors through this process's gateway, by HTTP over connections in memory. Each has an address
// of his own, as real visitors do. Once admitted, a visitor is answered here: the origin hears nothing of a crowd.
type crowds struct {
	s *Server

	mu   sync.Mutex
	room anteroom.RoomID
	last manage.CrowdStatus
	stop context.CancelFunc // nil: there was no crowd
}

func (c *crowds) Send(room anteroom.Room, what manage.Crowd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running() {
		return anteroom.Errorf(anteroom.Conflict, "another crowd was sent at the same moment")
	}
	ctx, cancel := context.WithTimeout(c.s.life, what.Over+manage.MaxCrowdTime)
	c.room, c.stop = room.ID, cancel
	c.last = manage.CrowdStatus{Crowd: what, Began: time.Now()}
	go func() {
		defer cancel()
		c.run(ctx, room, what)
	}()
	return nil
}

func (c *crowds) running() bool { return c.stop != nil && c.last.Ended.IsZero() }

func (c *crowds) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running()
}

func (c *crowds) Status(room anteroom.RoomID) manage.CrowdStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room != room {
		return manage.CrowdStatus{}
	}
	return c.last
}

func (c *crowds) Stop(room anteroom.RoomID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil && c.room == room {
		c.stop()
	}
}

// end stops the crowd that runs, whatever its room.
func (c *crowds) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
}

func (c *crowds) run(ctx context.Context, room anteroom.Room, what manage.Crowd) {
	l := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: c.s.gateway.Middleware(http.HandlerFunc(insideCrowd)), ConnContext: c.s.gateway.ConnContext,
		MaxHeaderBytes: anteroom.MaxHeaderBytes, ReadHeaderTimeout: crowdTimeout, ErrorLog: slog.NewLogLogger(c.s.log.Handler(), slog.LevelDebug)}
	go srv.Serve(l)
	defer srv.Close()
	at := room.Routes[0]
	host := at.Host
	if host == "*" {
		host = "localhost"
	}
	result, err := crowd.Run(ctx, crowd.Config{
		Target: "http://" + host, Paths: []string{at.Path}, Dial: l.dial, Route: crowdAddress,
		Arrivals: []crowd.Arrivals{{Visitors: what.Visitors, Over: what.Over}},
		Mix:      crowd.Mix{Leaving: 0.05, Plain: 0.2},
		Prompt:   true, Streams: what.Visitors, Timeout: crowdTimeout, Seed: uint64(time.Now().UnixNano()),
		CookiePrefix: c.s.Config().CookieName,
		Progress:     func(st crowd.Stats) { c.note(st, time.Time{}, "") },
	})
	failure := ""
	if err != nil {
		failure = err.Error()
	} else if len(result.Failures) > 0 {
		failure = result.Failures[0].What
	}
	c.note(result.Stats, time.Now(), failure)
}

func (c *crowds) note(st crowd.Stats, ended time.Time, failure string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last.Arrived, c.last.Waiting, c.last.Active, c.last.Admitted, c.last.GaveUp = st.Arrived, st.Waiting, st.Inside, st.Admitted, st.GaveUp
	c.last.Failed, c.last.Failure, c.last.Ended = st.Failures, failure, ended
	if !ended.IsZero() {
		c.last.Waiting, c.last.Active = 0, 0
	}
}

// crowdTimeout bounds a request of a crowd.
const crowdTimeout = 15 * time.Second

// insideCrowd answers in place of the origin.
func insideCrowd(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(shop.Mark, "1")
	io.WriteString(w, "You are in.\n")
}

// crowdAddress is the address that a visitor has, in the network for benchmarks of RFC 2544, 198.18.0.0/15: neighbours by
// number are in different /24 networks, as visitors are.
func crowdAddress(visitor int) string {
	a := netip.AddrFrom4([4]byte{198, 18 + byte(visitor>>16&1), byte(visitor), byte(visitor >> 8)})
	return netip.AddrPortFrom(a, 80).String()
}

// memoryListener accepts connections that never leave the process.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects a visitor whose address is where it connects to, see crowdAddress.
func (l *memoryListener) dial(ctx context.Context, _, address string) (net.Conn, error) {
	from, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	mine, theirs := net.Pipe()
	select {
	case l.conns <- &memoryConn{theirs, net.TCPAddrFromAddrPort(from)}:
		return mine, nil
	case <-l.closed:
		return nil, errors.New("the crowd has ended")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// memoryConn is a connection from an address.
type memoryConn struct {
	net.Conn
	from net.Addr
}

func (c *memoryConn) RemoteAddr() net.Addr { return c.from }
