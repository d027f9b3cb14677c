package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
)

// Where a process keeps its things below the data directory.
func storeDir(data string) string   { return filepath.Join(data, "store") }
func clusterDir(data string) string { return filepath.Join(data, "cluster") }

// joinCluster connects the process with its cluster, or makes it the first node of one.
func (s *Server) joinCluster(ctx context.Context, cfg config.Config, lockWait time.Duration) error {
	c := cfg.Cluster
	secret, other, err := c.Secrets()
	if err != nil {
		return err
	}
	name, err := ownName(cfg, secret)
	if err != nil {
		return err
	}
	link := natslink.ClusterConfig{Dir: clusterDir(cfg.Data), LockWait: lockWait, Cluster: c.Name, Site: c.Site, Node: name, Secret: secret, OtherSecret: other,
		TLS: natslink.TLSFiles{Cert: c.TLS.Cert, Key: c.TLS.Key, CA: c.TLS.CA}, Listen: c.Listen, Cores: c.Cores, Join: c.Join, Hub: c.Hub, ShutOut: c.ShutOut, Log: s.log}
	if len(c.NATS.URL) > 0 {
		link.External = &natslink.External{URLs: c.NATS.URL, SiteCredentials: c.NATS.Credentials, SharedCredentials: c.NATS.SharedCredentials,
			SharedDomain: c.NATS.SharedDomain, Replicas: c.NATS.Replicas, Hub: c.NATS.Hub}
	}
	if link.Site == "" && len(c.Join) == 0 {
		link.Site = "local"
	}
	if s.link, err = natslink.Join(ctx, link); err != nil {
		return err
	}
	if s.link.Health().SiteName == "" {
		return anteroom.Errorf(anteroom.Unavailable, "the site of this node is not known, because it never reached a core: check cluster.join")
	}
	return nil
}

// openCluster makes the process a node of its cluster, which it has joined.
func (s *Server) openCluster(ctx context.Context, cfg config.Config, lockWait time.Duration) error {
	c, health := cfg.Cluster, s.link.Health()
	secret, other, err := c.Secrets()
	if err != nil {
		return err
	}
	name, err := ownName(cfg, secret)
	if err != nil {
		return err
	}
	if err := s.grow(ctx, cfg, health.SiteName, lockWait); err != nil {
		return err
	}
	if s.ring, err = newSharedRing(s.link, c.Name, []string{secret, other}, s.log); err != nil {
		return err
	}
	if c.Listen != "" && health.Hub {
		if err := s.found(ctx, cfg); err != nil {
			return err
		}
	}
	s.node, err = node.New(ctx, node.Config{Link: s.link, Forgot: s.opts.NewJournal, Minutes: s.keepMinutes(cfg), Log: s.log,
		Cluster: &node.Cluster{Site: health.SiteName, Node: name, Hub: health.Hub, Core: c.Listen != "", Edge: c.Listen == "" && len(c.NATS.URL) == 0, Weight: c.Weight, Version: s.opts.Version,
			State: func() string { return *cmp.Or(s.digest.Load(), new(string)) }}})
	return err
}

// wasStandalone reports whether a data directory has the store of a standalone process, which may still run.
func wasStandalone(data string) bool {
	_, err := os.Stat(storeDir(data))
	return !errors.Is(err, fs.ErrNotExist)
}

// grow takes what the process left in its store when it was alone into the cluster, at the first
// start after that, and puts the store aside: never is a cluster started on it.
func (s *Server) grow(ctx context.Context, cfg config.Config, site string, lockWait time.Duration) error {
	dir := storeDir(cfg.Data)
	if !wasStandalone(cfg.Data) {
		return nil
	}
	if cfg.Cluster.Listen == "" || !s.link.Health().Hub {
		return anteroom.Errorf(anteroom.Invalid, "%s holds data of a standalone process, which only a core of the hub can bring into a cluster: give this node another data directory, or move %s away if you do not need it", cfg.Data, dir)
	}
	old, err := natslink.Open(natslink.Config{Dir: dir, LockWait: lockWait, Log: s.log})
	if err != nil {
		return fmt.Errorf("the data of the standalone process cannot be brought into the cluster: %w", err)
	}
	err = node.Grow(ctx, old, s.link, site)
	if err := errors.Join(err, old.Close()); err != nil {
		return fmt.Errorf("the data of the standalone process in %s cannot be brought into the cluster (to leave it out, give this node another data directory): %w", dir, err)
	}
	aside, err := natslink.Retire(dir)
	if err != nil {
		return err
	}
	s.log.Info("the data of the standalone process is in the cluster now", "aside", aside)
	return nil
}

