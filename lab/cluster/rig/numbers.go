package rig

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim"
	"github.com/anteroom/anteroom/sim/demo/crowd"
)

// story is what a run left: the evidence from which everything is computed.
type story struct {
	kase     judge.Case
	hits     []hit
	homes    []int // site of each visitor's home, by number
	sites    []string
	nodeSite []int
	marks    []Mark
	end      int64 // µs
	began    int64
	packets  float64 // between sites, per second and site
	bytes    float64
}

// seat is a session as the origin knows it, as short and as long as it can have been.
type seat struct {
	visitor     int
	asked, seen int64 // first request
	last        int64 // sending of the last
	fresh       bool  // first session of its visitor
}

// seats are in the order in which they began.
func (s *story) seats() []seat {
	byID := map[string]int{}
	had := map[string]bool{}
	var out []seat
	for _, h := range s.hits {
		if h.Session == "" {
			continue
		}
		sent := cmp.Or(h.Sent, h.Seen)
		i, known := byID[h.Session]
		if !known {
			i = len(out)
			byID[h.Session] = i
			n, _ := strconv.Atoi(h.Visitor)
			out = append(out, seat{visitor: n, asked: sent, seen: h.Seen, last: sent, fresh: !had[h.Visitor]})
			had[h.Visitor] = true
		}
		out[i].last = max(out[i].last, sent)
		out[i].asked = min(out[i].asked, sent)
	}
	return out
}

// over is how long after its last request a session may hold its seat: the duration, the
// delay of a report, and the wheel.
const over = 600 * time.Millisecond

// event is a change of what the clocks below count.
type event struct {
	at                    int64
	active, rate, waiting int
	taken                 bool // a slot was used
}

// line is who waits: from when to when.
func waits(v *crowd.Visitor, end int64) (from, until int64, ok bool) {
	if len(v.Polls) == 0 || v.Kind == crowd.Bot {
		return 0, 0, false
	}
	until = end
	switch {
	case v.Admitted != 0:
		until = v.Asked
	case v.Ended != 0:
		until = v.Ended
	}
	return v.Placed, max(until, v.Placed), true
}

// numbers computes what admission.md part 3 measures; what it cannot see is zero.
func (s *story) numbers(report judge.Report) sim.Numbers {
	var n sim.Numbers
	stay := s.kase.SessionDuration.Microseconds()
	seats := s.seats()
	var events []event
	inside := map[int]int64{} // when the visitor's first session began
	for _, t := range seats {
		if t.fresh {
			inside[t.visitor] = t.seen
		}
		events = append(events, event{at: t.last + stay + over.Microseconds()/2, active: -1},
			event{at: t.seen + 60e6 + 10e3, rate: -1})
	}
	var requests float64
	var waited []float64
	var errs []float64
	queued, people := 0, 0
	queuing := map[int]bool{}
	for i := range s.kase.Visitors {
		v := &s.kase.Visitors[i]
		n.Arrived++
		switch {
		case v.Admitted != 0:
			n.Admitted++
		case v.End == crowd.GaveUp:
			n.Left++
		default:
			n.Waiting++
		}
		if v.Kind == crowd.Patient || v.Kind == crowd.Leaving {
			people++
			requests += float64(len(v.Polls))
			if v.Admitted != 0 {
				requests++
			}
		}
		if from, until, ok := waits(v, s.end); ok {
			queued++
			events = append(events, event{at: from, waiting: 1})
			if inside[v.Number] == 0 {
				events = append(events, event{at: until, waiting: -1})
			} else {
				queuing[v.Number] = true
			}
			if v.Admitted != 0 {
				waited = append(waited, float64(v.Admitted-v.Joined)/1e6)
			}
			if actual := v.Admitted - v.ToldAt; v.ToldAt != 0 && v.Admitted != 0 && actual >= 30e6 {
				errs = append(errs, float64(v.Told)*1e6/float64(actual)-1)
			}
		}
		if slices.ContainsFunc(v.Thrown, func(t crowd.Thrown) bool { return t.Answered < t.Last+stay }) {
			n.SentBack++
		}
	}
	for _, t := range seats {
		e := event{at: t.seen, active: 1, rate: 1, taken: true}
		if t.fresh && queuing[t.visitor] {
			e.waiting = -1 // at the same moment, so that no slot seems to be wanted twice
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	n.Queued = queued
	n.Requests = ratio(requests, float64(people))
	n.SentBack = ratio(n.SentBack, float64(n.Admitted))
	n.Overtaken = ratio(float64(len(report.Passed)), float64(queued))
	for _, p := range report.Passed {
		n.OvertakenMost = max(n.OvertakenMost, time.Duration(p.Lead)*time.Microsecond)
	}
	n.Waited(waited)
	n.Told(errs)
	n.PeakActive = s.peak(seats)
	s.idle(events, &n)
	n.Premature = s.premature(seats)
	n.LotteryRank = s.rank()
	n.HeldMean, n.HeldP99 = s.held()
	n.Messages, n.Bytes = s.packets, s.bytes
	return n
}

// peak is the most sessions at once, each from the origin's seeing it until its duration
// after the sending of its last request.
func (s *story) peak(seats []seat) int {
	var events []event
	for _, t := range seats {
		events = append(events, event{at: t.seen, active: 1}, event{at: t.last + s.kase.SessionDuration.Microseconds(), active: -1})
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.active, b.active)) })
	now, most := 0, 0
	for _, e := range events {
		now += e.active
		most = max(most, now)
	}
	return most
}

