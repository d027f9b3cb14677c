package sim

import (
	"math"
	"time"

	"github.com/anteroom/anteroom"
)

// leastTold is how many waits a share is taken of.
const leastTold = 50

// quartilesOff says by how much the announced quartiles of a draw were off: for each third of
// the run and each quartile, the share of those who were inside by then, less what it should
// be; the mean of all, and how many those are. Of somebody who left before a quartile had passed nobody knows. Nor was
// a wait meant to hold beyond the moment at which the plan stopped drawing.
func (w *world) quartilesOff() (mean float64, told int) {
	var counts [3][3]struct{ known, inside int }
	for i := range w.people {
		p := &w.people[i]
		if p.habits&clone != 0 || p.tellAt == 0 {
			continue
		}
		until := w.now
		if p.entered != 0 {
			until = p.entered
		} else if p.left != 0 {
			until = p.left
		}
		waited := until.Sub(p.tellAt)
		if waited < 0 { // it was told when it waited for the second time
			continue
		}
		third := min(2, int(3*w.since(p.tellAt)/w.sc.Length))
		for q, told := range [3]time.Duration{p.told25, p.told, p.told75} {
			if waited <= told && p.entered == 0 || !w.draws(p.tellAt, p.tellAt.Add(told)) {
				continue
			}
			c := &counts[third][q]
			c.known++
			if waited <= told {
				c.inside++
			}
		}
	}
	off := 0.0
	for _, third := range counts {
		for q, c := range third {
			if c.known >= leastTold {
				off += math.Abs(share(c.inside, c.known) - float64(q+1)/4)
				told++
			}
		}
	}
	return ratio(off, float64(told)), told
}

// draws says whether the room draws from its line all the time: a forecast cannot know that
// the line will be held, or closed.
func (w *world) draws(from, to anteroom.Time) bool {
	by := func(s anteroom.Settings) bool {
		return s.QueueingMethod == anteroom.Random && !s.QueueAll && !s.Suspended
	}
	for _, c := range w.sc.Changes {
		if at := epoch.Add(c.At); at > from && at <= to && !by(c.Settings) {
			return false
		}
	}
	return by(w.sc.settingsAt(w.since(from)))
}
