package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"pgregory.net/rapid"
)

// model is an omniscient line of one site: whoever arrived first enters as soon as a seat
// and a rate slot are free. Sessions last exactly as long as the product's do.
type model struct {
	limit [units]int
	hold  [units]time.Duration
	busy  [units][]anteroom.Time // when units come free, ascending
}

// enter returns when somebody who arrives at a moment enters. Call it in order of arrival.
func (m *model) enter(arrived, after anteroom.Time) anteroom.Time {
	at := max(arrived, after) // nobody passes the one before
	for k := range units {
		if n := len(m.busy[k]); n >= m.limit[k] {
			at = max(at, m.busy[k][n-m.limit[k]])
		}
	}
	for k := range units {
		m.busy[k] = append(m.busy[k], at.Add(m.hold[k]))
	}
	return at
}

// TestModelFIFO: with streams and without pacing, Single admits whom the model admits, at
// most 0.3 s later and never earlier than the limits allow.
func TestModelFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.IntRange(3, 40).Draw(t, "session")) * time.Second
		s := anteroom.Settings{TotalActiveUsers: rapid.IntRange(1, 12).Draw(t, "L"), NewUsersPerMinute: rapid.IntRange(2, 40).Draw(t, "R"),
			SessionDuration: d, DisableSessionRenewal: rapid.Bool().Draw(t, "fixed"), Unpaced: true}
		gaps := rapid.SliceOfN(rapid.IntRange(0, 60), 5, 40).Draw(t, "gaps") // in 100 ms; zero: together
		seat := d
		if !s.DisableSessionRenewal {
			seat += TouchDelay
		}
		m := model{limit: [units]int{s.TotalActiveUsers, s.NewUsersPerMinute}, hold: [units]time.Duration{seat, RateHold}}
		w := newTrial(t, s)
		w.hasty = true
		var want []anteroom.Time
		var last anteroom.Time
		for _, g := range gaps {
			w.pass(time.Duration(g) * 100 * time.Millisecond)
			v := w.arrive()
			w.openHeld(v)
			last = m.enter(v.arrived, last)
			want = append(want, last)
		}
		for end := last.Add(time.Duration(len(want)) * 300 * time.Millisecond); w.now < end && len(w.entered) < len(want); {
			w.pass(time.Second)
		}
		// Being late adds up: a seat that was taken late comes free late. What counts is how
		// late each is beyond the ones whose units it waits for.
		lateBefore := time.Duration(0)
		for i, v := range w.people {
			if v.entered == 0 {
				t.Fatalf("visitor %d never entered; the model says %v", i, want[i].Std())
			}
			late := v.entered.Sub(want[i])
			if late < 0 || late > lateBefore+300*time.Millisecond {
				t.Fatalf("visitor %d entered at %v, the model says %v, and those before were %v late at most", i, v.entered.Std(), want[i].Std(), lateBefore)
			}
			lateBefore = max(lateBefore, late)
		}
	})
}

// openHeld opens a stream as soon as the held first request is answered.
func (w *trial) openHeld(v *visitor) {
	for v.held != 0 {
		w.pass(100 * time.Millisecond)
	}
	if !v.inside {
		w.open(v)
	}
}

// TestWorkConserving: a free slot and somebody who is there meet within half a second with
// streams, and within the interval that visitors were told when they poll.
func TestWorkConserving(t *testing.T) {
	for name, streams := range map[string]bool{"streams": true, "polls": false} {
		for _, method := range []anteroom.QueueingMethod{anteroom.FIFO, anteroom.Random} {
			t.Run(name+"/"+string(method), func(t *testing.T) {
				s := anteroom.Settings{TotalActiveUsers: 0, NewUsersPerMinute: 600, QueueingMethod: method, SessionDuration: 5 * time.Minute}
				w := newTrial(t, s)
				w.polite = true
				for range 60 {
					v := w.arrive()
					w.pass(100 * time.Millisecond)
					if streams {
						w.openHeld(v)
					}
				}
				w.pass(90 * time.Second) // intervals have grown
				w.hasty = true
				s.TotalActiveUsers = 10
				w.configure(s)
				most := 500 * time.Millisecond
				if !streams {
					for _, v := range w.people {
						most = max(most, v.ticket.Next.Sub(w.now)+time.Second)
					}
				}
				for end := w.now.Add(most); w.now < end && len(w.entered) < 10; {
					w.pass(100 * time.Millisecond)
				}
				if len(w.entered) != 10 {
					t.Fatalf("after %v %d of 10 free slots are taken: %+v", most, len(w.entered), w.room.coordinator.Numbers())
				}
				// One leaves; the next enters.
				for _, v := range w.people {
					if v.inside {
						w.revoke(v)
						break
					}
				}
				if streams {
					w.pass(500 * time.Millisecond)
				} else {
					w.pass(most)
				}
				if len(w.entered) != 11 {
					t.Fatalf("a seat came free and %d have entered: %+v", len(w.entered), w.room.coordinator.Numbers())
				}
			})
		}
	}
}

// TestOrderAfterRestart: the process is killed while people wait, seats come free, and
// those behind are the first to reconnect. Order holds all the same.
func TestOrderAfterRestart(t *testing.T) {
	s := anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 600, SessionDuration: time.Minute}
	w := newTrial(t, s)
	for range 25 {
		w.arrive()
		w.pass(time.Second)
	}
	w.pass(31 * time.Second)
	w.hasty = true
	w.now = w.now.Add(20 * time.Second) // the process is down, and the sessions end
	w.restart()
	for i := len(w.people) - 1; i >= 5; i-- {
		w.pass(100 * time.Millisecond)
		w.open(w.people[i])
	}
	w.pass(30 * time.Second)
	for i := 5; i < 10; i++ {
		if !w.people[i].inside {
			t.Errorf("visitor %d is not inside", i)
		}
	}
	if n := len(w.entered); n != 10 {
		t.Errorf("%d have entered, 10 should", n)
	}
}
