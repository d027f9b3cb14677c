package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// Whatever crowd sends first requests, and from however many networks, a site remembers so many of them and of their places.
func TestFirstRequestsAreBounded(t *testing.T) {
	t.Parallel()
	now := midnight
	s := NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 1 << 30, NewUsersPerMinute: 1 << 30})
	w := trial{}
	numbered := func(n int) (id anteroom.ID, networks anteroom.Networks) {
		return w.newID(), anteroom.Networks{uint32(3*n + 1), uint32(3*n + 2), uint32(3*n + 3)}
	}
	trusted := 0
	for n := range maxProbation + 1000 {
		id, networks := numbered(n)
		if s.trusts(now, &anteroom.Visit{Networks: networks}, id) {
			trusted++
		}
	}
	if p := &s.probation; trusted != maxProbation || len(p.first) != maxProbation || len(p.counts) > 3*maxProbation {
		t.Errorf("%d first requests are trusted; %d are remembered, with %d networks", trusted, len(p.first), len(p.counts))
	}
	if id, networks := numbered(maxProbation + 1000); !s.trusts(now.Add(probationFor), &anteroom.Visit{Networks: networks}, id) {
		t.Error("nothing is forgotten after a minute")
	}

	s = NewSite(now, SiteKey{Name: "a", Incarnation: 1}, anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 60, QueueAll: true})
	for n := range maxProving + 1000 {
		id, _ := numbered(n)
		s.Visit(now, anteroom.Visit{Fresh: true, NoHold: true, NewID: id, Ticket: anteroom.Ticket{ID: id}})
	}
	if len(s.proving) != maxProving || s.here.len() > maxProving {
		t.Errorf("%d places are kept for visitors who have not come back, %d in all", len(s.proving), s.here.len())
	}
	s.Tick(now.Add(time.Minute))
	if len(s.proving) != 0 {
		t.Errorf("%d of them are kept for a minute", len(s.proving))
	}
}
