package engine

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// place is one ticket in the coordinator's line: 24 bytes, 40 with its id.
type place struct {
	key   anteroom.Time
	pos   int32 // in order (FIFO) or alive (Random); -1 when in neither
	due   tick  // of the next expected check-in
	site  uint16
	lane  uint8
	state placeState
	flags placeFlags
}

type placeState uint8

const (
	inLine  placeState = iota // waits for its turn
	parked                    // in line but not here at the moment: passed over until it checks in
	dormant                   // not in touch; keeps its key and counts no longer
	offered                   // has been given a turn
)

type placeFlags uint8

const (
	flagShown placeFlags = 1 << iota
	flagStream
	flagWinner  // was drawn while away: keeps the win
	flagUnsure  // came with a ticket of before: another site may know more of it
	flagUnheard // the site does not know yet whether the visitor is here
	flagMissed  // has missed a turn with an open stream
	flagAgain   // and another
	flagUnproven
)

// tick is a moment in hundredths of a second since the line's base.
type tick uint32

// line is the coordinator's order of everybody waiting.
type line struct {
	places slab[place]
	base   anteroom.Time
	random bool
	lanes  []*lane // the highest first
	turns  []*lane // see favored
	wins   map[uint32]uint64
	nwins  uint64
	drawn  []anteroom.ID // in the dispatch under way or the last
	asleep int           // winners who are dormant: they keep the win and hold up nobody
	looks  int           // how many who are away next may still pass over, see maxLooks

	offers   map[uint32]givenTurn // by slot
	unused   int                  // paced turns that nobody has taken, lately
	counts   [4]int               // by state
	streams  int
	nearing  nearingHeap // FIFO: parked tickets by their next check-in
	seconds  secondRing
	sweepPos uint32
	left     int // went dormant or left since the forecast last asked
}

func newLine(base anteroom.Time) *line {
	l := &line{base: base, wins: map[uint32]uint64{}, offers: map[uint32]givenTurn{}}
	l.lanes = l.lanesOf(nil)
	return l
}

func (l *line) tick(t anteroom.Time) tick {
	return tick(min(max(0, t-l.base)/10_000, math.MaxUint32))
}

// moment is when a tick begins.
func (l *line) moment(t tick) anteroom.Time { return l.base + anteroom.Time(t)*10_000 }

// before is the order of the line: higher lanes first, then arrival, then id.
func (l *line) before(a, b uint32) bool {
	p, q := l.places.at(a), l.places.at(b)
	if p.lane != q.lane {
		return p.lane > q.lane
	}
	if p.key != q.key {
		return p.key < q.key
	}
	x, y := l.places.id(a), l.places.id(b)
	return bytes.Compare(x[:], y[:]) < 0
}

// proving says that a visitor was told to come back and has yet to do so for the first time: nobody is called to the
// place, and no newcomer passes it, but whoever has proven a place does.
func (p *place) proving() bool { return p.flags&(flagUnproven|flagShown) == flagUnproven|flagShown }

// unproven is a place whose visitor was told to come back. When the slot holds another key by now, or has been proven,
// it holds up nobody.
type unproven struct {
	key  anteroom.Time
	slot uint32
	due  tick
}

// waits says that a newcomer, who has yet to see the page, came well after somebody who was told to come back for the
// first time and may still be in time.
func (l *line) waits(p *place, now tick) bool {
	return p.flags&flagUnproven != 0 && l.late(l.laneOf(p.lane), now) && l.laneOf(p.lane).unproven[0].key.Add(newcomersTogether) < p.key
}

// goOn returns newcomers to the order when no visitor ahead of them has yet to come back: each of those has done so, or is late. Otherwise a
// newcomer would stay parked until the waiting page is shown, and then hold up the next newcomer in turn.
func (l *line) goOn(x *lane, now tick) {
	if len(x.behind) == 0 || l.late(x, now) && x.unproven[0] == x.before {
		return
	}
	n := max(0, min(l.looks, len(x.behind)))
	l.looks -= n
	behind, rest := x.behind[:n], x.behind[n:]
	var still []unproven
	for _, u := range behind {
		switch p := l.places.at(u.slot); {
		case p.key != u.key || p.state != parked || p.flags&(flagUnproven|flagShown) != flagUnproven:
		case l.laneOf(p.lane) != x: // which has it now
		case l.waits(p, now):
			still = append(still, u)
		default:
			l.setState(u.slot, inLine)
		}
	}
	if x.behind = append(rest, still...); len(rest) == 0 && len(still) > 0 { // otherwise the next dispatch goes on with the rest
		x.before = x.unproven[0]
	}
}

