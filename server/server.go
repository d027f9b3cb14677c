// Package server wires an Anteroom process together: configuration, store, node, gateway, listeners. [New] opens
// everything, and [Server.Run] serves until its context ends.
//
// A reload (SIGHUP, a changed file, POST /-/reload) always takes the same steps: parse, check, build, swap. If any step
// fails, the process continues with the previous configuration and reports that in the log, in /-/status and in the
// metric anteroom_config_reload_success.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics/store"
	"github.com/anteroom/anteroom/bridge/queueit"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/manage/webhook"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/rules/crawler"
	"github.com/anteroom/anteroom/rules/geo"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/account"
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
	// NewJournal drops a damaged journal instead of refusing to start; an intact one stays.
	NewJournal bool
	// Inherited are listeners that another process passed on; nil means none.
	Inherited *Inheritance
	// PushNetworks are networks that web push may reach although they are not public, even over plain HTTP. Any visitor chooses where
	// messages go, so only tests set it, and no configuration can; nil means none.
	PushNetworks []netip.Prefix

	resolver crawler.Resolver // of crawlers' names; nil means the system's
	// For tests: how long conditions last before webhooks report them, and how often they are checked.
	webhookPace webhook.Pace
	webhookLook time.Duration
	acmeRoots   *x509.CertPool // whom to believe when talking to the authority, in tests
}

// Server is a whole Anteroom process.
type Server struct {
	opts       Options
	log        *slog.Logger
	cfg        atomic.Pointer[config.Config]
	first      atomic.Pointer[config.Config] // what the process started with
	read       map[string]os.FileInfo        // what the files looked like then
	link       cluster.Link
	node       *node.Node
	ring       *sharedRing                   // of the cluster; nil for a process alone, whose keys are in a file
	taken      atomic.Pointer[cluster.Entry] // of other nodes' configurations; nil: nothing
	sharing    chan []byte                   // what share tells
	digest     atomic.Pointer[string]        // see useShared
	shared     []byte                        // what share has told last
	gateway    *gateway.Gateway
	analytics  *store.Store // nil: this process keeps none
	manage     *manage.Manager
	webhooks   *webhooks
	pushes     *pushes
	rehearsals rehearsals
	crowds     crowds
	accounts   *account.Sources // keys for rooms with accounts
	bridges    bridges          // do not change after the start, nor do the next three
	queueIt    *queueit.Bridge
	connected  []connected
	former     []former
	inForce    inForce
	certs      *certificates
	adminCert  atomic.Pointer[tls.Certificate] // nil while operators are served over plain HTTP
	metrics    http.Handler
	keyring    atomic.Pointer[ticket.Keyring] // in force
	tracing    atomic.Pointer[tracer]         // in force; nil: nothing is traced

	traceFailures atomic.Uint64

	crawlers *crawler.Verifier
	geo      atomic.Pointer[geo.Databases] // in force; nobody else writes while a configuration is prepared

	life    context.Context // of work that outlasts the request that began it
	endLife context.CancelFunc
	handed  atomic.Bool   // the listeners are another process's now
	over    chan struct{} // closed with handed: Run ends
	leaves  chan struct{} // closed when this core is to be removed, see leave
	left    chan struct{} // closed when it may be
	program string        // where this program stood when it began; a new version stands there later

	visitors  []net.Listener
	redirect  net.Listener
	askers    net.Listener // for proxies that ask; nil without forward_auth
	admin     net.Listener
	listeners map[string]net.Listener // by configured address, to be handed over

	reloading   sync.Mutex
	started     time.Time
	refusedAt   atomic.Int64 // when a connection could not be accepted, in nanoseconds since 1970
	refusedSaid atomic.Int64 // when the log said so
	state       struct {
		sync.Mutex
		ready      bool
		stopping   bool
		leaving    bool // leaves is closed
		reloadedAt time.Time
		reloadErr  error
		reloads    uint64
	}
}

// KeyFile is where a process with this data directory keeps its keys.
func KeyFile(data string) string { return filepath.Join(data, "keys.json") }

// IsCluster reports whether a data directory belongs to a node of a cluster, whose keys are in the store of the cluster. Its key
// file is read at the first start only.
func IsCluster(data string) bool {
	return natslink.IsClusters(clusterDir(data)) && !wasStandalone(data)
}

