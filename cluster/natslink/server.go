package natslink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/anteroom/anteroom/cluster"
)

// Accounts of the embedded server. What is in the site's never leaves the site; the shared
// one is what links between sites carry; the system's stays in the process.
const (
	accountSite   = "SITE"
	accountShared = "SHARED"
	accountSystem = "SYSTEM"
)

const (
	hubDomain        = "hub"
	siteDomainPrefix = "site-"
	// ownNames begins the names in a server of our own, where nobody else has any.
	ownNames = "anteroom"

	defaultMaxStore  = 8 << 30
	defaultMaxMemory = 256 << 20

	// leastPayload carries a value or a message of the largest size.
	leastPayload = cluster.MaxValue + perRecord

	// pingInterval is how often a silent connection is tried; after pingsOut tries without an
	// answer it ends. So packets that get lost are noticed within 3 s.
	pingInterval = time.Second
	pingsOut     = 2
	// writeDeadline is how long a peer may take nothing of what is to be sent to it.
	writeDeadline = 5 * time.Second
	// handshakeLimit is how long a peer may take to show who it is.
	handshakeLimit = 5 * time.Second
	// linkRetry is how soon a broken link between sites is tried again.
	linkRetry = 500 * time.Millisecond
)

// coreServer is the NATS server in this process with the keys of our own connections.
type coreServer struct {
	cfg                  ClusterConfig
	shape                string
	birth                string // of the directory
	credentials          *credentials
	log                  logger        // of what is said about the server
	site, shared, system nkeys.KeyPair // of this start of the process; they enter in-process only

	changing sync.Mutex                    // while the server is started again; guards cfg.Cores and shape
	running  atomic.Pointer[server.Server] // another one after mend, or when the site has more or fewer cores
	full     atomic.Int64                  // when the disk refused a write first, in ns since 1970; 0: it takes them
	broken   atomic.Pointer[string]        // why, as the system says; "" where it is full
	refused  chan struct{}                 // full was set
	retiring sync.Once
	removed  chan struct{} // closed when the others have removed this core
	endMend  context.CancelFunc
	mending  sync.WaitGroup
}

// srv is the server that runs, or ran last.
func (s *coreServer) srv() *server.Server { return s.running.Load() }

// coreLog is a logger that tells when the server cannot go on.
type coreLog struct {
	logger
	once    sync.Once
	fatal   chan string
	repeats repeats
}

func (l *coreLog) Warnf(format string, v ...any)  { l.soften(slog.LevelWarn, format, v) }
func (l *coreLog) Errorf(format string, v ...any) { l.soften(slog.LevelError, format, v) }

const (
	tryingToConnect  = "Error trying to connect"
	waitingForRoutes = "Waiting for routing"
)

// soften lowers the level of what belongs to the life of a cluster.
func (l *coreLog) soften(level slog.Level, format string, v []any) {
	text := fmt.Sprintf(format, v...)
	for _, known := range []struct {
		part  string
		level slog.Level
	}{
		// It is meant as it is.
		{"Clients that are not using", slog.LevelDebug},
		{"Metalayer blocking snapshot", slog.LevelDebug},
		// Others start later, or are being restarted.
		{waitingForRoutes, slog.LevelInfo},
		{"has not established contact with a meta leader", slog.LevelInfo},
		{"is not current with the meta leader", slog.LevelInfo},
		{tryingToConnect, slog.LevelWarn},
		{"Error flushing", slog.LevelWarn},
		// Somebody else's fault, and whoever reaches the port can cause it.
		{"handshake error", slog.LevelWarn},
		{"authentication error", slog.LevelWarn},
	} {
		if strings.Contains(text, known.part) {
			level = min(level, known.level)
			break
		}
	}
	if (strings.Contains(text, tryingToConnect) || strings.Contains(text, waitingForRoutes) || stranger.MatchString(text)) && l.repeats.again(text, time.Now()) {
		level = slog.LevelDebug
	}
	l.say(level, "%s", []any{plain(text)})
}

func (l *coreLog) Fatalf(format string, v ...any) {
	l.logger.Fatalf(format, v...)
	l.once.Do(func() { l.fatal <- fmt.Sprintf(format, v...) })
}

