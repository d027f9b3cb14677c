package engine

// Lanes: which part of the line has the next turn, and what of the limits only one of them may use.

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// lane is the part of the line whose visitors have its number or one below that of the next lane: so a place whose lane the
// operator has removed stays before those that it was before. The last lane is that of number 0, and a room without lanes
// has no other.
type lane struct {
	number          uint8
	share, reserved int // in percent

	order queue    // those in line who are not drawn, by lane, key, id
	alive []uint32 // Random: those in line or parked who have not won yet
	ready queue    // Random: winners that have come back, by win

	unproven []unproven // places that have yet to be proven, about in the order of arrival
	behind   []unproven // newcomers who must not pass a visitor in unproven
	before   unproven   // the first of unproven when behind was last checked

	// With several lanes only:
	counts   [4]int // by state
	seconds  secondRing
	credit   int // see favored
	front    anteroom.Time
	released uint64
	joined   int     // since the last figures
	joins    float64 // per second, decayed over a minute
	used     Units   // of the limits, as the sites have reported it
}

func (l *line) newLane(number uint8) *lane {
	x := &lane{number: number}
	x.order = queue{less: l.before, moved: func(s uint32, pos int) { l.places.at(s).pos = int32(pos) }}
	x.ready = queue{less: func(a, b uint32) bool { return l.wins[a] < l.wins[b] }}
	return x
}

// laneOf is the lane of a number.
func (l *line) laneOf(number uint8) *lane {
	for _, x := range l.lanes {
		if number >= x.number {
			return x
		}
	}
	return nil // never: the last one is 0
}

func (l *line) laneAt(slot uint32) *lane { return l.laneOf(l.places.at(slot).lane) }

// parted says that there are several lanes, so that something has to be counted for each.
func (l *line) parted() bool { return len(l.lanes) > 1 }

// configure puts other lanes in force, and the order or the draw. Every key stays, and every number.
func (l *line) configure(random bool, of *anteroom.Lanes) {
	lanes := l.lanesOf(of)
	same := slices.EqualFunc(lanes, l.lanes, func(a, b *lane) bool { return a.number == b.number })
	if same {
		for i, x := range lanes {
			l.lanes[i].share, l.lanes[i].reserved = x.share, x.reserved
		}
	}
	if same && random == l.random {
		return
	}
	if !same {
		l.keepUnproven(lanes)
	}
	for _, x := range l.lanes {
		x.order.slots, x.alive, x.ready.slots = nil, nil, nil
	}
	if random != l.random {
		clear(l.wins)
		l.asleep, l.nearing = 0, nil
		l.random = random
	}
	l.places.each(func(slot uint32) {
		p := l.places.at(slot)
		p.pos = -1
		if len(l.wins) == 0 {
			p.flags &^= flagWinner
		}
		if !same {
			l.note(p, l.laneOf(p.lane), p.state, 1)
		}
		if l.arrange(slot); p.flags&flagWinner != 0 {
			l.laneOf(p.lane).ready.push(slot)
		}
	})
}