// New opens the store, starts the node and binds the listeners. On an error nothing is
// left open.
func New(ctx context.Context, o Options) (_ *Server, err error) {
	cfg, err := o.Load()
	if err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Server{opts: o, log: o.Log, listeners: map[string]net.Listener{}, started: time.Now(), sharing: make(chan []byte, 1), over: make(chan struct{}), leaves: make(chan struct{}), left: make(chan struct{}), bridges: bridges{}}
	s.crowds.s = s
	s.program, _ = os.Executable()
	s.crawlers = crawler.New(o.resolver)
	s.life, s.endLife = context.WithCancel(context.WithoutCancel(ctx))
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
	var p prepared
	if !cfg.Cluster.On() { // before another process is told to stop
		if p, err = s.prepare(ctx, cfg); err != nil {
			return nil, err
		}
	}
	// A standalone process goes on when the cluster that is to take its place cannot be reached.
	early := cfg.Cluster.On() && wasStandalone(cfg.Data)
	if early {
		if err := s.joinCluster(ctx, cfg, 0); err != nil {
			return nil, err
		}
	}
	lockWait := time.Duration(0)
	if o.Inherited.handedOver() {
		// Now the other process may stop: all that is left is what it lets go of.
		if err := o.Inherited.takeOver(); err != nil {
			return nil, err
		}
		lockWait = takeOverTime
	}
	if cfg.Cluster.On() {
		if !early {
			if err := s.joinCluster(ctx, cfg, lockWait); err != nil {
				return nil, err
			}
		}
		if err := s.openCluster(ctx, cfg, lockWait); err != nil {
			return nil, err
		}
		if cfg, err = s.withShared(ctx, cfg); err != nil {
			return nil, err
		}
		if p, err = s.prepare(ctx, cfg); err != nil {
			return nil, err
		}
	} else if err := s.openStore(ctx, cfg, lockWait); err != nil {
		return nil, err
	}
	s.openAnalytics(cfg)
	s.certs = s.newCertificates(cfg.TLS.ACME)
	if err := s.openQueueIt(cfg, p.ring); err != nil { // which says how the rooms are served
		return nil, err
	}
	if err := s.openFastly(cfg, p.ring); err != nil {
		return nil, err
	}
	if err := s.useFirst(ctx, p); err != nil {
		return nil, err
	}
	if err := s.openBridges(ctx, cfg); err != nil {
		return nil, err
	}
	s.read = fingerprints(s.files())
	s.metrics = s.newMetrics()
	return s, nil
}

// openStore opens the store and starts the node on it. A damaged journal is an error unless
// the operator has said to go on without.
func (s *Server) openStore(ctx context.Context, cfg config.Config, lockWait time.Duration) error {
	err := s.openWith(ctx, cfg, lockWait, false)
	damage, damaged := errors.AsType[*cluster.DamagedError](err)
	if !damaged || s.link == nil {
		return err
	}
	if !damage.Copy && !s.opts.NewJournal {
		return anteroom.Errorf(anteroom.Unavailable, "%w (to continue without it, start once with --new-journal: sessions are then recovered from the visitors' cookies, and admissions stay within the limits; or restore a backup of %s)", err, cfg.Data)
	}
	if damage.Copy {
		s.log.Error("the data directory is a copy, so its journal may be outdated: recovering sessions and places from the visitors' cookies, and admitting "+
			"no new visitor until every session that may exist has come back or expired", "error", err)
	} else {
		s.log.Error("the journal is damaged and was dropped because of --new-journal", "error", err)
	}
	if err := node.Forget(ctx, s.link); err != nil {
		return err
	}
	return s.openWith(ctx, cfg, lockWait, true)
}

func (s *Server) openWith(ctx context.Context, cfg config.Config, lockWait time.Duration, forget bool) (err error) {
	if s.link != nil {
		s.link.Close()
		s.link = nil
	}
	link, err := natslink.Open(natslink.Config{Dir: storeDir(cfg.Data), LockWait: lockWait, NewJournal: forget, Log: s.log})
	if err != nil {
		return err
	}
	s.link = link
	s.node, err = node.New(ctx, node.Config{Link: s.link, Forgot: forget, Minutes: s.keepMinutes(cfg), Log: s.log})
	return err
}

// Addresses are what the listeners are bound to: with port 0 configured, the real one.
type Addresses struct {
	Visitors []string
	Admin    string
	Redirect string // empty when there is none
	// ForwardAuth is for proxies that ask; empty when there is none.
	ForwardAuth string
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
	if s.askers != nil {
		a.ForwardAuth = s.askers.Addr().String()
	}
	return a
}

// Status returns the live numbers of every room, those of the configuration first.
func (s *Server) Status() []anteroom.Status {
	var out []anteroom.Status
	for _, r := range s.rooms() {
		if n := s.node.Room(r.ID); n != nil {
			out = append(out, n.Status())
		}
	}
	return out
}

// Config returns the configuration in force.
func (s *Server) Config() config.Config { return *s.cfg.Load() }

// Reload reads the configuration again and puts it in force, or changes nothing and returns why. Some changes need a
// restart, like a new listener; the log names them.
func (s *Server) Reload(ctx context.Context, why string) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.notify("RELOADING=1")
	defer s.notify(readyNow())
	cfg, err := s.opts.Load()
	if err == nil && s.ring != nil {
		cfg, err = s.withShared(ctx, cfg)
	}
	if err == nil {
		var p prepared
		if p, err = s.prepare(ctx, cfg); err == nil {
			err = s.use(ctx, p)
		}
	}
	s.state.Lock()
	s.state.reloads++
	s.state.reloadedAt, s.state.reloadErr = time.Now(), err
	s.state.Unlock()
	if err != nil {
		s.log.Error("the new configuration is invalid; the last good one stays in force", "why", why, "error", err)
		return err
	}
	s.log.Info("configuration reloaded", "why", why, "rooms", s.manage.State().Len())
	for _, what := range s.needRestart(cfg) {
		s.log.Warn("this change takes effect at the next restart", "key", what)
	}
	return nil
}
