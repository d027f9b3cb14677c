package engine

import (
	"github.com/anteroom/anteroom"
)

// Door is a room at one node. It answers alone whoever it knows to be admitted and
// whoever checks in far from the front; for the rest it says that the site must decide.
// It is a state machine over calls and time: not safe for concurrent use.
type Door struct {
	settings anteroom.Settings
	mode     Mode
	figures  *Figures

	known   slab[knownSession] // until Forget: the site says when a session has ended
	touches []anteroom.ID
	polls   []Poll
}

// knownSession is a session that this door may let through by itself.
type knownSession struct {
	accepted anteroom.Time
	last     anteroom.Time
	seen     bool // among the touches not taken yet
}

// Poll is a check-in that a door answered alone.
type Poll struct {
	ID   anteroom.ID
	Key  anteroom.Time
	Lane uint8
	Due  anteroom.Time
	Last anteroom.Time // the check-in before
}

// NewDoor returns a door that knows nobody.
func NewDoor(s anteroom.Settings) *Door {
	d := &Door{figures: &Figures{Known: true, Step: baseStep}}
	d.Configure(s)
	return d
}

// Configure puts new settings in force.
func (d *Door) Configure(s anteroom.Settings) { d.settings = s.WithDefaults() }

// Apply takes the site's view: the mode and the figures.
func (d *Door) Apply(m Mode, f *Figures) { d.mode, d.figures = m, f }

// Decide decides about one request if it can. ask means that the site must.
func (d *Door) Decide(now anteroom.Time, v anteroom.Visit) (dec anteroom.Decision, ask bool) {
	if d.settings.Suspended {
		return anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended, At: now}, false
	}
	t := v.Ticket
	if v.Fresh || (v.Bind != 0 && t.Bind != 0 && v.Bind != t.Bind) {
		return dec, true
	}
	if slot := d.known.find(&t.ID); slot != 0 {
		k := d.known.at(slot)
		end := k.last.Add(d.settings.SessionDuration)
		if d.settings.DisableSessionRenewal {
			end = k.accepted.Add(d.settings.SessionDuration)
		}
		if now < end {
			k.last = now
			if !k.seen {
				k.seen = true
				d.touches = append(d.touches, t.ID)
			}
			return admitted(now, t, k.accepted, d.settings, anteroom.ReasonSession), false
		}
		return dec, true // another door may have seen the visitor since
	}
	if d.far(now, v) {
		dec = waitFor(now, t, anteroom.ReasonWaiting, d.settings, d.figures, d.figures.Rank(t.Arrival), d.figures.Waiting)
		d.polls = append(d.polls, Poll{ID: t.ID, Key: t.Arrival, Lane: t.Lane, Due: dec.Ticket.Next, Last: t.LastCheckIn})
		return dec, false
	}
	return dec, true
}

// far: a counted check-in of somebody whose turn cannot come before the report of it.
func (d *Door) far(now anteroom.Time, v anteroom.Visit) bool {
	t := v.Ticket
	return d.mode == Queue && d.settings.QueueingMethod == anteroom.FIFO && !d.settings.QueueAll &&
		!t.Accepted() && !v.Stream && !v.NoClaim && t.Lane == 0 &&
		d.figures.Hot == 0 && d.figures.Waiting > holdLine && t.Arrival > d.figures.Front.Add(nearFront) &&
		d.figures.Rank(t.Arrival) > 2*holdLine+d.settings.NewUsersPerMinute/30 &&
		now >= t.Next && now.Sub(t.Next) < d.settings.PlaceHold/2
}

// Learn remembers a session that the site let in through this door.
func (d *Door) Learn(now anteroom.Time, id anteroom.ID, accepted anteroom.Time) {
	slot := d.known.find(&id)
	if slot == 0 {
		slot = d.known.add(id)
	}
	k := d.known.at(slot)
	k.accepted, k.last = accepted, max(k.last, now)
}

// Forget drops a session that has ended.
func (d *Door) Forget(id anteroom.ID) {
	if slot := d.known.find(&id); slot != 0 {
		d.known.remove(slot)
	}
}

// TakeTouches returns the sessions seen since the last call, each once. The last request
// of a session is so never lost, which a limit per second would do; take them at least
// every TouchDelay.
func (d *Door) TakeTouches() []anteroom.ID {
	t := d.touches
	d.touches = nil
	for i := range t {
		if slot := d.known.find(&t[i]); slot != 0 {
			d.known.at(slot).seen = false
		}
	}
	return t
}

// TakePolls returns the check-ins answered since the last call.
func (d *Door) TakePolls() []Poll { p := d.polls; d.polls = nil; return p }
