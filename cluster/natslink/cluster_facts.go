package natslink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/anteroom/anteroom/cluster"
)

// Facts are what a process of a cluster sees of NATS, for those who look for faults.
type Facts struct {
	Server  string        `json:"server,omitempty"`  // to which it is connected: site.node, or "" now
	RTT     time.Duration `json:"rtt_ns,omitempty"`  // to it and back
	Streams []StreamFacts `json:"streams,omitempty"` // of the site, and of the hub
	// External: the servers are the operator's own.
	External bool     `json:"external,omitempty"`
	Missing  []string `json:"missing,omitempty"` // streams that NATS servers of the operator's own do not have any more
	// Core is nil at an edge and with NATS servers of the operator's own.
	Core *CoreFacts `json:"core,omitempty"`
}

// CoreFacts are what the server in the process adds.
type CoreFacts struct {
	Leader string         `json:"leader,omitempty"` // of the cores of the site; "" when there is none, or one core
	Cores  []ReplicaFacts `json:"cores,omitempty"`  // the others, where the leader is this one, and those that are offline
	Size   int            `json:"size"`             // how many cores the site has to have
	Routes []LinkFacts    `json:"routes,omitempty"` // to the other cores
	Links  []LinkFacts    `json:"links,omitempty"`  // with cores of other sites
	Hub    bool           `json:"hub"`              // the others' links come here; else this one makes them
	// DiskFull: the disk refused a write; nothing more is written here until there is room.
	DiskFull bool `json:"disk_full,omitempty"`
	// DiskBroken: the disk refused a write for another reason, in the words of the system.
	DiskBroken string `json:"disk_broken,omitempty"`
	// Bytes in use here, and the bounds.
	Memory    uint64 `json:"memory"`
	Store     uint64 `json:"store"`
	MaxMemory uint64 `json:"max_memory"`
	MaxStore  uint64 `json:"max_store"`
}

// LinkFacts is a connection with another server.
type LinkFacts struct {
	Name    string        `json:"name"` // site.node
	Address string        `json:"address"`
	RTT     time.Duration `json:"rtt_ns,omitempty"` // of the last ping; 0 before the first
}

// StreamFacts is one stream.
type StreamFacts struct {
	Shared   bool           `json:"shared"` // of what all sites share
	Name     string         `json:"name"`
	Leader   string         `json:"leader,omitempty"` // "" when there is none, or one server
	Messages uint64         `json:"messages"`
	Bytes    uint64         `json:"bytes"`
	MaxBytes int64          `json:"max_bytes"`
	Copies   int            `json:"copies"`             // how many there are to be
	Replicas []ReplicaFacts `json:"replicas,omitempty"` // those that do not lead

	written uint64 // ever
}

// behind reports whether some copy has not everything yet.
func (s StreamFacts) behind() bool {
	return slices.ContainsFunc(s.Replicas, func(r ReplicaFacts) bool { return !r.away() && !r.Current && r.Lag > 0 })
}

// since takes it that a copy lacks nothing if it has what the stream had a moment before. While a stream is written, the copies
// are on their way at any time.
func (s StreamFacts) since(before StreamFacts) StreamFacts {
	if s.Leader == before.Leader && s.written >= before.written {
		for i, r := range s.Replicas {
			if !r.away() && r.Lag <= s.written-before.written {
				s.Replicas[i].Lag = 0
			}
		}
	}
	return s
}

// ReplicaFacts is a member of a group that agrees on writes.
type ReplicaFacts struct {
	Server  string        `json:"server"`
	Current bool          `json:"current"`
	Offline bool          `json:"offline"`
	Lag     uint64        `json:"lag"`     // operations behind the leader
	Seen    time.Duration `json:"seen_ns"` // since it was heard; 0: never by this leader
}

// away reports whether the leader of the group does not hear the member.
func (r ReplicaFacts) away() bool {
	return r.Offline || r.Seen > silentAfter || r.Seen == 0 && !r.Current
}