// startCore starts the server. It does not wait for other servers.
func startCore(ctx context.Context, cfg ClusterConfig, shape string, c *credentials) (*coreServer, error) {
	s := &coreServer{
		cfg: cfg, shape: shape, credentials: c, log: logger{log: cfg.Log}, refused: make(chan struct{}, 1), removed: make(chan struct{}),
	}
	for _, key := range []*nkeys.KeyPair{&s.site, &s.shared, &s.system} {
		var err error
		if *key, err = nkeys.CreateUser(); err != nil {
			return nil, fmt.Errorf("natslink: key: %w", err)
		}
	}
	var err error
	if s.birth, err = birthOf(cfg.Dir); err != nil {
		return nil, err
	}
	if err := s.launch(ctx); err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	s.endMend = end
	s.mending.Go(func() { s.mend(life) })
	return s, nil
}

// What one of several cores writes before it runs, a few small files, may take a part of the reserve when the disk is
// full. It then uses up that part, so that there are as many starts as parts.
const (
	coreReserve     = 1 << 20
	coreReservePart = 64 << 10
)

// launch starts the server; after an error none runs.
func (s *coreServer) launch(ctx context.Context) error {
	srv, err := s.boot(ctx, s.cfg, s.shape)
	for err != nil && isFull(err.Error()) && yieldReserve(s.cfg.Dir, coreReservePart) {
		s.log.say(slog.LevelWarn, "the disk of %s is full: the embedded server is started with space reserved for that", []any{s.cfg.Dir})
		srv, err = s.boot(ctx, s.cfg, s.shape)
	}
	if err != nil {
		return err
	}
	s.running.Store(srv)
	keepReserve(s.cfg.Dir, coreReserve, mendRoom)
	return nil
}

// boot starts a server, with options that others may change; after an error it does not run.
func (s *coreServer) boot(ctx context.Context, cfg ClusterConfig, shape string, change ...func(*server.Options)) (*server.Server, error) {
	hasten(s.cfg.Log)
	inStep()
	opts, err := s.options(ctx, cfg, shape, s.credentials)
	if err != nil {
		return nil, err
	}
	for _, fn := range change {
		fn(opts)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("natslink: embedded server: %w", err)
	}
	log := &coreLog{logger: logger{log: s.cfg.Log}, fatal: make(chan string, 1)}
	log.onComplaint(s.heed)
	srv.SetLoggerV2(log, false, false, false)
	srv.Start()
	started := make(chan bool, 1)
	go func() { started <- srv.ReadyForConnections(time.Minute) }()
	fail := func(reason string) error {
		shut(srv)
		return fmt.Errorf("natslink: embedded server does not start: %s", reason)
	}
	select {
	case reason := <-log.fatal:
		return nil, fail(reason)
	case <-ctx.Done():
		shut(srv)
		return nil, ctx.Err()
	case ok := <-started:
		if !ok || !srv.JetStreamEnabled() {
			return nil, fail(cmp.Or(log.last(), "it says no reason"))
		}
	}
	return srv, nil
}

