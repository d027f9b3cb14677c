package engine

// How a process begins that takes a role over: what it knows, and whose time it follows.

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Takeover is what a process has that takes the role of a site over.
type Takeover struct {
	Key      SiteKey
	Term     uint64 // see Site.SetTerm
	Weight   uint32 // see Site.SetWeight
	Settings anteroom.Settings
	Events   []Event // of the journal, in order; tell the desk which of their doors are Gone, see [Site.Doors]
}

// Desk begins the site where its journal ends.
func (t Takeover) Desk(now anteroom.Time) *Desk {
	s := NewSite(now, t.Key, t.Settings)
	s.SetTerm(t.Term)
	s.SetWeight(t.Weight)
	slack := TouchSlack(s.settings.SessionDuration)
	for _, e := range t.Events {
		s.Restore(e, 0, slack)
	}
	s.Restored(now)
	x := NewDesk(s)
	x.announce = true
	return x
}

// Accession is a room between the moment at which a process takes the role of its coordinator over
// and the moment at which its coordinator may speak. The zero value has heard nothing.
type Accession struct {
	Time    RoomTime // if the process finds out the time by its reports; see State.Guessed
	waiting []Report
}

// maxWaiting bounds the reports that wait for the record of the predecessor. More are lost, and the
// sites repeat what matters.
const maxWaiting = 64

// Hear keeps a report until the coordinator has begun.
func (a *Accession) Hear(r Report) {
	if len(a.waiting) < maxWaiting {
		a.waiting = append(a.waiting, r)
	}
}

// maxEpoch bounds what a site may say of coordinators.
const maxEpoch = 1 << 62

// Begin makes the coordinator from the record of its predecessor. Store what Needs returns, and
// then call Done. older says that a site has heard a later coordinator than the record knows: the
// store was put back to an older state.
func (a *Accession) Begin(now anteroom.Time, s anteroom.Settings, before LedgerRecord, seed []byte) (c *Coordinator, older bool) {
	for i := range a.waiting {
		if epoch := a.waiting[i].Epoch; epoch > before.Epoch && epoch < maxEpoch {
			before.Epoch, older = epoch, true
		}
	}
	c = NewCoordinator(now, s, before, seed)
	c.guessed = a.Time.guessed
	return c, older
}

// Done says that the first record of the coordinator is durable, and lets it hear what has waited.
func (a *Accession) Done(now anteroom.Time, c *Coordinator, rec LedgerRecord) {
	c.Stored(now, rec)
	for _, r := range a.waiting {
		c.receive(now, r, false)
	}
	a.waiting = nil
}

// Waiting returns the reports that nobody has heard, for another coordinator.
func (a *Accession) Waiting() []Report { return a.waiting }

// RoomTime finds out the time of a room whose coordinator has just begun: the time in which its
// sites live goes on. The zero value knows nothing.
type RoomTime struct {
	latest  anteroom.Time // of sites that do not know it
	known   bool          // a site that does was heard
	since   time.Duration // when it was
	ahead   anteroom.Time // of local time: the most that such sites have said
	told    bool          // a clock of this process shows the time
	guessed bool
}

const (
	// GuessAfter is how long a new coordinator waits for a site that knows the time.
	GuessAfter = 3 * time.Second
	// followFor is how long it goes on listening to those: a report may have been long on its way, or
	// have waited for a store, and says the time at which it was made.
	followFor = 150 * time.Millisecond
)

// Know takes the room time of a local moment from a [Clock] of the same process that has heard an answer lately. By the
// way of question and answer it is known how old that was, so no report has to be waited for. That of a site may still say
// a later time, and is right then.
func (t *RoomTime) Know(local, room anteroom.Time) {
	if ahead := room - local; !t.known || ahead > t.ahead {
		t.ahead = ahead
	}
	t.known, t.told = true, true
}

// Follow takes a report that arrived at a local moment, since after the process took the role, and
// returns the room time of that moment. ok is false while it is not known: a site knows it that has heard
// a coordinator, or a door that did, and the latest of those sites is right. When none does for some
// seconds, all have just begun, and the time is the process's own or what the sites' journals have seen,
// whichever is later. How much of what lies between has passed nobody knows: sites count none of it
// ([State].Guessed).
func (t *RoomTime) Follow(local anteroom.Time, since time.Duration, r *Report) (room anteroom.Time, ok bool) {
	switch ahead := r.Sent - local; {
	case r.Epoch == 0 && !r.Timed:
		t.latest = max(t.latest, r.Sent)
	case !t.known:
		t.known, t.since, t.ahead = true, since, ahead
	default:
		t.ahead = max(t.ahead, ahead)
	}
	if t.guessed = !t.known; t.guessed {
		return max(t.latest, local), since >= GuessAfter
	}
	return local + t.ahead, t.told || since-t.since >= followFor
}