// Look gathers the facts of a link that Join returned. What cannot be learnt is left out,
// and the error says why.
func Look(ctx context.Context, l cluster.Link) (Facts, error) {
	j, ok := l.(*joined)
	if !ok {
		return Facts{}, errNoCluster
	}
	f, err := j.att.look(ctx)
	f.External = j.att.cfg.External != nil
	if err == nil && f.External {
		for _, stream := range []string{j.books.store.stream, j.site.keys.stream, j.hub.stream} {
			if !slices.ContainsFunc(f.Streams, func(s StreamFacts) bool { return s.Name == stream }) {
				f.Missing = append(f.Missing, stream)
			}
		}
	}
	return f, err
}

var errNoCluster = errors.New("cluster: this process is standalone")

// Fault is something that the facts show to be wrong.
type Fault struct {
	Stops          bool // something does not work now; else it is less safe than it should be
	What, Why, Fix string
}

// Cores is how many cores the site is to have: by the configuration of the core that looks, at an edge
// by the copies of what the site keeps. 0: it is not known.
func (f Facts) Cores() int {
	if f.Core != nil {
		return f.Core.Size
	}
	n := 0
	for _, s := range f.Streams {
		if !s.Shared {
			n = max(n, s.Copies)
		}
	}
	return n
}

// away names the cores that lead nothing and answer nobody, as those say who lead; own leaves out those of
// the hub. Since when is not known: who leads counts from when it began to.
func (f Facts) away(own bool) []string {
	gone := map[string]bool{}
	// Its groups end on a disk that refuses writes, and those who lead them hear it no more; it runs.
	stuck := f.Core != nil && f.Core.refused()
	look := func(all []ReplicaFacts) {
		for _, r := range all {
			if r.away() && !(stuck && r.Server == f.Server) {
				gone[r.Server] = true
			}
		}
	}
	if f.Core != nil && !stuck { // which knows of the others only how they were then
		look(f.Core.Cores)
	}
	for _, s := range f.Streams {
		if !own || !s.Shared {
			look(s.Replicas)
		}
	}
	// A core that began when another was away knows only its id, and hears the name elsewhere.
	for name := range gone {
		id, unknown := idIn(name)
		if !unknown {
			continue
		}
		delete(gone, name)
		named := false
		for other := range gone {
			named = named || peerID(other) == id
		}
		if !named {
			gone[nameless] = true
		}
	}
	return slices.Sorted(maps.Keys(gone))
}

// nameless is a core of which nobody knows the name now.
const nameless = "of unknown name"

// idIn returns the id in what NATS calls a server whose name it does not know.
func idIn(name string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(name, "Server name unknown at this time (peerID: ")
	return strings.TrimSuffix(rest, ")"), ok
}

// Faults returns what is wrong, nothing when all is well.
func (f Facts) Faults() []Fault {
	var all []Fault
	say := func(stops bool, why, fix, what string, args ...any) {
		all = append(all, Fault{Stops: stops, What: fmt.Sprintf(what, args...), Why: why, Fix: fix})
	}
	a, fix := "core", "if it runs, make room on its disk; if its machine is lost, start another core in its place and run anteroom cluster replace: docs/cluster.md, A core is lost"
	if f.External {
		a, fix = "NATS server", "if its disk was full, make room and restart it; if its machine is lost, start another in its place and remove the lost one in NATS (nats server cluster peer-remove)"
	}
	if f.Server == "" {
		say(true, "nothing can be recorded, so no new visitor is admitted beyond the units held here",
			fmt.Sprintf("start a %s of the site, and make its port reachable", a), "no %s of the site answers", a)
	}
	if f.Core != nil {
		f.Core.faults(len(f.away(true)), say)
	}
	for _, core := range f.away(false) {
		say(false, "one more loss may stop the site", "start it; "+fix, "%s %s is away", a, core)
	}
	for _, stream := range f.Missing {
		say(true, "somebody has deleted it in NATS, and nothing can be written to it",
			"restart one node of the site, which makes it again. Sessions and places of a journal come back with the visitors' cookies; if it held keys or the configuration, restore the last backup as well",
			"stream %s does not exist any more", stream)
	}
	for _, s := range f.Streams {
		if s.Copies > 1 && s.Leader == "" {
			say(true, "more than half of its copies must be in touch",
				"start each "+a+" that is away; after a kill wait ten seconds", "stream %s has no leader: nothing can be written to it", s.Name)
		}
		if n := 1 + len(s.Replicas); s.Copies > n {
			say(false, "a "+a+" was removed and no other has taken its place",
				"start one under the address that is free", "stream %s has %d of %d copies", s.Name, n, s.Copies)
		}
		for _, r := range s.Replicas {
			if !r.away() && !r.Current && r.Lag > 0 {
				say(false, "it was away, or its disk or the way to it is slow", "wait; if it stays, look at that machine",
					"the copy of stream %s at %s is %d writes behind", s.Name, r.Server, r.Lag)
			}
		}
		if s.MaxBytes > 0 && s.Bytes > uint64(s.MaxBytes)/10*9 {
			say(false, "writes are refused when it is full", "shorten how long records are kept, or delete what is not needed",
				"stream %s has %d of %d bytes", s.Name, s.Bytes, s.MaxBytes)
		}
	}
	return all
}

