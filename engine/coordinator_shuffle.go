package engine

// A shuffle: everybody who waits gets a place by a seed, before everybody who comes later.

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// Shuffle is what anybody needs, with the seed, to recompute a shuffle.
type Shuffle struct {
	At      anteroom.Time // see Figures.Shuffled
	IDs     []anteroom.ID // of everybody who took part, sorted as bytes
	Entries [32]byte      // their digest
}

// Shuffle gives everybody in line, here or away, another key: in the order that the seed gives
// their ids, spread over the time before now, so that ranks by second stay fine. Call it while
// the line is held.
func (c *Coordinator) Shuffle(now anteroom.Time, seed []byte, span time.Duration) Shuffle {
	sh := c.Entrants(now)
	c.reshuffle(now, newRedraw(sh, seed, span, c.settings.ResetAt))
	return sh
}

// Reshuffle is Shuffle by what was recorded (see Entrants): those who took part get the keys that
// it gives them, wherever and whenever they are heard of; whoever is heard of with a key of before
// and did not take part stands behind them. It may be repeated, by any coordinator of the room.
func (c *Coordinator) Reshuffle(now anteroom.Time, sh Shuffle, seed []byte, span time.Duration) {
	c.redrawn = newRedraw(sh, seed, span, c.settings.ResetAt)
	c.reshuffle(now, c.redrawn)
}

// Entrants is the shuffle of everybody in line, here or away; nothing is changed yet.
func (c *Coordinator) Entrants(now anteroom.Time) Shuffle {
	sh := Shuffle{At: now, IDs: make([]anteroom.ID, 0, c.line.places.len())}
	c.line.places.each(func(slot uint32) {
		sh.IDs = append(sh.IDs, c.line.places.id(slot))
		sh.At = max(sh.At, c.line.places.at(slot).key+1)
	})
	slices.SortFunc(sh.IDs, compareIDs)
	sh.Entries = Entries(sh.IDs)
	sh.At = max(sh.At, c.settings.ResetAt+anteroom.Time(len(sh.IDs))) // no key is void, and no two are the same
	return sh
}

// compareIDs is the order of ids as bytes: comparing their beginnings is nearly always enough.
func compareIDs(a, b anteroom.ID) int {
	if c := cmp.Compare(binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(b[:])); c != 0 {
		return c
	}
	return cmp.Compare(binary.BigEndian.Uint64(a[8:]), binary.BigEndian.Uint64(b[8:]))
}

// redraw is a shuffle as keys of its ids.
type redraw struct {
	at, from anteroom.Time
	ids      []anteroom.ID // sorted
	ranks    []uint32      // of the ids, in their order
	order    []int         // the ids by rank, as indexes
}

func newRedraw(sh Shuffle, seed []byte, span time.Duration, resetAt anteroom.Time) *redraw {
	r := &redraw{at: sh.At, ids: sh.IDs, order: Order(ShuffleKey(seed, sh.Entries), sh.IDs), ranks: make([]uint32, len(sh.IDs))}
	for rank, i := range r.order {
		r.ranks[i] = uint32(rank)
	}
	r.from = min(max(sh.At.Add(-span), resetAt), sh.At-anteroom.Time(len(sh.IDs)))
	return r
}

func (r *redraw) key(rank int) anteroom.Time {
	return r.from + spread(anteroom.Time(rank), r.at-r.from, anteroom.Time(len(r.ids)))
}

// place gives an arrival the key that it has by the shuffle. A nil redraw changes nothing.
func (r *redraw) place(a *Arrival) {
	if r == nil {
		return
	}
	if i, took := slices.BinarySearchFunc(r.ids, a.ID, compareIDs); took {
		a.Key = r.key(int(r.ranks[i]))
		return
	}
	a.Key = max(a.Key, r.at)
}

// reshuffle gives everybody in line the key of the shuffle.
func (c *Coordinator) reshuffle(now anteroom.Time, r *redraw) {
	ranked := make([]uint32, 0, c.line.places.len())
	for rank, i := range r.order {
		if slot := c.line.places.find(&r.ids[i]); slot != 0 {
			c.rekey(slot, r.key(rank))
			ranked = append(ranked, slot)
		}
	}
	if c.line.places.len() > len(ranked) {
		drawn := make([]bool, c.line.places.next+1)
		for _, slot := range ranked {
			drawn[slot] = true
		}
		late := len(ranked)
		c.line.places.each(func(slot uint32) {
			if !drawn[slot] {
				c.rekey(slot, max(c.line.places.at(slot).key, r.at))
				ranked = append(ranked, slot)
			}
		})
		slices.SortFunc(ranked[late:], func(a, b uint32) int {
			return cmp.Or(cmp.Compare(c.line.places.at(a).key, c.line.places.at(b).key), compareIDs(c.line.places.id(a), c.line.places.id(b)))
		})
	}
	c.line.reorder(ranked)
	c.shuffled, c.front = max(c.shuffled, r.at), r.from-1
	c.figures, c.outlook = nil, nil
	for _, s := range c.sites {
		c.sendKeys(s)
		s.answer = true
	}
	c.dispatch(now)
}