// keepUnproven takes what has yet to be proven into other lanes.
func (l *line) keepUnproven(lanes []*lane) {
	var all []unproven
	for _, x := range l.lanes {
		all = append(all, x.unproven...)
		for _, u := range x.behind { // the new lanes check them again
			if p := l.places.at(u.slot); p.key == u.key && p.state == parked {
				l.setState(u.slot, inLine)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b unproven) int { return cmp.Compare(a.key, b.key) })
	l.lanes = lanes
	for _, u := range all {
		if u.slot < l.places.next && l.places.at(u.slot).key == u.key {
			x := l.laneAt(u.slot)
			x.unproven = append(x.unproven, u)
		}
	}
}

func (l *line) lanesOf(of *anteroom.Lanes) []*lane {
	lanes := []*lane{l.newLane(0)}
	if of == nil {
		return lanes
	}
	for _, x := range of.List {
		at := lanes[0]
		if x.Priority > 0 {
			at = l.newLane(uint8(x.Priority))
			lanes = append(lanes, at)
		}
		at.share, at.reserved = x.Share, x.Reserved
	}
	slices.SortFunc(lanes, func(a, b *lane) int { return cmp.Compare(b.number, a.number) })
	return lanes
}

// note counts a place in a lane, or with n = -1 does so no more.
func (l *line) note(p *place, x *lane, s placeState, n int) {
	if !l.parted() {
		return
	}
	if x.counts[s] += n; s.counted() {
		x.seconds.add(p.key, int32(n))
	}
}

// won is how many of a lane keep a win while they are away. Those of other lanes hold up nobody.
func (l *line) won(x *lane) int {
	if !l.parted() {
		return len(l.wins) - l.asleep
	}
	n := 0
	for slot := range l.wins {
		if p := l.places.at(slot); p.state != dormant && l.laneOf(p.lane) == x {
			n++
		}
	}
	return n
}

// raise moves a place into a higher lane. It keeps its key.
func (l *line) raise(slot uint32, number uint8) {
	p := l.places.at(slot)
	was := l.laneOf(p.lane)
	l.note(p, was, p.state, -1)
	switch {
	case p.pos < 0:
	case l.draws(p):
		l.outOfDraw(p)
	default:
		was.order.removeAt(int(p.pos))
	}
	waits := slices.Index(was.ready.slots, slot)
	if waits >= 0 {
		was.ready.removeAt(waits)
	}
	p.lane = number
	l.note(p, l.laneOf(number), p.state, 1)
	if l.arrange(slot); waits >= 0 {
		l.winnerBack(slot)
	}
}

// A turn is worth 100 and earns each lane its share of it. maxCredit bounds what a lane saves up while those who wait in it are away:
// two turns.
const (
	turnPrice = 100
	maxCredit = 2 * turnPrice
)

// favored returns the lanes in the order in which the next turn is theirs: first those that have earned it by their shares, the
// richest first, as in deficit round robin (Shreedhar and Varghese, SIGCOMM 1995); then the highest. So every lane gets its share at
// least, evenly, and what nobody has earned goes to the highest lane in which somebody can be called.
func (l *line) favored() []*lane {
	if !l.parted() {
		return l.lanes
	}
	l.turns = append(l.turns[:0], l.lanes...)
	earned := func(x *lane) int {
		if own := x.credit + x.share; own >= turnPrice {
			return own
		}
		return 0
	}
	slices.SortStableFunc(l.turns, func(a, b *lane) int { return cmp.Compare(earned(b), earned(a)) })
	return l.turns
}

// inLine says that somebody of the lane could be called some time.
func (x *lane) inLine() bool { return x.counts[inLine]+x.counts[parked] > 0 }

// pay settles a turn that is given to a visitor of the lane, who is in line still.
func (l *line) pay(served *lane) {
	for _, x := range l.lanes {
		switch {
		case !x.inLine():
			x.credit = 0 // nobody was there to be called
		case x == served && x.credit+x.share >= turnPrice:
			x.credit += x.share - turnPrice
		default:
			x.credit = min(x.credit+x.share, maxCredit)
		}
	}
}

// kept are the units of the limits that are kept for a lane and not in use by it, if there are so many.
func (c *Coordinator) kept(x *lane) (kept [units]int64) {
	if x.reserved == 0 {
		return kept
	}
	for k := range kept {
		kept[k] = max(0, c.ledger.Limit[k]*int64(x.reserved)/100-int64(x.used[k])-int64(x.counts[offered]))
	}
	return kept
}

// spare is how many permits visitors of a lane may have: all but those that are kept for others. For nil it is what
// visitors of any lane may have.
func (c *Coordinator) spare(of *lane) int64 {
	if !c.line.parted() || c.closed() {
		return c.permits()
	}
	pool := [units]int64{c.ledger.Pool(Seat), c.ledger.Pool(RateSlot)}
	for _, x := range c.line.lanes {
		if x == of {
			continue
		}
		for k, n := range c.kept(x) {
			pool[k] -= n
		}
	}
	return min(c.permits(), max(0, min(pool[Seat], pool[RateSlot])))
}

// unused are the units that are kept for lanes in which nobody waits: as long as nobody comes, there are so many fewer.
func (c *Coordinator) unused() (n [units]float64) {
	if c.line.parted() {
		for _, x := range c.line.lanes {
			if x.waiting() == 0 {
				for k, kept := range c.kept(x) {
					n[k] += float64(kept)
				}
			}
		}
	}
	return n
}

// joinRates follows how many join each lane.
func (l *line) joinRates(dt time.Duration) {
	if l.parted() {
		d := math.Exp(-dt.Seconds() / 60)
		for _, x := range l.lanes {
			x.joins = x.joins*d + float64(x.joined)/60
			x.joined = 0
		}
	}
}

// LaneUse is what visitors of a lane use of the limits at a site.
type LaneUse struct {
	Lane uint8
	Used Units
}

// hearLanes adds up what the sites have reported of their lanes.
func (c *Coordinator) hearLanes(s *siteView, uses []LaneUse) {
	s.lanes = uses
	if !c.line.parted() {
		return
	}
	for _, x := range c.line.lanes {
		x.used = Units{}
	}
	for _, s := range c.sites {
		if s.lostAt != 0 {
			continue
		}
		for _, u := range s.lanes {
			x := c.line.laneOf(u.Lane)
			for k := range u.Used {
				x.used[k] += u.Used[k]
			}
		}
	}
}

// refigureLanes adds the figures of each lane, with its part of the forecast.
func (c *Coordinator) refigureLanes(f, outlook *Figures) {
	for i, x := range c.line.lanes {
		own := *f
		own.Lanes = nil
		own.Waiting, own.Front, own.Released, own.Oldest = x.waiting(), x.front, x.released, 0
		if own.Seconds = x.seconds.list(); len(own.Seconds) > 0 {
			own.Oldest = anteroom.Time(own.Seconds[0].Second * 1e6)
		}
		if f.Hot > 0 {
			own.Hot = max(0, f.Hot-(c.permits()-c.spare(x)))
		}
		own.CurveFrom, own.Curve, own.Draw, own.Seats, own.Ends = x.released, nil, [3]time.Duration{}, 0, 0
		if outlook != nil {
			o := &outlook.Lanes[i]
			own.CurveFrom, own.Curve, own.Draw, own.Seats = o.CurveFrom, o.Curve, o.Draw, o.Seats
		}
		f.Lanes = append(f.Lanes, LaneFigures{x.number, own})
	}
	if f.Hot > 0 {
		f.Hot = max(0, f.Hot-(c.permits()-c.spare(nil)))
	}
}

// divide adds to the forecast of the line what of it is each lane's.
func (c *Coordinator) divide(o *Figures) {
	seats := int64(o.Seats)
	for _, x := range c.line.lanes {
		own := Figures{CurveFrom: x.released, Seats: uint32(max(0, seats))}
		if seats -= int64(x.waiting()); o.Known {
			own.Seats = 0
		}
		c.line.divided(x, o, &own)
		o.Lanes = append(o.Lanes, LaneFigures{x.number, own})
	}
}

// divided writes the curve of a lane, to which there is always somebody to call, while those in the other lanes are served as well
// and others join them as lately. As long as nothing is known of sessions, the curve is the least, and nobody joins.
func (l *line) divided(x *lane, o, out *Figures) {
	step := o.Step.Seconds()
	waiting := make([]float64, len(l.lanes))
	for i, y := range l.lanes {
		waiting[i] = float64(y.waiting())
	}
	var before, served, rate float64
	lived, left := 1.0, float64(x.waiting())
	for n, sum := range o.Curve {
		t := float64(n+1) * step
		a := (float64(sum) - before) * math.Exp(-o.Leave*t)
		before = float64(sum)
		joining := 0.0
		if o.Known {
			joining = step * math.Exp(-t/300)
		}
		rest, got := a, 0.0
		for i, y := range l.lanes {
			if y != x {
				waiting[i] = waiting[i]*math.Exp(-o.Leave*step) + y.joins*joining
			} else {
				waiting[i] = math.Inf(1)
			}
			least := min(waiting[i], a*float64(max(y.share, y.reserved))/100, rest)
			waiting[i] -= least
			if rest -= least; y == x {
				got += least
			}
		}
		for i, y := range l.lanes {
			more := min(waiting[i], rest)
			waiting[i] -= more
			if rest -= more; y == x {
				got += more
			}
		}
		served += got * math.Exp(o.Leave*t)
		out.Curve = append(out.Curve, float32(served))
		rate = got / step
		if left > 0 {
			lived *= 1 - min(1, got/max(left, 1))
			left = max(0, left*math.Exp(-o.Leave*step)+x.joins*joining-got)
		}
		for q, p := range [3]float64{0.75, 0.5, 0.25} {
			if out.Draw[q] == 0 && (lived <= p || left == 0) {
				out.Draw[q] = time.Duration(t * float64(time.Second))
			}
		}
	}
	for q, p := range [3]float64{0.75, 0.5, 0.25} {
		if out.Draw[q] == 0 { // as at the end of the curve
			m := waitRandom(max(left, 1), 60*max(rate, 1e-9), 0, 1-p/lived)
			out.Draw[q] = time.Duration(min(float64(len(o.Curve))*step/60+m, never.Minutes()) * float64(time.Minute))
		}
	}
}

func (x *lane) waiting() int { return x.counts[inLine] + x.counts[parked] + x.counts[offered] }

// laneStatus is what operators see of the lanes.
func (c *Coordinator) laneStatus(now anteroom.Time, f *Figures) (out []anteroom.LaneStatus) {
	if c.settings.Lanes == nil {
		return nil
	}
	for _, x := range c.line.lanes {
		st := anteroom.LaneStatus{Priority: int(x.number), Waiting: x.waiting(), ActiveUsers: int(x.used[Seat])}
		for _, named := range c.settings.Lanes.List {
			if named.Priority == st.Priority {
				st.Name = named.Name
			}
		}
		if !held(&c.settings) && c.line.waiting() > 0 {
			st.WaitOfNewcomer, st.WaitKnown = f.Of(x.number).Told(st.Waiting, now)
		}
		if c.line.waiting() == 0 {
			st.WaitKnown = !closed(&c.settings)
		}
		out = append(out, st)
	}
	return out
}