// late drops from the beginning of a lane's unproven whoever has come back or is late, and says whether anybody is left.
func (l *line) late(x *lane, now tick) bool {
	n := 0
	for n < len(x.unproven) {
		u := x.unproven[n]
		if q := l.places.at(u.slot); now <= u.due && q.key == u.key && q.proving() && q.state == parked {
			break
		}
		n++
	}
	if x.unproven = x.unproven[n:]; len(x.unproven) == 0 {
		x.unproven = nil
	}
	return x.unproven != nil
}

// unprovenNow is how many were told to come back for the first time.
func (l *line) unprovenNow() (n int) {
	for _, x := range l.lanes {
		for _, u := range x.unproven {
			if p := l.places.at(u.slot); p.key == u.key && p.proving() && p.state == parked {
				n++
			}
		}
	}
	return n
}

// newcomersTogether is how far apart newcomers may come and enter in another order.
const newcomersTogether = time.Second

// counted says whether a state takes part in the number waiting.
func (s placeState) counted() bool { return s != dormant }

// setState moves a place between the structures. It is the only writer of state.
func (l *line) setState(slot uint32, to placeState) {
	p := l.places.at(slot)
	x := l.laneOf(p.lane)
	l.note(p, x, p.state, -1)
	l.note(p, x, to, 1)
	l.counts[p.state]--
	l.counts[to]++
	if p.flags&flagWinner != 0 {
		if p.state == dormant {
			l.asleep--
		}
		if to == dormant {
			l.asleep++
		}
	}
	if p.state.counted() != to.counted() {
		if to.counted() {
			l.seconds.add(p.key, 1)
		} else {
			l.seconds.add(p.key, -1)
		}
	}
	p.state = to
	l.arrange(slot)
}

// arrange puts the slot into the structures where its state and the method want it.
func (l *line) arrange(slot uint32) {
	p := l.places.at(slot)
	drawn, x := l.draws(p), l.laneOf(p.lane)
	want := p.state == inLine || (drawn && p.state == parked)
	want = want && p.flags&flagWinner == 0 && !(drawn && p.proving())
	switch {
	case want && p.pos < 0 && drawn:
		p.pos = int32(len(x.alive))
		x.alive = append(x.alive, slot)
	case want && p.pos < 0:
		x.order.push(slot)
	case !want && p.pos >= 0 && drawn:
		l.outOfDraw(p)
	case !want && p.pos >= 0:
		x.order.removeAt(int(p.pos))
	}
}

func (l *line) outOfDraw(p *place) {
	x := l.laneOf(p.lane)
	last := x.alive[len(x.alive)-1]
	x.alive[p.pos] = last
	l.places.at(last).pos = p.pos
	x.alive = x.alive[:len(x.alive)-1]
	p.pos = -1
}

// draws says that a place gets its turn by draws: whoever comes back after an outage is called before, in order.
func (l *line) draws(p *place) bool { return l.random && p.lane != anteroom.LaneBack }

// paced reports whether the next turns are paced: those of visitors who have seen the page.
func (l *line) paced() bool {
	for _, x := range l.lanes {
		if x.order.len() > 0 {
			return l.places.at(x.order.top()).flags&flagShown != 0
		}
	}
	return false
}

func (l *line) waiting() int { return l.counts[inLine] + l.counts[parked] + l.counts[offered] }

// present says whether the ticket can take a turn at once: a stream is open, or its
// check-in is due within the claim horizon and not overdue.
func (l *line) present(p *place, now tick) bool {
	if p.flags&flagStream != 0 {
		return true
	}
	return p.due <= now+claimTicks && now <= p.due+lateBy
}

// expected says that the ticket, which has no stream, will be able to take a turn by a moment if its visitor is punctual.
func (l *line) expected(p *place, now, by tick) bool { return p.due <= by && now <= p.due+lateBy }

const claimTicks = tick(claimHorizon / (10 * time.Millisecond))

// lateBy is how late a check-in may be and the visitor still counts as here.
const lateBy = tick(claimPoll / (10 * time.Millisecond))