// rekey gives a place another key and has its site told. The line is out of order until reorder.
func (c *Coordinator) rekey(slot uint32, key anteroom.Time) {
	p := c.line.places.at(slot)
	p.key = key
	s := c.sites[p.site]
	s.keys = append(s.keys, Placed{ID: c.line.places.id(slot), Key: key})
}

// spread is rank/n of a span.
func spread(rank, span, n anteroom.Time) anteroom.Time {
	return span/n*rank + span%n*rank/n // a product of the whole could overflow
}

// keysAtOnce bounds the places in one message.
const keysAtOnce = 20_000

func (c *Coordinator) sendKeys(s *siteView) {
	for part := range slices.Chunk(s.keys, keysAtOnce) {
		c.post(s, ToSite{Keys: &Keys{Epoch: c.epoch, Shuffled: c.shuffled, Places: part}})
	}
	s.keys = nil
}

// reorder takes new keys of all places in, which stand in the order of the keys.
func (l *line) reorder(ranked []uint32) {
	if slices.ContainsFunc(ranked, func(slot uint32) bool { return l.places.at(slot).lane != 0 }) {
		slices.SortStableFunc(ranked, func(a, b uint32) int { return -cmp.Compare(l.places.at(a).lane, l.places.at(b).lane) })
	}
	l.seconds = secondRing{}
	for _, x := range l.lanes {
		x.seconds = secondRing{}
	}
	var of *lane
	ordered := 0
	for _, slot := range ranked {
		p := l.places.at(slot)
		x := l.laneOf(p.lane)
		if x != of {
			of, ordered = x, 0
		}
		if p.state.counted() {
			l.seconds.add(p.key, 1)
			if l.parted() {
				x.seconds.add(p.key, 1)
			}
		}
		if !l.draws(p) && p.pos >= 0 {
			x.order.set(ordered, slot) // what is sorted is a heap
			ordered++
		}
	}
}

// ReceiveKeys takes keys of the coordinator for tickets that wait here. What they were told of
// their place before does not count any more.
func (s *Site) ReceiveKeys(now anteroom.Time, k Keys) {
	if k.Epoch != s.epoch || !s.synced {
		return // its State comes first, and the answer to all that waits here brings them again
	}
	s.shuffled = max(s.shuffled, k.Shuffled)
	s.lastKey = max(s.lastKey, k.Shuffled)
	for i := range k.Places {
		s.fetched |= s.here.fetch(&k.Places[i].ID)
	}
	for _, p := range k.Places {
		slot := s.here.find(&p.ID)
		if slot == 0 {
			continue
		}
		w := s.here.at(slot)
		w.key, w.told = p.Key, 0
		w.flags |= hereCame // the place is worth keeping: it cannot be had again
		s.events = append(s.events, Event{Kind: EventDrawn, ID: p.ID, Lane: w.lane, At: now, Key: p.Key})
	}
}

// unshuffled says that a cookie is of before the last shuffle: its arrival, and what it was
// told, say nothing any more.
func (s *Site) unshuffled(t anteroom.Ticket) bool { return unshuffled(&t, s.shuffled) }

func unshuffled(t *anteroom.Ticket, at anteroom.Time) bool { return at != 0 && t.LastCheckIn <= at }

// Shuffle shuffles the line (see Coordinator.Shuffle). tag names the shuffle in the events
// that TakeEvents returns: one EventShuffle, an EventDrawn for each ticket, one EventShuffled.
// Whoever is let in by the new order is so after all of them.
func (x *Single) Shuffle(now anteroom.Time, tag anteroom.ID, seed []byte, span time.Duration) Shuffle {
	x.tell(now)
	x.site.resync, x.site.urgent = true, true // so that the coordinator has everybody in line
	x.settle(now)
	sh := x.coordinator.Shuffle(now, seed, span)
	x.events = append(x.events, Event{Kind: EventShuffle, ID: tag, At: now, Key: anteroom.Time(len(sh.IDs))})
	x.settle(now)
	x.events = append(x.events, Event{Kind: EventShuffled, ID: tag, At: now, Key: sh.At})
	return sh
}
