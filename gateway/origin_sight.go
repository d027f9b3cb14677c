package gateway

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/analytics"
)

// sight is what requests have shown of an origin. Requests add to counters that only grow; the
// loop of [Gateway.Run] reads them every glanceEvery, so that no request has to clear anything
// or wait for another.
type sight struct {
	took       analytics.Buckets // from the request to the headers of each answer
	broken     atomic.Uint64     // answers with a status of 500 or above
	unanswered atomic.Uint64     // requests without an answer, for which the visitor is not to blame

	mu   sync.Mutex
	past []glance // the last minute's, the oldest first; guarded by mu
}

// glance is what the counters showed at a moment.
type glance struct {
	at                 time.Time
	took               analytics.BucketCounts
	broken, unanswered uint64
}

const (
	glanceEvery = 5 * time.Second
	glances     = 13 // a minute between the first and the last
)

// answered counts an answer, by how long it took to begin.
func (s *sight) answered(took time.Duration, status int) {
	s.took.Observe(took)
	if status >= 500 {
		s.broken.Add(1)
	}
}

func (s *sight) now(at time.Time) glance {
	return glance{at: at, took: s.took.Counts(), broken: s.broken.Load(), unanswered: s.unanswered.Load()}
}

// since is what was counted between two glances.
func (g glance) since(before glance) glance {
	return glance{at: g.at, took: g.took.Since(before.took), broken: g.broken - before.broken, unanswered: g.unanswered - before.unanswered}
}

func (g glance) plus(other glance) glance {
	return glance{at: g.at, took: g.took.Plus(other.took), broken: g.broken + other.broken, unanswered: g.unanswered + other.unanswered}
}

func (g glance) requests() uint64 { return g.took.Count + g.unanswered }
func (g glance) failed() uint64   { return g.broken + g.unanswered }

// look takes another glance when one is due, and reports whether it did.
func (s *sight) look(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.past); n > 0 && at.Sub(s.past[n-1].at) < glanceEvery {
		return false
	}
	if len(s.past) == glances {
		s.past = slices.Delete(s.past, 0, 1)
	}
	s.past = append(s.past, s.now(at))
	return true
}

// latest is what was counted between the two newest glances, if there are two.
func (s *sight) latest() (g glance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.past); n > 1 {
		return s.past[n-1].since(s.past[n-2])
	}
	return g
}

// minute is what was counted in the last minute, in steps of glanceEvery.
func (s *sight) minute(at time.Time) glance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.past) == 0 {
		return s.now(at)
	}
	return s.now(at).since(s.past[0])
}

// OriginStatus is what a gateway knows of an origin.
type OriginStatus struct {
	URL string
	// Healthy is false while the health check fails, or without one while no connection succeeds.
	Healthy bool
	// Requests of the last minute, and how many of them failed: no connection, no answer in time, a
	// broken answer, or a status of 500 or above.
	Requests, Failed uint64
	// P50 and P95 are quantiles of the time to the headers of an answer, in the last minute; zero
	// without answers.
	P50, P95 time.Duration
	// InFlight are the requests that it is working on, tunnels included.
	InFlight int64
}

// SiteStatus is a proxied site with its origins.
type SiteStatus struct {
	Hosts   []string
	Origins []OriginStatus
}

// LookAtOrigins dials all origins that have no health check, so that [Gateway.Origins] knows of those that nobody has asked for
// anything since they ended. It returns within 6 s, and earlier if ctx ends.
func (g *Gateway) LookAtOrigins(ctx context.Context) {
	s := g.live.Load()
	var all sync.WaitGroup
	for _, one := range s.inOrder {
		all.Go(func() { one.look(ctx, s.transport) })
	}
	all.Wait()
}

// Origins returns what is known of the proxied sites' origins, in the configuration's order.
func (g *Gateway) Origins() []SiteStatus {
	s, at := g.live.Load(), time.Now()
	out := make([]SiteStatus, len(s.inOrder))
	for i, one := range s.inOrder {
		out[i] = SiteStatus{Hosts: s.Sites[i].Hosts}
		for _, o := range one.origins {
			m := o.seen.minute(at)
			out[i].Origins = append(out[i].Origins, OriginStatus{URL: o.url.String(), Healthy: o.isHealthy(), Requests: m.requests(), Failed: m.failed(),
				P50: m.took.Quantile(0.5), P95: m.took.Quantile(0.95), InFlight: o.pending.Load()})
		}
	}
	return out
}
