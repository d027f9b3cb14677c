package natslink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/anteroom/anteroom/cluster"
)

// ClusterConfig says which part of which cluster this process is. A process is a core, an
// edge, or a client of the operator's own NATS: see docs/cluster.md.
type ClusterConfig struct {
	// Dir is the directory of the cluster's things on this machine; it is made (0700) if it
	// is not there. It belongs to this cluster, site and node for ever. Required.
	Dir string
	// LockWait is how long Join waits for another process to let go of the directory. Zero
	// means not at all.
	LockWait time.Duration

	// Cluster, Site and Node are 1 to 32 lower-case letters, digits and hyphens. Cluster is
	// the same everywhere, Site in one data centre, Node is this process's alone, always.
	Cluster, Site, Node string

	// Secret is what all processes of the cluster share: at least minSecret bytes that
	// nobody can guess. Certificates and keys are derived from it. An edge may have a secret
	// of its own instead, with which it cannot write what cores alone write: see [EdgeSecret].
	Secret string
	// ShutOut are the names of edges that a core lets in no more, if they have secrets of their own.
	ShutOut []string
	// OtherSecret is accepted beside Secret while the secret is changed; empty means none.
	OtherSecret string
	// TLS names certificates to use instead of those derived from the secret, which is
	// needed all the same.
	TLS TLSFiles

	// Listen is the address "host:port" at which a core answers: port is for the processes
	// of its site, port+1 for the other cores, port+2 for other sites. Empty with Cores and
	// Join empty means a core of its own that nobody can reach.
	Listen string
	// Cores are the addresses (Listen) of all cores of the site, this one among them, in
	// any order: none for a single core, else 3 or 5.
	Cores []string
	// Join makes the process an edge: the addresses of cores of its site, one at least.
	Join []string
	// Hub are addresses (Listen) of cores of the hub site. Empty means that this site is
	// the hub. Edges need not give it.
	Hub []string

	// External is the operator's own NATS, instead of Listen, Cores, Join and Hub.
	External *External

	// MaxStore and MaxMemory bound what a core keeps on disk and in memory, in bytes. Zero
	// means 8 GiB and 256 MiB.
	MaxStore, MaxMemory int64
	// Log takes what happens; nil means nothing.
	Log *slog.Logger
}

// TLSFiles are PEM files: the certificate of this process with its chain, its key, and the
// authorities that the certificates of the others come from. All three or none.
type TLSFiles struct{ Cert, Key, CA string }

// External says how the operator's own NATS is reached.
type External struct {
	// URLs are nats:// or tls:// addresses.
	URLs []string
	// SiteCredentials and SharedCredentials are files (.creds) of two accounts: that of this
	// site and that which all sites reach. One of them empty means that both are the same.
	// Both empty is for a server without authentication on a loopback address.
	SiteCredentials, SharedCredentials string
	// SharedDomain is the JetStream domain where the shared account's assets are; empty
	// means that of the servers.
	SharedDomain string
	// Replicas of every asset: 1, 3 or 5. Zero means 3 where the servers are a cluster, else 1.
	Replicas int
	// Hub: this site runs the coordinators.
	Hub bool
}

// attachment is this process's way into the cluster's engine.
type attachment struct {
	cfg    ClusterConfig
	lock   *dirLock
	server *coreServer // nil without one in this process

	// site and shared are connections to the two accounts: of this site alone, and of all
	// sites. They reconnect for ever by themselves and keep nothing back while they are
	// away. In one account of the operator's own NATS both are of the same account.
	site, shared *nats.Conn
	system       *nats.Conn // of a core; nil else

	siteWatch, sharedWatch *watcher

	// hubDomain is the JetStream domain of the assets of the shared account; those of the
	// site are where the API without a domain leads.
	hubDomain string
	// siteName and sharedName begin the names of streams, and with a dot the subjects, of
	// this site and of the whole cluster: other clusters may use the same accounts.
	siteName, sharedName string
	core                 bool        // a server runs in this process
	deaf                 atomic.Bool // the core in this process hears no other
	aside                atomic.Bool // others lead what this core led, see StepAside

	closing  sync.Once
	closeErr error

	// An edge learns these from its core; they are what they stay once ready returned nil.
	mu       sync.Mutex
	hub      bool   // this site is the hub
	replicas int    // of assets of this site: 1, 3 or 5
	siteID   string // the site's name
}