func (l *line) overdue(p *place, now tick) bool {
	grace := Grace
	if p.proving() {
		grace = ProveBy
	}
	return p.flags&flagStream == 0 && now > p.due+tick(grace/(10*time.Millisecond))
}

// arrive takes a join or check-in: unknown tickets enter, parked and dormant ones return
// to their place.
func (l *line) arrive(a Arrival, site uint16, now anteroom.Time) (slot uint32, joined bool) {
	slot = l.places.find(&a.ID)
	if slot == 0 {
		if l.places.len() >= anteroom.MaxLine {
			return 0, false
		}
		slot = l.places.add(a.ID)
		p := l.places.at(slot)
		*p = place{key: a.Key, pos: -1, lane: a.Lane, state: dormant}
		l.counts[dormant]++
		l.note(p, l.laneOf(p.lane), dormant, 1)
		joined = true
		if a.Shown {
			p.flags |= flagUnsure
		}
	}
	p := l.places.at(slot)
	if p.site = site; a.Lane > p.lane {
		l.raise(slot, a.Lane)
	}
	if a.Shown {
		p.flags |= flagShown
	}
	if p.flags &^= flagUnproven; a.Unproven && !a.Stream {
		p.flags |= flagUnproven
	}
	if p.flags &^= flagUnheard; a.Unheard {
		p.flags |= flagUnheard
	}
	if a.Stream != (p.flags&flagStream != 0) {
		p.flags ^= flagStream
		if a.Stream {
			l.streams++
		} else {
			l.streams--
		}
	}
	p.due = l.tick(a.Due)
	t := l.tick(now)
	switch {
	case p.state == offered:
	case p.proving() && t <= p.due+lateBy:
		if p.state == dormant && !joined {
			l.left--
		}
		l.setState(slot, parked)
		x := l.laneOf(p.lane)
		l.late(x, t)
		x.unproven = append(x.unproven, unproven{p.key, slot, p.due})
	case p.flags&flagStream != 0 || t <= p.due+lateBy:
		if p.state == dormant && !joined {
			l.left-- // was taken for gone
		}
		l.setState(slot, inLine)
		if p.flags&flagWinner != 0 && l.present(p, t) {
			l.winnerBack(slot)
		}
	case p.state == inLine && p.flags&flagUnheard == 0: // a stream that broke: here no longer, gone after the grace
		l.setState(slot, parked)
	}
	return slot, joined
}

// setKey gives a place another key.
func (l *line) setKey(slot uint32, key anteroom.Time) {
	p := l.places.at(slot)
	if p.key == key {
		return
	}
	if p.state.counted() {
		l.seconds.add(p.key, -1)
		l.seconds.add(key, 1)
	}
	x := l.laneOf(p.lane)
	if l.note(p, x, p.state, -1); p.pos >= 0 && !l.draws(p) {
		x.order.removeAt(int(p.pos))
	}
	p.key = key
	l.note(p, x, p.state, 1)
	l.arrange(slot)
}

// only takes the slots of here for everything that waits at a site: a place there that is not
// among them was given up without our hearing of it, and a turn that was given long ago and
// has not been taken was lost on its way, as may be one that was given lately.
func (l *line) only(site uint16, here map[uint32]bool, now anteroom.Time) {
	l.places.each(func(slot uint32) {
		p := l.places.at(slot)
		switch {
		case p.site != site:
		case p.state == offered:
			if turn := l.offers[slot]; here[slot] {
				turn.doubted = true
				l.offers[slot] = turn
			}
		case !here[slot]:
			l.left++
			l.remove(slot)
		}
	})
}

// recall takes back the turns that were given at a site whose process has ended. Who is not
// among those who wait there has taken the turn, or comes back with the ticket.
func (l *line) recall(site uint16, arrivals []Arrival) {
	here := map[uint32]bool{}
	for i := range arrivals {
		here[l.places.find(&arrivals[i].ID)] = true
	}
	var given []uint32
	for slot := range l.offers {
		if l.places.at(slot).site == site {
			given = append(given, slot)
		}
	}
	slices.Sort(given)
	for _, slot := range given {
		if l.back(slot, false); !here[slot] {
			l.left++
			l.remove(slot)
		}
	}
}

// orphan takes the streams from the places of a site that has lost its memory: nobody would say that
// one has ended. Whoever is there comes back with the ticket.
func (l *line) orphan(site uint16, now anteroom.Time) {
	l.places.each(func(slot uint32) {
		if p := l.places.at(slot); p.site == site && p.flags&flagStream != 0 {
			p.flags &^= flagStream
			p.due = l.tick(now)
			l.streams--
		}
	})
}

