package gateway

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
)

// crowdsPerPart bounds the sessions of each of the 64 parts: between it and twice as many are remembered.
const crowdsPerPart = 1024

// crowd is the networks that the requests of a session come from. Networks beyond the bound are not kept.
type crowd struct {
	networks [anteroom.MaxSessionNetworks]uint32
	count    uint8
	alarmed  bool
}

// crowds are those of the sessions seen last, in two generations: when the younger one is full, it becomes the older one, whose
// sessions start over. So nothing has to say when a session ends.
type crowds struct {
	seed  maphash.Seed
	parts [64]struct {
		mu         sync.Mutex
		young, old map[anteroom.ID]crowd
	}
}

func newCrowds() *crowds {
	c := &crowds{seed: maphash.MakeSeed()}
	for i := range c.parts {
		c.parts[i].young, c.parts[i].old = map[anteroom.ID]crowd{}, map[anteroom.ID]crowd{}
	}
	return c
}

// network is the /24 of an IPv4 address, the /48 of an IPv6 address; two networks are the same with a chance of 1 in 4 billion.
func (c *crowds) network(client netip.Addr) uint32 {
	bits := 48
	if client.Is4() {
		bits = 24
	}
	prefix, _ := client.Prefix(bits) // fails only when bits exceed the address
	return uint32(maphash.Comparable(c.seed, prefix.Addr()))
}

// count notes a request of a session. It reports whether its network is one too many, and whether that is the first time.
func (c *crowds) count(id anteroom.ID, network uint32, most int) (beyond, first bool) {
	p := &c.parts[maphash.Comparable(c.seed, id)%uint64(len(c.parts))]
	p.mu.Lock()
	defer p.mu.Unlock()
	one, known := p.young[id]
	if !known {
		if len(p.young) >= crowdsPerPart {
			p.young, p.old = p.old, p.young
			clear(p.young)
		}
		one = p.old[id]
		delete(p.old, id)
	}
	before := one
	beyond, first = one.see(network, most)
	if !known || one != before {
		p.young[id] = one
	}
	return beyond, first
}

func (c *crowd) see(network uint32, most int) (beyond, first bool) {
	for _, n := range c.networks[:c.count] {
		if n == network {
			return false, false
		}
	}
	if int(c.count) < most {
		c.networks[c.count] = network
		c.count++
		return false, false
	}
	first, c.alarmed = !c.alarmed, true
	return true, first
}

// vouch says that a session may be used from a network, and forgets the others.
func (c *crowds) vouch(id anteroom.ID, network uint32) {
	p := &c.parts[maphash.Comparable(c.seed, id)%uint64(len(c.parts))]
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.young[id]
	one.networks[0], one.count = network, 1
	p.young[id] = one
}

// What a room does about sessions that are used from too many networks; index of Stats.SharedSessions.
const (
	sharedLogged = iota
	sharedChallenged
	sharedRevoked
	sharedActions
)

// SharedWords name them in metrics and logs.
var SharedWords = [sharedActions]string{"log", "challenge", "revoke"}

// countNetworks counts the network of an active user's request, and carries out what the room does about a session that is used from
// too many: then the decision is another one.
func (x *exchange) countNetworks(v *anteroom.Visit) {
	rm, id := x.room, x.decision.Ticket.ID
	if x.decision.Verdict != anteroom.Admit || rm.SessionNetworksAction == anteroom.SharedOff || x.isUnnamed() {
		return
	}
	alone := x.conn != nil && !x.shared
	if alone && x.conn.counted(id) {
		return
	}
	network := x.g.crowds.network(x.client)
	beyond, first := x.g.crowds.count(id, network, rm.SessionNetworks)
	if !beyond {
		if alone {
			x.conn.count(id)
		}
		return
	}
	action := x.sharedAction()
	if first {
		x.g.count.shared[action].Add(1)
		x.logShared(action)
	}
	switch action {
	case sharedRevoked:
		rm.door.Revoke(id)
		x.g.count.revoked.Add(1)
		v.Networks = x.networks()
		x.decision = rm.door.Decide(x.r.Context(), *v)
	case sharedChallenged:
		if came := x.answered(id); came == solved || came == waived {
			x.g.crowds.vouch(id, network)
			return
		}
		x.decision = anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonWaiting, Ticket: x.presented, At: x.decision.At,
			InForce: x.decision.InForce, Method: x.decision.InForce.Settings.QueueingMethod, Refresh: sharedRefresh}
	}
}

// sharedRefresh is when a page comes back whose visitor has a session, and solves a challenge.
const sharedRefresh = 5 * time.Second

// isUnnamed says that the request came from a trusted proxy that has not said whose it is.
func (x *exchange) isUnnamed() bool { return !x.client.IsValid() || x.s.isTrusted(x.client) }

// sharedAction is what the room does. It asks a challenge only where there is one, and a page to show it.
func (x *exchange) sharedAction() int {
	switch f := x.decision.InForce; {
	case x.room.SessionNetworksAction == anteroom.SharedRevoke:
		return sharedRevoked
	case x.room.SessionNetworksAction == anteroom.SharedChallenge && x.s.challenge != nil && x.room.session == nil && x.presented.ID == x.decision.Ticket.ID && f != nil && f.Challenge:
		return sharedChallenged
	}
	return sharedLogged
}

func (x *exchange) logShared(action int) {
	if log := x.s.log; log != nil && x.g.alarms.allow(x.s.now()) {
		log.Warn("a session is used from more networks than session_networks", "room", x.room.Name, "room_id", string(x.room.ID),
			"visitor", x.decision.Ticket.ID.Reference(), "networks", x.room.SessionNetworks+1, "client", addrString(x.client), "action", SharedWords[action])
	}
}
