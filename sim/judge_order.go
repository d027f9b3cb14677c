package sim

// Who is in touch, whose turn it is, and who is passed.

import (
	"fmt"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// calm says whether faults of the plan disturb a promise now.
type calm struct {
	faults int           // under way
	from   anteroom.Time // after the last one the room needs a moment
}

func (c *calm) is(now anteroom.Time) bool { return c.faults == 0 && now >= c.from }

// ordered: nothing excuses that somebody is passed. flows: nothing excuses anything.
func (j *judge) ordered() bool { return !j.lossy && j.order.is(j.w.now) }

func (j *judge) flows() bool { return j.ordered() && j.flow.is(j.w.now) }

// disturbed notes a fault of the plan. A change of roles by itself excuses nobody who is passed; two
// in quick succession do.
func (j *judge) disturbed(over bool, f *fault) {
	now := j.w.now
	j.disturbs = true
	if !over {
		f.passes = !f.change(j.w) || !j.order.is(now) || j.changed != 0 && now.Sub(j.changed) < settles
		if f.change(j.w) {
			j.changed = now
		}
	}
	for _, c := range []struct {
		calm *calm
		is   bool
	}{{&j.order, f.passes}, {&j.flow, true}} {
		switch {
		case !c.is:
		case over:
			c.calm.faults--
			tail := f.tail(j.w)
			if c.calm == &j.order && f.kind == "cut" && f.what == "node" { // seats may be held for longer, and nobody is passed for that
				tail = settles
			}
			c.calm.from = max(c.calm.from, now.Add(tail))
		default:
			c.calm.faults++
		}
	}
	// What a lost memory held is charged until its successor had so long to adopt from it. Another
	// coordinator waits anew: guests of the site were seen elsewhere meanwhile of whom it has not heard.
	if over && (f.lose || f.begins() && now.Add(-f.lasts) <= j.charged) {
		j.charged = now.Add(max(j.set.SeatDuration(), engine.RateHold))
		j.flow.from = max(j.flow.from, j.charged.Add(settles))
	}
	if s := j.shuffled; over && s != nil { // some may have been out of touch until now
		s.heard = now.Add(s.ahead + shuffleHeard)
	}
	if !over {
		j.looseOn = j.loose()
	} else if j.looseOn && j.flow.faults == 0 {
		j.looseOn, j.looseTill = false, now.Add(loosens)
	}
}

func (j *judge) inTouch(who int32, yes bool) {
	p := &j.w.people[who]
	if yes && (p.marks&(anew|won) != 0 || j.set.QueueingMethod == anteroom.Random && p.marks&(shown|proven) == shown) || !j.touch.set(who, yes) {
		return
	}
	n := int32(1)
	if !yes {
		n = -1
	}
	if j.set.QueueingMethod == anteroom.Random {
		j.alive.add(who, n)
	}
	for g, h := range groupHabits {
		if p.habits&h != 0 {
			j.groups[g].alive += int(n)
		}
	}
}

// turnsLast is for how long a turn may be neither taken nor withdrawn: its visitor is due within four seconds and is asked about at other
// sites for some.
const turnsLast = 15 * time.Second

// losesTurns has whoever was given a turn long ago wait again: wherever the turn was lost, those behind are not called first. One that the
// operator gave, or that was given when the room was opened, stands until its visitor comes.
func (j *judge) losesTurns() {
	for who, at := range j.given {
		if _, byHand := j.byHand[j.w.people[who].ticket.ID]; j.w.now.Sub(at) > turnsLast && !byHand && (j.opened == 0 || at.Sub(j.opened) > opening) {
			p := &j.w.people[who]
			p.marks &^= released
			delete(j.turns, who)
			delete(j.given, who)
			if p.state == waiting && p.marks&inLine != 0 {
				j.inTouch(who, true)
			}
		}
	}
}

// releaseAll notes turns given at one moment.
func (j *judge) releaseAll(ids []anteroom.ID) {
	j.losesTurns()
	for _, id := range ids {
		if who, ok := j.w.byID[id]; ok {
			j.w.trace.end(appendNumber(j.w.trace.line(j.w.now, "turn"), "v", int64(who)))
			p := &j.w.people[who]
			p.marks |= released
			j.given[who] = j.w.now
			if p.stream != 0 && j.w.now.Sub(p.stream) > time.Second {
				j.turns[who] = j.w.now
			}
			j.inTouch(who, false)
		} else if j.w.origin != nil {
			j.strangers[id] = true
		}
	}
	for _, id := range ids {
		if j.onHold {
			j.look(checkCap, false, func() string { return "a turn is given while nothing can be recorded" })
		}
		if !j.copiedElsewhere(id) {
			j.notLeft(id, "a turn is given to")
		}
		who, ok := j.w.byID[id]
		if ok {
			j.inLanes(who, j.w.people[who].lane)
			j.overtakes(who)
		} else if lane, ok := j.w.lanes[id]; ok {
			j.inLanes(-1, lane) // whoever has left uses up a turn of the lane all the same
		}
	}
}

// atOnce is how far apart turns of one moment may be told: the margin of the effect delay, and as much
// again for clocks, which differ by half of what the two ways to a site do.
const atOnce = 2 * engine.EffectMargin

// tells notes that a turn was told on a stream. Turns that were given at one moment take effect
// everywhere at one moment too, so that a fast link overtakes nobody. This is looked at until the first
// fault of the plan, for the clock of a process that takes a role over may be ahead for a while, and for
// visitors without odd habits: the place of one who goes to another site goes there without the turn. A turn
// that is heard of a second late was withdrawn and given again.
func (j *judge) tells(who int32) {
	given, ok := j.turns[who]
	if !ok {
		return
	}
	delete(j.turns, who)
	first := j.takesEffect(given)
	p := &j.w.people[who]
	if late := j.w.now.Sub(first); !j.disturbs && j.flows() && p.stream < given && p.habits&^streams == 0 && late < time.Second {
		j.look(checkOrder, late <= atOnce, func() string {
			return fmt.Sprintf("visitor %d hears of a turn %v after another visitor whose turn was given at the same moment, %v", who, late, j.w.since(given))
		})
	}
}

// takesEffect is when the first of the turns of a moment was told, or taken: now, if none has been.
func (j *judge) takesEffect(given anteroom.Time) anteroom.Time {
	if first, ok := j.told[given]; ok {
		return first
	}
	if len(j.told) >= 1000 {
		clear(j.told)
	}
	j.told[given] = j.w.now
	return j.w.now
}

// takes notes that a visitor without odd habits comes in by a turn.
func (j *judge) takes(who int32) {
	given, ok := j.given[who]
	if delete(j.given, who); ok && j.w.people[who].habits&^streams == 0 {
		j.takesEffect(given)
	}
}

func (j *judge) release(who int32) {
	p := &j.w.people[who]
	if p.habits&clone != 0 {
		return
	}
	p.marks |= released
	j.inTouch(who, false)
	j.overtakes(who)
}

// unrelease: a turn was not taken, or could not be given.
func (j *judge) unrelease(id anteroom.ID) {
	delete(j.byHand, id)
	who, ok := j.w.byID[id]
	if !ok {
		delete(j.strangers, id)
		return
	}
	p := &j.w.people[who]
	j.w.trace.end(appendNumber(j.w.trace.line(j.w.now, "missed"), "v", int64(who)))
	p.marks &^= released
	delete(j.turns, who)
	delete(j.given, who)
	if p.state == waiting && p.marks&inLine != 0 {
		j.inTouch(who, true)
	}
}

// overtakes marks those whom a turn for who has passed by.
func (j *judge) overtakes(who int32) {
	j.comesBack(who)
	if j.w.people[who].ticket.Lane == anteroom.LaneBack {
		return
	}
	if j.set.QueueingMethod == anteroom.Random || j.set.QueueingMethod == anteroom.Passthrough {
		return
	}
	w := j.w
	if w.people[who].habits&clones != 0 {
		return // the place may be the other client's, who came earlier
	}
	if was, used := j.used[w.people[who].ticket.ID]; used && j.forgot[was.site] >= was.from {
		return // a copied cookie whose session the site has forgotten: its place is as old as it says
	}
	if w.people[who].marks&undated != 0 {
		return // a site that starts while it is cut off cannot tell when somebody comes, only after whom
	}
	mine := w.people[who].arrived
	broken := int32(-1)
	for i := j.touch.next(0); i >= 0 && i < int32(len(w.people)); i = j.touch.next(i + 1) {
		p := &w.people[i]
		if j.shuffled != nil {
			if !j.shuffled.before(i, who, w.people) {
				continue
			}
		} else if p.arrived.Add(time.Second) >= mine {
			break
		}
		if p.lane != w.people[who].lane || !w.present(p) && !j.awaited(p) || p.habits&clones != 0 || p.marks&undated != 0 { // a shared cookie is where it was seen last
			continue
		}
		p.marks |= overtaken
		broken = i
		j.numbers.OvertakenMost = max(j.numbers.OvertakenMost, mine.Sub(p.arrived))
	}
	if j.ordered() {
		j.look(checkOrder, broken < 0, func() string {
			return fmt.Sprintf("visitor %d of %v gets a turn before visitor %d of %v, who is here", who, w.since(mine), broken, w.since(w.people[broken].arrived))
		})
	}
}

// present: could take a turn at once, and the room had a second to hear of it. A check-in
// counts when it is due within 3.5 s (the room's horizon is 4 s) and has not begun.
func (w *world) present(p *person) bool {
	switch {
	case p.state == coming:
		return p.pending > 0 && p.requests == 1 && w.now.Sub(w.judge.began[p.site]) > time.Second
	case p.stream != 0:
		return w.now.Sub(p.stream) > time.Second
	}
	return p.pending == 0 && p.marks&proven != 0 && w.now.Sub(p.answered) > time.Second && w.now < p.expected && p.expected <= w.now.Add(3500*time.Millisecond)
}

// awaited: when the room was opened, the visitor had been told to come back soon after, or has been since.
func (j *judge) awaited(p *person) bool {
	now := j.w.now
	return !j.disturbs && j.opened != 0 && p.stream == 0 && p.pending == 0 && p.marks&proven != 0 && now.Sub(p.answered) > time.Second &&
		now < p.expected && p.expected <= j.opened.Add(opening-time.Second)
}

// opening is for how long the order is kept for those who are not here yet, after the room was opened: all who were in front had
// been told to come back in twenty seconds, give or take three, or sooner.
const opening = 27 * time.Second

// drawn counts the draws of a moment. Whoever has won stands no longer among those drawn
// from, though the turn may come only with the next check-in.
func (j *judge) drawn(ids []anteroom.ID) {
	for _, id := range ids {
		who, ok := j.w.byID[id]
		if !ok {
			continue
		}
		if !j.touch.has(who) {
			j.proves(who) // the draw fell on somebody whose first return is not answered yet
		}
		if n := j.touch.n; n >= 20 && j.touch.has(who) && j.flows() && len(j.w.sc.Lanes) == 0 {
			j.draws++
			j.rankSum += (float64(j.alive.before(who)) + 0.5) / float64(n)
			for g := range j.groups {
				k := &j.groups[g]
				share := float64(k.alive) / float64(n)
				k.expected += share
				k.variance += share * (1 - share)
				if j.w.people[who].habits&groupHabits[g] != 0 {
					k.won++
				}
			}
		}
		j.w.people[who].marks |= won
		j.inTouch(who, false)
	}
}

// places looks whether some of those who hold a stream have their place in the room's line.
func (j *judge) places() {
	w := j.w
	if !j.flows() || len(w.people) == 0 || j.set.QueueingMethod == anteroom.Passthrough || j.set.Suspended {
		return
	}
	at := j.touch.next(int32(w.chance.IntN(len(w.people))))
	for range 5 {
		if at < 0 {
			return
		}
		p := &w.people[at]
		if p.marks&listening != 0 && w.now.Sub(p.stream) > 3*time.Second && p.pending == 0 {
			j.hasPlace(at)
		}
		at = j.touch.next(at + 1)
	}
}

// hasPlace looks at a visitor whose stream has been open for a while.
func (j *judge) hasPlace(who int32) {
	j.look(checkBooks, j.w.system.inLine(j.w.people[who].ticket.ID), func() string {
		return fmt.Sprintf("visitor %d waits with a stream and has no place in the line", who)
	})
}
