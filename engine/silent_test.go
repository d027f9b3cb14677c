package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// Streams of a site that nobody hears, or that has lost its memory, stop nobody elsewhere. Those of
// a lost memory are over: what is behind them counts no longer than a place without a visitor.
func TestStreamsThatNobodyHears(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method anteroom.QueueingMethod
		lost   bool
	}{
		"fifo, silent":   {method: anteroom.FIFO},
		"fifo, lost":     {method: anteroom.FIFO, lost: true},
		"random, silent": {method: anteroom.Random},
		"random, lost":   {method: anteroom.Random, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			const there, here = 200, 20
			now, seq := midnight, uint64(0)
			co := NewCoordinator(now, anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: 60, SessionDuration: time.Minute,
				PlaceHold: time.Minute, QueueingMethod: c.method, Unpaced: true, QueueAll: true}, LedgerRecord{}, []byte("seed"))
			send := func(site SiteKey, r Report) {
				seq++
				r.From, r.Seq, r.Sent, r.Full, r.Ask = site, seq, now, true, true
				co.Receive(now, r)
				for rec, ok := co.Needs(); ok; rec, ok = co.Needs() {
					co.Stored(now, rec)
				}
				co.Take()
			}
			streams := func(first, n int) (r Report) {
				r.Epoch = 1
				for i := range n {
					r.Arrivals = append(r.Arrivals, Arrival{ID: anteroom.ID{1: byte(first + i)}, Key: now.Add(time.Duration(first+i) * time.Millisecond), Stream: true, Shown: true})
				}
				return r
			}
			a, waits := SiteKey{Name: "a", Incarnation: 1}, streams(there, here)
			send(SiteKey{Name: "b", Incarnation: 1}, streams(0, there))
			send(a, waits)
			if c.lost {
				send(SiteKey{Name: "b", Incarnation: 2}, Report{})
			}
			for end := now.Add(DeadAfter); now < end; now = now.Add(time.Second) {
				send(a, waits)
			}
			open := co.settings
			open.QueueAll = false
			co.Configure(now, open)
			for range 10 {
				now = now.Add(100 * time.Millisecond)
				co.Tick(now)
				send(a, waits)
			}
			if co.line.counts[offered] != here {
				t.Errorf("%d of %d have a turn", co.line.counts[offered], here)
			}
			if !c.lost {
				return
			}
			for end := now.Add(2 * time.Minute); now < end; now = now.Add(time.Second) {
				co.Tick(now)
			}
			if n := co.line.places.len(); n != here {
				t.Errorf("%d places are left, want %d", n, here)
			}
		})
	}
}
