package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/gateway/h1"
	"github.com/anteroom/anteroom/internal/walltime"
)

const (
	// freshTime is how long a connection that was just made may take to bring its request
	// before a server ends. Browsers keep spare connections that bring none.
	freshTime = 300 * time.Millisecond
	// arrivalTime is how long a request that has begun to arrive may take to reach the handler.
	arrivalTime = 50 * time.Millisecond
)

// draining is a server that ends without dropping a request that is on its way.
// [http.Server.Shutdown] alone does: from its first moment on, net/http closes every
// connection on which a request arrives, unanswered, also one made the moment before.
type draining struct {
	*h1.Server
	listeners []net.Listener
	fresh     sync.Map // net.Conn: connections without a request so far
	count     atomic.Int64
	ending    atomic.Bool // the listeners are closed on purpose
}

func newDraining(srv *h1.Server, listeners ...net.Listener) *draining {
	d := &draining{Server: srv, listeners: listeners}
	next := srv.ConnState
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			d.fresh.Store(c, nil)
			d.count.Add(1)
		} else if _, was := d.fresh.LoadAndDelete(c); was {
			d.count.Add(-1)
		}
		if next != nil {
			next(c, state)
		}
	}
	return d
}

// Serve is [http.Server.Serve], except that a listener closed by end is not a failure.
func (d *draining) Serve(l net.Listener) error {
	if err := d.Server.Serve(l); !d.ending.Load() {
		return err
	}
	return http.ErrServerClosed
}

// end stops accepting, lets new connections bring their requests, and returns when all
// requests are answered or ctx ends.
func (d *draining) end(ctx context.Context) {
	d.ending.Store(true)
	for _, l := range d.listeners {
		l.Close()
	}
	// Idle connections end now, the others with the answer they wait for.
	d.SetKeepAlivesEnabled(false)
	bound, done := context.WithTimeout(ctx, freshTime)
	defer done()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for d.count.Load() > 0 && bound.Err() == nil {
		select {
		case <-tick.C:
		case <-bound.Done():
		}
	}
	walltime.Sleep(ctx, arrivalTime)
	// Shutdown would wait five seconds for those that bring nothing.
	d.fresh.Range(func(c, _ any) bool {
		c.(net.Conn).Close()
		return true
	})
	end(ctx, d)
}
