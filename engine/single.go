package engine

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Single is a room in one process: a door, a site and a coordinator with no way between
// them. Messages are handed over until none is left, so every call leaves the three in
// step. It is the same code as many sites run, with a latency of zero. Not safe for
// concurrent use.
type Single struct {
	key         SiteKey
	door        *Door
	site        *Site
	coordinator *Coordinator
	ended       []anteroom.ID
}

// NewSingle returns a room. events restore it (see Site.Restore); before is the stored
// ledger record. Nothing is admitted until Stored was called with what Needs returns.
func NewSingle(now anteroom.Time, key SiteKey, s anteroom.Settings, before LedgerRecord, seed []byte, events []Event, shift time.Duration) *Single {
	s = s.WithDefaults()
	known := false
	for _, r := range before.Sites {
		known = known || r.Site == key
	}
	if !known {
		before.Sites = append(before.Sites, ReservedUnits{Site: key})
	}
	x := &Single{key: key, door: NewDoor(s), site: NewSite(now, key, s), coordinator: NewCoordinator(now, s, before, seed)}
	for _, e := range events {
		x.site.Restore(e, shift, TouchSlack(s.SessionDuration))
	}
	x.site.Restored(now)
	x.coordinator.shuffled = x.site.shuffled
	// Those who were forgotten may be about to come back with their tickets, too.
	if x.site.Here() > 0 || now.Sub(x.site.forgotten) < s.PlaceHold {
		x.coordinator.regather(now)
	}
	x.settle(now)
	return x
}

// Configure puts new settings in force, at all three at once.
func (x *Single) Configure(now anteroom.Time, s anteroom.Settings) {
	x.door.Configure(s)
	x.site.Configure(now, s)
	x.coordinator.Configure(now, s)
	x.settle(now)
}

// Expect says when the prequeue will end (see Site.Expect).
func (x *Single) Expect(o Opening) { x.site.Expect(o) }

// Visit decides about one request. When held is not 0, the decision follows among the
// answers of a later call.
func (x *Single) Visit(now anteroom.Time, v anteroom.Visit) (d anteroom.Decision, held uint64) {
	d, ask := x.door.Decide(now, v)
	if !ask {
		if d.Verdict == anteroom.Wait {
			// In one process the site's memory of what was shown is at hand: streams and early
			// looks leave no trace in the cookie.
			x.site.neverWorse(&d)
		}
		return d, 0
	}
	d, held = x.site.Visit(now, v)
	x.settle(now)
	x.learn(now, d)
	return d, held
}

// Tick does what time brings. Call it about every 100 ms unless Idle.
func (x *Single) Tick(now anteroom.Time) {
	x.flushDoor(now)
	x.site.Tick(now)
	x.settle(now)
	x.coordinator.Tick(now)
	x.settle(now)
}

func (x *Single) flushDoor(now anteroom.Time) {
	if batch, ids := x.door.TakeTouches(); len(ids) > 0 {
		for _, id := range x.site.Touch(now, ids) {
			x.door.Forget(id)
		}
		x.door.Confirmed(batch)
	}
	if p := x.door.TakePolls(); p != nil {
		x.site.Polls(now, p)
	}
}

// settle hands messages over until nobody has anything to say. A few rounds do; the bound
// turns a defect of the machines into a delay until the next call.
func (x *Single) settle(now anteroom.Time) {
	const most = 1000
	for range most {
		r, more := x.site.Report(now)
		if more {
			x.coordinator.Receive(now, r)
		}
		sent := x.coordinator.Take()
		for _, m := range sent {
			if m.Site == x.key { // else an incarnation of before the restart
				x.site.Deliver(now, m)
			}
		}
		if !more && len(sent) == 0 {
			break
		}
	}
	x.door.Apply(x.site.Mode(), x.site.Figures())
	for _, id := range x.site.TakeEnded() {
		x.door.Forget(id)
		x.ended = append(x.ended, id)
	}
}

