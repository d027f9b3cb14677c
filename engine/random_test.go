package engine

import (
	"math"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// chi2 compares counts with equal expectations and returns the statistic and its limit at
// about three standard deviations.
func chi2(counts []int) (x, limit float64) {
	total := 0
	for _, n := range counts {
		total += n
	}
	want := float64(total) / float64(len(counts))
	for _, n := range counts {
		x += (float64(n) - want) * (float64(n) - want) / want
	}
	k := float64(len(counts) - 1)
	return x, k + 3.1*math.Sqrt(2*k) + 6 // Wilson-Hilferty would be closer; this errs high for few classes
}

func TestUniformIsUniform(t *testing.T) {
	counts := make([]int, 37)
	for n := range uint64(100_000) {
		counts[uniform([]byte("seed"), n, uint32(len(counts)))]++
	}
	if x, limit := chi2(counts); x > limit {
		t.Errorf("chi² of %v is %.1f, limit %.1f", counts, x, limit)
	}
}

// TestDrawIsUniform runs many small lotteries: one seat at a time, everybody on a stream.
// Who arrived when must not matter.
func TestDrawIsUniform(t *testing.T) {
	const people, rounds = 12, 10_080
	counts := make([]int, people)
	s := anteroom.Settings{NewUsersPerMinute: 1 << 20, QueueingMethod: anteroom.Random, Unpaced: true}
	for round := 0; round < rounds; {
		// A fresh seed every lottery, three winners each: drawn among 12, 11 and 10.
		w := seeded(t, s, uint32(round))
		for range people {
			w.open(w.arrive())
		}
		w.hasty = true
		one := s
		one.TotalActiveUsers = 3
		w.configure(one)
		for _, v := range w.people {
			if v.inside {
				counts[v.n]++
				round++
			}
		}
	}
	if x, limit := chi2(counts); x > limit {
		t.Errorf("chi² of %v is %.1f, limit %.1f", counts, x, limit)
	}
}

func seeded(t failer, s anteroom.Settings, seed uint32) *trial {
	w := &trial{t: t, now: midnight, set: s.WithDefaults(), byID: map[anteroom.ID]*visitor{}, byToken: map[uint64]*visitor{}}
	w.room = NewSingle(w.now, hereKey, w.set, w.record, []byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}, nil, 0, 0)
	w.collect()
	return w
}

// TestDrawIgnoresPolling (threat T9): in hundreds of lotteries one visitor asks a thousand
// times in the second that matters. Each lottery has the same winner as without that.
func TestDrawIgnoresPolling(t *testing.T) {
	s := anteroom.Settings{NewUsersPerMinute: 60, QueueingMethod: anteroom.Random}
	winner := func(round int, hasty bool) int {
		w := seeded(t, s, uint32(round))
		for range 6 {
			w.arrive()
			w.pass(time.Duration(100+round*37%1900) * time.Millisecond)
		}
		w.polite, w.hasty = true, true
		w.pass(600*time.Millisecond + time.Duration(round*7919%20_000)*time.Millisecond)
		one := s
		one.TotalActiveUsers = 1
		w.configure(one)
		for i := 0; len(w.entered) == 0; i++ {
			if hasty && i < 10 {
				for range 100 {
					if v := w.people[0]; !v.inside && v.held == 0 && w.now < v.ticket.Next {
						w.visit(v)
					}
				}
			}
			w.pass(100 * time.Millisecond)
			if i > 600 {
				t.Fatalf("round %d: nobody wins: %+v", round, w.room.coordinator.Numbers())
			}
		}
		for _, v := range w.people {
			if v.inside {
				return v.n
			}
		}
		return -1
	}
	for round := range 150 {
		if with, without := winner(round, true), winner(round, false); with != without {
			t.Fatalf("round %d: visitor %d wins when the first one polls hastily, else visitor %d", round, with, without)
		}
	}
}

// TestAbsentWinnersKeepTheWin: visitors who poll every 20 s are drawn while away; each of
// the first winners enters at the next poll.
func TestAbsentWinnersKeepTheWin(t *testing.T) {
	s := anteroom.Settings{NewUsersPerMinute: 60, QueueingMethod: anteroom.Random, SessionDuration: 5 * time.Minute}
	w := newTrial(t, s)
	w.polite = true
	for range 40 {
		w.arrive()
		w.pass(300 * time.Millisecond)
	}
	w.pass(30 * time.Second)
	s.TotalActiveUsers = 5
	w.configure(s)
	w.pass(100 * time.Millisecond)
	c := w.room.coordinator
	var winners []*visitor
	for slot := range c.line.wins {
		winners = append(winners, w.byID[c.line.places.id(slot)])
	}
	if len(winners) == 0 {
		t.Fatal("nobody was drawn while away; the test says nothing")
	}
	w.pass(30 * time.Second)
	if n := len(w.entered); n != 5 {
		t.Fatalf("%d entered, 5 seats were free", n)
	}
	before := len(c.line.wins)
	s.TotalActiveUsers = 40
	w.configure(s)
	w.pass(60 * time.Second) // 35 turns at one a second, and the last winner's check-in up to 23 s later
	for _, v := range winners {
		if !v.inside {
			t.Errorf("visitor %d was drawn while away and is not inside (%d wins were open)", v.n, before)
		}
	}
	if n := len(c.line.wins) - c.line.asleep; n != 0 {
		t.Errorf("%d wins are still open", n)
	}
}

// TestVanishedWinnersHoldUpNobody: winners who never come back do not stop the draw.
func TestVanishedWinnersHoldUpNobody(t *testing.T) {
	s := anteroom.Settings{NewUsersPerMinute: 6, QueueingMethod: anteroom.Random, SessionDuration: 5 * time.Minute, Unpaced: true}
	w := newTrial(t, s)
	for range 60 { // they have come back once and have closed their browsers since
		w.arrive()
	}
	w.pass(5 * time.Second)
	for _, v := range w.people {
		w.visit(v)
	}
	w.pass(5 * time.Second)
	s.TotalActiveUsers = 50
	w.configure(s)
	w.pass(5 * time.Second)
	if len(w.room.coordinator.line.wins) == 0 {
		t.Fatal("nobody was drawn while away; the test says nothing")
	}
	w.hasty = true
	late := w.arrive()
	w.openHeld(late)
	w.pass(40 * time.Second)
	if !late.inside {
		t.Errorf("somebody waits behind winners who have left: %+v", w.room.coordinator.Numbers())
	}
}

// TestPacedDrawStands: while the pace holds a release back, the draw that fell is not drawn
// again at every opportunity. That would favour those who are away, whose wins are kept.
func TestPacedDrawStands(t *testing.T) {
	w := newTrial(t, anteroom.Settings{NewUsersPerMinute: 60, QueueingMethod: anteroom.Random})
	for range 20 {
		w.open(w.arrive())
	}
	s := w.set
	s.TotalActiveUsers = 20
	w.configure(s)
	for range 10 {
		w.pass(100 * time.Millisecond)
		if c := w.room.coordinator; c.draws > c.released+1 {
			t.Fatalf("%d draws for %d releases", c.draws, c.released)
		}
	}
}
