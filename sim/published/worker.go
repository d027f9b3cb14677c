package published

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// worker answers visitors.
type worker struct {
	site *site

	view  tally  // all that it knows
	delta tally  // of which not yet reported
	own   counts // what it has taken of its shares, by minute and kind

	stale bool // the plan is
	plan  plan
}

// plan is what a worker's view comes to at a moment.
type plan struct {
	until       anteroom.Time // good before this moment
	minute      int64         // running, by the local clock
	slots       int
	left        int // of them for new visitors
	buckets     []int64
	waiting     []int // of each bucket
	reserved    []int
	total       int // who wait
	utilisation float64
	visitors    int // of this site in the deciding minute
	everywhere  int // of all sites
	perMinute   float64
}

// refresh makes the plan anew when the view has changed or a cell or minute has passed.
func (r *Room) refresh(now anteroom.Time, w *worker) *plan {
	p := &w.plan
	if !w.stale && now < p.until {
		return p
	}
	st, v, local := &r.settings, &w.view, now+w.site.skew
	if m := minuteOf(local); m != p.minute {
		p.minute = m
		w.own.drop(m)
	}
	// Sessions pass from the window at the ends of cells, shifted by their duration.
	passed := local - anteroom.Time(anteroom.BucketOf(local))
	p.until = min(now+r.cell-max(0, now.Add(-st.SessionDuration))%r.cell, now+minute-passed, now+minute/60)
	w.stale = false

	active := v.active.sum(r.firstCell(now), r.cellOf(now))
	admitted := v.admitted.sum(p.minute, p.minute)
	p.slots = slots(st.TotalActiveUsers, st.NewUsersPerMinute, active, admitted)
	p.utilisation = max(ratio(active, st.TotalActiveUsers), ratio(admitted, st.NewUsersPerMinute))
	p.buckets, p.waiting = v.waiting(p.buckets[:0], p.waiting[:0], r.firstSeen(now))
	p.total = 0
	for _, n := range p.waiting {
		p.total += n
	}
	if st.QueueingMethod == anteroom.Random {
		p.reserved, _ = reserve(p.reserved[:0], 0, p.waiting)
		p.left = p.slots
	} else {
		p.reserved, p.left = reserve(p.reserved[:0], p.slots, p.waiting)
	}
	history := minuteOf(anteroom.Time(r.c.Method.historyMinute(local)))
	p.visitors = v.visitors.get(key{history, int64(w.site.index)})
	p.everywhere = v.visitors.sum(history, history)
	p.perMinute = r.perMinute(now, w, passed)
	return p
}

// join adds somebody to the line when that is all that changes: nothing is left to reserve,
// and no bucket is younger.
func (p *plan) join(bucket int64) bool {
	last := len(p.buckets) - 1
	switch {
	case p.left > 0 || last >= 0 && p.buckets[last] > bucket:
		return false
	case last >= 0 && p.buckets[last] == bucket:
		p.waiting[last]++
	default:
		p.buckets, p.waiting, p.reserved = append(p.buckets, bucket), append(p.waiting, 1), append(p.reserved, 0)
	}
	p.total++
	return true
}

func ratio(n, of int) float64 {
	if of <= 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// perMinute is the mean of admissions in the running minute, of which a part has passed, and
// in the two before.
func (r *Room) perMinute(now anteroom.Time, w *worker, passed anteroom.Time) float64 {
	span := min(2*minute+passed, max(now-r.start, minute/6))
	n := w.view.admitted.sum(w.plan.minute-2, w.plan.minute)
	return float64(n) * float64(minute) / float64(span)
}

// claim takes one of a pool, of which free are known to be left: the budget of the minute is
// that and what was taken from it already.
func (r *Room) claim(w *worker, kind int64, free int) (ok bool, latency time.Duration) {
	p, k := &w.plan, key{w.plan.minute, kind}
	pool := free + w.view.admitted.get(k)
	whole := max(r.settings.TotalActiveUsers, p.everywhere)
	site, anywhere := Share(pool, p.visitors, whole), Share(pool, whole-p.everywhere, whole)
	if r.c.Method == Counters {
		return r.count(w, k, site, anywhere)
	}
	here, all := float64(len(w.site.workers)), float64(r.workers)
	if r.c.Method == Adapted {
		here = workers(len(w.site.workers), p.utilisation, r.c.Curve)
		all = workers(r.workers, p.utilisation, r.c.Curve)
	}
	if !admits(w.own.get(k), perWorker(site, here)+perWorker(anywhere, all)) {
		return false, 0
	}
	w.own.add(k, 1)
	return true, 0
}

// count asks the counter of the data centre and then the Anywhere counter.
func (r *Room) count(w *worker, k key, site, anywhere int) (ok bool, latency time.Duration) {
	s := w.site
	if admits(s.counter.get(k), site) {
		s.counter.add(k, 1)
		return true, siteCall
	}
	if anywhere == 0 || s.cut || r.down {
		return false, siteCall
	}
	latency = 2*siteCall + 2*time.Duration(s.delay)*time.Microsecond
	r.messages += 2
	r.anywhere.drop(k.a - keptMinutes)
	if !admits(r.anywhere.get(k), anywhere) {
		return false, latency
	}
	r.anywhere.add(k, 1)
	return true, latency
}

// turn decides the check-in of somebody who waits.
func (r *Room) turn(w *worker, bucket int64) (kind int64, ok bool, latency time.Duration) {
	p := &w.plan
	if r.settings.QueueingMethod == anteroom.Random {
		if p.left < 1 {
			return 0, false, 0
		}
		ok, latency = r.claim(w, fresh, p.left)
		return fresh, ok, latency
	}
	i, known := slices.BinarySearch(p.buckets, bucket)
	switch {
	case !known: // counted elsewhere and not heard of yet
		older := 0
		for _, n := range p.waiting[:i] {
			older += n
		}
		return due, older < p.slots, 0
	case p.reserved[i] == p.waiting[i]:
		return due, true, 0
	case p.reserved[i] > 0:
		ok, latency = r.claim(w, bucket, p.reserved[i])
		return bucket, ok, latency
	}
	return 0, false, 0
}