// attach starts the server of a core and the connections of every process. It does not
// wait for others: see ready. Its errors are of the configuration, the directory, the
// address.
func attach(ctx context.Context, cfg ClusterConfig) (*attachment, error) {
	shape, err := checkCluster(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	a := &attachment{
		cfg: cfg, core: shape != shapeNone, hubDomain: hubDomain,
		siteName: ownNames, sharedName: ownNames,
		hub: shape != shapeNone && len(cfg.Hub) == 0, replicas: max(1, len(cfg.Cores)),
	}
	if a.lock, err = lockDir(cfg.Dir, cfg.LockWait); err != nil {
		return nil, err
	}
	if err := a.start(ctx, shape); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	return a, nil
}

func (a *attachment) start(ctx context.Context, shape string) error {
	l, err := checkClusterLayout(a.cfg.Dir, layout{a.cfg.Cluster, a.cfg.Site, a.cfg.Node, shape})
	if err != nil {
		return err
	}
	a.siteID = l.site
	if a.core {
		if err := checkHub(a.cfg.Dir, a.cfg); err != nil {
			return err
		}
	}
	if shape, err = a.keep(shape, l.shape); err != nil {
		return err
	}
	if a.cfg.External != nil {
		return a.connectExternal()
	}
	c, err := newCredentials(a.cfg, a.core)
	if err != nil {
		return err
	}
	if !a.core {
		return a.connectEdge(c)
	}
	if a.server, err = startCore(ctx, a.cfg, shape, c); err != nil {
		return err
	}
	return a.connectCore()
}

// keep makes a core what it was before, alone or one of several, where its configuration says something else: only
// [Grow] and [Shrink] change that. It returns what it is.
func (a *attachment) keep(want, have string) (shape string, err error) {
	log := a.cfg.Log
	switch {
	case want == shapeSingle && have == shapeMember:
		if a.cfg.Listen == "" {
			return "", fmt.Errorf("cluster: %s holds the store of one of several cores, which needs listen", a.cfg.Dir)
		}
		cores, err := keptCores(a.cfg.Dir)
		if err != nil {
			return "", err
		}
		a.setCores(cores)
		log.Warn("cores lists no others, and this core is one of several: it goes on with them; anteroom cluster shrink makes it the only one", "cores", cores)
	case want == shapeMember && have == shapeSingle:
		log.Warn("this core keeps its data alone, and cores lists others: it goes on alone; anteroom cluster add makes it one of them", "cores", a.cfg.Cores)
		a.setCores(nil)
	case want == shapeMember:
		return want, writeFile(a.cfg.Dir, coresName, strings.Join(a.cfg.Cores, "\n")+"\n")
	default:
		return want, nil
	}
	return have, nil
}

// checkCluster refuses what cannot work, and returns what kind of server runs here.
func checkCluster(cfg ClusterConfig) (shape string, err error) {
	if cfg.Dir == "" {
		return "", errors.New("cluster: no directory given")
	}
	edge := len(cfg.Join) > 0
	for _, name := range []struct{ what, value string }{{"name", cfg.Cluster}, {"site", cfg.Site}, {"node", cfg.Node}} {
		if name.what == "site" && name.value == "" && edge {
			continue // it learns it
		}
		if !isName(name.value) {
			return "", fmt.Errorf("cluster: %s %q: 1 to %d lower-case letters, digits and hyphens are allowed, a letter or digit first and last", name.what, name.value, maxName)
		}
	}
	for _, secret := range []struct{ what, value string }{{"", cfg.Secret}, {"the other ", cfg.OtherSecret}} {
		if secret.value == "" {
			continue
		}
		if err := CheckSecret(secret.value, !edge); err != nil {
			return "", fmt.Errorf("cluster: %s%w", secret.what, err)
		}
	}
	protected := cfg.Secret != "" || cfg.TLS != (TLSFiles{})
	switch {
	case cfg.External != nil:
		if edge || cfg.Listen != "" || len(cfg.Cores) > 0 || len(cfg.Hub) > 0 {
			return "", errors.New("cluster: with nats, the servers are yours: listen, cores, join and hub do not go with it")
		}
		return shapeNone, checkExternal(cfg)
	case edge:
		if cfg.Listen != "" || len(cfg.Cores) > 0 {
			return "", errors.New("cluster: join makes this process an edge, listen and cores make it a core: give one or the other")
		}
		addresses, err := parseAddresses(cfg.Join)
		if err != nil {
			return "", err
		}
		return shapeNone, needProtection(protected, "join", addresses)
	}
	hub, err := parseAddresses(cfg.Hub)
	if err != nil {
		return "", err
	}
	if err := needProtection(protected, "hub", hub); err != nil {
		return "", err
	}
	cores, err := parseAddresses(cfg.Cores)
	if err != nil {
		return "", err
	}
	if cfg.Listen == "" {
		if len(cores) > 0 {
			return "", errors.New("cluster: cores without listen: a core needs the address at which the others reach it")
		}
		return shapeSingle, nil
	}
	listen, err := parseAddress(cfg.Listen)
	if err != nil {
		return "", err
	}
	if err := needProtection(protected, "listen", []address{listen}); err != nil {
		return "", err
	}
	switch n := len(cores); n {
	case 0:
		return shapeSingle, nil
	case 1:
		if cores[0] != listen {
			return "", fmt.Errorf("cluster: cores lists one core and it is not this one, %s", listen.at(portNodes))
		}
		return shapeSingle, nil
	case 3, 5:
		return shapeMember, nil
	case 2, 4:
		return "", fmt.Errorf("cluster: cores lists %d: more than half of them must agree on every write, so %d survive the loss of no more cores than %d do, and two halves of one cluster could both stop; list 3 or 5, other nodes join as edges (a third core may be a small machine that serves nobody)",
			n, n, n-1)
	default:
		return "", fmt.Errorf("cluster: cores lists %d: 3 or 5 are meant, every other node joins as an edge", n)
	}
}

// needProtection refuses addresses that others than this machine reach, without a secret.
func needProtection(protected bool, what string, addresses []address) error {
	for _, a := range addresses {
		if !protected && !a.loopback() {
			return fmt.Errorf("cluster: %s %s is reachable from other machines and there is neither a secret nor tls: anyone could join; set a secret, made with: openssl rand -hex 32", what, a.at(portNodes))
		}
	}
	return nil
}

const maxName = 32

func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case c == '-' && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Second
	// apiTimeout bounds one question to JetStream.
	apiTimeout = 3 * time.Second
)

