package judge

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim/demo/crowd"
)

// What counts as being passed.
//
// A gateway that does not want to leave slots idle gives a turn to the first in line *who is
// in touch*: who holds a stream or will ask again within Horizon. He takes it with his next
// request, at the latest Claim after the turn was given. So somebody who gets in at a had
// his turn given in [a-Claim, a].
//
// A visitor B was passed by a later A (who sent his first request more than Margin after B
// had his first answer) if one of these holds:
//
//  1. B was in touch all the time from a-Claim to a, and the first thing that he asked after
//     a was answered "wait" (or his stream said nothing for Notice after a).
//  2. B had been passed while he was away, asked again at p, and A got in later than
//     p + Claim while B, in touch since then, was still told to wait. Whoever has missed his
//     turn is first when he comes back.
//
// Being late for one's own next look (by more than Late) is being away.
const (
	margin  = time.Second
	horizon = 4 * time.Second
	claim   = 6 * time.Second
	late    = time.Second
	notice  = 3 * time.Second
)

// admission is one visitor's getting in.
type admission struct {
	at     int64 // first seen by the origin
	joined int64
	number int
}

func (r *Report) judgeOrder(sessions []*session) {
	f := Finding{Rule: "order", Bound: "nobody in touch is passed by somebody who came > 1 s later"}
	line := newPassed(r.admissions(sessions))
	judged, polls := 0, 0
	for i := range r.c.Visitors {
		v := &r.c.Visitors[i]
		if v.Kind != crowd.Patient && v.Kind != crowd.Leaving || len(v.Polls) == 0 {
			continue
		}
		judged++
		polls += len(v.Polls)
		if by, at, why := passedBy(v, line); why != "" {
			r.Passed = append(r.Passed, Passed{v.Number, by.number, at, by.joined - v.Placed})
			f.violation("visitor %d, waiting since %s, was passed by visitor %d (came %s) at %s: %s", v.Number, clock(v.Joined), by.number, clock(by.joined), clock(at), why)
		}
	}
	f.Seen = fmt.Sprintf("%s visitors, %s looks at the line", chart.Thousands(judged), chart.Thousands(polls))
	r.add(f)
}

// admissions joins the origin's log with what the visitors know, by the visitor's number.
func (r *Report) admissions(sessions []*session) []admission {
	joined := make(map[string]int64, len(r.c.Visitors))
	for _, v := range r.c.Visitors {
		joined[strconv.Itoa(v.Number)] = v.Joined
	}
	seen := map[string]bool{}
	var out []admission
	for _, s := range sessions {
		j, known := joined[s.first.Visitor]
		if !known || seen[s.first.Visitor] {
			continue
		}
		seen[s.first.Visitor] = true
		number, _ := strconv.Atoi(s.first.Visitor)
		// Joined is zero for somebody whose first answer never arrived.
		if j == 0 {
			continue
		}
		out = append(out, admission{s.first.Seen, j, number})
	}
	slices.SortFunc(out, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	return out
}

// passedBy returns who passed v first, at which look he should have been in, and the rule.
func passedBy(v *crowd.Visitor, line *passed) (admission, int64, string) {
	later := v.Placed + margin.Microseconds()
	claim := claim.Microseconds()
	here := int64(-1) // in touch without a gap since; -1 when away
	back := int64(-1) // first look after he was passed while away, or any return since
	was := false      // somebody later has got in
	for k, p := range v.Polls {
		look := p.Sent // he asks, and is told to wait
		switch {
		case p.Stream:
			here = p.Sent
			look = p.Answered - notice.Microseconds() // by then it should have said go
		case k == 0 || v.Polls[k-1].Stream:
			here = -1
		default:
			before := v.Polls[k-1]
			due := before.Answered + before.Refresh
			from := max(before.Answered, due-horizon.Microseconds())
			switch {
			case before.Refresh == 0 || look > due+late.Microseconds():
				here, back = -1, -1
			case here < 0 || from > before.Answered:
				here = from
			}
		}
		if here >= 0 && look > here+claim {
			if a, ok := line.between(here+claim, look, later); ok {
				return a, look, "he was in touch"
			}
		}
		if back >= 0 && look > back+claim {
			if a, ok := line.between(back+claim, look, later); ok {
				return a, look, "he had come back at " + clock(back) + " and was not first"
			}
		}
		if !was {
			_, was = line.between(v.Placed, look, later)
		}
		if was && back < 0 {
			back = p.Answered
		}
	}
	return admission{}, 0, ""
}

// passed finds the latest comer among those admitted in a span of time: a sparse table of
// maxima over the admissions in their order.
type passed struct {
	in  []admission
	max [][]int32 // max[k][i]: index of the latest comer among in[i : i+1<<k]
}

func newPassed(in []admission) *passed {
	p := &passed{in: in}
	row := make([]int32, len(in))
	for i := range row {
		row[i] = int32(i)
	}
	for k := 0; len(row) > 0; k++ {
		p.max = append(p.max, row)
		half := 1 << k
		if len(row) <= half {
			break
		}
		next := make([]int32, len(row)-half)
		for i := range next {
			next[i] = p.later(row[i], row[i+half])
		}
		row = next
	}
	return p
}

func (p *passed) later(a, b int32) int32 {
	if p.in[b].joined > p.in[a].joined {
		return b
	}
	return a
}

// between returns the latest comer admitted in [from, until], if he came after later.
func (p *passed) between(from, until, later int64) (admission, bool) {
	byTime := func(a admission, at int64) int { return cmp.Compare(a.at, at) }
	i, _ := slices.BinarySearchFunc(p.in, from, byTime)
	j, _ := slices.BinarySearchFunc(p.in, until+1, byTime)
	if i >= j {
		return admission{}, false
	}
	k := bits.Len(uint(j-i)) - 1
	a := p.in[p.later(p.max[k][i], p.max[k][j-1<<k])]
	return a, a.joined > later
}
