package published

import (
	"cmp"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// Visit decides about one request at a worker. latency is what the decision cost in calls to
// counters.
func (r *Room) Visit(now anteroom.Time, site, worker int, v anteroom.Visit) (d anteroom.Decision, latency time.Duration) {
	r.begin(now)
	w, t := r.sites[site].workers[worker], v.Ticket
	if r.settings.Suspended {
		return anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended, At: now}, 0
	}
	if v.Fresh {
		return r.newcomer(now, w, v, t.ID, anteroom.ReasonNone)
	}
	if !t.Accepted() {
		if now > t.LastCheckIn.Add(r.settings.PlaceHold) {
			return r.newcomer(now, w, v, v.NewID, anteroom.ReasonPlaceLost)
		}
		return r.checkIn(now, w, v, t)
	}
	if now >= r.ends(t) {
		return r.newcomer(now, w, v, v.NewID, anteroom.ReasonSessionOver)
	}
	return r.touch(now, w, t), 0
}

// ends is the moment at which a session ends unless it is renewed.
func (r *Room) ends(t anteroom.Ticket) anteroom.Time {
	if r.settings.DisableSessionRenewal {
		return t.AcceptedAt.Add(r.settings.SessionDuration)
	}
	return t.LastCheckIn.Add(r.settings.SessionDuration)
}

// touch is a request within a session. The user moves from the cell that the cookie
// names to the present one.
func (r *Room) touch(now anteroom.Time, w *worker, t anteroom.Ticket) anteroom.Decision {
	d := anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonSession, At: now, Ticket: t}
	if r.settings.DisableSessionRenewal {
		return d
	}
	if cell, last := r.cellOf(now), r.cellOf(t.LastCheckIn); cell > last {
		r.active(w, key{a: cell}, 1)
		r.active(w, key{a: last}, -1)
	}
	r.seen(now, w, t.LastCheckIn)
	d.Ticket.LastCheckIn, d.SetCookie = now, true
	return d
}

func (r *Room) active(w *worker, k key, n int) {
	w.view.active.add(k, n)
	w.delta.active.add(k, n)
}

func (r *Room) line(w *worker, k key, n int) {
	w.view.line.add(k, n)
	w.delta.line.add(k, n)
}

// seen counts a visitor once a minute. last is the counted request before; zero: none.
func (r *Room) seen(now anteroom.Time, w *worker, last anteroom.Time) {
	m := r.localMinute(now, w.site)
	if last != 0 && r.localMinute(last, w.site) == m {
		return
	}
	k := key{m, int64(w.site.index)}
	w.view.visitors.add(k, 1)
	w.delta.visitors.add(k, 1)
}

// newcomer is a request without a ticket that is worth something.
func (r *Room) newcomer(now anteroom.Time, w *worker, v anteroom.Visit, id anteroom.ID, anew anteroom.Reason) (d anteroom.Decision, latency time.Duration) {
	if v.NoClaim {
		return r.refuse(now, w, anteroom.ReasonNotJoining), 0
	}
	t := anteroom.Ticket{ID: id, Arrival: now + w.site.skew, Bind: v.Bind}
	method := r.settings.QueueingMethod
	if method == anteroom.Reject && !r.settings.QueueAll {
		return r.refuse(now, w, anteroom.ReasonReject), 0
	}
	reason := anteroom.ReasonQueueAll
	if !r.settings.QueueAll {
		if method == anteroom.Passthrough {
			r.seen(now, w, 0)
			return r.admit(now, w, t, fresh, anteroom.ReasonPassthrough), 0
		}
		p := r.refresh(now, w)
		ok := false
		if p.left > 0 {
			ok, latency = r.claim(w, fresh, p.left)
		}
		if ok {
			r.seen(now, w, 0)
			return r.admit(now, w, t, fresh, anteroom.ReasonFreeSlot), latency
		}
		reason = anteroom.ReasonFull
		if p.total > 0 {
			reason = anteroom.ReasonLine
		}
		if anew != anteroom.ReasonNone {
			reason = anew
		}
	}
	if v.NoJoin {
		return r.refuse(now, w, anteroom.ReasonNotJoining), latency
	}
	r.seen(now, w, 0)
	r.line(w, key{minuteOf(t.Arrival), minuteOf(now)}, 1)
	if !w.stale && !w.plan.join(minuteOf(t.Arrival)) {
		w.stale = true
	}
	return r.page(now, w, t, reason), latency
}

