// Package server wires an Anteroom process together: configuration, store, node, gateway,
// listeners. [New] opens everything, [Server.Run] serves until its context ends.
//
// A reload (SIGHUP, a changed file, POST /-/reload) takes one way: parse, check, build,
// swap. If any step fails the process goes on with what it had and says so in the log, in
// /-/status and in the metric anteroom_config_reload_success.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/proof"
	"github.com/anteroom/anteroom/route"
	"github.com/anteroom/anteroom/ticket"
)

// Options of a server.
type Options struct {
	// Load gives the configuration, at the start and at each reload. Required. Check belongs
	// into its config.LoadOptions.
	Load func() (config.Config, error)
	// Log; nil means none.
	Log *slog.Logger
	// Version is shown in /-/status and anteroom_build_info.
	Version string
	// LockWait is how long to wait for another process to let go of the data directory; it
	// is set when that process hands its listeners over. Zero means not at all.
	LockWait time.Duration
	// NewJournal drops a damaged journal instead of refusing to start; an intact one stays.
	NewJournal bool
	// Files are listeners that were inherited, by address as configured. See Inherited.
	Files map[string]net.Listener
}

// Check is what rooms must satisfy together; it belongs into config.LoadOptions.
func Check(cookieName string) func([]anteroom.Room) anteroom.Faults {
	return func(rooms []anteroom.Room) anteroom.Faults {
		faults := route.Check(rooms, cookieName)
		for i, r := range rooms {
			if r.CustomPageHTML == "" {
				continue
			}
			_, err := page.Compile(r.CustomPageHTML)
			if more, ok := errors.AsType[anteroom.Faults](err); ok {
				for _, f := range more {
					f.Problem = fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Problem)
					f.Path, f.Line, f.Column = fmt.Sprintf("rooms[%d].%s", i, f.Path), 0, 0
					faults = append(faults, f)
				}
			}
		}
		return faults
	}
}

// Server is a whole Anteroom process.
type Server struct {
	opts    Options
	log     *slog.Logger
	cfg     atomic.Pointer[config.Config]
	first   atomic.Pointer[config.Config] // what the process started with
	link    cluster.Link
	node    *node.Node
	gateway *gateway.Gateway
	certs   *certificates
	metrics http.Handler

	visitors  []net.Listener
	redirect  net.Listener
	admin     net.Listener
	listeners map[string]net.Listener // by configured address, to be handed over

	reloading sync.Mutex
	started   time.Time
	state     struct {
		sync.Mutex
		ready      bool
		stopping   bool
		reloadedAt time.Time
		reloadErr  error
		reloads    uint64
	}
}

// KeyFile is where a process with this data directory keeps its keys.
func KeyFile(data string) string { return filepath.Join(data, "keys.json") }

// New opens the store, starts the node and binds the listeners. On an error nothing is
// left open.
func New(ctx context.Context, o Options) (s *Server, err error) {
	cfg, err := o.Load()
	if err != nil {
		return nil, err
	}
	s = &Server{opts: o, log: o.Log, listeners: map[string]net.Listener{}, started: time.Now()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	// The listeners come first: an address in use is the most common mistake, and a
	// listener that was handed over must be held while the store is waited for.
	if err := s.listen(cfg); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, anteroom.Errorf(anteroom.Invalid, "the data directory cannot be made: %w (set data: to a directory that this user may write)", err)
	}
	if err := s.open(ctx, cfg, false); err != nil {
		if _, damaged := errors.AsType[*cluster.DamagedError](err); !damaged || s.link == nil {
			return nil, err
		}
		if !o.NewJournal {
			return nil, anteroom.Errorf(anteroom.Unavailable, "%w (start once with --new-journal to go on without it: sessions are then taken over from the visitors' cookies, and no more are admitted than the limits allow; or restore a backup of %s)", err, cfg.Data)
		}
		s.log.Error("the journal is damaged and was dropped, as --new-journal says", "error", err)
		if err := s.open(ctx, cfg, true); err != nil {
			return nil, err
		}
	}
	s.certs = newCertificates(s.link, s.log)
	if err := s.use(ctx, cfg); err != nil {
		return nil, err
	}
	s.metrics = s.newMetrics()
	return s, nil
}

