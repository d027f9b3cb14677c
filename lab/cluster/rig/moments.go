package rig

import (
	"sort"
	"time"

	"github.com/anteroom/anteroom/engine"
)

// Moment is the cluster at a second, by site.
type Moment struct {
	Active, Waiting, Admitted []int // Admitted within the second
}

// aftermath is how long after its end a fault is blamed for a pause.
const aftermath = 5 * time.Second

// pauses are the longest times without a new session that the rate allowed, from the beginning of each fault until it has
// been over for aftermath; calm is the longest between these. While the rate is used up nobody may enter: a pause comes back a minute
// later, with no fault.
func (s *story) pauses() (after []time.Duration, calm time.Duration) {
	seats := s.seats()
	var over int64
	for _, m := range s.marks {
		if over > 0 && over < m.From {
			calm = max(calm, s.pause(seats, over, m.From))
		}
		over = m.Until + aftermath.Microseconds()
		after = append(after, s.pause(seats, m.From, over))
	}
	return after, calm
}

// pause is the longest time without a new session that the rate allowed.
func (s *story) pause(seats []seat, from, until int64) time.Duration {
	last, longest := from, int64(0)
	for i, t := range seats {
		if t.seen <= from || t.seen > until {
			continue
		}
		longest, last = max(longest, t.seen-max(last, s.allowed(seats[:i]))), max(last, t.seen)
	}
	end := min(until, s.end)
	before := sort.Search(len(seats), func(i int) bool { return seats[i].seen > end })
	longest = max(longest, end-max(last, s.allowed(seats[:before])))
	return time.Duration(longest) * time.Microsecond
}

// allowed is from when on the rate allows a session after these; 0: at any time.
func (s *story) allowed(before []seat) int64 {
	if i := len(before) - s.kase.PerMinute; i >= 0 {
		return before[i].seen + engine.RateHold.Microseconds()
	}
	return 0
}

// moments counts what happened at each site, second by second. A session is at the site
// where it was asked for last, a visitor waits at his home.
func (s *story) moments() []Moment {
	n := int((s.end-s.began)/1e6) + 1
	out := make([]Moment, n)
	for i := range out {
		out[i] = Moment{make([]int, len(s.sites)), make([]int, len(s.sites)), make([]int, len(s.sites))}
	}
	second := func(us int64) int { return max(0, min(n-1, int((us-s.began)/1e6))) }
	// during calls each for the seconds whose beginning lies in a time.
	during := func(from, until int64, each func(*Moment)) {
		for k := max(0, (from-s.began+1e6-1)/1e6); k < int64(n) && s.began+k*1e6 < until; k++ {
			each(&out[k])
		}
	}
	type session struct {
		site  int
		until int64
	}
	stay := s.kase.SessionDuration.Microseconds()
	live := map[string]session{}
	span := func(from, until int64, site int) {
		during(from, until, func(m *Moment) { m.Active[site]++ })
	}
	began := map[string]int64{}
	for _, h := range s.hits {
		if h.Session == "" {
			continue
		}
		site := s.nodeSite[h.Node]
		was, known := live[h.Session]
		switch {
		case !known:
			out[second(h.Seen)].Admitted[site]++
			began[h.Session] = h.Seen
		case was.site != site:
			span(began[h.Session], h.Seen, was.site)
			began[h.Session] = h.Seen
		}
		live[h.Session] = session{site, h.Seen + stay}
	}
	for id, l := range live {
		span(began[id], l.until, l.site)
	}
	for i := range s.kase.Visitors {
		v := &s.kase.Visitors[i]
		from, until, ok := waits(v, s.end)
		if !ok || v.Number >= len(s.homes) {
			continue
		}
		during(from, until, func(m *Moment) { m.Waiting[s.homes[v.Number]]++ })
	}
	return out
}