// checkIn is a request of somebody who waits.
func (r *Room) checkIn(now anteroom.Time, w *worker, v anteroom.Visit, t anteroom.Ticket) (d anteroom.Decision, latency time.Duration) {
	if now < t.Next || v.NoClaim {
		d = r.page(now, w, t, anteroom.ReasonEarly)
		d.Ticket, d.SetCookie = t, false
		d.Refresh = max(time.Second, t.Next.Sub(now))
		d.KeptUntil = t.LastCheckIn.Add(r.settings.PlaceHold)
		return d, 0
	}
	method := r.settings.QueueingMethod
	if method == anteroom.Reject && !r.settings.QueueAll {
		return r.refuse(now, w, anteroom.ReasonReject), 0
	}
	r.seen(now, w, t.LastCheckIn)
	bucket, present := minuteOf(t.Arrival), minuteOf(now)
	if last := minuteOf(t.LastCheckIn); last != present {
		r.line(w, key{bucket, last}, -1)
		r.line(w, key{bucket, present}, 1)
	}
	reason := anteroom.ReasonQueueAll
	if !r.settings.QueueAll {
		kind, ok, why := int64(fresh), true, anteroom.ReasonPassthrough
		if method != anteroom.Passthrough {
			r.refresh(now, w)
			kind, ok, latency = r.turn(w, bucket)
			why = anteroom.ReasonTurn
		}
		if ok {
			r.line(w, key{bucket, present}, -1)
			return r.admit(now, w, t, kind, why), latency
		}
		reason = anteroom.ReasonWaiting
	}
	return r.page(now, w, t, reason), latency
}

// admit begins a session.
func (r *Room) admit(now anteroom.Time, w *worker, t anteroom.Ticket, kind int64, reason anteroom.Reason) anteroom.Decision {
	k := key{r.localMinute(now, w.site), kind}
	w.view.admitted.add(k, 1)
	w.delta.admitted.add(k, 1)
	r.active(w, key{a: r.cellOf(now)}, 1)
	w.stale = true
	t.AcceptedAt, t.LastCheckIn, t.Next, t.Refresh = now, now, 0, 0
	return anteroom.Decision{Verdict: anteroom.Admit, Reason: reason, At: now, Ticket: t, SetCookie: true}
}

func (r *Room) refuse(now anteroom.Time, w *worker, reason anteroom.Reason) anteroom.Decision {
	return anteroom.Decision{Verdict: anteroom.Refuse, Reason: reason, At: now,
		Method: r.settings.QueueingMethod, QueueAll: r.settings.QueueAll, Waiting: r.refresh(now, w).total}
}

// page shows the waiting page. Everybody of a bucket is told the same.
func (r *Room) page(now anteroom.Time, w *worker, t anteroom.Ticket, reason anteroom.Reason) anteroom.Decision {
	p, st := r.refresh(now, w), &r.settings
	d := anteroom.Decision{Verdict: anteroom.Wait, Reason: reason, At: now,
		Method: st.QueueingMethod, QueueAll: st.QueueAll, Waiting: p.total}
	told := p.perMinute > 0 && !st.QueueAll
	if st.QueueingMethod == anteroom.Random {
		if told {
			d.Wait25, d.WaitTime, d.Wait75 = minutes(waitRandom(p.total, p.perMinute, 0.25)),
				minutes(waitRandom(p.total, p.perMinute, 0.5)), minutes(waitRandom(p.total, p.perMinute, 0.75))
			d.WaitKnown = true
		}
	} else if len(p.buckets) > 0 {
		i, known := slices.BinarySearch(p.buckets, minuteOf(t.Arrival))
		if !known {
			i--
		}
		d.Ahead, d.AheadKnown = ahead(p.waiting, p.reserved, i), true
		if told {
			d.WaitTime, d.WaitKnown = minutes(waitFIFO(d.Ahead, p.perMinute)), true
		}
	}
	if d.WaitTime > anteroom.QueueIsFullAfter {
		d.QueueIsFull, d.WaitKnown = true, false
	}
	d.Refresh = st.Refresh
	d.Refresh = cmp.Or(d.Refresh, refresh)
	d.Refresh = time.Duration(float64(d.Refresh) * (0.9 + 0.2*r.rng.Float64()))
	t.LastCheckIn, t.Next, t.Refresh = now, now.Add(d.Refresh), d.Refresh
	d.Ticket, d.SetCookie = t, true
	d.KeptUntil = now.Add(st.PlaceHold)
	return d
}

// minutes is a number of minutes as a duration, at most a year.
func minutes(n float64) time.Duration {
	return time.Duration(min(n, 365*24*60) * float64(time.Minute))
}