// reset forgets who arrived before a moment.
func (l *line) reset(before anteroom.Time) {
	l.places.each(func(slot uint32) {
		if l.places.at(slot).key < before {
			l.remove(slot)
		}
	})
}

// setAside notes that the draw fell on the slot and that it cannot enter now.
func (l *line) setAside(slot uint32) {
	p := l.places.at(slot)
	if p.flags&flagWinner == 0 {
		p.flags |= flagWinner
		l.nwins++
		l.wins[slot] = l.nwins
	}
	l.arrange(slot)
}

func (l *line) winnerBack(slot uint32) {
	if x := l.laneAt(slot); !slices.Contains(x.ready.slots, slot) {
		x.ready.push(slot)
	}
}

// putBack undoes next for a ticket that was not offered anything. A draw stands: drawing
// again would favour those for whom a win is only set aside.
func (l *line) putBack(slot uint32) {
	if l.draws(l.places.at(slot)) {
		l.setAside(slot)
		l.winnerBack(slot)
		return
	}
	l.arrange(slot)
}

// remove forgets the ticket.
func (l *line) remove(slot uint32) {
	p := l.places.at(slot)
	if p.flags&flagStream != 0 {
		l.streams--
	}
	delete(l.offers, slot)
	x := l.laneOf(p.lane)
	if i := slices.Index(x.ready.slots, slot); i >= 0 {
		x.ready.removeAt(i)
	}
	l.setState(slot, dormant)
	if p.flags&flagWinner != 0 {
		l.asleep--
		delete(l.wins, slot)
	}
	l.counts[dormant]--
	l.note(p, x, dormant, -1)
	l.places.remove(slot)
}

// maxLooks bounds one dispatch, and one sweep, to a few milliseconds when a great many are
// away; the next one goes on where it ended.
const maxLooks = 4_000

// turn is what next needs to know besides the line.
type turn struct {
	seed  []byte
	draws *uint64
	// reachable says whether a ticket's site answers, and awaits whether it is about to tell who is there.
	reachable, awaits func(site uint16) bool
	away              int // how many absent winners may be set aside
	// expected is a moment soon after the room was opened: whoever is due by then, in order, has a turn until then.
	expected tick
	spare    func(*lane) bool
}

// next takes the ticket whose turn it is out of the order, or returns 0.
func (l *line) next(now anteroom.Time, r turn) uint32 {
	t := l.tick(now)
	l.unpark(t, r.expected)
	for _, x := range l.favored() {
		if l.parted() && (!x.inLine() || !r.spare(x)) {
			continue
		}
		slot, stop := l.nextOf(x, t, r)
		if slot != 0 || stop || l.looks <= 0 { // the next dispatch goes on with this lane
			return slot
		}
	}
	return 0
}

// nextOf is next for one lane. With stop, none of another lane is to be called either.
func (l *line) nextOf(x *lane, t tick, r turn) (slot uint32, stop bool) {
	l.goOn(x, t)
	for ; x.order.len() > 0 && l.looks > 0; l.looks-- {
		slot := x.order.top()
		p := l.places.at(slot)
		if p.proving() {
			l.setState(slot, parked) // until it comes back
			continue
		}
		if l.waits(p, t) {
			x.before = x.unproven[0]
			x.behind = append(x.behind, unproven{key: p.key, slot: slot})
			l.setState(slot, parked)
			continue
		}
		if r.reachable(p.site) && (l.present(p, t) || l.expected(p, t, r.expected)) {
			x.order.pop()
			return slot, false
		}
		if p.flags&flagUnheard != 0 && r.awaits(p.site) {
			return 0, true // nobody is called past a visitor of whom it will soon be known
		}
		if l.overdue(p, t) {
			l.setState(slot, dormant)
			l.left++
		} else {
			l.park(slot, t)
		}
	}
	if !l.random {
		return 0, false
	}
	for x.ready.len() > 0 {
		slot := x.ready.pop()
		p := l.places.at(slot)
		if p.state == inLine && r.reachable(p.site) && l.present(p, t) {
			return slot, false
		}
	}
	looks := l.looks
	if l.parted() { // those of one lane who may not be drawn yet must not use up the looks of all
		looks = min(looks, 16*len(x.alive)+64)
	}
	for ; len(x.alive) > 0 && l.won(x) <= r.away && looks > 0; looks-- {
		l.looks--
		*r.draws++
		slot := x.alive[uniform(r.seed, *r.draws, uint32(len(x.alive)))]
		p := l.places.at(slot)
		switch {
		case l.waits(p, t):
		case r.reachable(p.site) && l.present(p, t):
			l.drawn = append(l.drawn, l.places.id(slot))
			return slot, false
		case l.overdue(p, t):
			l.setState(slot, dormant)
			l.left++
		default:
			l.drawn = append(l.drawn, l.places.id(slot))
			if l.setAside(slot); !r.reachable(p.site) { // who wins at a site that is silent holds up nobody
				l.setState(slot, dormant)
				l.left++
			}
		}
	}
	return 0, len(x.alive) > 0 && l.won(x) > r.away // as without lanes, nobody is called before they are back
}

