package engine

import (
	"time"

	"github.com/anteroom/anteroom"
)

// A trial runs a Single under virtual time with visitors who behave as browsers do, and
// holds every decision against an oracle of its own: who is inside, when they entered,
// and what they were told.
type trial struct {
	t       failer
	now     anteroom.Time
	room    *Single
	set     anteroom.Settings
	record  LedgerRecord
	journal []Event
	ids     uint64

	people  []*visitor
	byID    map[anteroom.ID]*visitor
	byToken map[uint64]*visitor
	entered []anteroom.Time // new sessions, ascending
	polite  bool            // waiting visitors without a stream check in when they were told to
	hasty   bool            // visitors with a stream follow its call at once
	keep    bool            // those inside renew their session
	lane    uint8           // to which the next requests belong
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

type visitor struct {
	ticket  anteroom.Ticket
	n       int // order of arrival, from 0
	arrived anteroom.Time
	entered anteroom.Time // 0 while outside
	last    anteroom.Time // last request inside
	inside  bool
	streams bool
	held    uint64
	heldAt  anteroom.Time
	ahead   int // smallest place shown; -1 when none
	latest  anteroom.Decision
	seen    bool // has had an answer
}

var hereKey = SiteKey{Name: "here", Incarnation: 1}

func newTrial(t failer, s anteroom.Settings) *trial {
	s.FirstSession = 24 * time.Hour // the trial counts a session for as long as it lasts by right
	w := &trial{t: t, now: midnight, set: s.WithDefaults(), byID: map[anteroom.ID]*visitor{}, byToken: map[uint64]*visitor{}}
	w.start(nil)
	return w
}

func (w *trial) start(events []Event) {
	w.room = NewSingle(w.now, hereKey, w.set, w.record, []byte("seed"), events, 0, 0)
	w.collect()
}

// restart is kill -9: held requests and streams are gone, the journal and the record stay.
func (w *trial) restart() {
	clear(w.byToken)
	for _, v := range w.people {
		v.held, v.streams = 0, false
	}
	w.start(w.journal)
}

func (w *trial) configure(s anteroom.Settings) {
	w.set = s.WithDefaults()
	w.room.Configure(w.now, s)
	w.collect()
}

func (w *trial) newID() anteroom.ID {
	w.ids++
	var id anteroom.ID
	x := w.ids * 0x9e3779b97f4a7c15
	x ^= x >> 31
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 29
	for i := range 8 {
		id[i], id[8+i] = byte(x>>(8*i)), byte(w.ids>>(8*i))
	}
	return id
}

// arrive sends the first request of somebody new.
func (w *trial) arrive() *visitor {
	v := &visitor{n: len(w.people), arrived: w.now, ahead: -1}
	v.ticket = anteroom.Ticket{ID: w.newID()}
	w.people = append(w.people, v)
	w.request(v, anteroom.Visit{Fresh: true})
	return v
}

// visit sends a request with the ticket that the visitor holds.
func (w *trial) visit(v *visitor) { w.request(v, anteroom.Visit{}) }

// open opens a stream.
func (w *trial) open(v *visitor) {
	v.streams = true
	w.request(v, anteroom.Visit{Stream: true})
	if v.inside {
		v.streams = false
	}
}

func (w *trial) close(v *visitor) {
	v.streams = false
	w.room.CloseStream(w.now, v.ticket.ID)
	w.collect()
}

func (w *trial) request(v *visitor, r anteroom.Visit) {
	w.t.Helper()
	r.Ticket, r.NewID, r.Lane = v.ticket, w.newID(), w.lane
	if w.lane > v.ticket.Lane {
		v.ahead = -1 // moves up, and is told of that lane
	}
	w.byID[v.ticket.ID] = v
	d, held := w.room.Visit(w.now, r)
	if held != 0 {
		w.byToken[held], v.held, v.heldAt = v, held, w.now
	} else {
		w.decided(v, d)
	}
	w.collect()
}

// collect does what the node does after every call.
func (w *trial) collect() {
	w.t.Helper()
	for {
		rec, ok := w.room.Needs()
		if !ok {
			break
		}
		w.record = rec
		w.room.Stored(w.now, rec)
	}
	for {
		w.journal = append(w.journal, w.room.TakeEvents()...)
		answers, pushes := w.room.TakeAnswers(w.now), w.room.TakePushes()
		if len(answers)+len(pushes) == 0 {
			break
		}
		for _, a := range answers {
			v := w.byToken[a.Token]
			if v == nil {
				w.t.Fatalf("an answer for the token %d, which nobody waits for", a.Token)
			}
			delete(w.byToken, a.Token)
			if v.held == a.Token {
				v.held = 0
			}
			w.decided(v, a.Decision)
		}
		for _, id := range pushes {
			if v := w.byID[id]; v != nil && w.hasty && v.held == 0 {
				w.visit(v)
			}
		}
	}
	w.journal = append(w.journal, w.room.TakeEvents()...)
	if !w.room.site.Sound() {
		w.t.Fatalf("at %v the site has used more than it holds: %+v", w.now.Std(), w.room.site.Balance())
	}
}

// over says whether a session of the oracle is over for certain.
func (w *trial) over(v *visitor) bool {
	if w.set.DisableSessionRenewal {
		return w.now >= v.entered.Add(w.set.SessionDuration)
	}
	return w.now >= v.last.Add(w.set.SessionDuration)
}

// active counts sessions by the oracle.
func (w *trial) active() (n int) {
	for _, v := range w.people {
		if v.inside && !w.over(v) {
			n++
		}
	}
	return n
}

func (w *trial) decided(v *visitor, d anteroom.Decision) {
	w.t.Helper()
	v.latest, v.seen = d, true
	id := v.ticket.ID
	if d.SetCookie {
		v.ticket = d.Ticket
	}
	switch d.Verdict {
	case anteroom.Admit:
		if d.Reason == anteroom.ReasonSession {
			if !v.inside {
				w.t.Fatalf("at %v visitor %d is let in with a session that never began", w.now.Std(), v.n)
			}
			v.last = w.now
			return
		}
		if v.inside && !w.over(v) && v.ticket.ID == id {
			w.t.Fatalf("at %v visitor %d gets a second seat (%v)", w.now.Std(), v.n, d.Reason)
		}
		v.inside, v.entered, v.last, v.streams = true, w.now, w.now, false
		w.entered = append(w.entered, w.now)
		if d.Reason == anteroom.ReasonPassthrough {
			return
		}
		if n := w.active(); n > w.set.TotalActiveUsers {
			w.t.Fatalf("at %v %d are active, %d may be", w.now.Std(), n, w.set.TotalActiveUsers)
		}
		n := 0
		for i := len(w.entered) - 1; i >= 0 && w.now.Sub(w.entered[i]) < time.Minute; i-- {
			n++
		}
		if n > w.set.NewUsersPerMinute {
			w.t.Fatalf("at %v %d entered within 60 s, %d may", w.now.Std(), n, w.set.NewUsersPerMinute)
		}
	case anteroom.Wait:
		if v.inside && !w.over(v) && d.Reason != anteroom.ReasonBound {
			w.t.Fatalf("at %v visitor %d has a session and is shown the page (%v)", w.now.Std(), v.n, d.Reason)
		}
		v.inside = false
		if v.ticket.ID != id { // somebody new, at the back
			v.ahead = -1
		}
		if d.AheadKnown {
			if v.ahead >= 0 && d.Ahead > v.ahead {
				w.t.Fatalf("at %v visitor %d, who was told %d ahead, is told %d", w.now.Std(), v.n, v.ahead, d.Ahead)
			}
			v.ahead = d.Ahead
		}
	case anteroom.Refuse, anteroom.Pass: // neither changes what the visitor has
	}
}

func (w *trial) revoke(v *visitor) {
	if w.room.Revoke(w.now, v.ticket.ID) {
		v.inside = false
	}
	w.collect()
}

// pass lets time pass in steps of 100 ms.
func (w *trial) pass(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now < end; {
		w.now = min(end, w.now.Add(100*time.Millisecond))
		w.tick()
	}
}

// leap lets time pass in one step, for crowds in which nobody acts meanwhile.
func (w *trial) leap(d time.Duration) {
	w.now = w.now.Add(d)
	w.room.Tick(w.now)
	w.collect()
}

func (w *trial) tick() {
	w.t.Helper()
	for _, v := range w.people {
		switch {
		case w.keep && v.inside && w.now.Sub(v.last) >= w.set.SessionDuration/3:
			w.visit(v)
		case w.polite && v.seen && !v.inside && !v.streams && v.held == 0 && v.latest.Refresh > 0 && w.now >= v.ticket.Next:
			w.visit(v)
		}
	}
	w.room.Tick(w.now)
	w.collect()
	for _, v := range w.people {
		if v.held != 0 && w.now.Sub(v.heldAt) > HoldSoon+100*time.Millisecond {
			w.t.Fatalf("at %v visitor %d is held since %v", w.now.Std(), v.n, v.heldAt.Std())
		}
	}
}