// useFirst is use at the start. Cores that start together have no leader for some seconds, and
// what a node writes then fails: it is no reason to give up.
func (s *Server) useFirst(ctx context.Context, p prepared) error {
	for {
		err := s.use(ctx, p)
		if s.ring == nil || !errors.Is(err, cluster.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		s.log.Info("the store of the cluster does not accept writes yet; retrying", "error", err)
		walltime.Sleep(ctx, time.Second)
	}
}

// ownName is nodeName, or the name in an edge's own secret.
func ownName(cfg config.Config, secret string) (string, error) {
	if cfg.Cluster.Node == "" && natslink.IsEdgeSecret(secret) {
		return natslink.EdgeName(secret)
	}
	return nodeName(cfg)
}

// nodeName is the name of the node: the configured one, or one that is drawn at the first start
// and kept in the data directory. If the configured one ends with a hyphen, only the rest is drawn.
func nodeName(cfg config.Config) (string, error) {
	first := cfg.Cluster.Node
	if first != "" && !strings.HasSuffix(first, "-") {
		return first, nil
	}
	file := filepath.Join(cfg.Data, "node")
	kept, err := os.ReadFile(file)
	if name := strings.TrimSpace(string(kept)); err == nil && strings.HasPrefix(name, first) {
		return name, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", anteroom.Errorf(anteroom.Unavailable, "the name of this node cannot be read: %w", err)
	}
	var b [4]byte
	rand.Read(b[:])
	name := cmp.Or(first, "node-") + hex.EncodeToString(b[:])
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return "", anteroom.Errorf(anteroom.Unavailable, "the data directory cannot be made: %w", err)
	}
	if err := os.WriteFile(file, []byte(name+"\n"), 0o600); err != nil {
		return "", anteroom.Errorf(anteroom.Unavailable, "the name of this node cannot be stored: %w", err)
	}
	return name, nil
}

// sharedKey is where nodes find what is behind the gateway when their own configuration does
// not say it.
const sharedKey = "config.shared"

// bare reports whether a configuration leaves what is behind the gateway to the other nodes.
func bare(cfg config.Config) bool { return cfg.Cluster.On() && len(cfg.Sites) == 0 }

// withShared returns the configuration with what the other nodes say, when it leaves that to
// them; at the start it waits until one has said it.
func (s *Server) withShared(ctx context.Context, cfg config.Config) (config.Config, error) {
	if !bare(cfg) {
		return cfg, nil
	}
	e, err := s.link.Get(ctx, sharedKey)
	if errors.Is(err, cluster.ErrNotFound) {
		s.log.Info("waiting for a node that has sites in its configuration")
		err = s.awaitShared(ctx, &e)
	}
	if err != nil {
		return cfg, err
	}
	got, err := cfg.WithShared(e.Value, Check)
	if err != nil {
		return cfg, anteroom.Errorf(anteroom.Invalid, "sites and rooms from another node are in a format that this release does not know: %w", err)
	}
	s.taken.Store(&e)
	return got, nil
}

func (s *Server) awaitShared(ctx context.Context, e *cluster.Entry) error {
	waiting, done := context.WithCancel(ctx)
	defer done()
	err := s.link.Watch(waiting, sharedKey, func(c cluster.Change) {
		if c.Key == sharedKey && !c.Gone {
			*e = c.Entry
			done()
		}
	})
	if len(e.Value) > 0 {
		return nil
	}
	return err
}

// share tells nodes without sites what this node's configuration says, again and again until
// that is done or ctx ends.
func (s *Server) share(ctx context.Context, text []byte) {
	if s.ring.edge {
		s.log.Info("nodes without sites take those of cores, not those in the configuration file of this edge")
		return
	}
	if bytes.Equal(text, s.shared) {
		return // a reload for another reason: what another node has said since stays
	}
	s.shared = text
	if err := cluster.CheckValue(text); err != nil {
		s.log.Warn("the rooms of the configuration file are too large for nodes without sites", "error", err)
		return
	}
	for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, time.Minute) {
		e, err := s.link.Get(ctx, sharedKey)
		if err == nil && bytes.Equal(e.Value, text) {
			return
		}
		if err == nil || errors.Is(err, cluster.ErrNotFound) {
			if err == nil {
				s.log.Warn("sites or rooms in the configuration file differ from another node's, or have changed: nodes without sites now use those of this node")
			}
			if _, err = s.link.Update(ctx, sharedKey, text, e.Revision); err == nil {
				return
			}
		}
		walltime.Sleep(ctx, pause)
	}
}

