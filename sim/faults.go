package sim

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// fault is one of the plan's.
type fault struct {
	kind string // "cut", "death", "pause", "jump", "handover"
	what string
	site int
	node int
	up   bool
	down bool
	lose bool
	by   time.Duration
}

// tail is how long a fault is felt after it is over. What a site held that died is charged
// until its sessions must have ended, for nobody knows who came meanwhile; visitors who poll
// come back when they were told to. A site that starts while it is cut off begins to wait when
// the cut is over.
func (f *fault) tail(w *world) time.Duration {
	const settles = 20 * time.Second
	if w.sitesDie() && f.kind != "handover" && (f.kind == "cut" || f.what == "site") {
		return settles + max(w.judge.set.SessionDuration, engine.RateHold)
	}
	return settles
}

func (w *world) sitesDie() bool {
	return len(w.sc.Faults.Handovers) > 0 || slices.ContainsFunc(w.sc.Faults.Deaths, func(d Death) bool { return d.What == "site" })
}

// planFaults schedules the scenario's faults.
func planFaults(w *world) (planned []fault) {
	index := map[string]int{}
	for i, s := range w.sc.Sites {
		index[s.Name] = i
	}
	plan := func(at, lasts time.Duration, one fault) {
		planned = append(planned, one)
		i := int32(len(planned) - 1)
		w.after(at, evFault, i, 0)
		if lasts > 0 {
			w.after(at+lasts, evFault, i, 1)
		}
	}
	f := w.sc.Faults
	for _, c := range f.Cuts {
		both := !c.Up && !c.Down
		plan(c.At, max(c.For, time.Millisecond), fault{kind: "cut", site: index[c.Site], up: c.Up || both, down: c.Down || both})
	}
	for _, d := range f.Deaths {
		plan(d.At, max(d.For, time.Millisecond), fault{kind: "death", what: d.What, site: index[d.Site], node: d.Node, lose: d.Forgets})
	}
	for _, p := range f.Pauses {
		plan(p.At, max(p.For, time.Millisecond), fault{kind: "pause", what: p.What, site: index[p.Site], node: p.Node})
	}
	for _, h := range f.Handovers {
		plan(h.At, max(h.For, time.Millisecond), fault{kind: "handover", what: "site", site: index[h.Site]})
	}
	for _, j := range f.Jumps {
		what := "site"
		if j.Site == "" {
			what = "coordinator"
		}
		plan(j.At, 0, fault{kind: "jump", what: what, site: index[j.Site], by: j.By})
	}
	return planned
}

// planDeath draws when a node dies.
func planDeath(w *world, node int) {
	if life := w.sc.Faults.NodeLife; life > 0 {
		w.after(time.Duration(w.chance.ExpFloat64()*float64(life)), evNodeDeath, int32(node), 0)
	}
}

func (x *product) fault(i int, over bool) {
	f := &x.planned[i]
	b := x.w.trace.line(x.w.now, "fault ")
	b = append(append(b, f.kind...), ' ')
	b = append(b, f.what...)
	b = appendNumber(b, "site ", int64(f.site))
	if over {
		b = append(b, " over"...)
	}
	x.w.trace.end(b)
	if f.kind != "jump" {
		x.w.judge.disturbed(over, f.tail(x.w))
	}
	switch f.kind {
	case "cut":
		for _, on := range []struct {
			yes      bool
			from, to memlink.End
		}{{f.up, x.siteEnd(f.site), 0}, {f.down, 0, x.siteEnd(f.site)}} {
			switch path := x.net.Path(on.from, on.to); {
			case !on.yes:
			case over:
				path.Heal()
			default:
				path.Break()
			}
		}
	case "death":
		x.death(f, over)
	case "pause":
		switch f.what {
		case "coordinator":
			x.coord.paused = !over
		case "site":
			x.sites[f.site].paused = !over
		}
	case "handover":
		x.handOver(f.site, 1+i, over)
	case "jump": // only what starts later sees it: room time follows the monotonic clock
		if f.what == "coordinator" {
			x.coord.wall += f.by
		} else {
			x.sites[f.site].wall += f.by
		}
	}
}

func (x *product) death(f *fault, over bool) {
	w := x.w
	switch f.what {
	case "coordinator":
		c := &x.coord
		if !over {
			c.up, c.machine, c.writing = false, nil, false
			c.number++
			x.net.Drop(0)
			return
		}
		x.start(&c.process)
		c.since = w.now
	case "site":
		s := &x.sites[f.site]
		if !over {
			s.up = false
			x.net.Drop(x.siteEnd(f.site))
			return
		}
		if f.lose {
			s.key.Incarnation++
			w.judge.forgot[f.site] = w.now
			s.journal = nil
		}
		x.startSite(f.site)
		for k := range w.sc.Sites[f.site].Nodes { // streams find a site that knows nothing of them
			x.dropStreams(int(w.firstOf[f.site]) + k)
		}
		x.settleSite(f.site)
	case "node":
		node := int(w.firstOf[f.site]) + f.node
		if !over {
			x.nodeDies(node)
			return
		}
		x.startDoor(node)
	}
}
