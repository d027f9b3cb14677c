package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/h1"
	"github.com/anteroom/anteroom/internal/walltime"
)

// decideTime is how long requests that have arrived may take to be decided when another
// process waits for the data directory; what they do after that needs none of it.
const decideTime = time.Second

// asideWithin bounds how long a core that stops waits for others to lead the store in its place.
const asideWithin = time.Second

// bequeathWithin bounds how long a node that stops waits for others to prepare for its roles.
const bequeathWithin = 2 * time.Second

// bequeath has other nodes prepare for the roles held here.
func (s *Server) bequeath(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, bequeathWithin)
	defer cancel()
	s.node.Bequeath(ctx)
}

// Run serves until ctx ends or a listener fails, then lets requests finish. After HandOver
// the data directory is let go of as soon as the requests that have arrived are decided.
func (s *Server) Run(ctx context.Context) error {
	defer s.close()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background sync.WaitGroup
	nodeEnded := make(chan struct{})
	var unrecorded error
	deciding, endNode := context.WithCancel(work)
	defer endNode()
	background.Go(func() { defer close(nodeEnded); unrecorded = s.node.Run(deciding) })
	background.Go(func() { s.gateway.Run(work) })
	background.Go(func() { s.watch(work) })
	background.Go(func() { s.crawlers.Run(work) })
	background.Go(func() { s.runAnalytics(nodeEnded) })
	background.Go(func() { s.pushes.book.Follow(work) })
	background.Go(func() { s.webhooks.run(work) })
	background.Go(func() { s.bridges.run(work) })
	if s.ring != nil {
		background.Go(func() { s.followCluster(work) })
	}

	servers, failed := s.serve()
	if s.ring == nil {
		s.setReady(true)
	} else {
		background.Go(func() { s.becomeReady(work) })
	}
	sayOpenFiles(s.log, s.Config())
	s.log.Info("serving", "visitors", s.Addresses().Visitors, "admin", s.Addresses().Admin, "rooms", s.manage.State().Len())
	debug.FreeOSMemory() // with ten thousand rooms, the start left a hundred megabytes behind
	s.notify(readyNow())

	var err error
	select {
	case <-ctx.Done():
	case <-s.over:
	case err = <-failed:
	case <-s.leaves:
	case <-natslink.Removed(s.link):
		s.sayRemoved()
	}
	timeouts, handed := s.Config().Timeouts, s.handed.Load()
	leaving := s.setStopping() && !handed
	s.log.Info("stopping: no new connections, requests under way may finish", "within", timeouts.Drain.String())
	if !handed {
		s.notify("STOPPING=1")
		if timeouts.DrainDelay > 0 && err == nil {
			s.log.Info("waiting for the load balancer to notice", "for", timeouts.DrainDelay.String())
			walltime.Sleep(work, timeouts.DrainDelay)
		}
	}
	if s.ring != nil {
		aside, end := context.WithTimeout(work, asideWithin)
		natslink.StepAside(aside, s.link)
		end()
	}
	drain, done := context.WithTimeout(context.WithoutCancel(ctx), timeouts.Drain)
	defer done()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var ending sync.WaitGroup
		ending.Go(func() { s.gateway.Drain(drain) })
		for _, srv := range servers.visitors {
			ending.Go(func() { srv.end(drain) })
		}
		if handed { // two processes must not answer operators
			ending.Go(func() { end(drain, servers.admin) })
		}
		ending.Wait()
	}()
	if handed {
		select {
		case <-ended:
		case <-time.After(decideTime):
		}
		s.node.Release()
		stop()
		background.Wait()
		s.closeStore()
	}
	if leaving {
		select {
		case <-ended:
		case <-time.After(decideTime):
		}
		s.bequeath(work)
		endNode()
		<-nodeEnded // its roles are handed over, and its doors have said their last words
		close(s.left)
		err = errors.Join(err, s.awaitRemoval(ctx))
	}
	<-ended
	if s.ring != nil && !handed && !leaving {
		s.bequeath(work)
	}
	end(drain, servers.admin)
	stop()
	background.Wait()
	if unrecorded != nil {
		s.log.Error("stopped, but the last changes are not recorded; after the next start, seats of existing sessions stay reserved until these expire", "error", unrecorded)
		return errors.Join(err, unrecorded)
	}
	s.log.Info("stopped: sessions and places are kept")
	return err
}

// removedWithin is how long a core that has stopped to be removed waits for that. It is one of the majority until then.
const removedWithin = 30 * time.Second

// leave has Run stop as an operator does, because this core is to be removed: visitors go to other nodes, and those have all
// that it did. It returns when that is so, or when ctx ends. The core then waits for a moment to be removed, and ends.
func (s *Server) leave(ctx context.Context) error {
	s.state.Lock()
	asked, stopping := s.state.leaving, s.state.stopping
	if !asked && !stopping {
		s.state.leaving = true
		close(s.leaves)
	}
	s.state.Unlock()
	if !asked && stopping {
		return anteroom.Errorf(anteroom.Conflict, "this core is already stopping")
	}
	select {
	case <-s.left:
	case <-ctx.Done():
		s.log.Warn("this core is to be removed, and still serves requests", "error", ctx.Err())
	}
	return nil
}

// awaitRemoval waits until the other cores have removed this one, which has left.
func (s *Server) awaitRemoval(ctx context.Context) error {
	select {
	case <-natslink.Removed(s.link):
		s.sayRemoved()
	case <-ctx.Done():
	case <-time.After(removedWithin):
		return anteroom.Errorf(anteroom.Unavailable, "this core stopped because it was to be removed, but was not removed within %v: start it again, then repeat the command", removedWithin)
	}
	return nil
}

