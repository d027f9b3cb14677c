package engine

// A door that a site does not hear may let sessions in: those that it knows, and those whose cookies
// say that they last. No session is over before that can be ruled out, so that limits hold although a
// door is cut off.

import (
	"encoding/binary"
	"iter"
	"time"

	"github.com/anteroom/anteroom"
)

// witness is a process whose door has let sessions in.
type witness struct {
	number, node uint64
	heard        anteroom.Time // when the newest message left it
	latest       bool          // heard is when the process before may have heard it last; see restoredDoors
	over         anteroom.Time // when another process of the node was heard of; 0 while none was
	told         bool          // has spoken to this process of the site, of all sessions that it has let in
	empty        bool
	gathered     bool // has told this process of the site who is here
	recorded     anteroom.Time
}

const (
	// speaksBy is how long a door in touch is silent at most: it speaks every doorBeat.
	speaksBy = doorBeat + 500*time.Millisecond
	// restartIn is how soon another process speaks for a node whose process has ended: it was not cut
	// off before. What it let in since its last word, within a tick, nobody knows.
	restartIn = 2 * cutAfter
	// recordDoor is how often a door that speaks is on record.
	recordDoor = 10 * time.Second
)

// AloneFor is how long a door that does not hear its site goes on letting in sessions. A door that
// was cut off for half of a session has sent none of them back.
func AloneFor(d time.Duration) time.Duration { return min(d, max(d/2, 20*time.Second)) }

// spoke notes a message that left a door at a moment.
func (s *Site) spoke(now, said anteroom.Time, m *FromDoor) {
	at := -1
	for i := range s.doors {
		d := &s.doors[i]
		switch {
		case d.number == m.Door:
			at = i
		case m.Node != 0 && d.node == m.Node && d.over == 0 && s.synced: // until then, now may be a guess that is too early
			s.replaced(now, d)
		}
	}
	if at < 0 {
		at = s.witness(now, m.Door, m.Node)
	}
	d := &s.doors[at]
	// Whatever came after it: what the message says of the line is taken.
	if s.term != 0 && m.Told == s.term {
		s.gather(d)
	}
	// A door that knows of this process has said nothing later to the one before.
	sure := d.latest && s.term != 0 && m.Told == s.term
	if said < d.heard && !sure {
		return // it was overtaken by a later one
	}
	d.heard, d.latest, d.empty, d.over = said, false, m.Empty, 0
	d.told = d.told || len(m.Touches) < maxTouches
	if s.term != 0 && (d.recorded == 0 || now.Sub(d.recorded) >= recordDoor) {
		d.recorded = now
		e := Event{Kind: EventDoor, At: now}
		binary.BigEndian.PutUint64(e.ID[:], m.Node)
		binary.BigEndian.PutUint64(e.ID[8:], m.Door)
		s.events = append(s.events, e)
	}
}

// replaced notes that a door's process has ended: another one of its node was heard of.
func (s *Site) replaced(now anteroom.Time, d *witness) {
	d.over = now
	s.seenLast(d)
}

// replacedDoor notes that another process of a door's node runs.
func (s *Site) replacedDoor(now anteroom.Time, door uint64) {
	for i := range s.doors {
		if d := &s.doors[i]; d.number == door && d.over == 0 && s.synced {
			s.replaced(now, d)
		}
	}
}

// witness adds a door, in the place of one that counts no more if there is one.
func (s *Site) witness(now anteroom.Time, number, node uint64) (at int) {
	one := witness{number: number, node: node}
	for i := range s.doors {
		if d := &s.doors[i]; now.Sub(d.heard) > speaksBy && (d.empty || s.until(d).Add(s.settings.SessionDuration) < now) {
			s.doors[i] = one
			return i
		}
	}
	s.doors = append(s.doors, one)
	return len(s.doors) - 1
}

// until is the last moment at which a silent door may have let somebody in.
func (s *Site) until(d *witness) anteroom.Time {
	at := d.heard.Add(AloneFor(s.settings.SessionDuration))
	if d.over != 0 {
		at = min(at, d.over)
	}
	return at
}

