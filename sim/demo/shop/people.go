package shop

import (
	"sync"
	"time"
)

// people counts who is inside, by the subject of the proof.
type people struct {
	mu    sync.Mutex
	stay  time.Duration
	last  map[string]time.Time
	swept time.Time
	count int // of the last sweep
}

// sweepEvery bounds the work of counting: the number shown is at most this old.
const sweepEvery = 200 * time.Millisecond

func (p *people) saw(session string) {
	if session == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.last[session]; !known {
		if len(p.last) >= maxInside {
			return
		}
		p.count++
	}
	p.last[session] = time.Now()
}

func (p *people) gone(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.last[session]; known {
		delete(p.last, session)
		p.count--
	}
}

func (p *people) inside() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.swept) >= sweepEvery {
		p.swept = now
		for id, at := range p.last {
			if now.Sub(at) >= p.stay {
				delete(p.last, id)
			}
		}
		p.count = len(p.last)
	}
	return p.count
}