func (s *Server) sayRemoved() {
	s.log.Warn("the other cores have removed this one, so it stops; it does not start again as a core on its data directory")
}

// servers are the HTTP servers of a process. The first two kinds face visitors.
type servers struct {
	visitors []*draining
	admin    *http.Server
}

// serve starts serving on every listener. A listener that fails is told on the channel.
func (s *Server) serve() (servers, <-chan error) {
	cfg := s.Config()
	failed := make(chan error, len(s.visitors)+3)
	start := func(serve func(net.Listener) error, l net.Listener) {
		go func() {
			if err := serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("listener %s: %w", l.Addr(), err)
			}
		}()
	}
	most := cfg.Limits.ConnectionsPerAddress
	if most == 0 {
		most = -1 // gateway.Limit's word for no bound
	}
	visitors := newDraining(s.visitorServer(cfg), s.visitors...)
	all := servers{visitors: []*draining{visitors}, admin: s.adminServer()}
	for _, l := range s.visitors {
		l = gateway.Limit(watched{l, s}, most, cfg.TrustedProxies)
		if cfg.TLS.On() {
			l = tls.NewListener(l, visitors.TLSConfig)
		}
		start(visitors.Serve, l)
	}
	if s.redirect != nil {
		redirect := newDraining(h1.NewServer(s.redirectServer()), s.redirect)
		all.visitors = append(all.visitors, redirect)
		start(redirect.Serve, gateway.Limit(s.redirect, most, cfg.TrustedProxies))
	}
	if s.askers != nil {
		asked := newDraining(s.forwardAuthServer(cfg), s.askers)
		all.visitors = append(all.visitors, asked)
		start(asked.Serve, s.askers)
	}
	admin := s.admin
	if cfg.AdminTLS.On() {
		admin = tls.NewListener(admin, all.admin.TLSConfig)
	}
	start(all.admin.Serve, admin)
	return all, failed
}

func (s *Server) visitorServer(cfg config.Config) *h1.Server {
	srv := s.gateway.Server(s.log)
	srv.Handler = s.withHealth(srv.Handler)
	if len(s.bridges) > 0 || s.queueIt != nil {
		srv.Handler = s.withBridges(srv.Handler)
	}
	srv.ReadHeaderTimeout = cfg.Timeouts.ReadHeader
	srv.IdleTimeout = cfg.Timeouts.Idle
	if cfg.TLS.On() {
		srv.TLSConfig = s.certs.config()
	}
	return srv
}

// Times of the listener for proxies.
const (
	// verdictTime is from a question to the end of its answer. A visitor may be held for a moment before.
	verdictTime = 15 * time.Second
	// verdictIdle is until the next question on a connection. Proxies keep theirs open, for less than that.
	verdictIdle = 5 * time.Minute
)

// forwardAuthServer answers proxies that ask for verdicts. It leaves them to net/http, which bounds the whole answer.
func (s *Server) forwardAuthServer(cfg config.Config) *h1.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // Envoy's gRPC
	return h1.NewServer(&http.Server{
		Protocols:         &protocols,
		Handler:           s.gateway.ForwardAuth(),
		ReadHeaderTimeout: cfg.Timeouts.ReadHeader,
		ReadTimeout:       verdictTime,
		WriteTimeout:      verdictTime,
		IdleTimeout:       verdictIdle,
		// Over HTTP/2 the WriteTimeout is of streams, and ends none while the connection takes nothing. What the kernel takes as its
		// buffer grows counts as progress, twice or so.
		HTTP2:          &http.HTTP2Config{WriteByteTimeout: verdictTime / 3},
		MaxHeaderBytes: 2 * anteroom.MaxHeaderBytes, // the visitor's, with the address once more
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	})
}

func end(ctx context.Context, srv interface {
	Shutdown(context.Context) error
	Close() error
}) {
	if srv.Shutdown(ctx) != nil {
		srv.Close()
	}
}

const (
	// readyWithin is after how long a node counts as ready that reaches nobody who decides: it
	// lets in whoever has a session and gives places.
	readyWithin = 10 * time.Second
	// readyAgain is between two looks.
	readyAgain = 100 * time.Millisecond
)

// becomeReady says that a node of a cluster is ready: when its rooms have somebody who decides about
// them, or after readyWithin.
func (s *Server) becomeReady(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for !s.node.Decided(within) && within.Err() == nil {
		walltime.Sleep(within, readyAgain)
	}
	s.setReady(true)
}

func (s *Server) setReady(r bool) {
	s.state.Lock()
	defer s.state.Unlock()
	s.state.ready = r && !s.state.stopping
}

// setStopping reports whether the core is to be removed.
func (s *Server) setStopping() (leaving bool) {
	s.state.Lock()
	defer s.state.Unlock()
	s.state.ready, s.state.stopping = false, true
	s.crowds.end()
	return s.state.leaving
}

// close lets go of everything; safe at any stage.
func (s *Server) close() {
	for _, l := range s.listeners {
		l.Close()
	}
	s.closeStore()
	if t := s.tracing.Swap(nil); t != nil {
		t.stop()
	}
}

func (s *Server) closeStore() {
	s.endLife()
	if s.certs != nil {
		s.certs.close()
	}
	if s.analytics != nil {
		if err := s.analytics.Close(); err != nil {
			s.log.Error("the analytics file did not close cleanly", "error", err)
		}
	}
	if s.link != nil {
		if err := s.link.Close(); err != nil {
			s.log.Error("the store did not close cleanly", "error", err)
		}
	}
}
