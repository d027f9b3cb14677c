package server

import (
	"context"
	"net/url"
	"strings"
	"sync"
)

// pushSlots bounds the attempts under way to push services. Visitors choose where their messages go, and a server that never answers keeps
// a slot for pushTime: so one host gets a part of the slots only, and first attempts go before retries.
type pushSlots struct {
	mu      sync.Mutex
	under   int
	hosts   map[string]int   // attempts under way, by host
	waiting [2][]*pushWaiter // first attempts, then retries; both in order of arrival
}

type pushWaiter struct {
	host string
	turn chan struct{} // closed when the waiter has a slot
}

// take waits for a slot for a host. A caller that gets one has to give it back.
func (p *pushSlots) take(ctx context.Context, host string, retry bool) error {
	w, line := &pushWaiter{host, make(chan struct{})}, &p.waiting[0]
	if retry {
		line = &p.waiting[1]
	}
	p.mu.Lock()
	*line = append(*line, w)
	p.nextLocked()
	p.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, one := range *line {
		if one == w {
			*line = append((*line)[:i], (*line)[i+1:]...)
			return ctx.Err()
		}
	}
	return nil // the slot came in the same moment
}

func (p *pushSlots) give(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under--
	if p.hosts[host]--; p.hosts[host] == 0 {
		delete(p.hosts, host)
	}
	p.nextLocked()
}

// nextLocked gives free slots to those who may have them.
func (p *pushSlots) nextLocked() {
	for i := range p.waiting {
		left := p.waiting[i][:0]
		for _, w := range p.waiting[i] {
			if p.under >= pushesAtOnce || p.hosts[w.host] >= pushesPerHost {
				left = append(left, w)
				continue
			}
			p.under++
			p.hosts[w.host]++
			close(w.turn)
		}
		clear(p.waiting[i][len(left):])
		p.waiting[i] = left
	}
}

// slotHost is what an endpoint's slots are counted by: its host without the port, so that a server cannot be counted twice by its ports.
func slotHost(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}