// refused reports whether the disk refuses writes.
func (c *CoreFacts) refused() bool { return c.DiskFull || c.DiskBroken != "" }

// faults says what is wrong. Those of the site's cores that are away are told of elsewhere.
func (c *CoreFacts) faults(away int, say func(stops bool, why, fix, what string, args ...any)) {
	if c.refused() {
		why := "it records nothing, so on_failure decides about new visitors"
		if c.Size > 1 {
			why = "its copies are not up to date: the other cores record for it, and one more loss may stop the site"
		}
		if c.DiskFull {
			say(true, why, "delete files there or enlarge it; the core continues by itself within half a minute", "the disk of this core is full")
		} else {
			say(true, why, "check the disk, and who owns the data directory; the core continues by itself when it can write there", "this core cannot write to its disk: %s", c.DiskBroken)
		}
	}
	if c.Size > 1 && c.Leader == "" && !c.refused() { // then it does not know
		say(true, "more than half of them must run and reach each other",
			"start the others, and open the port above that of the address between them", "the %d cores of the site have no leader", c.Size)
	}
	if c.Size > 1 && len(c.Routes) < c.Size-1-away {
		say(false, "they are down, or the network is blocked in one direction or both",
			"start them, and open the port above that of the address between them",
			"this core reaches %d of the %d other cores of its site", len(c.Routes), c.Size-1)
	}
	if c.Size > 1 && len(c.Routes) > c.Size-1 {
		say(false, "two clusters have one name and secret, or the list of cores was changed on some only",
			"give each cluster a name and a secret of its own, and all cores of a site the same list",
			"%d cores are connected where %d are listed", len(c.Routes)+1, c.Size)
	}
	if !c.Hub && len(c.Links) == 0 {
		say(true, "the hub is down or not reachable",
			"open the port of the hub's cores that is two above their address",
			"there is no link to the hub: the site continues with the units that it was granted")
	}
	if c.MaxStore > 0 && c.Store > c.MaxStore/10*9 {
		say(false, "writes are refused when it is full", "shorten how long records are kept", "the store has %d of %d bytes", c.Store, c.MaxStore)
	}
}

// look gathers the facts. What cannot be learnt is left out, and the error says why.
func (a *attachment) look(ctx context.Context) (Facts, error) {
	var f Facts
	var failed error
	if a.site.IsConnected() {
		f.Server = a.site.ConnectedServerName()
		rtt, err := a.site.RTT()
		if f.RTT = rtt; err != nil {
			failed = errors.Join(failed, fmt.Errorf("round trip to %s: %w", f.Server, err))
		}
	}
	if a.server != nil {
		core, err := a.server.look(len(a.coreList()))
		f.Core, failed = core, errors.Join(failed, err)
	}
	var shared []StreamFacts
	var notShared error
	var looking sync.WaitGroup // one that nobody answers must not add to the wait for the other
	looking.Go(func() { shared, notShared = lookStreams(ctx, a.shared, a.hubDomain, true) })
	streams, err := lookStreams(ctx, a.site, "", false)
	looking.Wait()
	f.Streams = append(streams, shared...)
	return f, errors.Join(failed, err, notShared)
}

