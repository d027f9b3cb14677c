package engine

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// What a lost memory held is written off after its successor had a session duration to adopt from it,
// however many processes the successor had meanwhile. One that does not say that it adopts for a
// shorter time has all of it.
func TestHandOverDoesNotRestartAWriteOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before time.Duration // how long the first process of the successor adopts
		older  bool          // the second is of an older release
		after  time.Duration // how long the second has to
	}{
		"half way":         {before: time.Minute, after: time.Minute},
		"near the end":     {before: 119 * time.Second, after: 2 * doorDead},
		"an older release": {before: time.Minute, older: true, after: 2 * time.Minute},
		"at once":          {after: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			now := midnight
			co := NewCoordinator(now, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: 2 * time.Minute}, LedgerRecord{}, []byte("seed"))
			seq, lostFor := uint64(0), time.Duration(-1)
			send := func(incarnation, term uint64, r Report) {
				seq++
				r.From, r.Term, r.Seq, r.Sent, r.Full, r.Ask = SiteKey{Name: "a", Incarnation: incarnation}, term, seq, now, true, true
				co.Receive(now, r)
				for rec, ok := co.Needs(); ok; rec, ok = co.Needs() {
					co.Stored(now, rec)
				}
				for _, m := range co.Take() {
					if m.State != nil {
						lostFor = m.State.LostFor
					}
				}
			}
			send(1, 1, Report{})
			send(1, 1, Report{Epoch: 1, Want: 2, Newcomers: 2})
			send(2, 2, Report{})
			send(2, 2, Report{Epoch: 1})
			now = now.Add(c.before)
			send(2, 2, Report{Epoch: 1})
			now = now.Add(time.Second)
			send(2, 3, Report{}) // the second process
			honors := lostFor
			if c.older {
				honors = 0
			}
			began := now
			send(2, 3, Report{Epoch: 1, LostFor: honors})
			for now.Sub(began) < 5*time.Minute {
				now = now.Add(time.Second)
				send(2, 3, Report{Epoch: 1, LostFor: honors})
				if co.Tick(now); co.ledger.Pool(Seat) == 5 {
					break
				}
			}
			if took := now.Sub(began); took < c.after || took > c.after+2*time.Second {
				t.Errorf("written off %v after the hand-over, want %v", took, c.after)
			}
		})
	}
}

// The clock of a successor that knows nobody yet is a guess. However far ahead that is, the time for adopting begins when
// the site has heard the coordinator, and a report of before that comes late changes nothing.
func TestAWriteOffDoesNotBelieveAGuessedClock(t *testing.T) {
	t.Parallel()
	now := midnight
	co := NewCoordinator(now, anteroom.Settings{TotalActiveUsers: 5, NewUsersPerMinute: 60, SessionDuration: 2 * time.Minute}, LedgerRecord{}, []byte("seed"))
	send := func(incarnation, seq uint64, sent anteroom.Time, r Report) {
		r.From, r.Term, r.Seq, r.Sent, r.Full, r.Ask = SiteKey{Name: "a", Incarnation: incarnation}, incarnation, seq, sent, true, true
		co.Receive(now, r)
		for rec, ok := co.Needs(); ok; rec, ok = co.Needs() {
			co.Stored(now, rec)
		}
		co.Take()
	}
	send(1, 1, now, Report{})
	send(1, 2, now, Report{Epoch: 1, Want: 2, Newcomers: 2})
	began, ahead := now, 5*time.Minute
	send(2, 1, now.Add(ahead), Report{})
	for seq := uint64(3); co.ledger.Pool(Seat) < 5 && now.Sub(began) < 5*time.Minute; seq++ {
		now = now.Add(time.Second)
		send(2, seq, now, Report{Epoch: 1})
		if seq == 10 {
			send(2, 2, began.Add(ahead), Report{})
		}
		co.Tick(now)
	}
	if took := now.Sub(began); took < 2*time.Minute || took > 2*time.Minute+3*time.Second {
		t.Errorf("written off after %v, want 2 minutes", took)
	}
}

