package engine

import (
	"bytes"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// Door is a room at one node. It answers alone whoever it knows to be admitted and
// whoever checks in far from the front; for the rest it says that the site must decide.
// It is a state machine over calls and time: not safe for concurrent use.
type Door struct {
	settings anteroom.Settings
	mode     Mode
	figures  *Figures
	anyone   anteroom.Time // when the site last let in others than those whose turn it was: open, or cut off

	known    slab[knownSession] // until Forget: the site says when a session has ended
	sweepPos uint32
	touches  telling[touch] // not confirmed
	taken    uint64         // position in touches up to which they have been in a batch
	batch    uint64         // the newest
	sent     flights[uint64]
	polls    []Poll
}

// knownSession is a session that this door may let through by itself, while it is sure that
// the site still holds it.
type knownSession struct {
	accepted anteroom.Time
	sure     anteroom.Time // the last touch that the site has confirmed, or somewhat earlier
	alone    anteroom.Time // when it was let in last without the site; 0: never
	home     uint32        // a guest's, see homeOf: only an answer of the site makes the door surer; else 0
	last     anteroom.Time // when it was seen here last
	seen     bool          // among the touches not taken yet
	told     bool          // see Doorway.lets
}

// touch is a session that was seen since a moment.
type touch struct {
	id    anteroom.ID
	since anteroom.Time
}

// maxTouches bounds those of a batch.
const maxTouches = 16 << 10

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
func (d *Door) Configure(s anteroom.Settings) { d.settings = inForce(s) }

// Apply takes the site's view: the mode and the figures.
func (d *Door) Apply(now anteroom.Time, m Mode, f *Figures) {
	d.mode, d.figures = m, f
}

// Decide decides about one request if it can. ask means that the site must.
func (d *Door) Decide(now anteroom.Time, v *anteroom.Visit) (dec anteroom.Decision, ask bool) {
	if d.settings.Suspended {
		return anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended, At: now}, false
	}
	t := &v.Ticket
	if v.Fresh || (v.Bind != 0 && t.Bind != 0 && v.Bind != t.Bind) {
		return dec, true
	}
	if slot := d.known.find(&t.ID); slot != 0 {
		if d.touchAt(now, slot, &t.ID) {
			return admitted(now, t, d.known.at(slot).accepted, &d.settings, anteroom.ReasonSession), false
		}
		return dec, true // another door may have seen the visitor since
	}
	if rank, far := d.far(now, v); far {
		f := d.figures.Of(t.Lane)
		dec = waitFor(now, *t, anteroom.ReasonWaiting, d.settings, f, rank, f.Waiting)
		if !apart(&d.settings, v) {
			d.polls = append(d.polls, Poll{ID: t.ID, Key: t.Arrival, Lane: t.Lane, Due: dec.Ticket.Next, Last: t.LastCheckIn})
		}
		return dec, false
	}
	return dec, true
}

// touch notes that a session was seen. It reports whether it may go on without the site.
func (d *Door) touch(now anteroom.Time, id anteroom.ID) bool {
	slot := d.known.find(&id)
	return slot != 0 && d.touchAt(now, slot, &id)
}

func (d *Door) touchAt(now anteroom.Time, slot uint32, id *anteroom.ID) bool {
	k := d.known.at(slot)
	end := max(k.sure, k.alone).Add(d.settings.SessionDuration)
	if d.settings.DisableSessionRenewal {
		end = d.settings.SessionEnd(k.accepted)
	}
	if now >= end {
		return false
	}
	k.last = now
	if !k.seen {
		k.seen = true
		d.touches.add(touch{*id, now})
	}
	return true
}

// far: a counted check-in of somebody whose turn cannot come before the report of it. It
// returns the rank as well.
func (d *Door) far(now anteroom.Time, v *anteroom.Visit) (rank int, far bool) {
	t, f := &v.Ticket, d.figures.Of(v.Ticket.Lane)
	if d.mode != Queue || d.settings.QueueingMethod != anteroom.FIFO || held(&d.settings) || void(&d.settings, t.Arrival) ||
		t.Accepted() || v.Stream || v.NoClaim || v.Lane > t.Lane || !d.figures.tells(t.Lane) ||
		f.Hot != 0 || f.Waiting <= holdLine || t.Arrival <= f.Front.Add(nearFront) ||
		unshuffled(t, f.Shuffled) || d.anyone != 0 && t.LastCheckIn <= d.anyone || now < t.Next || now.Sub(t.Next) > Grace {
		return 0, false
	}
	rank = f.Rank(t.Arrival)
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
	k.accepted, k.sure, k.home = accepted, max(k.sure, at), 0
}

// Welcome remembers a guest, by a ticket that tells when home has confirmed the session.
func (d *Door) Welcome(now anteroom.Time, t *anteroom.Ticket) {
	d.Learn(min(now, t.LastCheckIn), t.ID, t.AcceptedAt)
	d.known.at(d.known.find(&t.ID)).home = t.Home
}

// Unsure says that the site is to be asked about a guest, for home has not confirmed the session
// lately.
func (d *Door) Unsure(now anteroom.Time, id anteroom.ID) bool {
	slot := d.known.find(&id)
	return slot != 0 && d.known.at(slot).home != 0 && now.Sub(d.known.at(slot).sure) >= sureFor(d.settings.SessionDuration)
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
// was lost. There are at most some thousands in a batch, the oldest first.
func (d *Door) TakeTouches() (batch uint64, ids []anteroom.ID) {
	list, end := d.touches.tell(maxTouches)
	again := d.touches.first < d.taken // some were in a batch before
	for i := range list {
		ids = append(ids, list[i].id)
		if d.touches.first+uint64(i) >= d.taken {
			if slot := d.known.find(&list[i].id); slot != 0 {
				d.known.at(slot).seen = false
			}
		}
	}
	d.taken = max(d.taken, end)
	d.batch++
	if len(ids) > 0 {
		d.sent.add(d.batch, end)
	}
	if again {
		slices.SortFunc(ids, func(x, y anteroom.ID) int { return bytes.Compare(x[:], y[:]) })
		ids = slices.Compact(ids)
	}
	return d.batch, ids
}

// ages is FromDoor.Ages of a batch. As a rule all of it is of just now, and then nothing is looked up.
func (d *Door) ages(now anteroom.Time, ids []anteroom.ID) (ages []time.Duration) {
	if oldest, _ := d.touches.tell(1); len(oldest) == 0 || now.Sub(oldest[0].since) <= TouchEvery {
		return nil
	}
	for i := range ids {
		slot := d.known.find(&ids[i])
		if slot == 0 || d.known.at(slot).last == 0 {
			continue // has ended since
		}
		if age := now.Sub(d.known.at(slot).last); age > TouchEvery {
			if ages == nil {
				ages = make([]time.Duration, len(ids))
			}
			ages[i] = age
		}
	}
	return ages
}

// Confirmed says that the site has taken a batch of touches, which held those of the batches
// before it: their sessions live on from then.
func (d *Door) Confirmed(batch uint64) {
	end, ok := d.sent.landed(batch)
	if !ok || end <= d.touches.first {
		return
	}
	list, _ := d.touches.tell(int(end - d.touches.first))
	for i := range list {
		if slot := d.known.find(&list[i].id); slot != 0 {
			if k := d.known.at(slot); k.home == 0 {
				k.sure = max(k.sure, list[i].since)
			}
		}
	}
	d.touches.heard(end)
}

// TakePolls returns the check-ins answered since the last call. They are valid until the next visit.
func (d *Door) TakePolls() []Poll {
	p := d.polls
	d.polls = p[:0]
	return p
}