// followCluster follows what other nodes change, until ctx ends.
func (s *Server) followCluster(ctx context.Context) {
	go s.ring.follow(ctx, func() { s.Reload(ctx, "ticket keys changed") })
	go s.manage.Follow(ctx)
	if seen, ok := s.node.Cluster(ctx); ok {
		go s.awaitLeave(ctx, seen.Node)
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case text := <-s.sharing:
				s.share(ctx, text)
			}
		}
	}()
	s.link.Watch(ctx, sharedKey, func(c cluster.Change) {
		if taken := s.taken.Load(); c.Key == sharedKey && !c.Gone && taken != nil && c.Revision != taken.Revision {
			s.Reload(ctx, "the configuration of another node changed")
		}
	})
}

// useShared has other nodes told what a configuration says of sites and rooms, unless it was taken from them, and keeps a digest
// of it that tells the configurations of nodes apart. Nodes say it at every heartbeat, and the text of 10,000 rooms takes half a
// second to write: it is written once.
func (s *Server) useShared(cfg config.Config) {
	var text []byte
	if taken := s.taken.Load(); taken != nil {
		text = taken.Value
	} else {
		text = cfg.Shared()
		select { // the newest counts
		case <-s.sharing:
		default:
		}
		s.sharing <- text
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:6])
	s.digest.Store(&digest)
}

// clusterKeys is the ring of the cluster; at the first start of its first node, that of the key
// file.
func (s *Server) clusterKeys(ctx context.Context, data string) (*ticket.Keyring, error) {
	return s.ring.load(ctx, func() (*ticket.Keyring, error) {
		own, err := ticket.Load(KeyFile(data))
		if anteroom.KindOf(err) == anteroom.NotFound {
			return ticket.NewKeyring(time.Now()), nil
		}
		return own, err
	})
}

// clusterStatus is what operators see of the cluster.
func (s *Server) clusterStatus(ctx context.Context) (manage.ClusterStatus, error) {
	s.gateway.LookAtOrigins(ctx)
	st := manage.ClusterStatus{Roles: []manage.ClusterRole{}, Sites: []manage.ClusterSite{}, Findings: []manage.ClusterFinding{}}
	h := s.link.Health()
	st.Edges = s.edgesSeen()
	st.Store = manage.ClusterStore{Site: touchOf(h.Site), Shared: touchOf(h.Shared)}
	seen, ok := s.node.Cluster(ctx)
	if !ok {
		st.Site, st.Hub = "local", true
		st.Node, _ = os.Hostname()
		st.Nodes = []manage.ClusterNode{{Node: st.Node, Version: s.opts.Version, Core: true, Started: s.started}}
		s.findings(&st, append(examineJournal(s.node.JournalStats()), examineClock(s.node.Skew())...))
		s.findings(&st, append(examineOrigins(s.origins(), s.rooms()), examineEdges(st.Edges)...))
		s.findings(&st, s.examineProxy())
		st.Findings = append(st.Findings, s.doubtfulHosts()...)
		return st, nil
	}
	st.Name, st.Site, st.Node, st.Hub = s.Config().Cluster.Name, seen.Site, seen.Node, seen.Hub
	held := map[string]int{}
	for _, r := range seen.Roles {
		held[r.Node]++
		st.Roles = append(st.Roles, manage.ClusterRole{Role: r.Role, Node: r.Node, Epoch: r.Epoch})
	}
	for _, m := range seen.Members {
		st.Nodes = append(st.Nodes, manage.ClusterNode{Node: m.Node, Version: m.Version, Wire: m.Wire, Core: m.Core, Started: m.Started,
			ClockOffset: m.Offset.Seconds(), Files: m.State, Roles: held[m.Node]})
	}
	s.diagnose(ctx, &st, seen)
	st.Findings = append(st.Findings, s.doubtfulHosts()...)
	return st, nil
}

func touchOf(t cluster.Touch) manage.ClusterTouch {
	out := manage.ClusterTouch{OK: t.OK, Lag: t.Lag.Seconds(), Detail: t.Detail}
	if !t.Since.IsZero() {
		out.Since = new(t.Since.UTC())
	}
	return out
}