// A process that goes on from another's journal adopts no longer than the coordinator counts on.
func TestAProcessAdoptsForWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := NewSite(midnight, SiteKey{Name: "a", Incarnation: 2}, anteroom.Settings{TotalActiveUsers: 3, NewUsersPerMinute: 60, SessionDuration: time.Minute})
	m := State{Epoch: 1, Now: midnight, Mode: Queue, Figures: &Figures{At: midnight, Step: baseStep}, Sites: 2, Lost: true, LostFor: 40 * time.Second}
	s.Receive(midnight, m)
	m.LostFor = 0
	s.Receive(midnight.Add(time.Second), m)
	if r, _ := s.Report(midnight.Add(time.Second)); r.LostFor != 40*time.Second {
		t.Errorf("the site repeats %v", r.LostFor)
	}
	if unknown := touchAll(s, midnight.Add(20*time.Second-1), anteroom.ID{1}); len(unknown) != 0 {
		t.Error("a session is not adopted in time")
	}
	if unknown := touchAll(s, midnight.Add(20*time.Second), anteroom.ID{2}); len(unknown) != 1 {
		t.Error("a session is adopted after the time")
	}
}

// An operator writes a silent site off: what it held serves the others at once, its number another site, and if it
// comes back, all that it holds is charged again before anything more is granted.
func TestAForgottenSite(t *testing.T) {
	t.Parallel()
	now := midnight
	co := NewCoordinator(now, anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10, SessionDuration: time.Hour}, LedgerRecord{}, []byte("seed"))
	seqs := map[string]uint64{}
	granted := map[string]Units{}
	var stored LedgerRecord
	send := func(name string, r Report) {
		seqs[name]++
		r.From, r.Seq, r.Sent, r.Full, r.Ask = SiteKey{Name: name, Incarnation: 1}, seqs[name], now, true, true
		co.Receive(now, r)
		for rec, ok := co.Needs(); ok; rec, ok = co.Needs() {
			stored = rec
			co.Stored(now, rec)
		}
		for _, m := range co.Take() {
			if m.State != nil {
				granted[m.Site.Name] = m.State.Granted
			}
		}
	}
	send("a", Report{})
	send("b", Report{})
	waits := anteroom.ID{1}
	send("b", Report{Epoch: 1, Want: 6, Newcomers: 6, Arrivals: []Arrival{{ID: waits, Key: now, Due: now.Add(time.Minute), Stream: true}}})
	co.Tick(now)
	b := granted["b"][Seat]
	if b == 0 {
		t.Fatal("nothing was granted to b")
	}
	now = now.Add(2 * time.Minute)
	send("a", Report{Epoch: 1})
	if co.Forget(now, "c") != 0 {
		t.Error("a site that never was held seats")
	}
	if seats := co.Forget(now, "b"); seats != b {
		t.Errorf("b held %d seats, want %d", seats, b)
	}
	if co.Forget(now, "b") != 0 {
		t.Error("b was written off twice")
	}
	send("a", Report{Epoch: 1})
	if free := co.ledger.Pool(Seat) + co.ledger.charged[Seat]; free != 10 {
		t.Errorf("the ledger counts %d seats", free)
	}
	if left := 10 - co.ledger.Pool(Seat); left != int64(granted["a"][Seat]) {
		t.Errorf("%d seats are charged, %d were granted to a", left, granted["a"][Seat])
	}
	for _, r := range stored.Sites {
		if r.Site.Name == "b" {
			t.Errorf("the record still has b: %+v", r)
		}
	}
	if n := co.Numbers(); n.Waiting+n.Dormant != 1 {
		t.Errorf("whoever waited at b lost the place: %+v", n)
	}
	// Another site takes the number of b, and b comes back with two in and one permit.
	send("c", Report{})
	before := co.ledger.charged
	send("b", Report{Epoch: 1, Returned: Units{3, 3}, Used: Units{2, 2}, Idle: 1})
	for k := range units {
		if got := co.ledger.charged[k] - before[k]; got != 3 {
			t.Errorf("b is charged for %d of unit %d, want 3", got, k)
		}
	}
	send("c", Report{Epoch: 1})
	if co.siteOf(now, SiteKey{Name: "b", Incarnation: 1}) == co.siteOf(now, SiteKey{Name: "c", Incarnation: 1}) {
		t.Error("b and c have one number")
	}
}
