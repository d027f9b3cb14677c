package node

// What monitoring reads from a node.

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// Lease is a site's share of the seats of a room, known where this process holds the role of the site.
type Lease struct {
	Room anteroom.RoomID
	// Used are seats of sessions, Offered are reserved for visitors who were called, and Free is the rest; it is
	// negative after passthrough has admitted more than the site has.
	Used, Offered, Free int64
	// Silence is how long the coordinator has not answered; 0 while it answers.
	Silence time.Duration
}

// Leases calls fn for each room in use at this site whose role is held here. There is none in a standalone process.
func (n *Node) Leases(fn func(Lease)) { n.part.leases(fn) }

func (x *member) leases(fn func(Lease)) {
	for shard := range x.shards {
		role := x.siteRole(shard)
		if role == nil {
			continue
		}
		s := role.now.Load()
		if s == nil {
			continue
		}
		var held []Lease
		s.mu.Lock()
		now := s.clock.now()
		for id, r := range s.rooms {
			b := r.site.Balance()
			if r.active || b.Granted != b.Returned {
				held = append(held, Lease{Room: id, Used: int64(b.Used[engine.Seat]), Offered: int64(b.Offers), Free: b.Free(engine.Seat), Silence: r.site.Silence(now)})
			}
		}
		s.mu.Unlock()
		// Outside the lock: fn writes metrics, and admissions must not wait for them.
		for _, one := range held {
			fn(one)
		}
	}
}

// Skew returns how wrong the wall clock of this machine is, as far as can be told: in a cluster, how far it is ahead of
// the median of the site's nodes; in a standalone process, how far it has been set back since the start.
func (n *Node) Skew() time.Duration { return n.part.skew() }

func (x *member) skew() time.Duration {
	var ahead []time.Duration // of the others
	for _, m := range x.roles.Heard() {
		ahead = append(ahead, m.Offset)
	}
	if len(ahead) == 0 {
		return 0
	}
	slices.Sort(ahead)
	return -ahead[(len(ahead)-1)/2]
}

// Known returns the live figures of a room, as [Room.Status] does, if this process answers for them: any room of a
// standalone process, in a cluster the rooms whose coordinator is here. It sends no requests.
func (n *Node) Known(id anteroom.RoomID) (st anteroom.Status, ok bool) {
	r := n.Room(id)
	if r == nil {
		return st, false
	}
	return n.part.known(r)
}

func (x *member) known(r *Room) (st anteroom.Status, ok bool) {
	if x.host == nil {
		return st, false
	}
	if st, ok = x.host.Status(r.id); ok {
		r.mu.Lock()
		r.follow()
		st.InForce = r.schedule.inForce
		r.mu.Unlock()
	}
	return st, ok
}
