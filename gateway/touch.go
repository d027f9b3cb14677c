package gateway

import (
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
)

const (
	// touchesPerSecond is how many reports of edges a room takes from all of them, and touchesAtOnce how many after a pause.
	touchesPerSecond = 5000
	touchesAtOnce    = 10_000
)

// What comes of a report of an edge.
const (
	TouchTaken   = iota
	TouchTicket  // is no ticket of the room, or one that is still in line
	TouchAge     // was too long ago, and counts no more
	TouchSession // has no session any more, or this node does not know of it and cannot ask
	TouchRate    // is one too many
	touchResults
)

// TouchWords name the results in metrics and answers.
var TouchWords = [touchResults]string{"taken", "ticket", "age", "session", "rate"}

// Touch is a request that an edge has let in by a pass.
type Touch struct {
	Ticket string        // value of the cookie that came with it
	Ago    time.Duration // when it came
}

// touching bounds how many reports a room takes.
type touching struct {
	mu   sync.Mutex
	left float64
	at   time.Time
}

// spend returns how many of n reports may be taken.
func (b *touching) spend(n int, now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(touchesAtOnce, b.left+max(0, now.Sub(b.at).Seconds())*touchesPerSecond)
	b.at = now
	n = min(n, int(b.left))
	b.left -= float64(n)
	return n
}

// Touch takes the requests that edges of a room have let in, each as a request of its visitor that admits nobody. It returns what came of
// each, false for a room that is not served or issues no passes.
func (g *Gateway) Touch(id anteroom.RoomID, touches []Touch) (results []int, ok bool) {
	s := g.live.Load()
	i, ok := s.byID[id]
	if !ok || s.rooms[i].passes == nil {
		return nil, false
	}
	r := s.rooms[i]
	may := r.touching.spend(len(touches), time.Now())
	results = make([]int, len(touches))
	for i, one := range touches {
		if results[i] = TouchRate; i < may {
			results[i] = r.touch(one)
		}
		g.count.touches[results[i]].Add(1)
	}
	return results, true
}

func (r *room) touch(one Touch) int {
	t, result := r.sealer.Open(one.Ticket)
	switch {
	case result != ticket.OK || !t.Accepted():
		return TouchTicket
	case one.Ago < 0 || one.Ago > anteroom.MaxTouchAge:
		return TouchAge
	case !r.door.Reported(t):
		return TouchSession
	}
	return TouchTaken
}