// idle walks the events and measures slots that nobody used while somebody waited.
func (s *story) idle(events []event, n *sim.Numbers) {
	active, rate, waiting := 0, 0, 0
	var since []int64
	var took []float64
	idle, slots := 0.0, 0.0
	last := int64(0)
	for _, e := range events {
		if e.at > s.end {
			break
		}
		maxActive, maxRate := s.kase.Active, s.kase.PerMinute
		for _, ch := range s.kase.Changes {
			if ch.At <= e.at {
				maxActive, maxRate = ch.Active, ch.PerMinute
			}
		}
		if dt := float64(e.at-last) / 1e6; waiting > 0 && dt > 0 {
			idle += float64(len(since)) * dt
			if maxActive-active < maxRate-rate {
				slots += float64(maxActive) * dt
			} else {
				slots += float64(maxRate) * dt
			}
		}
		last = e.at
		active += e.active
		rate += e.rate
		waiting += e.waiting
		n.PeakPerMinute, n.PeakWaiting = max(n.PeakPerMinute, rate), max(n.PeakWaiting, waiting)
		if e.taken && len(since) > 0 {
			took = append(took, float64(e.at-since[0])/1e6)
			since = since[1:]
		}
		want := max(0, min(maxActive-active, maxRate-rate, waiting))
		for len(since) < want {
			since = append(since, e.at)
		}
		since = since[:want]
	}
	slices.Sort(took)
	n.Idle = ratio(idle, slots)
	n.IdleP50, n.IdleP95 = sim.Quantile(took, 0.5), sim.Quantile(took, 0.95)
}

// premature is the share of those who were shown the page although a slot was free for
// them for certain, all the time from shortly before they asked until they were answered.
func (s *story) premature(seats []seat) float64 {
	stay := s.kase.SessionDuration.Microseconds()
	var events []event
	for _, t := range seats {
		events = append(events, event{at: t.asked, active: 1, rate: 1}, event{at: t.last + stay + over.Microseconds(), active: -1}, event{at: t.seen + 60e6 + 50e3, rate: -1})
	}
	for i := range s.kase.Visitors {
		if v := &s.kase.Visitors[i]; len(v.Polls) > 0 {
			until := s.end
			if v.Admitted != 0 {
				until = v.Admitted
			} else if v.Ended != 0 {
				until = v.Ended
			}
			events = append(events, event{at: v.Joined, waiting: 1}, event{at: until, waiting: -1})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	free := make([]int, len(events)) // after each event
	active, rate, waiting := 0, 0, 0
	for i, e := range events {
		active += e.active
		rate += e.rate
		waiting += e.waiting
		free[i] = min(s.kase.Active-active, s.kase.PerMinute-rate) - waiting
	}
	early := 0
	for i := range s.kase.Visitors {
		v := &s.kase.Visitors[i]
		if len(v.Polls) == 0 || v.Anew > 0 {
			continue
		}
		first, _ := slices.BinarySearchFunc(events, v.Joined-300_000, func(e event, at int64) int { return cmp.Compare(e.at, at) })
		least := math.MaxInt
		for k := max(0, first-1); k < len(events) && events[k].at <= v.Placed; k++ {
			least = min(least, free[k])
		}
		if least != math.MaxInt && least >= 0 { // he is counted among those who wait
			early++
		}
	}
	return ratio(float64(early), float64(len(s.kase.Visitors)))
}

// rank is the mean rank by arrival of those let in among those waiting, less a half.
func (s *story) rank() float64 {
	type one struct{ joined, from, until int64 }
	var line []one
	for i := range s.kase.Visitors {
		v := &s.kase.Visitors[i]
		if from, until, ok := waits(v, s.end); ok {
			line = append(line, one{v.Joined, from, until})
		}
	}
	sum, draws := 0.0, 0
	for i := range s.kase.Visitors {
		v := &s.kase.Visitors[i]
		if v.Admitted == 0 || len(v.Polls) == 0 {
			continue
		}
		before, all := 0, 0
		for _, o := range line {
			if o.from <= v.Asked && o.until >= v.Asked {
				all++
				if o.joined < v.Joined {
					before++
				}
			}
		}
		if all > 1 {
			sum += float64(before) / float64(all-1)
			draws++
		}
	}
	if draws == 0 {
		return 0
	}
	return sum/float64(draws) - 0.5
}

// held is how long a request inside took to the origin: mean and p99.
func (s *story) held() (mean, p99 time.Duration) {
	began := map[string]bool{}
	var took []float64
	total := 0.0
	for _, h := range s.hits {
		if h.Session == "" || h.Sent == 0 {
			continue
		}
		if !began[h.Session] {
			began[h.Session] = true
			continue
		}
		d := float64(h.Seen-h.Sent) / 1e6
		took = append(took, d)
		total += d
	}
	slices.Sort(took)
	return time.Duration(ratio(total, float64(len(took))) * float64(time.Second)), sim.Quantile(took, 0.99)
}

// silence is the longest time in which the origin saw nobody of those inside, and in which
// nobody was let in although somebody waited and a slot was free for long.
func (s *story) silence() time.Duration {
	longest, last := int64(0), s.began
	for _, h := range s.hits {
		longest = max(longest, h.Seen-last)
		last = h.Seen
	}
	return time.Duration(longest) * time.Microsecond
}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}
