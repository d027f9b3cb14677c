package gateway

import (
	"context"
	"time"

	"github.com/anteroom/anteroom"
)

// touchEvery is how often an open tunnel renews its session, at most; a session of less
// than four times that is renewed four times in its life.
const touchEvery = 30 * time.Second

// tunnel serves a WebSocket. While it is open its visitor counts as active; when the
// session ends, by its time or by an origin's command, the tunnel ends within moments.
func (x *exchange) tunnel() {
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	x.g.count.tunnels.Add(1)
	defer x.g.count.tunnels.Add(-1)
	var dr door
	if x.room != nil && x.decision.Verdict == anteroom.Admit {
		dr = x.room.door
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		x.g.watch(ctx, dr, x.decision.Ticket.ID)
	}()
	defer func() { <-ended }()
	defer cancel()
	// The proxy closes both ends when the context is cancelled.
	x.proxy.ServeHTTP(x.w, x.r.WithContext(ctx))
}

// watch returns when the tunnel has to close. Dr is nil for a tunnel that no room counts.
func (g *Gateway) watch(ctx context.Context, dr door, id anteroom.ID) {
	var over <-chan struct{}
	var tick <-chan time.Time
	if dr != nil {
		over = dr.Ended(ctx, id)
		every := touchEvery
		if d := dr.Settings().SessionDuration / 4; d > 0 && d < every {
			every = d
		}
		t := time.NewTicker(every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.closing:
			return
		case <-over:
			return
		case <-tick:
			if !dr.Touch(id) {
				return
			}
		}
	}
}
