package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim/demo/crowd"
)

func (r *Report) judgePlaces() {
	f := Finding{Rule: "shown place", Bound: "never moves back"}
	shown := 0
	for _, v := range r.c.Visitors {
		for _, p := range v.Polls {
			if p.Ahead >= 0 {
				shown++
			}
		}
		for _, w := range v.Worse {
			f.violation("visitor %d was shown %d ahead and then, at %s, %d", v.Number, w.From, clock(w.At), w.To)
		}
	}
	f.Seen = chart.Thousands(shown) + " shown"
	r.add(f)

	f = Finding{Rule: "place kept", Bound: "no place of a visitor in touch is lost"}
	for _, v := range r.c.Visitors {
		for _, at := range v.PlaceLost {
			f.violation("visitor %d, waiting since %s, was told at %s that his place is lost", v.Number, clock(v.Joined), clock(at))
		}
	}
	f.Seen = fmt.Sprintf("%d lost", f.Violations)
	for _, o := range r.c.Outages {
		waiting := 0
		for _, v := range r.c.Visitors {
			if r.waitsAt(v, o.From) {
				waiting++
			}
		}
		f.Seen += fmt.Sprintf("; %s waited through the outage at %s", chart.Thousands(waiting), clock(o.From))
	}
	r.add(f)
}

// waitsAt reports whether the visitor was in line at the moment and still is afterwards.
func (r *Report) waitsAt(v crowd.Visitor, at int64) bool {
	return v.Placed != 0 && v.Placed < at && len(v.Polls) > 0 && (v.Admitted == 0 || v.Admitted > at) && (v.Ended == 0 || v.Ended > at)
}

func (r *Report) judgeThrown() {
	f := Finding{Rule: "sessions last", Bound: "no waiting page within the session duration"}
	checked := 0
	for _, v := range r.c.Visitors {
		if v.Admitted != 0 {
			checked++
		}
		for _, t := range v.Thrown {
			// The last request was counted at its sending or later, so the session lives at
			// least until then; the answer was decided before it came.
			if t.Answered < t.Last+r.c.SessionDuration.Microseconds() {
				f.violation("visitor %d got the waiting page at %s, %.3f s after his last request", v.Number, clock(t.Answered), float64(t.Answered-t.Last)/1e6)
			}
		}
	}
	f.Seen = chart.Thousands(checked) + " visitors inside"
	r.add(f)
}

func (r *Report) judgeTickets(sessions []*session) {
	f := Finding{Rule: "tickets", Bound: "one ticket, one session"}
	stay := (r.c.SessionDuration + endless).Microseconds()
	careless := map[string]bool{} // may rightly have several
	for _, v := range r.c.Visitors {
		if v.Kind == crowd.Bot || v.Anew > 0 || v.Lost > 0 {
			careless[fmt.Sprint(v.Number)] = true
		}
	}
	owner := map[string]string{} // of a visitor: his first session
	for _, s := range sessions {
		last := s.first.Seen
		for _, q := range s.requests {
			if q.Visitor != s.first.Visitor {
				f.violation("session %s of visitor %s was also used by visitor %s at %s", s.id, s.first.Visitor, q.Visitor, clock(q.Seen))
				break
			}
			if q.Sent-last > stay+r.c.downtime(last, q.Sent) {
				f.violation("session %s came back at %s, %.3f s after its last request", s.id, clock(q.Seen), float64(q.Sent-last)/1e6)
				break
			}
			last = max(last, q.Seen)
		}
		who := s.first.Visitor
		if who == "" || careless[who] {
			continue
		}
		if first, has := owner[who]; has {
			f.violation("visitor %s has the sessions %s and %s", who, first, s.id)
			continue
		}
		owner[who] = s.id
	}
	f.Seen = chart.Thousands(len(sessions)) + " sessions"
	r.add(f)
}

// downtime is how much of a time was outage. A room's time may stand still in it, so that
// its sessions last longer.
func (c *Case) downtime(from, until int64) (sum int64) {
	for _, o := range c.Outages {
		sum += max(0, min(until, o.Until)-max(from, o.From))
	}
	return sum
}

