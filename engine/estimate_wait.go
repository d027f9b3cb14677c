package engine

import (
	"time"

	"github.com/anteroom/anteroom"
)

// admitted is the decision that lets a session in.
func admitted(now anteroom.Time, t *anteroom.Ticket, accepted anteroom.Time, s *anteroom.Settings, reason anteroom.Reason) anteroom.Decision {
	fresh := t.AcceptedAt != accepted
	d := anteroom.Decision{Verdict: anteroom.Admit, Reason: reason, At: now, Ticket: *t}
	// The cookie is renewed now and then, not at every request: the server knows the session's
	// end, the cookie only has to outlive it.
	if fresh || !s.DisableSessionRenewal && (now.Sub(t.LastCheckIn) > renewAfter(s.SessionDuration) || t.LastCheckIn < accepted) {
		d.SetCookie = true
		d.Ticket.AcceptedAt, d.Ticket.LastCheckIn, d.Ticket.Next, d.Ticket.Refresh, d.Ticket.Told = accepted, now, 0, 0, 0
	}
	return d
}

// renewAfter is how old the moment in a cookie of a session may be. A door without its site believes
// a cookie for a session duration from that moment: what is left is to outlast a change of the
// site's process where the duration allows it.
func renewAfter(d time.Duration) time.Duration {
	const left = 20 * time.Second
	return min(d/2, max(d-left, time.Second))
}

// waitFor is the decision that shows the waiting page: place, forecast, and when to come
// back. rank is the number of people ahead, negative when that is not known, and waiting the
// number in line.
func waitFor(now anteroom.Time, t anteroom.Ticket, reason anteroom.Reason, s anteroom.Settings, f *Figures, rank, waiting int) anteroom.Decision {
	d := anteroom.Decision{Verdict: anteroom.Wait, Reason: reason, At: now,
		Method: s.QueueingMethod, QueueAll: s.QueueAll, Waiting: waiting}
	random := s.QueueingMethod == anteroom.Random
	if t.ID.IsZero() {
		d.Refresh = drawInterval
		return d
	}
	unknown := rank < 0
	rank = max(rank, 0)
	if !random && !unknown {
		// A shown place never gets worse, even when somebody returns to a place ahead.
		if t.Told != 0 && rank > int(t.Told-1) {
			rank = int(t.Told - 1)
		}
		d.Ahead, d.AheadKnown = rank, true
		t.Told = uint32(rank) + 1
	}
	if !unknown && !held(&s) && s.NewUsersPerMinute > 0 {
		if !random {
			d.WaitTime, d.WaitKnown = f.Told(rank, now)
		} else if f.Known {
			d.WaitTime, d.Wait25, d.Wait75 = f.Draw[1], f.Draw[0], f.Draw[2]
			d.WaitKnown = f.Draw[1] > 0
		}
		if d.WaitTime > anteroom.QueueIsFullAfter {
			d.QueueIsFull, d.WaitKnown = true, false
		}
		if !d.WaitKnown && !d.QueueIsFull && !random {
			if d.Wait25, d.Wait75 = f.Bounds(rank, now, &s); d.Wait25 > anteroom.QueueIsFullAfter {
				d.QueueIsFull = true
			}
		}
	}
	d.Refresh = interval(s, d, rank, f.Released)
	if rank > holdLine && t.LastCheckIn != 0 && now < t.Arrival.Add(settling) && !random && !shut(&s) {
		proven := min(rank, f.Rank(t.Arrival.Add(-settling))) // the others ahead may never come back
		d.Refresh = min(d.Refresh, max(FirstInterval, interval(s, anteroom.Decision{}, proven, 0)))
	}
	if unknown {
		d.Refresh = max(d.Refresh, 2*MinInterval) // it will be known soon
	}
	if s.Refresh != 0 {
		d.Refresh = s.Refresh
	}
	// All requests that carry the same cookie are told the same.
	spread := time.Duration(float64(d.Refresh) * jitter(t.ID, t.LastCheckIn))
	d.Stream = true
	// The cookie is as old as what is known of the line, which may have been shuffled since.
	if t.AcceptedAt = 0; f.At == 0 {
		t.LastCheckIn = now
	} else {
		t.LastCheckIn = max(t.LastCheckIn, min(now, f.At))
	}
	d.Ticket, d.SetCookie = t, true
	comeBack(&d, max(time.Second, spread.Round(time.Second)), s.PlaceHold)
	return d
}

// trusted is how many releases beyond a visitor's rank make a forecast worth relying on.
const trusted = 20

// comeBack says when the visitor's next check-in counts.
func comeBack(d *anteroom.Decision, refresh, hold time.Duration) {
	d.Refresh, d.Ticket.Refresh, d.Ticket.Next = refresh, refresh, d.At.Add(refresh)
	d.KeptUntil = d.Ticket.Next.Add(hold)
}

// supposedRate is the new users per minute of a room that admits nobody: the operator has yet to say.
const supposedRate = 10_000

// interval is how long a visitor may stay away without missing the turn: half of the
// soonest moment at which the turn could come.
// released is how many turns the coordinator has given that makes the forecast.
func interval(s anteroom.Settings, d anteroom.Decision, rank int, released uint64) time.Duration {
	if s.QueueingMethod == anteroom.Random || s.Prequeueing && !s.QueueAll {
		return drawInterval // everybody is to be there when it begins
	}
	rate := s.NewUsersPerMinute
	if rate == 0 {
		rate = supposedRate
	}
	soonest := min(MaxInterval*2, time.Duration(float64(rank)*30/float64(rate)*float64(time.Second)))
	if d.WaitKnown {
		told := min(d.WaitTime*88/100/2, MaxInterval*2)
		if released < uint64(rank)+trusted || rank <= holdLine {
			// A forecast is trusted when it has been seen to hold. Before that, and at the very front,
			// visitors stay so near that a turn finds them.
			told = min(told, soonest+2*claimHorizon)
		}
		// Slots that were taken together come free together: then it may be sooner than the rate alone says.
		soonest = max(min(soonest, d.WaitTime/2), told)
	}
	low := MinInterval
	if s.QueueAll || s.NewUsersPerMinute == 0 || s.QueueingMethod == anteroom.Reject {
		low = drawInterval // nothing can happen before the operator acts
	}
	return min(max(soonest/2, low), MaxInterval)
}