// ready waits until the site's store answers, trying again until ctx ends; then the error
// says why it did not.
func (a *attachment) ready(ctx context.Context) error {
	return a.await(ctx, a.site, a.siteWatch, "the site's store does not answer", func(ctx context.Context) error {
		info, err := accountInfo(ctx, a.site, "")
		if err != nil {
			return err
		}
		return a.learn(info)
	})
}

// hubReady is ready for the hub's store.
func (a *attachment) hubReady(ctx context.Context) error {
	return a.await(ctx, a.shared, a.sharedWatch, "the hub's store does not answer", func(ctx context.Context) error {
		_, err := accountInfo(ctx, a.shared, a.hubDomain)
		return err
	})
}

// unlinked returns a better reason why the hub's store does not answer, where there is no link to the hub: who listens at
// its addresses. The server in this process does not know it.
func (a *attachment) unlinked(ctx context.Context, reason error) error {
	if !a.core || len(a.cfg.Hub) == 0 || len(a.server.links()) > 0 {
		return reason
	}
	hub, err := parseAddresses(a.cfg.Hub)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	all := make([]string, len(hub))
	var asked sync.WaitGroup
	for i, h := range hub {
		asked.Go(func() { all[i] = a.notHub(ctx, h).Error() })
	}
	asked.Wait()
	return errors.New("natslink: there is no link to the hub: " + strings.Join(all, "; "))
}

// notHub says what is wrong with an address of the hub.
func (a *attachment) notHub(ctx context.Context, h address) error {
	at := h.at(portNodes)
	nc, err := a.dial(at, tryBound)
	if err != nil {
		return fmt.Errorf("no core answers at %s, nor at %s, which the link needs: %w", at, h.at(portSites), explain(err))
	}
	defer nc.Close()
	site, _, _ := strings.Cut(nc.ConnectedServerName(), ".")
	if site == a.siteOf() {
		return fmt.Errorf("hub lists %s, which is a core of this site itself: list the cores of the site that is the hub, or remove hub if this one is", at)
	}
	info, err := accountInfo(ctx, nc, "")
	switch {
	case err != nil:
		return fmt.Errorf("the core at %s has no store: %w", at, explain(err))
	case info.Domain != hubDomain:
		return fmt.Errorf("the core at %s is of site %q, which is not the hub: its own configuration lists a hub; exactly one site is the hub and lists none", at, site)
	}
	return fmt.Errorf("the core at %s is of the hub, and %s does not answer: open this port to the cores of other sites", at, h.at(portSites))
}

