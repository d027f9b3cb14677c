package sim

import (
	"bytes"
	"slices"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// fromNode is what a node has said to a site that does not know the time yet.
type fromNode struct {
	node int
	said engine.FromDoor
}

// handOver has another process take a site's role from its journal. The process before goes on
// until the fault is over, with the same messages; but its records are refused from now on, and
// nothing that it says after one leaves.
func (x *product) handOver(i, fault int, over bool) {
	s := &x.sites[i]
	if over {
		s.older = slices.DeleteFunc(s.older, func(p *siteProcess) bool { return p.fenced == fault })
		return
	}
	if !s.up {
		return // nobody has the role
	}
	before := *s
	before.fenced, before.older, before.journal = fault, nil, nil
	s.older, s.early, s.wake = append(s.older, &before), nil, 0
	s.term++
	x.startSite(i)
	for k := range x.w.sc.Sites[i].Nodes {
		x.tellStreams(int(x.w.firstOf[i]) + k)
	}
	x.settleSite(i)
}

// tellStreams lets a node say which streams it has, to a site that knows nothing of them.
func (x *product) tellStreams(node int) {
	d := &x.doors[node]
	if !d.up {
		return
	}
	ids := make([]anteroom.ID, 0, len(d.streams))
	for id := range d.streams {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range ids {
		p := &x.w.people[d.streams[id]]
		if p.ticket.ID != id || p.ticket.Accepted() {
			continue // its owner is on the way in
		}
		d.token++ // nobody waits for the answer
		d.out.Visits = append(d.out.Visits, engine.Asked{Token: d.token,
			Visit: anteroom.Visit{NewID: x.w.newID(), Ticket: p.ticket, Stream: true}})
		x.flushSoon(node)
	}
}

// processes are those that take themselves for the site and say so, the oldest first.
func (x *product) processes(i int) (out []*siteProcess) {
	s := &x.sites[i]
	if len(s.older) > 0 {
		for _, p := range s.older {
			if !p.mute {
				out = append(out, p)
			}
		}
	}
	if s.up {
		out = append(out, s)
	}
	return out
}

// timely is the process by whose time the nodes of a site go.
func (x *product) timely(i int) *siteProcess {
	s := &x.sites[i]
	for _, p := range s.older {
		if !s.clock.Synced() && p.clock.Synced() {
			return p
		}
	}
	return s
}

// untimely: a process that has taken over keeps what nodes say until the coordinator has told it
// the time, but not for ever.
func (s *siteProcess) untimely(now anteroom.Time) bool {
	return s.term > 0 && !s.clock.Synced() && now.Sub(s.begun) < engine.CutAfter
}

// late takes what was said early. Newcomers who came to a site that was cut off, too, are in line
// from then.
func (x *product) late(i int, s *siteProcess) {
	if len(s.early) == 0 || s.untimely(x.w.now) {
		return
	}
	early := s.early
	s.early = nil
	for _, m := range early {
		for _, a := range m.said.Visits {
			if r, waits := x.doors[m.node].waits[a.Token]; waits && a.Visit.Fresh && !s.clock.Synced() {
				x.w.judge.comesLate(x.w.requests[r].person)
			}
		}
		x.fromDoor(i, s, m.node, m.said)
	}
}