// open opens the store and starts the node on it. Without forget, a damaged journal is an
// error; with it, the journal is dropped.
func (s *Server) open(ctx context.Context, cfg config.Config, forget bool) (err error) {
	if s.link != nil {
		s.link.Close()
		s.link = nil
	}
	link, err := natslink.Open(natslink.Config{Dir: filepath.Join(cfg.Data, "store"), LockWait: s.opts.LockWait, NewJournal: forget, Log: s.log})
	if err != nil {
		return err
	}
	s.link = link
	s.node, err = node.New(ctx, node.Config{Link: s.link, Forgot: forget, Log: s.log})
	return err
}

// use puts a configuration in force.
func (s *Server) use(ctx context.Context, cfg config.Config) error {
	now := time.Now()
	ring, created, err := ticket.LoadOrCreate(KeyFile(cfg.Data), now)
	if err != nil {
		return err
	}
	if created {
		s.log.Info("made a key file: it seals the visitors' tickets, keep it safe and do not share it", "file", KeyFile(cfg.Data))
	}
	gw, err := s.gatewayConfig(cfg, ring)
	if err != nil {
		return err
	}
	if err := s.certs.use(ctx, cfg.TLS); err != nil {
		return err
	}
	if err := s.node.Apply(ctx, cfg.Rooms); err != nil {
		return err
	}
	if s.gateway == nil {
		s.gateway, err = gateway.New(gw)
	} else {
		err = s.gateway.Swap(gw)
	}
	if err != nil {
		return err
	}
	s.cfg.Store(&cfg)
	s.first.CompareAndSwap(nil, &cfg)
	return nil
}

func (s *Server) gatewayConfig(cfg config.Config, ring *ticket.Keyring) (gateway.Config, error) {
	g := gateway.Config{
		Rooms: cfg.Rooms, Templates: map[anteroom.RoomID]*page.Template{}, Node: s.node, Keys: ring,
		ProofHeader: cfg.Proof.Header, CookieName: cfg.CookieName, TrustedProxies: cfg.TrustedProxies,
		MaxInFlight: cfg.Limits.RequestsInFlight,
		Timeouts:    gateway.Timeouts{Dial: cfg.Timeouts.OriginDial, ResponseHeader: cfg.Timeouts.OriginResponse},
		Log:         s.log,
	}
	for _, site := range cfg.Sites {
		one := gateway.Site{Hosts: site.Hosts, PreserveHost: site.PreserveHost,
			Health: gateway.Health{Path: site.Health.Path, Interval: site.Health.Interval, Timeout: site.Health.Timeout}}
		for _, o := range site.Origins {
			u, err := url.Parse(o)
			if err != nil {
				return g, anteroom.Errorf(anteroom.Invalid, "sites: origin %q: %w", o, err)
			}
			one.Origins = append(one.Origins, u)
		}
		g.Sites = append(g.Sites, one)
	}
	for _, r := range cfg.Rooms {
		if r.CustomPageHTML == "" {
			continue
		}
		t, err := page.Compile(r.CustomPageHTML)
		if err != nil {
			return g, err
		}
		g.Templates[r.WithDefaults().ID] = t
	}
	if cfg.Proof.Enabled {
		pc := proof.Config{Issuer: cfg.Proof.Issuer, SubjectKey: proof.Seed(ring.Fixed(ticket.PurposeSubject))}
		for _, d := range ring.Derive(ticket.PurposeProof) {
			pc.Keys = append(pc.Keys, proof.Key{ID: d.ID, Seed: proof.Seed(d.Secret)})
		}
		signer, err := proof.New(pc)
		if err != nil {
			return g, err
		}
		g.Proof = signer
	}
	return g, nil
}

// Gateway returns the visitors' handler, for tests and embedding.
func (s *Server) Gateway() http.Handler { return s.gateway }

// Addresses are what the listeners are bound to: with port 0 configured, the real one.
type Addresses struct {
	Visitors []string
	Admin    string
	Redirect string // empty when there is none
}

// Addresses returns what the server is bound to.
func (s *Server) Addresses() Addresses {
	var a Addresses
	for _, l := range s.visitors {
		a.Visitors = append(a.Visitors, l.Addr().String())
	}
	a.Admin = s.admin.Addr().String()
	if s.redirect != nil {
		a.Redirect = s.redirect.Addr().String()
	}
	return a
}

// Status returns the live numbers of every room, in the order of the configuration.
func (s *Server) Status() []anteroom.Status {
	var out []anteroom.Status
	for _, r := range s.Config().Rooms {
		if n := s.node.Room(r.ID); n != nil {
			out = append(out, n.Status())
		}
	}
	return out
}

