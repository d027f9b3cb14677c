package gateway

import (
	"context"
	"sync"
	"time"
)

// Run does the gateway's standing work until ctx ends: it checks the health of the origins, reads
// what requests have shown of them, and tells the rooms that protect them.
func (g *Gateway) Run(ctx context.Context) error {
	for {
		s := g.live.Load()
		round, stop := context.WithCancel(ctx)
		var checks sync.WaitGroup
		for _, one := range s.inOrder {
			checks.Go(func() { one.check(round, s.transport) })
		}
		checks.Go(func() { s.watchOrigins(round) })
		select {
		case <-ctx.Done():
		case <-g.swapped:
		}
		stop()
		checks.Wait()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// Drain prepares the end of the process: it tells open streams to reconnect and ends them, opens no new ones, and lets
// everything else continue. It returns when ctx ends or the last WebSocket has closed; any that remain are then closed.
// Call it beside [http.Server.Shutdown], which does not know about them. After both have returned, end the context of
// [node.Node.Run], and when that has returned, close the link.
func (g *Gateway) Drain(ctx context.Context) {
	g.drainOnce.Do(func() { close(g.drain) })
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for g.count.tunnels.Load() > 0 {
		select {
		case <-ctx.Done():
			g.closeOnce.Do(func() { close(g.closing) })
			return
		case <-tick.C:
		}
	}
}

func (g *Gateway) isDraining() bool {
	select {
	case <-g.drain:
		return true
	default:
		return false
	}
}
