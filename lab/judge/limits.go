package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/internal/chart"
)

const second = int64(time.Second / time.Microsecond)

func (r *Report) judgeActive(sessions []*session) {
	f := Finding{Rule: "active sessions", Bound: "≤ " + chart.Thousands(r.c.Active) + " at every instant"}
	stay := r.c.SessionDuration.Microseconds()
	type change struct {
		at int64
		by int
		id string
	}
	var changes []change
	for _, s := range sessions {
		// The union of what the requests hold: from being seen to stay after being sent.
		until := int64(-1)
		for _, q := range s.requests {
			end := q.Sent + stay
			if end <= q.Seen {
				continue
			}
			if q.Seen > until {
				if until >= 0 {
					changes = append(changes, change{until, -1, s.id})
				}
				changes = append(changes, change{q.Seen, 1, s.id})
			}
			until = max(until, end)
		}
		if until >= 0 {
			changes = append(changes, change{until, -1, s.id})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(a.by, b.by) // who leaves makes room
	})
	n, peak := 0, point{}
	for _, ch := range changes {
		n += ch.by
		if n > peak.n {
			peak = point{ch.at, n}
		}
		if limit, _ := r.c.limits(ch.at); ch.by > 0 && n > limit {
			f.violation("at %s session %s is number %d", clock(ch.at), ch.id, n)
		}
		r.active = append(r.active, point{ch.at, n})
	}
	f.Seen = fmt.Sprintf("peak %s at %s", chart.Thousands(peak.n), clock(peak.at))
	r.add(f)
}

func (r *Report) judgeRate(sessions []*session) {
	f := Finding{Rule: "new sessions", Bound: "≤ " + chart.Thousands(r.c.PerMinute) + " in any 60 s"}
	sent := make([]int64, len(sessions))
	for i, s := range sessions {
		sent[i] = s.first.Sent
	}
	slices.Sort(sent)
	gone := 0 // of sent: began for certain before the window that ends now
	peak := point{}
	strict, oldest := 0, 0
	for i, s := range sessions {
		now := s.first.Seen
		// Half open: what began exactly 60 s ago is out.
		for gone < len(sent) && sent[gone] <= now-60*second {
			gone++
		}
		n := i + 1 - gone
		if n > peak.n {
			peak = point{now, n}
		}
		if _, limit := r.c.limits(now); n > limit {
			f.violation("session %s is number %d in the 60 s that end at %s", s.id, n, clock(now))
		}
		r.minute = append(r.minute, point{now, n})
		for sessions[oldest].first.Seen <= now-60*second {
			oldest++
		}
		strict = max(strict, i+1-oldest)
	}
	f.Seen = fmt.Sprintf("peak %s at %s", chart.Thousands(peak.n), clock(peak.at))
	r.add(f)
	r.Facts = append(r.Facts, Fact{"new in 60 s by the moments of arrival at the origin alone", chart.Thousands(strict)})
}
