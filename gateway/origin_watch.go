package gateway

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/internal/walltime"
)

// tellEvery is how often rooms hear of their origins; of one that falls ill or recovers they hear
// at once.
const tellEvery = time.Second

// originTurned has watchOrigins look at once.
func (s *setup) originTurned() {
	select {
	case s.turned <- struct{}{}:
	default:
	}
}

// watchOrigins reads what requests have shown of the origins and tells the rooms that protect them,
// until ctx ends.
func (s *setup) watchOrigins(ctx context.Context) {
	tick := time.NewTimer(walltime.NextBeat(tellEvery))
	defer tick.Stop()
	for {
		now := time.Now()
		for _, one := range s.inOrder {
			for _, o := range one.origins {
				o.seen.look(now)
			}
		}
		for _, rm := range s.rooms {
			if rm.Protect {
				rm.door.Origin(s.factsOf(rm))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Reset(walltime.NextBeat(tellEvery))
		case <-s.turned:
		}
	}
}

// sitesOf are the proxied sites of a room's hosts.
func (s *setup) sitesOf(rm *room) (out []*site) {
	for _, rt := range rm.Routes {
		if rt.Host == "*" {
			return s.inOrder
		}
		one := s.anySite
		if host, err := route.Host(rt.Host); err == nil && s.sites[host] != nil {
			one = s.sites[host]
		}
		if one != nil && !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// factsOf is what this gateway sees of a room's origins: down when none of them is healthy, and what
// came of the requests between the two newest glances.
func (s *setup) factsOf(rm *room) (f engine.OriginFacts) {
	var all glance
	f.Down = true
	for _, one := range s.sitesOf(rm) {
		for _, o := range one.origins {
			f.Known = true
			f.Down = f.Down && !o.isHealthy()
			all = all.plus(o.seen.latest())
		}
	}
	if !f.Known {
		return engine.OriginFacts{}
	}
	f.Requests, f.Failed = clamp(all.requests()), clamp(all.failed())
	f.P95 = all.took.Quantile(0.95)
	return f
}

func clamp(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }
