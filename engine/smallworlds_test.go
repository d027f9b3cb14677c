package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// TestSmallWorlds runs every order of a handful of steps of three visitors and an operator,
// for all small limits, and holds each world against its invariants after every step. The
// trial checks the caps, second seats, sessions that are queued, places that get worse and
// requests that are held too long; sane checks the rest.
func TestSmallWorlds(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const depth = 4 // 5 takes half a minute and has been run
	for _, l := range [][2]int{{0, 1}, {1, 0}, {1, 1}, {1, 2}, {2, 1}, {2, 2}} {
		t.Run(fmt.Sprintf("%d_at_once_%d_per_minute", l[0], l[1]), func(t *testing.T) {
			n := 0
			explore(t, anteroom.Settings{TotalActiveUsers: l[0], NewUsersPerMinute: l[1], SessionDuration: 25 * time.Second, PlaceHold: 30 * time.Second}, nil, depth, &n)
			t.Logf("%d worlds of %d steps", n, depth)
		})
	}
}

// A smallStep changes a world. It reports false when it would change nothing, so that
// worlds which differ only in such steps are run once.
type smallStep struct {
	name string
	do   func(w *trial) bool
}

var smallSteps = func() []smallStep {
	steps := []smallStep{
		{"arrive", func(w *trial) bool {
			if len(w.people) == 3 {
				return false
			}
			w.arrive()
			return true
		}},
		{"tick", func(w *trial) bool { w.pass(time.Second); return true }},
		{"wait", func(w *trial) bool { // half a minute, in coarse ticks
			for range 30 {
				w.now = w.now.Add(time.Second)
				w.room.Tick(w.now)
				w.collect()
			}
			return true
		}},
		{"restart", func(w *trial) bool { w.restart(); return len(w.people) > 0 }},
		{"method", func(w *trial) bool {
			s := w.set
			if s.QueueingMethod = anteroom.Random; w.set.QueueingMethod == anteroom.Random {
				s.QueueingMethod = anteroom.FIFO
			}
			w.configure(s)
			return len(w.people) > 0
		}},
		{"limit", func(w *trial) bool {
			s := w.set
			s.TotalActiveUsers = (s.TotalActiveUsers + 1) % 3
			w.configure(s)
			return true
		}},
	}
	for i := range 3 {
		who := func(w *trial) *visitor {
			if i >= len(w.people) || w.people[i].held != 0 {
				return nil
			}
			return w.people[i]
		}
		steps = append(steps,
			smallStep{fmt.Sprint("visit", i), func(w *trial) bool {
				v := who(w)
				if v != nil {
					w.visit(v)
				}
				return v != nil
			}},
			smallStep{fmt.Sprint("stream", i), func(w *trial) bool {
				v := who(w)
				if v == nil || v.inside || v.streams {
					return false
				}
				w.open(v)
				return true
			}},
			smallStep{fmt.Sprint("close", i), func(w *trial) bool {
				v := who(w)
				if v == nil || !v.streams {
					return false
				}
				w.close(v)
				return true
			}},
			smallStep{fmt.Sprint("revoke", i), func(w *trial) bool {
				v := who(w)
				if v == nil || !v.inside {
					return false
				}
				w.revoke(v)
				return true
			}})
	}
	return steps
}()

// path names the world in a failure.
type path struct {
	*testing.T
	steps []int
}

func (p path) Fatalf(format string, args ...any) {
	p.Helper()
	var names []string
	for _, i := range p.steps {
		names = append(names, smallSteps[i].name)
	}
	p.T.Fatalf("%s: %s", strings.Join(names, " "), fmt.Sprintf(format, args...))
}

func explore(t *testing.T, s anteroom.Settings, steps []int, depth int, n *int) {
	for i := range smallSteps {
		next := append(steps[:len(steps):len(steps)], i)
		w := newTrial(path{t, next}, s)
		live := true
		for _, k := range next {
			live = smallSteps[k].do(w)
		}
		if !live {
			continue
		}
		*n++
		w.pass(2 * flushEvery) // news are told
		sane(w)
		if depth > 1 {
			explore(t, s, next, depth-1, n)
		}
	}
}

