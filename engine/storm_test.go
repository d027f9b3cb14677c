package engine

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// storm is ten minutes of visitors who hit any door at every request, while doors are cut off in
// one direction or both and messages are lost.
func (h *hall) storm(seed uint64) {
	h.rng = rand.New(rand.NewPCG(seed, 7))
	h.slow = time.Duration(1+h.rng.Int64N(200)) * time.Millisecond
	for _, d := range h.doors {
		d.off = anteroom.Time(h.rng.Int64N(int64(TouchDelay/2/time.Microsecond))) - anteroom.Time(TouchDelay/4/time.Microsecond)
	}
	h.run(2 * time.Second)
	type guest struct {
		visit anteroom.Visit
		next  anteroom.Time
		door  int
		token uint64
	}
	var guests []*guest
	streams := func(i int) (ids []anteroom.ID) {
		for id := range h.doors[i].streams {
			ids = append(ids, id)
		}
		return ids
	}
	letIn := 0
	for second := range 600 {
		if h.rng.Float64() < 0.3 {
			guests = append(guests, &guest{visit: h.newcomer(), next: h.now, token: 0})
		}
		if second%10 == 0 {
			h.lossy = h.rng.Float64() * 0.3
			for _, d := range h.doors {
				d.deaf, d.mute = h.rng.Float64() < 0.2, h.rng.Float64() < 0.2
			}
		}
		for _, g := range guests {
			if g.token != 0 {
				dec, ok := h.doors[g.door].answers[g.token]
				if !ok {
					if h.rng.Float64() < 0.02 { // gone: the request is nobody's
						delete(h.doors[g.door].pending, g.token)
						h.doors[g.door].Abandon(h.now, g.token)
						g.token = 0
					}
					continue
				}
				delete(h.doors[g.door].answers, g.token)
				g.token = 0
				if dec.Verdict == anteroom.Admit {
					letIn++
				}
				if dec.SetCookie {
					g.visit = anteroom.Visit{Ticket: dec.Ticket, NewID: h.id()}
				}
				g.next = h.now.Add(time.Duration(h.rng.Int64N(int64(15 * time.Second))))
			}
			if h.now >= g.next {
				g.door = h.rng.IntN(len(h.doors))
				v := g.visit
				v.Stream = !v.Fresh && h.rng.Float64() < 0.3
				g.token = h.visit(g.door, v)
			}
		}
		for i := range h.doors {
			for _, id := range sorted(streams(i)) {
				if h.rng.Float64() < 0.1 || h.doors[i].pushed[id] {
					for h.doors[i].streams[id] > 0 {
						h.close(i, id)
					}
				}
			}
			clear(h.doors[i].pushed)
		}
		h.run(time.Second)
		for i, d := range h.doors {
			for token := range d.pending {
				if a := d.asks.get(token); a == nil || h.now.Sub(a.at) > takeOver+askFor+time.Second {
					h.t.Fatalf("door %d has not answered %d", i, token)
				}
			}
		}
	}
	if letIn < 100 {
		h.t.Errorf("%d requests were let in", letIn)
	}
	h.lossy = 0
	for _, d := range h.doors {
		d.deaf, d.mute = false, false
	}
	h.run(10 * time.Second)
	h.streamsAgree()
	for i, d := range h.doors {
		for _, id := range sorted(streams(i)) {
			for d.streams[id] > 0 {
				h.close(i, id)
			}
		}
		if len(d.pending) > 0 {
			h.t.Errorf("door %d has not answered %d requests", i, len(d.pending))
		}
	}
	h.run(2 * h.set.SessionDuration)
	h.run(2 * askFor)
	for i, d := range h.doors {
		if !d.Idle() && h.desk.Site().Active() == 0 {
			h.t.Errorf("door %d is not idle: %d requests, %d streams, %d sessions, %d called, anything unconfirmed: %v",
				i, d.asks.open, len(d.Doorway.streams), d.door.known.len(), len(d.called.items), d.unconfirmed())
		}
	}
	if len(h.desk.streams)+len(h.desk.held) > 0 {
		h.t.Errorf("the desk has %d streams and %d requests", len(h.desk.streams), len(h.desk.held))
	}
}

func sorted(ids []anteroom.ID) []anteroom.ID {
	slices.SortFunc(ids, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}
