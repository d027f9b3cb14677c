package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// result sums the run up.
func (w *world) result(seed uint64, took time.Duration) *Result {
	j := w.judge
	j.point()
	r := &Result{Scenario: w.sc, Algorithm: w.opt.Algorithm, Seed: seed, Ran: w.since(w.now), Took: took, Points: j.points}
	for _, s := range w.sc.Sites {
		r.Places = append(r.Places, s.Name)
	}
	n := &j.numbers
	n.Arrived, n.Refused, n.Left = j.arrived, j.refused, 0
	n.Premature = share(j.premature, j.arrived)
	n.Idle = ratio(j.idleArea, j.slotArea)
	n.IdleP50, n.IdleP95 = j.idleTook.quantile(0.5), j.idleTook.quantile(0.95)
	n.HeldMean, n.HeldP99 = j.held.mean(), j.held.quantile(0.99)
	n.Outside = share(j.wentOut, j.decisions)
	w.stories(r)
	j.fair(n)
	j.saysTrue()
	w.system.finish(n)
	here := 0
	for i := range w.people {
		if p := &w.people[i]; p.habits&clone == 0 && p.state != gone {
			here++
		}
	}
	j.look(checkBooks, here == j.outside+j.inside, func() string {
		return fmt.Sprintf("%d people are outside and %d inside by the book, and %d are here", j.outside, j.inside, here)
	})
	j.look(checkBooks, n.Arrived == n.Admitted+n.Waiting+n.Left+n.Refused, func() string {
		return "the numbers of those who arrived, were admitted, wait, left and were refused do not add up"
	})
	if w.origin != nil {
		r.Origin = &w.origin.numbers
	}
	r.Checks = j.checks[:]
	r.Numbers = *n
	r.Trace = w.trace.sum()
	return r
}

func share(part, whole int) float64 { return ratio(float64(part), float64(whole)) }

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// stories adds up what became of each visitor.
func (w *world) stories(r *Result) {
	n := &w.judge.numbers
	var waits, errors []float64
	var requests, passed, back, real int
	random := w.sc.QueueingMethod == anteroom.Random
	var hours time.Duration
	for i := range w.people {
		p := &w.people[i]
		last := w.now
		if p.left != 0 {
			last = p.left
		}
		hours += last.Sub(p.arrived)
		if p.habits&clone != 0 {
			continue
		}
		real++
		requests += int(p.requests)
		switch {
		case p.entered != 0:
			n.Admitted++
		case p.marks&refused != 0:
		case p.state == gone:
			n.Left++
		default:
			n.Waiting++
		}
		if p.marks&overtaken != 0 {
			passed++
		}
		if p.marks&sentBack != 0 {
			back++
		}
		if p.entered == 0 || p.marks&shown == 0 {
			continue
		}
		waits = append(waits, p.entered.Sub(p.arrived).Seconds())
		if e, told := w.toldWrong(p); told {
			errors = append(errors, e)
		}
	}
	n.Waited(waits)
	n.Told(errors)
	n.Lanes = w.laneNumbers()
	if random {
		n.LotteryError, n.LotteryTold = w.quartilesOff()
	}
	n.Overtaken, n.SentBack = share(passed, n.Queued), share(back, n.Admitted)
	n.Requests = share(requests, real)
	n.VisitorHours = hours.Hours()

	every := max(1, (real+MaxVisits-1)/MaxVisits)
	seen := 0
	for i := range w.people {
		p := &w.people[i]
		if p.habits&clone != 0 {
			continue
		}
		if seen++; seen%every != 0 {
			continue
		}
		v := Visit{Arrived: w.since(p.arrived), Shown: p.marks&shown != 0, Site: p.site,
			Told: p.told, Told25: p.told25, Told75: p.told75}
		if p.entered != 0 {
			v.Admitted = w.since(p.entered)
		} else if p.left != 0 {
			v.Left = w.since(p.left)
		}
		if p.tellAt != 0 {
			v.TellAt = w.since(p.tellAt)
		}
		r.Visits = append(r.Visits, v)
	}
}

// toldWrong is by how much of a wait of 30 s and more its announcement was off.
func (w *world) toldWrong(p *person) (by float64, told bool) {
	if p.tellAt == 0 || p.entered < p.tellAt {
		return 0, false
	}
	actual := p.entered.Sub(p.tellAt)
	if w.sc.QueueingMethod == anteroom.Random || actual < 30*time.Second {
		return 0, false
	}
	return p.told.Seconds()/actual.Seconds() - 1, true
}

// Waited sets what Numbers say of waits, in seconds, which it sorts.
func (n *Numbers) Waited(waits []float64) {
	slices.Sort(waits)
	n.WaitP50, n.WaitP80, n.WaitP95, n.WaitMax = Quantile(waits, 0.5), Quantile(waits, 0.8), Quantile(waits, 0.95), Quantile(waits, 1)
}

// Told sets what Numbers say of announced waits, from how far each was off: 0.1 is a tenth too long. It
// changes the slice.
func (n *Numbers) Told(errors []float64) {
	n.EtaBias = middle(errors)
	within := 0
	for i, e := range errors {
		errors[i] = math.Abs(e)
		if errors[i] <= 0.12 {
			within++
		}
	}
	n.EtaError, n.EtaWithin, n.EtaTold = middle(errors), share(within, len(errors)), len(errors)
}

// Quantile is the value below which a share of the sorted seconds lies; 0 of none.
func Quantile(sorted []float64, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return time.Duration(sorted[min(len(sorted)-1, int(share*float64(len(sorted))))] * float64(time.Second))
}

// middle is the median, 0 of none. It sorts the values.
func middle(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// fair holds the draws to uniform chances: the winners' rank by arrival, and the chances of
// people with habits, within five standard deviations.
func (j *judge) fair(n *Numbers) {
	if j.draws < 100 {
		return
	}
	n.LotteryRank, n.Draws = j.rankSum/float64(j.draws)-0.5, j.draws
	j.look(checkFair, math.Abs(n.LotteryRank) <= max(0.05, 5*0.289/math.Sqrt(float64(j.draws))), func() string {
		return fmt.Sprintf("the mean rank by arrival of %d winners is %.3f of those waiting, not a half", j.draws, 0.5+n.LotteryRank)
	})
	for g := range j.groups {
		k := &j.groups[g]
		if k.variance < 10 {
			continue
		}
		z := (k.won - k.expected) / math.Sqrt(k.variance)
		j.look(checkFair, math.Abs(z) <= 5, func() string {
			return fmt.Sprintf("of %d draws %.0f fell on people who %s, %.0f should have", j.draws, k.won, groupWords[g], k.expected)
		})
	}
}
