package page

import (
	"time"

	"github.com/anteroom/anteroom"
)

// State is a made-up decision with a name.
type State struct {
	Name     string
	Decision anteroom.Decision
}

// States returns a made-up decision for everything that a page can say, so that every page
// can be looked at, in every language, without anybody waiting. They are always the same.
func States() []State {
	return statesAt(anteroom.TimeOf(time.Date(2026, 11, 20, 14, 27, 5, 0, time.UTC)))
}

// StateNames returns the names of [States].
func StateNames() []string {
	var names []string
	for _, s := range States() {
		names = append(names, s.Name)
	}
	return names
}

func statesAt(now anteroom.Time) []State {
	base := anteroom.Decision{
		Reason: anteroom.ReasonWaiting, Method: anteroom.FIFO, At: now,
		Ticket: anteroom.Ticket{
			ID:      anteroom.ID{0x3f, 0x9a, 0x1c, 0x07, 0xbe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
			Arrival: now.Add(-4 * time.Minute), LastCheckIn: now,
		},
		Ahead: 1234, AheadKnown: true, Waiting: 5210,
		WaitTime: 14 * time.Minute, WaitKnown: true,
		Refresh: 20 * time.Second, KeptUntil: now.Add(5*time.Minute + 20*time.Second),
	}
	of := func(name string, change func(d *anteroom.Decision)) State {
		d := base
		change(&d)
		return State{name, d}
	}
	return []State{
		of("line", func(*anteroom.Decision) {}),
		of("first", func(d *anteroom.Decision) { d.Reason = anteroom.ReasonFull }),
		of("near", func(d *anteroom.Decision) {
			d.Ahead, d.WaitTime, d.Refresh, d.Stream = 3, 20*time.Second, 2*time.Second, true
		}),
		of("far", func(d *anteroom.Decision) {
			d.Ahead, d.WaitTime, d.Refresh = 1_234_567, 3*time.Hour+20*time.Minute, 2*time.Minute
		}),
		of("unknown", func(d *anteroom.Decision) { d.WaitKnown, d.WaitTime = false, 0 }),
		of("least", func(d *anteroom.Decision) {
			d.WaitKnown, d.WaitTime, d.Wait25 = false, 0, 14*time.Minute
		}),
		of("most", func(d *anteroom.Decision) {
			d.WaitKnown, d.WaitTime, d.Wait25, d.Wait75 = false, 0, 2*time.Minute, 5*time.Minute
		}),
		of("draw", func(d *anteroom.Decision) {
			d.Method, d.Ahead, d.AheadKnown = anteroom.Random, 0, false
			d.Wait25, d.WaitTime, d.Wait75 = 5*time.Minute, 10*time.Minute, 15*time.Minute
		}),
		of("lottery", func(d *anteroom.Decision) {
			*d = anteroom.Decision{Reason: anteroom.ReasonWaiting, Method: anteroom.ByLottery, At: now, Ticket: d.Ticket,
				Refresh: 55 * time.Second, KeptUntil: now.Add(6 * time.Minute)}
			d.Ticket.Next, d.Ticket.Told = now.Add(55*time.Second), anteroom.ChanceOfOne/8
		}),
		of("held", func(d *anteroom.Decision) {
			d.Reason, d.QueueAll, d.WaitKnown, d.WaitTime = anteroom.ReasonQueueAll, true, false, 0
		}),
		of("long", func(d *anteroom.Decision) {
			d.Ahead, d.QueueIsFull, d.WaitKnown, d.WaitTime = 987_654, true, false, 0
		}),
		of("full", func(d *anteroom.Decision) {
			*d = anteroom.Decision{Reason: anteroom.ReasonLineFull, Method: anteroom.FIFO, At: now,
				QueueIsFull: true, Waiting: anteroom.MaxLine, Refresh: 2 * time.Minute}
		}),
		of("closed", func(d *anteroom.Decision) {
			*d = anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonReject, Method: anteroom.Reject, At: now}
		}),
		of("rejected", func(d *anteroom.Decision) {
			*d = anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonReject, Method: anteroom.Reject, At: now,
				Ticket: d.Ticket, SetCookie: true, Refresh: d.Refresh, KeptUntil: d.KeptUntil}
		}),
		of("prequeue", func(d *anteroom.Decision) {
			d.Reason, d.WaitKnown, d.WaitTime = anteroom.ReasonPrequeue, false, 0
			d.InForce = eventAt(now, anteroom.Prequeueing, false)
		}),
		of("shuffle", func(d *anteroom.Decision) {
			d.Reason, d.WaitKnown, d.WaitTime = anteroom.ReasonPrequeue, false, 0
			d.InForce = eventAt(now, anteroom.Prequeueing, true)
		}),
		of("event", func(d *anteroom.Decision) { d.InForce = eventAt(now, anteroom.Started, true) }),
		of("sold", func(d *anteroom.Decision) {
			*d = anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonReject, Method: anteroom.Reject, At: now,
				InForce: eventAt(now, anteroom.Started, false)}
		}),
		of("drained", func(d *anteroom.Decision) {
			*d = anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonDraining, Method: anteroom.FIFO, At: now}
		}),
		of("origin", func(d *anteroom.Decision) {
			*d = anteroom.Decision{Reason: anteroom.ReasonOrigin, Method: anteroom.FIFO, At: now, Ticket: d.Ticket}
			d.Ticket.AcceptedAt = now
		}),
		of("down", func(d *anteroom.Decision) { d.Reason, d.WaitKnown, d.WaitTime = anteroom.ReasonOrigin, false, 0 }),
		of("message", func(d *anteroom.Decision) {
			d.InForce = &anteroom.InForce{Message: "Restocking & open again at 15:00. Your place is kept."}
		}),
		of("few", func(d *anteroom.Decision) {
			d.InForce = &anteroom.InForce{Remaining: anteroom.Remaining{Told: true, Count: 50}}
		}),
		of("gone", func(d *anteroom.Decision) {
			*d = anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonReject, Method: anteroom.Reject, At: now,
				InForce: &anteroom.InForce{Remaining: anteroom.Remaining{Told: true}, Message: "More tickets in spring."}}
		}),
		of("lost", func(d *anteroom.Decision) { d.Reason = anteroom.ReasonPlaceLost }),
		of("over", func(d *anteroom.Decision) { d.Reason = anteroom.ReasonSessionOver }),
		of("used", func(d *anteroom.Decision) { d.Reason = anteroom.ReasonUsed }),
		of("bound", func(d *anteroom.Decision) { d.Reason = anteroom.ReasonBound }),
	}
}

// eventAt is an event that starts in 1:15:30 h or started as long ago, and lasts for two.
func eventAt(now anteroom.Time, phase anteroom.Phase, shuffle bool) *anteroom.InForce {
	away := 75*time.Minute + 30*time.Second
	if phase == anteroom.Started {
		away = -away
	}
	start := now.Std().Add(away)
	return &anteroom.InForce{
		Phase: phase, Occurrence: anteroom.Occurrence{Start: start, End: start.Add(2 * time.Hour)},
		Event: &anteroom.Event{Name: "sale", ShuffleAtStart: shuffle},
	}
}