func (r *Report) judgeGate() {
	f := Finding{Rule: "gate", Bound: "no request reaches the origin without a session"}
	if !r.c.hasProofs() {
		f.Bound, f.Seen = "not judged: the gateway sends no proof", chart.Thousands(len(r.c.Requests))+" requests"
		r.add(f)
		return
	}
	for _, q := range r.c.Requests {
		if q.Session == "" {
			f.violation("%s %.80s by visitor %q at %s", q.Method, q.Path, q.Visitor, clock(q.Seen))
		}
	}
	f.Seen = chart.Thousands(len(r.c.Requests)) + " requests"
	r.add(f)
}

func (r *Report) judgeAnswers() {
	f := Finding{Rule: "answers", Bound: "no failed request while the gateway runs"}
	excused := 0
	for _, x := range r.c.Failures {
		if slices.ContainsFunc(r.c.Outages, func(o Outage) bool {
			return x.At >= o.From && x.At <= o.Until+afterwards.Microseconds() && (o.To == "" || o.To == x.To)
		}) {
			excused++
			continue
		}
		f.violation("visitor %d at %s: %.160s", x.Visitor, clock(x.At), x.What)
	}
	f.Seen = fmt.Sprintf("%d failed", f.Violations)
	if excused > 0 {
		f.Seen += fmt.Sprintf("; %s more while it was down", chart.Thousands(excused))
	}
	r.add(f)
}

func (r *Report) facts(sessions []*session) {
	fact := func(what, format string, args ...any) {
		r.Facts = append(r.Facts, Fact{what, fmt.Sprintf(format, args...)})
	}
	var waits []int64
	kinds := map[string]int{}
	ends := map[string]int{}
	for _, v := range r.c.Visitors {
		kinds[v.Kind]++
		ends[v.End]++
		if v.Admitted != 0 && len(v.Polls) > 0 {
			waits = append(waits, v.Admitted-v.Joined)
		}
	}
	if len(sessions) > 0 {
		first, last := sessions[0].first.Seen, sessions[len(sessions)-1].first.Seen
		most := float64(r.c.PerMinute) * (1 + float64(last-first)/60e6)
		fact("sessions begun", "%s, the rate alone would have allowed %s", chart.Thousands(len(sessions)), chart.Thousands(int(most)))
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		at := func(share float64) time.Duration {
			return (time.Duration(waits[int(share*float64(len(waits)-1))]) * time.Microsecond).Round(time.Second)
		}
		fact("wait of those who got in", "median %v, 95 %% within %v, longest %v", at(0.5), at(0.95), at(1))
	}
	for _, k := range []string{crowd.Patient, crowd.Leaving, crowd.Early, crowd.Parallel, crowd.Bot} {
		if kinds[k] > 0 {
			fact("visitors who are "+k, "%s", chart.Thousands(kinds[k]))
		}
	}
	fact("visitors at the end", "%s done, %s gave up, %s sent back after their session, %s still there",
		chart.Thousands(ends[crowd.Done]), chart.Thousands(ends[crowd.GaveUp]), chart.Thousands(ends[crowd.Removed]), chart.Thousands(ends[crowd.Still]))
	for i, o := range r.c.Outages {
		back := int64(-1)
		for _, q := range r.c.Requests {
			if q.Seen > o.From && q.Sent > o.From && (back < 0 || q.Seen < back) {
				back = q.Seen
			}
		}
		fresh := int64(-1)
		if j, ok := slices.BinarySearchFunc(sessions, o.Until, func(s *session, at int64) int { return cmp.Compare(s.first.Seen, at) }); ok || j < len(sessions) {
			fresh = sessions[j].first.Seen
		}
		fact(fmt.Sprintf("outage %d", i+1), "killed at %s, ready %.2f s later; first visitor inside served after %s, first new one let in after %s",
			clock(o.From), float64(o.Until-o.From)/1e6, after(back, o.From), after(fresh, o.From))
	}
}

func after(at, from int64) string {
	if at < 0 {
		return "never"
	}
	return fmt.Sprintf("%.2f s", float64(at-from)/1e6)
}
