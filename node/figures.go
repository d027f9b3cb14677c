package node

// What monitoring asks of a node.

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

// Lease is what the site of a room has of the room's seats, where this process holds the role of the
// site.
type Lease struct {
	Room anteroom.RoomID
	// Used are seats of sessions, Offered those set aside for turns, Free the rest; Free is negative
	// after passthrough has admitted beyond what the site has.
	Used, Offered, Free int64
	// Silence is how long the coordinator has not answered; 0: it does.
	Silence time.Duration
}

// Leases calls fn for each room that is in use at this site and whose role is here: none in a process alone.
func (n *Node) Leases(fn func(Lease)) {
	if n.member == nil {
		return
	}
	for shard := range n.member.shards {
		role := n.member.siteRole(shard)
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
		for _, one := range held {
			fn(one)
		}
	}
}

// Skew is how wrong the wall clock of this machine is, as far as can be told: in a cluster how far it is ahead of
// the median of the nodes of the site; alone how far it has been stepped back since the process started.
func (n *Node) Skew() time.Duration {
	if n.member == nil {
		return n.Now().Sub(anteroom.TimeOf(walltime.Now()))
	}
	var ahead []time.Duration // of the others
	for _, m := range n.member.roles.Heard() {
		ahead = append(ahead, m.Offset)
	}
	if len(ahead) == 0 {
		return 0
	}
	slices.Sort(ahead)
	return -ahead[(len(ahead)-1)/2]
}

// Known returns the live numbers of a room, as [Room.Status] does, where this process answers for them:
// any room of a process alone, in a cluster those whose coordinator is here. It asks nobody.
func (n *Node) Known(id anteroom.RoomID) (st anteroom.Status, ok bool) {
	r := n.Room(id)
	switch {
	case r == nil:
		return st, false
	case n.member == nil:
		return r.Status(), true
	case n.member.host == nil:
		return st, false
	}
	if st, ok = n.member.host.Status(id); ok {
		r.mu.Lock()
		r.follow()
		st.InForce = r.schedule.inForce
		r.mu.Unlock()
	}
	return st, ok
}
