package node

// What a node knows of its cluster, for operators.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

// ClusterStatus is a node's view of its cluster.
type ClusterStatus struct {
	Site    string           `json:"site"`
	Node    string           `json:"node"`
	Process string           `json:"process"`
	Hub     bool             `json:"hub"`
	Weight  int              `json:"weight"`
	Members []cluster.Member `json:"members"` // of this site
	Roles   []RoleStatus     `json:"roles"`   // of this site
	Sites   []string         `json:"sites"`   // of the cluster, as far as this node has heard
	Link    cluster.Health   `json:"link"`
	Doors   []DoorsStatus    `json:"doors"`
	// Namesake: another site of the cluster has the name of this one, which therefore holds no roles.
	Namesake bool `json:"namesake,omitempty"`
	// Namesakes are nodes of this site whose name several processes have.
	Namesakes []string `json:"namesakes,omitempty"`
	// Hubs are the sites that are the hub, if there are several.
	Hubs []string `json:"hubs,omitempty"`

	Garbled uint64 `json:"garbled"` // messages that could not be read
	Unsent  uint64 `json:"unsent"`  // and sent
}

// RoleStatus is a role and its holder.
type RoleStatus struct {
	Role  string       `json:"role"`
	Node  string       `json:"node,omitempty"`  // empty: nobody
	Epoch uint64       `json:"epoch,omitempty"` // where it is held by this node
	Error string       `json:"error,omitempty"` // why the holder does not serve, or that it does not answer
	State *ShardStatus `json:"state,omitempty"` // of site roles
}

// ShardStatus is what the holder of a site role says of it.
type ShardStatus struct {
	Node        string       `json:"node"`
	Term        uint64       `json:"term"`
	Incarnation uint64       `json:"incarnation"`
	Rooms       int          `json:"rooms"`
	Active      int          `json:"active_rooms"` // where somebody is, or units are held
	Doors       int          `json:"doors"`        // processes heard
	Clock       ClockStatus  `json:"clock"`        // to the coordinator's
	Journal     JournalStats `json:"journal"`
	Waiting     int          `json:"journal_waiting_bytes"`
}

// DoorsStatus is how the doors of a shard stand to their site.
type DoorsStatus struct {
	Shard     int         `json:"shard"`
	Clock     ClockStatus `json:"clock"`     // to the site's
	Unreached int         `json:"unreached"` // rooms that have asked and get no answer
}

// Cluster returns this node's view of its cluster, and asks the holders of the site's roles; ok
// is false when the process is alone.
func (n *Node) Cluster(ctx context.Context) (status ClusterStatus, ok bool) {
	return n.part.status(ctx)
}

func (x *member) status(ctx context.Context) (ClusterStatus, bool) {
	p := ClusterStatus{Site: x.cfg.Site, Node: x.cfg.Node, Process: fmt.Sprintf("%016x", x.cfg.Process), Hub: x.cfg.Hub, Weight: max(1, x.cfg.Weight),
		Members: x.roles.Heard(), Link: x.link.Health(), Namesake: x.namesake.Load(), Garbled: x.garbled.Load(), Unsent: x.unsent.Load()}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	p.Sites, _ = x.siteNames(ctx)
	slices.Sort(p.Sites)
	p.Hubs = x.hubs(ctx)
	for i, s := range x.shards {
		p.Doors = append(p.Doors, s.status())
		p.Roles = append(p.Roles, x.roleStatus(fmt.Sprintf("%s%02d", siteRolePrefix, i)))
	}
	if x.cfg.Hub {
		for i := range x.shards {
			p.Roles = append(p.Roles, x.roleStatus(fmt.Sprintf("%s%02d", coordRolePrefix, i)))
		}
	}
	var work sync.WaitGroup
	work.Go(func() { p.Namesakes, _ = x.roles.Namesakes(ctx) })
	for i := range x.shards {
		work.Go(func() {
			role := &p.Roles[i]
			if a, err := x.ask(ctx, x.cfg.Site, i, question{Op: "state"}); err != nil {
				if role.Error == "" {
					role.Error = err.Error()
				}
			} else {
				role.State = a.State
			}
		})
	}
	work.Wait()
	return p, true
}

func (x *member) roleStatus(name string) (s RoleStatus) {
	s.Role = name
	s.Node, _ = x.roles.Holder(name)
	s.Epoch, _ = x.roles.Held(name)
	if site, shard, _ := roleOf(name); site {
		if r := x.siteRole(shard); r != nil {
			if why := r.broken.Load(); why != nil {
				s.Error = *why
			}
		}
	}
	return s
}

func (s *shard) status() DoorsStatus {
	d := DoorsStatus{Shard: s.number, Clock: s.clock.status()}
	s.of.node.mu.RLock()
	rooms := s.of.node.rooms
	s.of.node.mu.RUnlock()
	for _, one := range rooms {
		r := one.decider.(*far)
		if r.shard != s || !r.active.Load() {
			continue
		}
		r.mu.Lock()
		if !r.doorway.Reachable(r.now()) {
			d.Unreached++
		}
		r.mu.Unlock()
	}
	return d
}

func (s *siteShard) status() ShardStatus {
	st := ShardStatus{Node: s.member.cfg.Node, Term: s.term, Incarnation: s.key.Incarnation, Clock: s.clock.status(),
		Journal: s.journal.stats(), Waiting: s.journal.waiting()}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Rooms = len(s.rooms)
	for _, d := range s.doors {
		if !d.gone {
			st.Doors++
		}
	}
	for _, r := range s.rooms {
		if r.active {
			st.Active++
		}
	}
	return st
}

// Decided reports whether every room here has somebody who decides about it: the site's role of
// its shard is served, and its coordinator knows the time. A process alone always has. It asks them,
// and takes at most some seconds.
func (n *Node) Decided(ctx context.Context) bool { return n.part.decided(ctx) }

func (x *member) decided(ctx context.Context) bool {
	x.node.mu.RLock()
	one := map[int]anteroom.RoomID{} // a room of each shard
	for id := range x.node.rooms {
		one[cluster.ShardOf(string(id))] = id
	}
	x.node.mu.RUnlock()
	var missing atomic.Bool
	var work sync.WaitGroup
	for shard, room := range one {
		work.Go(func() {
			a, err := x.ask(ctx, x.cfg.Site, shard, question{Op: "state"})
			if err != nil || a.State == nil || a.State.Active > 0 && !a.State.Clock.Synced {
				missing.Store(true)
			}
		})
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, askWait)
			defer cancel()
			if _, err := x.client.Status(ctx, room); err != nil {
				missing.Store(true)
			}
		})
	}
	work.Wait()
	return !missing.Load()
}

// statusFor is how long live numbers of a room are told again before the coordinator is asked
// anew: metrics and status pages ask for all rooms at once, and often.
const statusFor = time.Second
