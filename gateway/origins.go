package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
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
	seen sight

	mu      sync.Mutex
	limiter limiter // of requests under way, where the site bounds them
}

// pool is the origins of one site.
type pool struct {
	origins []*origin
	health  Health
	turn    atomic.Uint32
	epoch   time.Time // of downUntil; monotonic
	turned  func()    // called when an origin falls ill or recovers; nil does nothing
}

// Passive ejection: an origin that cannot be reached this many times in a row rests, and
// counts as unhealthy until a connection to it succeeds.
const (
	ejectAfter = 3
	ejectFor   = 10 * time.Second
	// probeEvery is how often an origin without a health check that could not be reached is dialed.
	probeEvery = time.Second
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

// isHealthy reports whether the origin passes its health check, if there is one, and could be
// reached when it was tried last.
func (o *origin) isHealthy() bool { return !o.sick.Load() && o.failed.Load() < ejectAfter }

// report tells the pool how reaching an origin went.
func (p *pool) report(o *origin, reached bool) {
	if reached {
		if n := o.failed.Load(); n != 0 {
			o.failed.Store(0)
			o.downUntil.Store(0)
			if n >= ejectAfter {
				p.notify()
			}
		}
		return
	}
	n := o.failed.Add(1)
	if n >= ejectAfter {
		o.downUntil.Store(p.now() + int64(ejectFor))
	}
	if n == ejectAfter {
		p.notify()
	}
}

func (p *pool) notify() {
	if p.turned != nil {
		p.turned()
	}
}

// check looks after the origins until ctx ends. It asks each for the health path; without one it
// dials those that the last request could not reach, so that it does not take three visitors to know
// that one is gone, and none to know that it is back.
func (p *pool) check(ctx context.Context, rt *http.Transport) {
	every := probeEvery
	if p.health.Path != "" {
		every = cmp.Or(p.health.Interval, 5*time.Second)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var all sync.WaitGroup
		for _, o := range p.origins {
			all.Go(func() { p.checkOne(ctx, rt, o) })
		}
		all.Wait()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *pool) checkOne(ctx context.Context, rt *http.Transport, o *origin) {
	switch {
	case p.health.Path != "":
		well := p.passes(ctx, rt, o)
		if ctx.Err() != nil {
			return // it was not the origin that ended the check
		}
		if o.sick.Swap(!well) == well {
			p.notify()
		}
		if well {
			p.report(o, true)
		}
	case o.failed.Load() > 0:
		p.dial(ctx, rt, o)
	}
}

// dial tries to reach the origin, within 2 s, and reports how that went.
func (p *pool) dial(ctx context.Context, rt *http.Transport, o *origin) (reached bool) {
	within, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	dial := rt.DialContext
	if o.url.Scheme == "https" {
		dial = rt.DialTLSContext
	}
	c, err := dial(within, "tcp", addressOf(o.url))
	if ctx.Err() != nil {
		if err == nil {
			c.Close()
		}
		return false // it was not the origin that ended the try
	}
	if err == nil {
		c.Close()
	}
	p.report(o, err == nil)
	return err == nil
}

// look dials the origins without a health check, which nobody may have asked for anything lately, until
// each is reached or counts as unhealthy.
func (p *pool) look(ctx context.Context, rt *http.Transport) {
	var all sync.WaitGroup
	for _, o := range p.origins {
		if p.health.Path == "" {
			all.Go(func() {
				for o.isHealthy() && ctx.Err() == nil && !p.dial(ctx, rt, o) {
				}
			})
		}
	}
	all.Wait()
}

// addressOf is where to dial a URL's server.
func addressOf(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80")
	return net.JoinHostPort(u.Hostname(), port)
}

// passes reports whether the origin answers the health path with 2xx or 3xx.
func (p *pool) passes(ctx context.Context, rt http.RoundTripper, o *origin) bool {
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
// never made, or its TLS handshake has failed.
func isDialError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// kindOf sorts a transport's error.
func kindOf(ctx context.Context, err error) int {
	if isDialError(err) && ctx.Err() == nil {
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			return originTimeout
		}
		return originUnreachable
	}
	if errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, context.Canceled) {
		return clientGone
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return originTimeout
	}
	return originBroken
}
