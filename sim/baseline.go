package sim

import (
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/sim/published"
)

// baseline is a room that shares its slots in a way that others have published.
type baseline struct {
	w       *world
	room    *published.Room
	planned []fault
}

func newPublished(w *world, seed uint64) *baseline {
	x := &baseline{w: w}
	c := published.Config{Settings: w.sc.Settings, Seed: seed}
	for _, s := range w.sc.Sites {
		c.Sites = append(c.Sites, s.Nodes)
		c.Delays = append(c.Delays, s.Delay)
	}
	switch w.opt.Algorithm {
	case Adapted:
		c.Method = published.Adapted
	case Counters:
		c.Method = published.Counters
	}
	x.room = published.New(c)
	w.after(tickEvery, evTick, 0, 0)
	x.planned = planFaults(w)
	if off := w.sc.Faults.Clock; off > 0 {
		for i := range w.sc.Sites {
			x.room.Skew(i, time.Duration((w.chance.Float64()*2-1)*float64(off)))
		}
	}
	for i := range w.nodes {
		planDeath(w, i)
	}
	return x
}

func (x *baseline) request(r uint32) {
	w := x.w
	q := &w.requests[r]
	n := w.nodes[q.node]
	d, latency := x.room.Visit(w.now, int(n.site), int(n.index), q.visit)
	if latency < time.Millisecond {
		w.answered(r, d, false)
		return
	}
	w.later(latency, func() { w.answered(r, d, true) })
}

func (x *baseline) closed(int32, int32)                     {}
func (x *baseline) revoke(int32, anteroom.ID) bool          { return false }
func (x *baseline) reported(int32, anteroom.Ticket, func()) {}
func (x *baseline) silence(int32) time.Duration             { return 0 }
func (x *baseline) roomTime(int32) (anteroom.Time, bool)    { return x.w.now, true }
func (x *baseline) configure(s anteroom.Settings)           { x.room.Configure(x.w.now, s) }
func (x *baseline) next() (anteroom.Time, bool)             { return 0, false }
func (x *baseline) advance()                                {}
func (x *baseline) act(Act)                                 {}
func (x *baseline) inLine(anteroom.ID) bool                 { return true }
func (x *baseline) settled() bool                           { return true }

func (x *baseline) finish(n *Numbers) {
	n.Messages = float64(x.room.Messages()) / (x.w.since(x.w.now).Seconds() * float64(len(x.w.sc.Sites)))
}

func (x *baseline) event(e event) {
	w := x.w
	switch e.kind {
	case evTick:
		w.after(tickEvery, evTick, 0, 0)
		x.room.Tick(w.now)
	case evFault:
		x.fault(&x.planned[e.who], e.arg == 1)
	case evNodeDeath:
		n := w.nodes[e.who]
		x.room.Restart(int(n.site), int(n.index))
		planDeath(w, int(e.who))
	}
}

func (x *baseline) fault(f *fault, over bool) {
	if f.kind != "jump" {
		x.w.judge.disturbed(over, f)
	}
	switch {
	case f.kind == "cut" || f.what == "site":
		x.room.Cut(f.site, !over)
	case f.kind == "jump":
		x.room.Skew(f.site, f.by)
	case f.what == "coordinator":
		x.room.CoordinatorDown(!over)
	case f.what == "node" && !over:
		x.room.Restart(f.site, f.node)
	}
}
