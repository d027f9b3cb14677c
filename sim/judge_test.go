package sim

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// TestAFirstReturnIsKnownASecondLater: before that nobody is to blame who gives a turn to somebody else, whichever tab came back.
func TestAFirstReturnIsKnownASecondLater(t *testing.T) {
	for _, tab := range []bool{false, true} {
		w, err := newWorld(Scenario{Length: time.Minute, Sites: []Site{{Name: "a", Share: 1}}, Settings: limits(5, 5, time.Minute)}, 1, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ticket := anteroom.Ticket{ID: anteroom.ID{1}, Arrival: epoch}
		w.people = []person{{ticket: ticket, arrived: epoch, answered: epoch, requests: 2, pending: 1, state: waiting, marks: shown | inLine}}
		w.judge.outside, w.judge.waitingNow = 1, 1
		w.requests = append(w.requests, request{visit: anteroom.Visit{Ticket: ticket}, primary: !tab})
		w.now = epoch.Add(5 * time.Second)
		w.answered(1, anteroom.Decision{Verdict: anteroom.Wait, Ticket: ticket, Refresh: 2 * time.Second}, false)
		for _, c := range []struct {
			after   time.Duration
			present bool
		}{{time.Second, false}, {1100 * time.Millisecond, true}, {2 * time.Second, false}} {
			w.now = epoch.Add(5*time.Second + c.after)
			if got := w.present(&w.people[0]); got != c.present {
				t.Errorf("tab %v: %v after the first return the visitor is here: %v", tab, c.after, got)
			}
		}
	}
}