// Config returns the configuration in force.
func (s *Server) Config() config.Config { return *s.cfg.Load() }

// Reload reads the configuration anew and puts it in force, or changes nothing and returns
// why. Listeners, the data directory and the log's settings need a restart; a change of them is said in the log.
func (s *Server) Reload(ctx context.Context, why string) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	cfg, err := s.opts.Load()
	if err == nil {
		err = s.use(ctx, cfg)
	}
	s.state.Lock()
	s.state.reloads++
	s.state.reloadedAt, s.state.reloadErr = time.Now(), err
	s.state.Unlock()
	if err != nil {
		s.log.Error("the new configuration was not taken; the last good one stays in force", "why", why, "error", err)
		return err
	}
	s.log.Info("the configuration was reloaded", "why", why, "rooms", len(cfg.Rooms))
	for _, what := range s.needRestart(cfg) {
		s.log.Warn("this change takes effect at the next restart", "key", what)
	}
	return nil
}

// Run serves until ctx ends or a listener fails, then lets requests finish.
func (s *Server) Run(ctx context.Context) error {
	defer s.close()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background sync.WaitGroup
	background.Go(func() { s.node.Run(work) })
	background.Go(func() { s.gateway.Run(work) })
	background.Go(func() { s.watch(work) })

	cfg := s.Config()
	visitors := s.visitorServer(cfg)
	admin := s.adminServer()
	failed := make(chan error, 4)
	serve := func(srv *http.Server, l net.Listener) {
		if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("listener %s: %w", l.Addr(), err)
		}
	}
	most := cfg.Limits.ConnectionsPerAddress
	if most == 0 {
		most = -1
	}
	for _, l := range s.visitors {
		l = gateway.Limit(l, most, cfg.TrustedProxies)
		if cfg.TLS.On() {
			l = tls.NewListener(l, visitors.TLSConfig)
		}
		go serve(visitors, l)
	}
	var redirect *http.Server
	if s.redirect != nil {
		redirect = s.redirectServer()
		go serve(redirect, gateway.Limit(s.redirect, most, nil))
	}
	go serve(admin, s.admin)
	s.setReady(true)
	s.log.Info("serving", "visitors", s.Addresses().Visitors, "admin", s.Addresses().Admin, "rooms", len(cfg.Rooms))

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.log.Info("stopping: no new connections, requests under way may finish", "within", s.Config().Timeouts.Drain.String())
	s.setStopping()
	if d := s.Config().Timeouts.DrainDelay; d > 0 && err == nil {
		s.log.Info("waiting for the load balancer to notice", "for", d.String())
		wait(work, d)
	}
	drain, done := context.WithTimeout(work, s.Config().Timeouts.Drain)
	defer done()
	var ending sync.WaitGroup
	ending.Go(func() { s.gateway.Drain(drain) })
	ending.Go(func() { end(drain, visitors) })
	if redirect != nil {
		ending.Go(func() { end(drain, redirect) })
	}
	ending.Wait()
	end(drain, admin)
	stop()
	background.Wait()
	s.log.Info("stopped: sessions and places are kept")
	return err
}

func end(ctx context.Context, srv *http.Server) {
	if srv.Shutdown(ctx) != nil {
		srv.Close()
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (s *Server) setReady(r bool) {
	s.state.Lock()
	defer s.state.Unlock()
	s.state.ready = r
}

func (s *Server) setStopping() {
	s.state.Lock()
	defer s.state.Unlock()
	s.state.ready, s.state.stopping = false, true
}

func (s *Server) visitorServer(cfg config.Config) *http.Server {
	srv := s.gateway.Server(s.log)
	srv.ReadHeaderTimeout = cfg.Timeouts.ReadHeader
	srv.IdleTimeout = cfg.Timeouts.Idle
	if cfg.TLS.On() {
		srv.TLSConfig = s.certs.config()
	}
	return srv
}

// close lets go of everything; safe at any stage.
func (s *Server) close() {
	for _, l := range s.listeners {
		l.Close()
	}
	if s.certs != nil {
		s.certs.close()
	}
	if s.link != nil {
		if err := s.link.Close(); err != nil {
			s.log.Error("the store did not close cleanly", "error", err)
		}
	}
}
