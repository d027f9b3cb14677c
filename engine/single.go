package engine

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// Single is a room in one process: a Doorway, a Desk with its Site, and a Coordinator that
// exchange the messages of a cluster without any delay. Every call leaves them in step. Not safe
// for concurrent use.
type Single struct {
	*Doorway
	key         SiteKey
	desk        *Desk
	site        *Site
	coordinator *Coordinator
	events      []Event
}

// onlyDoor is the number of the door in a process without others.
const onlyDoor = 1

// NewSingle returns a room. events restore it (see Site.Restore); before is the stored
// ledger record. Sessions that had not ended on record may have been in use until seen, without a record of it, if the process before
// did not stop in order; 0: it did. Nothing is admitted until Stored was called with what Needs returns.
func NewSingle(now anteroom.Time, key SiteKey, s anteroom.Settings, before LedgerRecord, seed []byte, events []Event, shift time.Duration, seen anteroom.Time) *Single {
	s = s.WithDefaults()
	known := false
	for _, r := range before.Sites {
		known = known || r.Site == key
	}
	if !known {
		before.Sites = append(before.Sites, ReservedUnits{Site: key})
	}
	x := &Single{Doorway: NewDoorway(onlyDoor, s), key: key, site: NewSite(now, key, s), coordinator: NewCoordinator(now, s, before, seed)}
	for _, e := range events {
		x.site.Restore(e, shift, TouchSlack(x.site.settings.SessionDuration))
	}
	x.site.Restored(now)
	if seen != 0 {
		x.site.seenUntil(seen)
		x.coordinator.regather(now) // so that a cookie may say first that records are missing
	}
	x.desk = NewDesk(x.site)
	x.coordinator.shuffled = x.site.shuffled
	// Those who were forgotten may be about to come back with their tickets, too.
	if x.site.Here() > 0 || now.Sub(x.site.forgotten) < s.PlaceHold {
		x.coordinator.regather(now)
	}
	x.settle(now)
	return x
}

// Recorded says that everything is on record that happened until a moment, when the process before this one
// was the last. Call it before anything else.
func (x *Single) Recorded(until, now anteroom.Time) { x.site.journaled, x.site.begins = until, now }

// Older says that a cookie has proved the opposite: the records are older than what they are of. The rooms
// are to begin anew, as a new incarnation, which takes the sessions over from their cookies; until then such
// requests are asked to come again.
func (x *Single) Older() bool { return x.site.older }

// Configure puts new settings in force, at all machines at once.
func (x *Single) Configure(now anteroom.Time, s anteroom.Settings) {
	x.Doorway.Configure(now, s)
	x.site.Configure(now, s)
	x.coordinator.Configure(now, s)
	x.settle(now)
}

// Origin takes what the gateway saw of the room's origins (see Doorway.Origin).
func (x *Single) Origin(now anteroom.Time, f OriginFacts) {
	x.Doorway.Origin(f)
	x.tell(now)
	x.settle(now)
}

// Hold lets nobody in who has no session, while on (see Coordinator.Hold).
func (x *Single) Hold(now anteroom.Time, on bool) {
	x.coordinator.Hold(now, on)
	x.settle(now)
}

// Expect says when the prequeue will end (see Site.Expect).
func (x *Single) Expect(o Opening) { x.site.Expect(o) }

// Visit decides about one request. When held is not 0, the decision follows among the
// answers of a later call.
func (x *Single) Visit(now anteroom.Time, v anteroom.Visit) (d anteroom.Decision, held uint64) {
	d, held = x.Doorway.Visit(now, v)
	if held == 0 {
		return d, 0
	}
	x.settle(now)
	for i := range x.answers {
		if a := &x.answers[i]; a.Token == held {
			d = a.Decision
			x.answers = slices.Delete(x.answers, i, i+1)
			return d, 0
		}
	}
	return d, held
}

// Tick does what time brings. Call it about every 100 ms unless Idle.
func (x *Single) Tick(now anteroom.Time) {
	x.tell(now)
	x.Doorway.Tick(now)
	x.desk.Tick(now)
	x.settle(now)
	x.coordinator.Tick(now)
	x.settle(now)
}

// tell hands the desk what the door has to say, urgent or not.
func (x *Single) tell(now anteroom.Time) {
	for m, ok := x.Take(now); ok; m, ok = x.Take(now) {
		x.desk.Receive(now, m)
	}
}

// settle hands messages over until nobody has anything to say. A few rounds do; the bound
// turns a defect of the machines into a delay until the next call.
func (x *Single) settle(now anteroom.Time) {
	const most = 1000
	for range most {
		if x.Urgent() {
			x.tell(now)
		}
		step := x.desk.Step(now, true)
		x.events = append(x.events, step.Events...)
		for _, r := range step.Reports {
			x.coordinator.Receive(now, r)
		}
		sent := x.coordinator.Take()
		for _, m := range sent {
			if m.Site == x.key { // else an incarnation of before the restart
				x.site.Deliver(now, m)
			}
		}
		for i := range step.ToDoors {
			x.Receive(now, step.ToDoors[i].Message)
		}
		if len(step.Reports)+len(sent) == 0 && !x.Urgent() {
			break
		}
	}
}

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

// CloseStream says that a stream of id has ended.
func (x *Single) CloseStream(now anteroom.Time, id anteroom.ID) {
	x.Doorway.CloseStream(now, id)
	x.tell(now)
	x.settle(now)
}

// Revoke ends a session at once.
func (x *Single) Revoke(now anteroom.Time, id anteroom.ID) bool {
	x.tell(now)
	ok := x.site.Revoke(now, id)
	x.settle(now)
	return ok
}

// Touch renews a session without a decision: for long connections. It reports whether
// there is one.
func (x *Single) Touch(now anteroom.Time, id anteroom.ID) bool {
	if _, ok := x.site.Session(id); ok && x.Doorway.Touch(now, id) {
		return true
	}
	return x.site.Touch(now, now, id) // perhaps one from before a restart, which the door has not met
}

// Look is what a waiting visitor would see now (see Site.Look).
func (x *Single) Look(now anteroom.Time, t anteroom.Ticket) (anteroom.Decision, bool) {
	return x.site.Look(now, t)
}

// Session returns the session of id, if there is one.
func (x *Single) Session(id anteroom.ID) (anteroom.Session, bool) { return x.site.Session(id) }

// Standing grades a ticket (see Site.Standing).
func (x *Single) Standing(now anteroom.Time, t anteroom.Ticket) int { return x.site.Standing(now, t) }

// AdmitNow gives turns to the next n in line (see Coordinator.AdmitNow).
func (x *Single) AdmitNow(now anteroom.Time, n int) int {
	x.tell(now)
	x.site.urgent = true // the line is to be known to the last
	x.settle(now)
	given := x.coordinator.AdmitNow(now, n)
	x.settle(now)
	return given
}

// Called reports whether the turn of id has come and has not been taken yet.
func (x *Single) Called(id anteroom.ID) bool { return x.site.Called(id) }

// TakeEvents returns what has to be recorded.
func (x *Single) TakeEvents() []Event { e := x.events; x.events = nil; return e }

// Idle reports that the room needs no ticks before the next request.
func (x *Single) Idle() bool {
	return x.site.Idle() && x.coordinator.line.places.len() == 0 && !x.unconfirmed()
}

// Status returns the live numbers.
func (x *Single) Status(now anteroom.Time) anteroom.Status {
	return x.coordinator.status(now, x.site.Figures(), x.site.Mode(), x.site.Active(), x.site.RateSlots())
}