// shut ends a server and waits for that.
func shut(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

func (s *coreServer) options(ctx context.Context, cfg ClusterConfig, shape string, c *credentials) (*server.Options, error) {
	opts := &server.Options{}
	accounts, err := s.accounts(c)
	if err != nil {
		return nil, err
	}
	if err := opts.ProcessConfigString(accounts); err != nil {
		return nil, fmt.Errorf("natslink: accounts of the embedded server: %w", err)
	}
	// NATS takes the name for an address inside a cluster: a link from another site's
	// server of the same name would push this one's out.
	opts.ServerName = cfg.Site + "." + cfg.Node
	opts.DontListen = cfg.Listen == ""
	opts.NoSigs = true
	opts.NoLog = true // else it writes to standard error until it has our logger
	opts.DisableJetStreamBanner = true
	opts.JetStream = true
	opts.JetStreamDomain = hubDomain
	if len(cfg.Hub) > 0 {
		opts.JetStreamDomain = siteDomainPrefix + cfg.Site
	}
	opts.JetStreamMaxMemory = cmp.Or(cfg.MaxMemory, defaultMaxMemory)
	opts.JetStreamMaxStore = cmp.Or(cfg.MaxStore, defaultMaxStore)
	opts.StoreDir = cfg.Dir
	opts.SyncAlways = true
	opts.MaxPayload = leastPayload
	opts.PingInterval, opts.MaxPingsOut = pingInterval, pingsOut
	opts.WriteDeadline = writeDeadline
	opts.MaxControlLine = 4096
	if cfg.Listen == "" {
		return opts, s.remotes(opts, cfg, c)
	}

	listen, err := parseAddress(cfg.Listen)
	if err != nil {
		return nil, err
	}
	own := listen
	if shape == shapeMember {
		cores, err := parseAddresses(cfg.Cores)
		if err != nil {
			return nil, err
		}
		if own, err = ownAmong(ctx, cores, listen); err != nil {
			return nil, err
		}
		if err := s.routes(opts, cfg, c, listen, own, cores); err != nil {
			return nil, err
		}
	}
	opts.Host, opts.Port = cmp.Or(listen.host, "0.0.0.0"), listen.port+portNodes
	opts.TLS, opts.TLSVerify, opts.TLSHandshakeFirst = true, true, true
	opts.TLSConfig = c.config("", coreName(c.cluster), edgeName(c.cluster))
	opts.TLSTimeout, opts.AuthTimeout = handshakeLimit.Seconds(), 2*handshakeLimit.Seconds()
	if !own.anywhere() {
		opts.ClientAdvertise = own.at(portNodes)
	}
	if len(cfg.Hub) == 0 {
		opts.LeafNode.Host, opts.LeafNode.Port = opts.Host, listen.port+portSites
		opts.LeafNode.TLSConfig = c.config("", coreName(c.cluster))
		opts.LeafNode.TLSHandshakeFirst = true
		opts.LeafNode.TLSTimeout, opts.LeafNode.AuthTimeout = handshakeLimit.Seconds(), 2*handshakeLimit.Seconds()
		opts.LeafNode.IsolateLeafnodeInterest = true
		opts.LeafNode.WriteDeadline = writeDeadline
		if !own.anywhere() {
			opts.LeafNode.Advertise = own.at(portSites)
		}
	}
	return opts, s.remotes(opts, cfg, c)
}

// routes makes the server one of several cores.
func (s *coreServer) routes(opts *server.Options, cfg ClusterConfig, c *credentials, listen, own address, cores []address) error {
	name := siteCoreName(c.cluster, c.site)
	passwords, err := c.passwords(purposeRoute + c.site)
	if err != nil {
		return err
	}
	opts.Cluster = server.ClusterOpts{
		Name:          cfg.Site,
		Host:          cmp.Or(listen.host, "0.0.0.0"),
		Port:          listen.port + portCores,
		Advertise:     own.at(portCores),
		TLSConfig:     c.config(name, name),
		TLSTimeout:    handshakeLimit.Seconds(),
		AuthTimeout:   2 * handshakeLimit.Seconds(),
		PingInterval:  pingInterval,
		MaxPingsOut:   pingsOut,
		WriteDeadline: writeDeadline,
		// Two connections between two cores, one of them for Raft, instead of four: each is tried every second. A single one (-1) saves
		// no more, and cores of an earlier release complain about it.
		PoolSize: 1,
	}
	opts.CustomRouterAuthentication = routeCheck(passwords)
	// The list has this server too: NATS counts it to know how many there are to be.
	for _, core := range cores {
		opts.Routes = append(opts.Routes, &url.URL{
			Scheme: "nats-route", Host: core.at(portCores), User: url.UserPassword(routeUser, passwords[0]),
		})
	}
	return nil
}

const routeUser = "core"

// routeCheck takes the cores that know one of the passwords.
type routeCheck []string

func (r routeCheck) Check(c server.ClientAuthentication) bool {
	ok := false
	for _, password := range r {
		ok = equalSecret(c.GetOpts().Password, password) || ok
	}
	return ok && c.GetOpts().Username == routeUser
}

// remotes makes the server of a site that is not the hub connect to the hub's.
func (s *coreServer) remotes(opts *server.Options, cfg ClusterConfig, c *credentials) error {
	if len(cfg.Hub) == 0 {
		return nil
	}
	hub, err := parseAddresses(cfg.Hub)
	if err != nil {
		return err
	}
	key, err := c.key(purposeLeaf)
	if err != nil {
		return err
	}
	seed, err := key.Seed()
	if err != nil {
		return fmt.Errorf("natslink: key: %w", err)
	}
	remote := &server.RemoteLeafOpts{
		LocalAccount:      accountShared,
		TLS:               true,
		TLSConfig:         c.config(coreName(c.cluster), coreName(c.cluster)),
		TLSTimeout:        handshakeLimit.Seconds(),
		TLSHandshakeFirst: true,
		FirstInfoTimeout:  handshakeLimit,
		// The operator's list is how the hub is reached from here; the hub's own view of
		// its addresses may not be.
		IgnoreDiscoveredServers: true,
		Nkey:                    string(seed),
		// Nobody outside manages what this site stores.
		DenyImports: []string{"$JS." + opts.JetStreamDomain + ".API.>"},
	}
	for _, h := range hub {
		remote.URLs = append(remote.URLs, &url.URL{Scheme: "tls", Host: h.at(portSites)})
	}
	opts.LeafNode.Remotes = []*server.RemoteLeafOpts{remote}
	opts.LeafNode.ReconnectInterval = linkRetry
	opts.LeafNode.DialTimeout = handshakeLimit
	opts.LeafNode.WriteDeadline = writeDeadline
	return nil
}

// accounts is the part of the configuration that NATS takes as text only. It holds public
// keys, no secrets.
func (s *coreServer) accounts(c *credentials) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "system_account: %s\naccounts {\n", accountSystem)
	for _, account := range []struct {
		name string
		own  nkeys.KeyPair
		more []struct{ purpose, kind, rights string }
	}{
		{accountSite, s.site, []struct{ purpose, kind, rights string }{{purposeSite, "STANDARD", edgeRights}, {purposeEdge, "STANDARD", rightsOfEdges(siteSubjects...)}}},
		{accountShared, s.shared, []struct{ purpose, kind, rights string }{
			{purposeShared, "STANDARD", sharedRights}, {purposeEdges, "STANDARD", rightsOfEdges(sharedSubjects...)}, {purposeLeaf, "LEAFNODE", sharedRights},
		}},
		{accountSystem, s.system, nil},
	} {
		own, err := account.own.PublicKey()
		if err != nil {
			return "", fmt.Errorf("natslink: key: %w", err)
		}
		fmt.Fprintf(&b, "%s {\n", account.name)
		if account.name != accountSystem {
			b.WriteString("jetstream: enabled\n")
		}
		fmt.Fprintf(&b, "users: [\n{nkey: %s, connection_types: [IN_PROCESS]}\n", own)
		for _, more := range account.more {
			keys, err := c.accepted(more.purpose)
			if err != nil {
				return "", err
			}
			for _, key := range keys {
				fmt.Fprintf(&b, "{nkey: %s, connection_types: [%s], permissions: {%s}}\n", key, more.kind, more.rights)
			}
		}
		b.WriteString("]\n}\n")
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// siteKeys is the stream of the keys of a site whose cores have their servers with them.
const siteKeys = "KV_" + ownNames + "_site"

// sharedKeys is the stream of the shared keys, where the hub has its servers with it.
const sharedKeys = "KV_" + ownNames + "_shared"

// What those who come over the network may not do. Everything else in their account they
// need: messages, reading and writing keys and journals.
var (
	destructive = []string{
		"STREAM.CREATE.>", "STREAM.DELETE.>", "STREAM.RESTORE.>", "STREAM.SNAPSHOT.>", "STREAM.MSG.DELETE.>",
		"STREAM.PEER.>", "STREAM.LEADER.>", "CONSUMER.LEADER.>", "META.>", "SERVER.>", "ACCOUNT.>",
	}
	// An edge works with the site's store as a core does: it keeps journals, too, sets how
	// long, and purges what is older. What there is to store, the cores decide; and the keys,
	// which say who has which role, are changed one by one, by compare-and-set. The account
	// has these two streams, and a permission cannot name all but one.
	edgeRights = deny(append([]string{"STREAM.UPDATE." + siteKeys, "STREAM.PURGE." + siteKeys}, destructive...)...)
	// In the shared account an edge, or another site, reads and writes keys.
	sharedRights = deny(append([]string{"STREAM.UPDATE.>", "STREAM.PURGE.>"}, destructive...)...)
)

// deny writes permissions without these requests to JetStream, in any domain.
func deny(requests ...string) string {
	subjects := []string{`"$SYS.>"`}
	for _, r := range requests {
		subjects = append(subjects, `"$JS.API.`+r+`"`, `"$JS.*.API.`+r+`"`)
	}
	return "publish: {deny: [" + strings.Join(subjects, ", ") + "]}, subscribe: {deny: [\"$SYS.>\"]}"
}

// stop hands leadership over and ends the server. Connections to it must be closed before.
func (s *coreServer) stop() {
	s.endMend()
	s.mending.Wait()
	shut(s.srv())
}

var errStopTime = errors.New("natslink: the server did not stop in time")

// stopWithin is stop, at the longest until ctx ends; the server then goes on stopping.
func (s *coreServer) stopWithin(ctx context.Context) error {
	done := make(chan struct{})
	go func() { defer close(done); s.stop() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errStopTime
	}
}
