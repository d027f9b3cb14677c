package natslink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// facts is what this process sees of the engine, for those who look for faults.
type facts struct {
	server string        // to which we are connected: site.node, or "" now
	rtt    time.Duration // to it and back
	// Only a core sees these.
	routes              []linkFacts // to the other cores
	links               []linkFacts // to cores of other sites
	leader              string      // of the group that decides which streams there are; "" without one
	cores               []replicaFacts
	memory, store       uint64 // bytes in use here
	maxMemory, maxStore uint64
	// Everybody sees these.
	streams []streamFacts
}

// linkFacts is a connection between servers.
type linkFacts struct {
	name, address string
	rtt           time.Duration // of the last ping; 0 before the first
}

// streamFacts is one stream.
type streamFacts struct {
	shared   bool // of the shared account
	name     string
	leader   string // "" when there is none: nothing can be written
	messages uint64
	bytes    uint64
	replicas []replicaFacts // the others than the leader
}

// replicaFacts is a member of a Raft group.
type replicaFacts struct {
	server           string
	current, offline bool
	lag              uint64        // operations behind the leader
	seen             time.Duration // since it was heard
}

// look gathers the facts. What cannot be learnt is left out, and the error says why.
func (a *attachment) look(ctx context.Context) (facts, error) {
	var f facts
	var failed error
	if a.site.IsConnected() {
		f.server = a.site.ConnectedServerName()
		rtt, err := a.site.RTT()
		if f.rtt = rtt; err != nil {
			failed = errors.Join(failed, fmt.Errorf("round trip to %s: %w", f.server, err))
		}
	}
	if a.server != nil {
		failed = errors.Join(failed, a.server.look(&f))
	}
	for _, account := range []struct {
		nc     *nats.Conn
		domain string
		shared bool
	}{{a.site, "", false}, {a.shared, a.hubDomain, true}} {
		streams, err := lookStreams(ctx, account.nc, account.domain, account.shared)
		f.streams = append(f.streams, streams...)
		failed = errors.Join(failed, err)
	}
	return f, failed
}

func (s *coreServer) look(f *facts) error {
	routes, err := s.srv.Routez(nil)
	if err != nil {
		return fmt.Errorf("connections between cores: %w", err)
	}
	// A pair of servers has several connections; one is shown.
	for _, r := range routes.Routes {
		i := slices.IndexFunc(f.routes, func(l linkFacts) bool { return l.name == r.RemoteName })
		if i < 0 {
			f.routes = append(f.routes, linkFacts{name: r.RemoteName, address: fmt.Sprintf("%s:%d", r.IP, r.Port)})
			i = len(f.routes) - 1
		}
		f.routes[i].rtt = cmp.Or(f.routes[i].rtt, duration(r.RTT))
	}
	f.links = s.sites()
	info, err := s.srv.Jsz(&server.JSzOptions{})
	if err != nil {
		return fmt.Errorf("JetStream: %w", err)
	}
	f.memory, f.store = info.Memory, info.Store
	f.maxMemory, f.maxStore = uint64(info.Config.MaxMemory), uint64(info.Config.MaxStore)
	if m := info.Meta; m != nil {
		f.leader = m.Leader
		for _, r := range m.Replicas {
			f.cores = append(f.cores, replicaFacts{r.Name, r.Current, r.Offline, r.Lag, r.Active})
		}
	}
	return nil
}

// sites are the links to cores of other sites.
func (s *coreServer) sites() []linkFacts {
	leafs, err := s.srv.Leafz(nil)
	if err != nil {
		return nil
	}
	var all []linkFacts
	for _, l := range leafs.Leafs {
		all = append(all, linkFacts{l.Name, fmt.Sprintf("%s:%d", l.IP, l.Port), duration(l.RTT)})
	}
	slices.SortFunc(all, func(a, b linkFacts) int { return strings.Compare(a.name, b.name) })
	return all
}

// duration reads what NATS writes for one; "" is none.
func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

func lookStreams(ctx context.Context, nc *nats.Conn, domain string, shared bool) ([]streamFacts, error) {
	what := "streams of the site"
	if shared {
		what = "streams of the hub"
	}
	js, err := newJetStream(nc, domain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	var all []streamFacts
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		all = append(all, streamOf(info, shared))
	}
	slices.SortFunc(all, func(a, b streamFacts) int { return strings.Compare(a.name, b.name) })
	if err := list.Err(); err != nil {
		return all, fmt.Errorf("%s: %w", what, err)
	}
	return all, nil
}

func streamOf(info *jetstream.StreamInfo, shared bool) streamFacts {
	s := streamFacts{shared: shared, name: info.Config.Name, messages: info.State.Msgs, bytes: info.State.Bytes}
	if c := info.Cluster; c != nil {
		s.leader = c.Leader
		for _, r := range c.Replicas {
			s.replicas = append(s.replicas, replicaFacts{r.Name, r.Current, r.Offline, r.Lag, r.Active})
		}
	}
	return s
}
