package engine

// A shuffle: everybody who waits gets a place by a seed, before everybody who comes later.

import (
	"bytes"
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
	sh := Shuffle{At: now, IDs: make([]anteroom.ID, 0, c.line.places.len())}
	type entry struct {
		begins uint64 // the id: comparing the beginning is nearly always enough
		slot   uint32
	}
	slots := make([]entry, 0, c.line.places.len())
	c.line.places.each(func(slot uint32) {
		id := c.line.places.id(slot)
		slots = append(slots, entry{binary.BigEndian.Uint64(id[:]), slot})
		sh.At = max(sh.At, c.line.places.at(slot).key+1)
	})
	slices.SortFunc(slots, func(a, b entry) int {
		if a.begins != b.begins {
			return cmp.Compare(a.begins, b.begins)
		}
		x, y := c.line.places.id(a.slot), c.line.places.id(b.slot)
		return bytes.Compare(x[:], y[:])
	})
	for _, e := range slots {
		sh.IDs = append(sh.IDs, c.line.places.id(e.slot))
	}
	sh.Entries = Entries(sh.IDs)
	n := anteroom.Time(len(slots))
	sh.At = max(sh.At, c.settings.ResetAt+n) // no key is void, and no two are the same
	from := max(sh.At.Add(-span), c.settings.ResetAt)
	from = min(from, sh.At-n)
	order := Order(ShuffleKey(seed, sh.Entries), sh.IDs)
	ranked := make([]uint32, len(order))
	for rank, i := range order {
		ranked[rank] = slots[i].slot
		p := c.line.places.at(slots[i].slot)
		p.key = from + spread(anteroom.Time(rank), sh.At-from, n)
		c.sites[p.site].keys = append(c.sites[p.site].keys, Placed{ID: sh.IDs[i], Key: p.key})
	}
	c.line.reorder(ranked)
	c.shuffled, c.front = sh.At, from-1
	c.figures, c.outlook = nil, nil
	for _, s := range c.sites {
		c.sendKeys(s)
		s.answer = true
	}
	c.dispatch(now)
	return sh
}

// spread is rank/n of a span.
func spread(rank, span, n anteroom.Time) anteroom.Time {
	return span/n*rank + span%n*rank/n // a product of the whole could overflow
}

// keysAtOnce bounds the places in one message.
const keysAtOnce = 20_000

func (c *Coordinator) sendKeys(s *siteView) {
	for part := range slices.Chunk(s.keys, keysAtOnce) {
		c.out = append(c.out, ToSite{Site: s.key, Keys: &Keys{Epoch: c.epoch, Shuffled: c.shuffled, Places: part}})
	}
	s.keys = nil
}

// reorder takes new keys of all places in, which stand in the order of the keys.
func (l *line) reorder(ranked []uint32) {
	if slices.ContainsFunc(ranked, func(slot uint32) bool { return l.places.at(slot).lane != 0 }) {
		slices.SortStableFunc(ranked, func(a, b uint32) int { return -cmp.Compare(l.places.at(a).lane, l.places.at(b).lane) })
	}
	l.seconds = secondRing{}
	ordered := 0
	for _, slot := range ranked {
		p := l.places.at(slot)
		if p.state.counted() {
			l.seconds.add(p.key, 1)
		}
		if !l.random && p.pos >= 0 {
			l.order.set(ordered, slot) // what is sorted is a heap
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
func (s *Site) unshuffled(t anteroom.Ticket) bool {
	return s.shuffled != 0 && t.LastCheckIn <= s.shuffled
}

// Shuffle shuffles the line (see Coordinator.Shuffle). tag names the shuffle in the events
// that TakeEvents returns: one EventShuffle, an EventDrawn for each ticket, one EventShuffled.
// Whoever is let in by the new order is so after all of them.
func (x *Single) Shuffle(now anteroom.Time, tag anteroom.ID, seed []byte, span time.Duration) Shuffle {
	x.flushDoor(now)
	x.site.resync, x.site.urgent = true, true // so that the coordinator has everybody in line
	x.settle(now)
	before := x.site.events
	x.site.events = make([]Event, 0, x.site.here.len()+2)
	sh := x.coordinator.Shuffle(now, seed, span)
	x.site.events = append(x.site.events, Event{Kind: EventShuffle, ID: tag, At: now, Key: anteroom.Time(len(sh.IDs))})
	x.settle(now)
	x.site.events = append(x.site.events, Event{Kind: EventShuffled, ID: tag, At: now, Key: sh.At})
	x.site.events = append(before, x.site.events...)
	return sh
}
