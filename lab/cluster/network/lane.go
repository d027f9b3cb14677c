package network

import (
	"math/rand/v2"
	"sync"
	"time"
)

// lane carries packets one way. They leave in the order in which they came.
type lane struct {
	mu      sync.Mutex
	way     Way
	last    time.Time // when the newest packet arrives
	queue   []packet
	busy    bool // somebody delivers
	traffic Traffic
	deliver func([]byte)
}

type packet struct {
	due  time.Time
	data []byte
}

// maxQueue bounds what is under way in a lane; more is dropped, as a router would.
const maxQueue = 20_000

func (l *lane) set(w Way) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.way = w
}

func (l *lane) carried() Traffic {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.traffic
}

// send takes a packet and keeps it.
func (l *lane) send(data []byte) {
	l.mu.Lock()
	w := l.way
	if w.Cut || len(l.queue) >= maxQueue || w.Loss > 0 && rand.Float64() < w.Loss {
		l.traffic.Dropped++
		l.mu.Unlock()
		return
	}
	l.traffic.Packets++
	l.traffic.Bytes += int64(len(data))
	due := time.Now().Add(w.Delay)
	if w.Jitter > 0 {
		due = due.Add(rand.N(w.Jitter))
	}
	if due.Before(l.last) {
		due = l.last
	}
	l.last = due
	l.queue = append(l.queue, packet{due, data})
	start := !l.busy
	l.busy = true
	l.mu.Unlock()
	if !start {
		return
	}
	if w.Delay == 0 && w.Jitter == 0 {
		l.run()
		return
	}
	time.AfterFunc(time.Until(due), l.run)
}

// run delivers what is due and comes back for the rest.
func (l *lane) run() {
	l.mu.Lock()
	for len(l.queue) > 0 {
		p := l.queue[0]
		if wait := time.Until(p.due); wait > 0 {
			l.mu.Unlock()
			time.AfterFunc(wait, l.run)
			return
		}
		l.queue[0] = packet{}
		l.queue = l.queue[1:]
		cut := l.way.Cut
		if cut {
			l.traffic.Dropped++
			continue
		}
		l.mu.Unlock()
		l.deliver(p.data)
		l.mu.Lock()
	}
	l.queue = nil
	l.busy = false
	l.mu.Unlock()
}
