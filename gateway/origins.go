package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// origin is one server of a site.
type origin struct {
	url     *url.URL
	pending atomic.Int64 // requests that it is working on
	failed  atomic.Int32 // passive failures in a row
	// downUntil is when an ejected origin gets another chance, in nanoseconds since the
	// epoch of the process; 0 means it is up.
	downUntil atomic.Int64
	// sick is the verdict of the active health check.
	sick atomic.Bool
}

// pool is the origins of one site.
type pool struct {
	origins []*origin
	health  Health
	turn    atomic.Uint32
	epoch   time.Time // of downUntil; monotonic
}

// Passive ejection: an origin that cannot be reached this many times in a row rests.
const (
	ejectAfter = 3
	ejectFor   = 10 * time.Second
)

func (p *pool) now() int64 { return int64(time.Since(p.epoch)) + 1 }

// pick returns the origin with the fewest requests under way among those that are well,
// in turn among equals; when none is well, among all: an answer may come, and waiting for
// a health check would make certain that none does. It counts the request as pending.
func (p *pool) pick(not *origin) *origin {
	if len(p.origins) == 1 {
		o := p.origins[0]
		o.pending.Add(1)
		return o
	}
	start := int(p.turn.Add(1))
	var best *origin
	for _, wellOnly := range [...]bool{true, false} {
		for i := range p.origins {
			o := p.origins[(start+i)%len(p.origins)]
			if o == not || wellOnly && !p.isWell(o) {
				continue
			}
			if best == nil || o.pending.Load() < best.pending.Load() {
				best = o
			}
		}
		if best != nil {
			break
		}
	}
	best.pending.Add(1)
	return best
}

func (p *pool) isWell(o *origin) bool {
	if o.sick.Load() {
		return false
	}
	until := o.downUntil.Load()
	return until == 0 || p.now() >= until
}

// report tells the pool how reaching an origin went.
func (p *pool) report(o *origin, reached bool) {
	if reached {
		if o.failed.Load() != 0 {
			o.failed.Store(0)
			o.downUntil.Store(0)
		}
		return
	}
	if o.failed.Add(1) >= ejectAfter {
		o.downUntil.Store(p.now() + int64(ejectFor))
	}
}

// check asks every origin for the health path until ctx ends.
func (p *pool) check(ctx context.Context, rt http.RoundTripper) {
	if p.health.Path == "" {
		return
	}
	tick := time.NewTicker(cmp.Or(p.health.Interval, 5*time.Second))
	defer tick.Stop()
	for {
		for _, o := range p.origins {
			o.sick.Store(!p.isHealthy(ctx, rt, o))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// isHealthy reports whether the origin answers the health path with 2xx or 3xx.
func (p *pool) isHealthy(ctx context.Context, rt http.RoundTripper, o *origin) bool {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.health.Timeout, 2*time.Second))
	defer cancel()
	u := *o.url
	u.Path = p.health.Path
	req := (&http.Request{Method: http.MethodGet, URL: &u, Host: p.health.Host, Header: http.Header{"User-Agent": {"anteroom-health"}}}).WithContext(ctx)
	res, err := rt.RoundTrip(req)
	if err != nil {
		return false
	}
	io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	res.Body.Close()
	return res.StatusCode >= 200 && res.StatusCode < 400
}

// isDialError reports whether no byte of the request can have left: the connection was
// never made.
func isDialError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// kindOf sorts a transport's error.
func kindOf(ctx context.Context, err error) int {
	if isDialError(err) && ctx.Err() == nil {
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			return OriginTimeout
		}
		return OriginUnreachable
	}
	if errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, context.Canceled) {
		return ClientGone
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return OriginTimeout
	}
	return OriginBroken
}