// sane holds a world against what must always be so.
func sane(w *trial) {
	w.t.Helper()
	c, s, d := w.room.coordinator, w.room.site, w.room.door
	if s.seats.len() < w.active() {
		w.t.Fatalf("%d seats, %d are active", s.seats.len(), w.active())
	}
	if int(s.balance.Used[Seat]) != s.seats.len() || int(s.balance.Used[RateSlot]) != s.rates.len() || int(s.balance.Offers) != len(s.offered(func(o offer) bool { return !o.ahead })) {
		w.t.Fatalf("balance %+v with %d seats, %d rate slots, %d offers", s.balance, s.seats.len(), s.rates.len(), len(s.offers))
	}
	if d.known.len() > s.seats.len() {
		w.t.Fatalf("the door knows %d sessions, the site %d", d.known.len(), s.seats.len())
	}
	counts := [4]int{}
	streams := 0
	c.line.places.each(func(slot uint32) {
		p, id := c.line.places.at(slot), c.line.places.id(slot)
		counts[p.state]++
		if p.flags&flagStream != 0 {
			streams++
		}
		if s.seats.find(&id) != 0 {
			w.t.Fatalf("a ticket has a session and a place (%d)", p.state)
		}
		if here := s.here.find(&id); here == 0 && p.state != dormant {
			w.t.Fatalf("the line knows a ticket (%d) that does not wait at the site", p.state)
		} else if here != 0 && s.here.at(here).key != p.key {
			w.t.Fatalf("a ticket has the keys %v and %v", s.here.at(here).key, p.key)
		}
		if inOrder := p.pos >= 0; inOrder != (p.flags&flagWinner == 0 && (p.state == inLine || p.state == parked && c.line.random) && !(c.line.random && p.proving())) {
			w.t.Fatalf("a place (%d) stands at %d", p.state, p.pos)
		}
	})
	if counts != c.line.counts || streams != c.line.streams {
		w.t.Fatalf("the line counts %v and %d streams, there are %v and %d", c.line.counts, c.line.streams, counts, streams)
	}
	if counts[offered] != len(c.line.offers) {
		w.t.Fatalf("%d places are offered, %d are noted", counts[offered], len(c.line.offers))
	}
	waiting := 0
	for _, x := range c.line.seconds.list() {
		waiting += int(x.Count)
	}
	if waiting != c.line.waiting() {
		w.t.Fatalf("%d in the seconds, %d wait", waiting, c.line.waiting())
	}
	for k := range units {
		if sum := c.ledger.Pool(k) + s.balance.Free(k) + int64(s.balance.Used[k]+s.balance.Offers); sum != c.ledger.Limit[k] {
			w.t.Fatalf("unit %d: pool %d and site %+v make %d, the limit is %d", k, c.ledger.Pool(k), s.balance, sum, c.ledger.Limit[k])
		}
	}
	ordered(w)
	conserving(w)
}

// ordered: under FIFO the one who entered last did not pass somebody who was here all the
// time, with a stream.
func ordered(w *trial) {
	if w.set.QueueingMethod != anteroom.FIFO || len(w.entered) == 0 || w.entered[len(w.entered)-1] != w.now {
		return
	}
	for _, in := range w.people {
		if in.entered != w.now || in.latest.Reason == anteroom.ReasonSession {
			continue
		}
		for _, v := range w.people {
			slot := w.room.site.here.find(&v.ticket.ID)
			if slot != 0 && v.streams && !v.inside && w.room.site.here.at(slot).key < in.ticket.Arrival && w.room.site.here.at(slot).flags&hereOffered == 0 && !dozing(w, v) {
				w.t.Fatalf("visitor %d entered and passed visitor %d", in.n, v.n)
			}
		}
	}
}

// dozing: was called and did not come.
func dozing(w *trial, v *visitor) bool {
	slot := w.room.coordinator.line.places.find(&v.ticket.ID)
	return slot == 0 || w.room.coordinator.line.places.at(slot).state == dormant
}

// conserving: nobody whose stream is open waits, uncalled, while a permit is free.
func conserving(w *trial) {
	c := w.room.coordinator
	if c.permits() < 1 || w.now < c.quiet {
		return
	}
	for _, v := range w.people {
		slot := c.line.places.find(&v.ticket.ID)
		if slot == 0 || v.inside || !v.streams {
			continue
		}
		if st := c.line.places.at(slot).state; st == inLine || st == parked {
			w.t.Fatalf("%d permits are free and visitor %d waits with a stream", c.permits(), v.n)
		}
	}
}