// heldFor is until when a session that has lapsed is to be looked at again: a door may have let it
// in since. 0 says that it is over.
func (s *Site) heldFor(now anteroom.Time, slot uint32) (at anteroom.Time) {
	if s.settings.DisableSessionRenewal {
		return 0
	}
	for i := range s.doors {
		w := &s.doors[i]
		switch {
		case w.over != 0 && w.over.Sub(w.heard) <= restartIn:
			at = max(at, s.lastWord(w, slot))
		case !w.told || !w.empty && (w.over != 0 || now.Sub(w.heard) > speaksBy):
			at = max(at, s.until(w).Add(s.settings.SessionDuration+TouchDelay))
		}
	}
	if at <= now {
		return 0
	}
	return min(at, now.Add(TouchEvery)) // the door may be heard again
}

// lastWord is until when a session may last that a door let in after its last word, and before it ended.
func (s *Site) lastWord(w *witness, slot uint32) anteroom.Time {
	st := s.seats.at(slot)
	if st.doors&doorBit(w.number) == 0 || w.empty {
		return 0
	}
	heard := w.heard
	if !w.told {
		heard = min(heard, s.recorded)
	}
	sure := st.last.Add(sureFor(s.settings.SessionDuration))
	if sure < heard {
		return 0
	}
	return min(sure, w.over, heard.Add(speaksBy)).Add(s.settings.SessionDuration + TouchDelay)
}

// gathered reports whether each door has told this process who is here, but for those that are gone: whoever can come back
// from those to another door has had as long as that took to notice.
func (s *Site) gathered() bool {
	for i := range s.doors {
		if w := &s.doors[i]; !w.gathered && w.over == 0 {
			return false
		}
	}
	return s.term != 0
}

// lostDoor notes that nothing more is heard of a door. It may have let sessions in until then, so this ends none of them.
func (s *Site) lostDoor(door uint64) {
	for i := range s.doors {
		if w := &s.doors[i]; w.number == door {
			s.gather(w)
		}
	}
}

// gather notes that a door has told this process who is here, or never will. The coordinator may be waiting for the last.
func (s *Site) gather(w *witness) {
	if !w.gathered {
		w.gathered = true
		s.urgent = s.urgent || s.gathered()
	}
}

// Doors returns the numbers of the doors that have let sessions in, as far as is on record.
func (s *Site) Doors() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range s.doors {
			if !yield(s.doors[i].number) {
				return
			}
		}
	}
}

const anyDoor = 1<<16 - 1 // of seat.doors

// doorBit stands for a door in seat.doors; several doors may have the same.
func doorBit(number uint64) uint16 { return 1 << (number % 16) }

// through notes that a door may let a session in without asking for sureFor.
func (s *Site) through(id anteroom.ID, door uint64) {
	if slot := s.seats.find(&id); slot != 0 {
		s.seats.at(slot).doors |= doorBit(door)
	}
}

// restoreDoor applies the record of a door.
func (s *Site) restoreDoor(e Event) {
	node, number := binary.BigEndian.Uint64(e.ID[:]), binary.BigEndian.Uint64(e.ID[8:])
	for i := range s.doors {
		if d := &s.doors[i]; d.number == number {
			d.heard = e.At
			return
		} else if node != 0 && d.node == node {
			d.over = or0(d.over, e.At)
		}
	}
	s.doors = append(s.doors, witness{number: number, node: node, heard: e.At})
}

// restoredDoors says which sessions were over for certain when the process before ended: those that
// lapsed before it heard of every door once more. A door has been heard at most recordDoor after it
// was last put on record; it has yet to speak to this process.
func (s *Site) restoredDoors() (over anteroom.Time) {
	rest := s.doors[:0]
	over = s.recorded
	for _, d := range s.doors {
		on := d.heard
		if d.heard, d.latest = on.Add(recordDoor), true; s.until(&d).Add(s.settings.SessionDuration) >= s.recorded {
			over = min(over, on)
			rest = append(rest, d)
		}
	}
	s.doors = rest
	return over
}