// first returns the next n in line, whether they are here at the moment or not: in order, or by
// draws. Who has missed a check-in is not among them. With a draw they win.
func (l *line) first(now anteroom.Time, n int, seed []byte, draws *uint64, reachable func(site uint16) bool) (slots []uint32) {
	if n <= 0 {
		return nil
	}
	t := l.tick(now)
	can := func(slot uint32) bool {
		p := l.places.at(slot)
		return (p.state == inLine || p.state == parked) && !l.overdue(p, t) && reachable(p.site)
	}
	slots = l.firstInOrder(n, func(slot uint32) bool { return !l.draws(l.places.at(slot)) && can(slot) })
	if l.random {
		var won []uint32
		for slot := range l.wins {
			if can(slot) {
				won = append(won, slot)
			}
		}
		slices.SortFunc(won, func(a, b uint32) int { return cmp.Compare(l.wins[a], l.wins[b]) })
		slots = append(slots, won...)
		looks := maxLooks
		for _, x := range l.lanes {
			for ; len(slots) < n && len(x.alive) > 0 && looks > 0; looks-- {
				*draws++
				slot := x.alive[uniform(seed, *draws, uint32(len(x.alive)))]
				switch {
				case can(slot):
					l.drawn = append(l.drawn, l.places.id(slot))
					l.setAside(slot) // out of the draw; the win stands until the turn is given
					slots = append(slots, slot)
				case l.overdue(l.places.at(slot), t):
					l.setState(slot, dormant)
					l.left++
				}
			}
		}
	}
	return slots[:min(n, len(slots))]
}

