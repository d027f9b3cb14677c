package engine

import (
	"bytes"
	"slices"

	"github.com/anteroom/anteroom"
)

// Door is a room at one node. It answers alone whoever it knows to be admitted and
// whoever checks in far from the front; for the rest it says that the site must decide.
// It is a state machine over calls and time: not safe for concurrent use.
type Door struct {
	settings anteroom.Settings
	mode     Mode
	figures  *Figures
	shuffled anteroom.Time // see Figures

	known    slab[knownSession] // until Forget: the site says when a session has ended
	sweepPos uint32
	touches  touchBatch   // since the last batch was taken
	sent     []touchBatch // taken and not confirmed, ascending; at most maxSent
	polls    []Poll
}

// knownSession is a session that this door may let through by itself, while it is sure that
// the site still holds it.
type knownSession struct {
	accepted anteroom.Time
	sure     anteroom.Time // the last touch that the site has confirmed, or somewhat earlier
	seen     bool          // among the touches not taken yet
}

// touchBatch is the sessions that were seen since a moment.
type touchBatch struct {
	number uint64
	since  anteroom.Time
	ids    []anteroom.ID
}

// maxSent bounds the batches without a confirmation that are kept apart. Beyond it the two
// oldest become one, which is sure of the earlier moment only.
const maxSent = 8

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
func (d *Door) Apply(m Mode, f *Figures) {
	d.mode, d.figures, d.shuffled = m, f, max(d.shuffled, f.Shuffled)
}

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
		end := k.sure.Add(d.settings.SessionDuration)
		if d.settings.DisableSessionRenewal {
			end = d.settings.SessionEnd(k.accepted)
		}
		if now < end {
			if !k.seen {
				k.seen = true
				if len(d.touches.ids) == 0 {
					d.touches.since = now
				}
				d.touches.ids = append(d.touches.ids, t.ID)
			}
			return admitted(now, t, k.accepted, d.settings, anteroom.ReasonSession), false
		}
		return dec, true // another door may have seen the visitor since
	}
	if rank, far := d.far(now, v); far {
		dec = waitFor(now, t, anteroom.ReasonWaiting, d.settings, d.figures, rank, d.figures.Waiting)
		d.polls = append(d.polls, Poll{ID: t.ID, Key: t.Arrival, Lane: t.Lane, Due: dec.Ticket.Next, Last: t.LastCheckIn})
		return dec, false
	}
	return dec, true
}

// far: a counted check-in of somebody whose turn cannot come before the report of it. It
// returns the rank as well.
func (d *Door) far(now anteroom.Time, v anteroom.Visit) (rank int, far bool) {
	t := v.Ticket
	if d.mode != Queue || d.settings.QueueingMethod != anteroom.FIFO || held(&d.settings) || void(&d.settings, t.Arrival) ||
		t.Accepted() || v.Stream || v.NoClaim || t.Lane != 0 ||
		d.figures.Hot != 0 || d.figures.Waiting <= holdLine || t.Arrival <= d.figures.Front.Add(nearFront) ||
		d.shuffled != 0 && t.LastCheckIn <= d.shuffled || now < t.Next || now.Sub(t.Next) >= d.settings.PlaceHold/2 {
		return 0, false
	}
	rank = d.figures.Rank(t.Arrival)
	return rank, rank > 2*holdLine+d.settings.NewUsersPerMinute/30
}

// Learn remembers a session that the site let in through this door at a moment (that of
// the decision, not of its arrival here).
func (d *Door) Learn(at anteroom.Time, id anteroom.ID, accepted anteroom.Time) {
	slot := d.known.find(&id)
	if slot == 0 {
		d.prune(at)
		slot = d.known.add(id)
	}
	k := d.known.at(slot)
	k.accepted, k.sure = accepted, max(k.sure, at)
}

// prune looks at a few sessions and drops those that are long over: what a site says of
// ends may be lost on its way, and the door must not grow.
func (d *Door) prune(now anteroom.Time) {
	if d.sweepPos >= d.known.next {
		d.sweepPos = 0
	}
	d.known.eachBetween(d.sweepPos, d.sweepPos+4, func(slot uint32) {
		if now.Sub(d.known.at(slot).sure) > 2*d.settings.SessionDuration {
			d.known.remove(slot)
		}
	})
	d.sweepPos += 4
}

// Forget drops a session that has ended.
func (d *Door) Forget(id anteroom.ID) {
	if slot := d.known.find(&id); slot != 0 {
		d.known.remove(slot)
	}
}

// TakeTouches returns the sessions seen since the last call and those whose batch the site
// has not confirmed, with the number of this batch; no ids when there are none. The last
// request of a session is so never lost, which a limit per second would do; take them at
// least every TouchDelay. A site may take a batch twice, and a later one instead of one that
// was lost.
func (d *Door) TakeTouches() (batch uint64, ids []anteroom.ID) {
	for i := range d.touches.ids {
		if slot := d.known.find(&d.touches.ids[i]); slot != 0 {
			d.known.at(slot).seen = false
		}
	}
	d.touches.number++
	batch = d.touches.number
	if len(d.sent) == 0 {
		ids = d.touches.ids
	} else {
		for _, b := range d.sent {
			ids = merge(ids, b.ids)
		}
		ids = merge(ids, d.touches.ids)
	}
	if len(d.touches.ids) > 0 {
		d.sent = append(d.sent, d.touches)
		d.touches = touchBatch{number: batch}
	}
	if len(d.sent) > maxSent {
		a, b := d.sent[0], d.sent[1]
		d.sent[1] = touchBatch{number: b.number, since: a.since, ids: merge(a.ids, b.ids)}
		d.sent = d.sent[1:]
	}
	return batch, ids
}

// merge returns the ids of both, each once.
func merge(a, b []anteroom.ID) []anteroom.ID {
	all := append(slices.Clone(a), b...)
	slices.SortFunc(all, func(x, y anteroom.ID) int { return bytes.Compare(x[:], y[:]) })
	return slices.Compact(all)
}

// Confirmed says that the site has taken a batch of touches, which held those of the batches
// before it: their sessions live on from then.
func (d *Door) Confirmed(batch uint64) {
	for len(d.sent) > 0 && d.sent[0].number <= batch {
		for i := range d.sent[0].ids {
			if slot := d.known.find(&d.sent[0].ids[i]); slot != 0 {
				k := d.known.at(slot)
				k.sure = max(k.sure, d.sent[0].since)
			}
		}
		d.sent = d.sent[1:]
	}
	if len(d.sent) == 0 {
		d.sent = nil
	}
}

// TakePolls returns the check-ins answered since the last call.
func (d *Door) TakePolls() []Poll {
	p := d.polls
	d.polls = make([]Poll, 0, len(p)) // as many may come again
	return p
}