// TakeEnded returns the ids of sessions that have ended.
func (x *Single) TakeEnded() []anteroom.ID { e := x.ended; x.ended = nil; return e }

// Stored says that a record is durable (see Coordinator.Stored).
func (x *Single) Stored(now anteroom.Time, rec LedgerRecord) {
	x.coordinator.Stored(now, rec)
	x.settle(now)
}

// Needs returns the record that must be stored, if any.
func (x *Single) Needs() (LedgerRecord, bool) { return x.coordinator.Needs() }

// MustStore reports that Needs would return a record.
func (x *Single) MustStore() bool { return x.coordinator.dirty }

// StoreFailed says that the record of the last Needs is not durable: it is needed again.
func (x *Single) StoreFailed() { x.coordinator.dirty = true }

// Abandon says that nobody waits for the held answer any more.
func (x *Single) Abandon(now anteroom.Time, held uint64) { x.site.Abandon(now, held) }

// CloseStream says that a stream of id has ended.
func (x *Single) CloseStream(now anteroom.Time, id anteroom.ID) {
	x.site.CloseStream(now, id)
	x.settle(now)
}

// Revoke ends a session at once.
func (x *Single) Revoke(now anteroom.Time, id anteroom.ID) bool {
	x.flushDoor(now)
	ok := x.site.Revoke(now, id)
	x.settle(now)
	return ok
}

// Touch renews a session without a decision: for long connections. It reports whether
// there is one.
func (x *Single) Touch(now anteroom.Time, id anteroom.ID) bool {
	if _, ok := x.site.Session(id); !ok {
		return false
	}
	x.site.Touch(now, []anteroom.ID{id})
	return true
}

// Look is what a waiting visitor would see now (see Site.Look).
func (x *Single) Look(now anteroom.Time, t anteroom.Ticket) (anteroom.Decision, bool) {
	return x.site.Look(now, t)
}

// Session returns the session of id, if there is one.
func (x *Single) Session(id anteroom.ID) (anteroom.Session, bool) { return x.site.Session(id) }

// Standing grades a ticket (see Site.Standing).
func (x *Single) Standing(now anteroom.Time, t anteroom.Ticket) int { return x.site.Standing(now, t) }

// TakeAnswers, TakePushes and TakeEvents return what came of the calls so far, as the
// site's methods do. The door learns of the sessions among the answers.
func (x *Single) TakeAnswers(now anteroom.Time) []Answer {
	a := x.site.TakeAnswers()
	for i := range a {
		x.learn(now, a[i].Decision)
	}
	return a
}

// learn tells the door of a session, unless it has ended since the decision.
func (x *Single) learn(now anteroom.Time, d anteroom.Decision) {
	if d.Verdict != anteroom.Admit {
		return
	}
	if s, ok := x.site.Session(d.Ticket.ID); ok {
		x.door.Learn(now, s.ID, s.AcceptedAt)
	}
}

// AdmitNow gives turns to the next n in line (see Coordinator.AdmitNow).
func (x *Single) AdmitNow(now anteroom.Time, n int) int {
	x.flushDoor(now)
	x.site.urgent = true // the line is to be known to the last
	x.settle(now)
	given := x.coordinator.AdmitNow(now, n)
	x.settle(now)
	return given
}

// Called reports whether the turn of id has come and has not been taken yet.
func (x *Single) Called(id anteroom.ID) bool { return x.site.Called(id) }

// TakePushes returns the ids whose turn has come on a stream.
func (x *Single) TakePushes() []anteroom.ID { return x.site.TakePushes() }

// TakeEvents returns what has to be recorded.
func (x *Single) TakeEvents() []Event { return x.site.TakeEvents() }

// Idle reports that the room needs no ticks before the next request.
func (x *Single) Idle() bool { return x.site.Idle() && x.coordinator.line.places.len() == 0 }

// Status returns the live numbers.
func (x *Single) Status(now anteroom.Time) anteroom.Status {
	return x.coordinator.status(now, x.site.Figures(), x.site.Mode(), x.site.Active(), x.site.RateSlots())
}