// firstInOrder returns the first n of those who can take a turn.
func (l *line) firstInOrder(n int, can func(slot uint32) bool) []uint32 {
	// Whoever has yet to prove a place comes after all who have.
	before := func(a, b uint32) bool {
		if p, q := l.places.at(a).proving(), l.places.at(b).proving(); p != q {
			return q
		}
		return l.before(a, b)
	}
	// A heap of the n best so far, the last of them on top.
	best := queue{less: func(a, b uint32) bool { return before(b, a) }}
	l.places.each(func(slot uint32) {
		switch {
		case !can(slot):
		case best.len() < n:
			best.push(slot)
		case before(slot, best.top()):
			best.pop()
			best.push(slot)
		}
	})
	slots := best.slots
	slices.SortFunc(slots, func(a, b uint32) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
	return slots
}

// park passes over a ticket that is not here. It is in order again when it checks in, and
// when its check-in comes near.
func (l *line) park(slot uint32, now tick) {
	l.setState(slot, parked)
	if p := l.places.at(slot); p.flags&flagStream == 0 && p.due > now {
		heap.Push(&l.nearing, nearing{due: p.due, slot: slot})
	}
}

// unpark puts those whose check-in has come near, or is due by a moment, back in order.
func (l *line) unpark(now, by tick) {
	var missed []nearing // and here: their turns come again when they are due
	for len(l.nearing) > 0 && l.nearing[0].due <= max(by, now+claimTicks) {
		n := heap.Pop(&l.nearing).(nearing)
		if n.slot >= l.places.next || l.places.id(n.slot).IsZero() {
			continue
		}
		switch p := l.places.at(n.slot); {
		case p.state != parked || p.due != n.due:
		case p.flags&flagStream != 0 && p.due > now+claimTicks:
			missed = append(missed, n)
		case l.present(p, now) || l.expected(p, now, by):
			l.setState(n.slot, inLine)
		}
	}
	for _, n := range missed {
		heap.Push(&l.nearing, n)
	}
}

// nearing is a parked ticket's next check-in. It is stale when the ticket has another by now.
type nearing struct {
	due  tick
	slot uint32
}

type nearingHeap []nearing

func (h nearingHeap) Len() int { return len(h) }
func (h nearingHeap) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].slot < h[j].slot
}
func (h nearingHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *nearingHeap) Push(x any)   { *h = append(*h, x.(nearing)) }
func (h *nearingHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// front says that somebody in order is further in front than a slot.
func (l *line) front(slot uint32) bool {
	x := l.laneAt(slot)
	return x.order.len() > 0 && !l.random && l.before(x.order.top(), slot)
}

// givenTurn is a turn: when it takes effect, and whether its unit has not been granted yet.
type givenTurn struct {
	at    anteroom.Time
	ahead bool
	paced bool
	// doubted: its site has told everything since, so that something was lost between: the turn perhaps, or that it was not taken.
	doubted bool
}

// lost says that nothing will be heard any more of a turn that has not been taken.
func (t givenTurn) lost(now anteroom.Time) bool {
	after := now.Sub(t.at)
	return after > offerLost || t.doubted && after > claimStream+claimHorizon
}

// offer marks the slot as having a turn.
func (l *line) offer(slot uint32, turn givenTurn) {
	p := l.places.at(slot)
	if l.parted() {
		x := l.laneOf(p.lane)
		l.pay(x)
		x.released++
		x.front = max(x.front, p.key)
	}
	p.flags &^= flagWinner // no dormant ticket is offered anything: asleep stays
	delete(l.wins, slot)
	l.setState(slot, offered)
	l.offers[slot] = turn
}

// withdraw ends a turn that nobody has taken. Another takes its place in the pace, or a ticket that two clients use at two sites, and
// whose turns never come where it was seen last, would hold everybody up.
func (l *line) withdraw(slot uint32) {
	if l.offers[slot].paced {
		l.unused++
	}
	delete(l.offers, slot)
}

// back returns an offered ticket: in order again, or dormant until it checks in.
func (l *line) back(slot uint32, asleep bool) {
	l.withdraw(slot)
	if asleep {
		l.setState(slot, dormant)
		l.left++
	} else {
		l.setState(slot, inLine)
	}
}

// missed returns a ticket whose turn was not taken. With an open stream the visitor is there, and
// only the browser did not follow: the turn comes again after the grace, twice. Else, and without a
// stream, it is dormant until it checks in.
func (l *line) missed(slot uint32, now anteroom.Time) {
	p := l.places.at(slot)
	if p.flags&flagStream == 0 || p.flags&flagAgain != 0 || l.draws(p) {
		p.flags &^= flagMissed | flagAgain
		l.back(slot, true)
		return
	}
	p.flags |= flagMissed | (p.flags&flagMissed)*(flagAgain/flagMissed)
	l.withdraw(slot)
	p.due = l.tick(now.Add(Grace))
	l.setState(slot, parked)
	heap.Push(&l.nearing, nearing{due: p.due, slot: slot})
}

// sweep looks at part of the line for missed check-ins and lapsed places, and at offers
// that were lost on their way.
func (l *line) sweep(now anteroom.Time, hold time.Duration, parts uint32) {
	t, keep := l.tick(now), tick(hold/(10*time.Millisecond))
	end := uint32(min(uint64(l.sweepPos)+uint64(l.places.next/parts)+1, uint64(l.places.next)))
	moved := 0
	look := func(slot uint32) {
		p := l.places.at(slot)
		switch {
		case p.state == offered:
		case p.state == dormant:
			if p.flags&flagStream == 0 && t > p.due+keep {
				l.remove(slot)
				moved++
			}
		case l.overdue(p, t):
			l.setState(slot, dormant)
			l.left++
			moved++
		}
	}
	for l.sweepPos < end && moved < maxLooks {
		next := min(l.sweepPos+256, end)
		l.places.eachBetween(l.sweepPos, next, look)
		l.sweepPos = next
	}
	if l.sweepPos >= l.places.next {
		l.sweepPos = 0
	}
	var lost []uint32
	for slot, turn := range l.offers {
		if turn.lost(now) {
			lost = append(lost, slot)
		}
	}
	slices.Sort(lost)
	for _, slot := range lost {
		l.back(slot, false)
	}
}