// permanent is an error that trying again does not heal.
type permanent struct{ error }

func (a *attachment) await(ctx context.Context, nc *nats.Conn, w *watcher, what string, ask func(ctx context.Context) error) error {
	var told error // the last answer, which says more than that there was none in time
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		actx, cancel := context.WithTimeout(ctx, apiTimeout)
		err := ask(actx)
		cancel()
		if err == nil {
			return nil
		}
		if p := (permanent{}); errors.As(err, &p) {
			return p.error
		}
		if nc.IsClosed() {
			return cluster.ErrClosed
		}
		if !errors.Is(err, context.DeadlineExceeded) || told == nil {
			told = err
		}
		if !pause(ctx, wait) {
			if !nc.IsConnected() && w.last() != nil {
				told = w.last()
			}
			return fmt.Errorf("natslink: %s: %w (%w)", what, explain(told), ctx.Err())
		}
	}
}

// explain adds what an operator can do about an error of a connection.
func explain(err error) error {
	text := err.Error()
	for _, known := range []struct{ part, means string }{
		{"certificate signed by unknown authority", "the other side has another secret or another cluster name"},
		{"certificate is valid for core.", "the other side has another secret or another cluster name"},
		{"unknown certificate authority", "the other side has another secret or another cluster name"},
		{"bad certificate", "the other side refuses our certificate"},
		{"first record does not look like a TLS handshake", "at that address is something else"},
		{nats.ErrAuthorization.Error(), "the other side has another secret"},
		{jetstream.ErrJetStreamNotEnabledForAccount.Error(), "JetStream is not enabled for our account there"},
		{jetstream.ErrJetStreamNotEnabled.Error(), "JetStream is not enabled there, or has no leader now"},
	} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(known.part)) {
			return fmt.Errorf("%s: %w", known.means, err)
		}
	}
	return err
}

// learn takes from the server what an edge is not told by its configuration.
func (a *attachment) learn(info *jetstream.AccountInfo) error {
	if a.cfg.External != nil {
		return a.learnExternal()
	}
	if a.core {
		return nil
	}
	site, _, ok := strings.Cut(a.site.ConnectedServerName(), ".")
	if !ok || !isName(site) {
		return fmt.Errorf("the server %q at %s is not a core of Anteroom", a.site.ConnectedServerName(), a.site.ConnectedAddr())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.siteID != "" && a.siteID != site {
		return permanent{fmt.Errorf("cluster: the core at %s is of site %q and this process of site %q: join cores of its own site, or give it another directory and site",
			a.site.ConnectedAddr(), site, a.siteID)}
	}
	if a.siteID == "" {
		if _, err := checkClusterLayout(a.cfg.Dir, layout{a.cfg.Cluster, site, a.cfg.Node, shapeNone}); err != nil {
			return permanent{err}
		}
		a.siteID = site
	}
	a.hub = info.Domain == hubDomain
	return nil
}

// accountInfo asks JetStream about the account; a domain of "" is that of the servers.
func accountInfo(ctx context.Context, nc *nats.Conn, domain string) (*jetstream.AccountInfo, error) {
	js, err := newJetStream(nc, domain)
	if err != nil {
		return nil, err
	}
	return js.AccountInfo(ctx)
}

func newJetStream(nc *nats.Conn, domain string) (jetstream.JetStream, error) {
	if domain == "" {
		return jetstream.New(nc)
	}
	return jetstream.NewWithDomain(nc, domain)
}

// isHub reports whether this site is the hub, siteOf its name. An edge knows them once it
// was ready.
func (a *attachment) isHub() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hub
}

func (a *attachment) siteOf() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.siteID
}

// close ends the connections and the server: Raft leaders are handed to other cores first,
// until ctx ends. Closing twice is no error.
func (a *attachment) close(ctx context.Context) error {
	a.closing.Do(func() { a.closeErr = a.end(ctx) })
	return a.closeErr
}

func (a *attachment) end(ctx context.Context) error {
	for _, nc := range []*nats.Conn{a.site, a.shared, a.system} {
		if nc != nil {
			nc.Close()
		}
	}
	var err error
	if a.server != nil {
		err = a.server.stopWithin(ctx)
	}
	return errors.Join(err, a.lock.release())
}