func (s *coreServer) look(cores int) (*CoreFacts, error) {
	c := &CoreFacts{Size: max(1, cores), Hub: len(s.cfg.Hub) == 0, Links: s.links()}
	c.DiskFull, c.DiskBroken = s.refuses()
	routes, err := s.srv().Routez(nil)
	if err != nil {
		return c, fmt.Errorf("connections between cores: %w", err)
	}
	// A pair of servers has several connections; one is shown.
	for _, r := range routes.Routes {
		i := slices.IndexFunc(c.Routes, func(l LinkFacts) bool { return l.Name == r.RemoteName })
		if i < 0 {
			c.Routes = append(c.Routes, LinkFacts{Name: r.RemoteName, Address: hostPort(r.IP, r.Port)})
			i = len(c.Routes) - 1
		}
		c.Routes[i].RTT = cmp.Or(c.Routes[i].RTT, duration(r.RTT))
	}
	info, err := s.srv().Jsz(&server.JSzOptions{})
	if err != nil {
		return c, fmt.Errorf("JetStream: %w", err)
	}
	c.Memory, c.Store = info.Memory, info.Store
	c.MaxMemory, c.MaxStore = uint64(info.Config.MaxMemory), uint64(info.Config.MaxStore)
	if m := info.Meta; m != nil {
		c.Leader = m.Leader
		for _, r := range m.Replicas {
			// One that follows hears only the leader.
			if m.Leader != s.srv().Name() && !r.Offline {
				continue
			}
			c.Cores = append(c.Cores, ReplicaFacts{r.Name, r.Current, r.Offline, r.Lag, r.Active})
		}
	}
	return c, nil
}

// links are those with cores of other sites.
func (s *coreServer) links() []LinkFacts {
	leafs, err := s.srv().Leafz(nil)
	if err != nil {
		return nil
	}
	var all []LinkFacts
	for _, l := range leafs.Leafs {
		all = append(all, LinkFacts{l.Name, hostPort(l.IP, l.Port), duration(l.RTT)})
	}
	slices.SortFunc(all, func(a, b LinkFacts) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func hostPort(ip string, port int) string { return net.JoinHostPort(ip, strconv.Itoa(port)) }

// duration reads what NATS writes for one; "" is none.
func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

func lookStreams(ctx context.Context, nc *nats.Conn, domain string, shared bool) ([]StreamFacts, error) {
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
	all, err := listStreams(ctx, js, shared)
	if err == nil && slices.ContainsFunc(all, StreamFacts.behind) && pause(ctx, catchUp) {
		var again []StreamFacts
		if again, err = listStreams(ctx, js, shared); err == nil {
			for i, s := range again {
				if j := slices.IndexFunc(all, func(b StreamFacts) bool { return b.Name == s.Name }); j >= 0 {
					again[i] = s.since(all[j])
				}
			}
			all = again
		}
	}
	if err != nil {
		return all, fmt.Errorf("%s: %w", what, err)
	}
	return all, nil
}

// catchUp is how long a copy may take to have what its stream has.
const catchUp = 300 * time.Millisecond

func listStreams(ctx context.Context, js jetstream.JetStream, shared bool) (all []StreamFacts, _ error) {
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		all = append(all, streamOf(info, shared))
	}
	slices.SortFunc(all, func(a, b StreamFacts) int { return strings.Compare(a.Name, b.Name) })
	return all, list.Err()
}

func streamOf(info *jetstream.StreamInfo, shared bool) StreamFacts {
	s := StreamFacts{
		Shared: shared, Name: info.Config.Name, Messages: info.State.Msgs, Bytes: info.State.Bytes,
		MaxBytes: info.Config.MaxBytes, Copies: info.Config.Replicas, written: info.State.LastSeq,
	}
	if c := info.Cluster; c != nil {
		s.Leader = c.Leader
		for _, r := range c.Replicas {
			s.Replicas = append(s.Replicas, ReplicaFacts{r.Name, r.Current, r.Offline, r.Lag, r.Active})
		}
	}
	return s
}
