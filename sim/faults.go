package sim

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// fault is one of the plan's.
type fault struct {
	kind string // "cut", "death", "pause", "stall", "jump", "handover"
	what string
	site int
	node int
	loss float64       // of a cut that lets some messages through
	slow time.Duration // or all of them, later
	up   bool
	down bool
	lose bool
	by   time.Duration

	lasts   time.Duration
	passes  bool          // it excuses that somebody is passed
	takes   time.Duration // after which another process takes the role of one that is stopped; 0: none does
	orderly bool
	older   []*coordinatorProcess // that go on
	before  []*siteProcess
}

// settles is how long a room needs after a fault.
const settles = 20 * time.Second

// brief is how long a role may be without a holder before the others take it for lost: a site whose
// process has ended is passed over after engine.DeadAfter, and its successor needs a moment.
const brief = engine.DeadAfter - time.Second

// change says that the fault is a change of roles, after which nobody may be passed. A coordinator begins
// by writing its record, and writes it again before it gives anything.
func (f *fault) change(w *world) bool {
	without := time.Duration(0)
	switch f.kind {
	case "handover":
	case "death":
		without = f.lasts
	default:
		return false
	}
	if f.what == "coordinator" {
		without += 2 * w.sc.Faults.SlowStore
	}
	return (f.what == "coordinator" || f.what == "site") && without <= brief && !f.lose
}

// begins says that another coordinator has begun when the fault is over.
func (f *fault) begins() bool {
	return f.what == "all" || f.what == "coordinator" && (f.kind == "death" || f.kind == "handover" || f.takes > 0)
}

// tail is how long a fault is felt after it is over. What a site held that died is charged
// until its sessions must have ended, for nobody knows who came meanwhile; visitors who poll
// come back when they were told to. A site that starts while it is cut off begins to wait when
// the cut is over. Sessions that a lost node may have let in are held until that is ruled out.
func (f *fault) tail(w *world) time.Duration {
	d := w.judge.set.SeatDuration()
	after := settles
	if w.sitesDie() && f.kind != "handover" && (f.kind == "cut" || f.what == "site" || f.what == "process" || f.what == "all") {
		after = max(after, settles+max(d, engine.RateHold))
	}
	if f.kind != "handover" && (f.what == "node" || f.what == "process" || f.what == "all") {
		after = max(after, engine.AloneFor(d)+d)
	}
	return after
}

func (w *world) sitesDie() bool {
	return len(w.sc.Faults.Handovers) > 0 || slices.ContainsFunc(w.sc.Faults.Deaths, func(d Death) bool { return d.What != "coordinator" && d.What != "node" })
}

// planFaults schedules the scenario's faults.
func planFaults(w *world) (planned []fault) {
	index := map[string]int{}
	for i, s := range w.sc.Sites {
		index[s.Name] = i
	}
	plan := func(at, lasts time.Duration, one fault) {
		one.lasts = lasts
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
		plan(c.At, max(c.For, time.Millisecond), fault{kind: "cut", what: c.What, site: index[c.Site], node: c.Node, loss: c.Loses, slow: c.Slow, up: c.Up || both, down: c.Down || both})
	}
	for _, d := range f.Deaths {
		plan(d.At, max(d.For, time.Millisecond), fault{kind: "death", what: d.What, site: index[d.Site], node: d.Node, lose: d.Forgets})
	}
	for _, p := range f.Pauses {
		plan(p.At, max(p.For, time.Millisecond), fault{kind: "pause", what: p.What, site: index[p.Site], node: p.Node, takes: p.Replaced})
	}
	for _, s := range f.Stalls {
		what := "site"
		if s.Site == "" {
			what = "coordinator"
		}
		plan(s.At, max(s.For, time.Millisecond), fault{kind: "stall", what: what, site: index[s.Site]})
	}
	for _, h := range f.Handovers {
		what := "site"
		if h.Site == "" {
			what = "coordinator"
		}
		plan(h.At, max(h.For, time.Millisecond), fault{kind: "handover", what: what, site: index[h.Site], orderly: h.Orderly})
	}
	for _, j := range f.Jumps {
		plan(j.At, 0, fault{kind: "jump", what: "site", site: index[j.Site], by: j.By})
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
		x.w.judge.disturbed(over, f)
	}
	switch f.kind {
	case "cut":
		x.cut(f, over)
	case "death":
		x.death(f, over)
	case "pause":
		x.pause(f, over)
	case "stall":
		if f.what == "coordinator" {
			x.stalled = !over
		} else {
			x.sites[f.site].stalled = !over
		}
	case "handover":
		x.handOver(f, over)
	case "jump": // only what starts later sees it: room time follows the monotonic clock
		x.sites[f.site].computer.wall += f.by
	}
}

// cut breaks the way of a site to the coordinator, or that of a node to its site.
func (x *product) cut(f *fault, over bool) {
	here, there := x.siteEnd(f.site), memlink.End(0)
	if f.what == "node" {
		node := int(x.w.firstOf[f.site]) + f.node
		here, there = x.nodeEnd(node), x.siteEnd(f.site)
		if f.up && f.loss == 0 && f.slow == 0 {
			x.quiets(node, over)
		}
	}
	for _, on := range []struct {
		yes      bool
		from, to memlink.End
	}{{f.up, here, there}, {f.down, there, here}} {
		switch path := x.net.Path(on.from, on.to); {
		case !on.yes:
		case f.loss+f.slow.Seconds() > 0 && over:
			path.Loss, path.Delay = path.Loss-f.loss, path.Delay-f.slow
		case f.loss+f.slow.Seconds() > 0:
			path.Loss, path.Delay = path.Loss+f.loss, path.Delay+f.slow
		case over:
			path.Heal()
		default:
			path.Break()
		}
	}
}

// quiets notes that the other nodes of its site cannot hear one, or can again.
func (x *product) quiets(node int, over bool) {
	d := &x.doors[node]
	if over {
		d.quiet--
	} else if d.quiet++; d.quiet == 1 {
		d.quietAt = x.w.now
	}
}

// unheard returns the doors of a site that have ended or fallen silent so long ago that it has been noticed.
func (x *product) unheard(site int) (doors []uint64) {
	for node := range x.doors {
		if d := &x.doors[node]; d.site == site && (!d.up || d.quiet > 0) && x.w.now.Sub(d.quietAt) >= silentFor {
			doors = append(doors, d.id)
		}
	}
	return doors
}

func (x *product) death(f *fault, over bool) {
	switch f.what {
	case "coordinator":
		x.coordinatorDies(over)
	case "site":
		x.siteDies(f, f.site, over)
	case "node", "process":
		if node := int(x.w.firstOf[f.site]) + f.node; over {
			x.startDoor(node)
		} else {
			x.nodeDies(node)
		}
		if f.what == "process" {
			x.siteDies(f, f.site, over)
		}
	case "all":
		x.coordinatorDies(over)
		for i := range x.sites {
			x.siteDies(f, i, over)
		}
		for node := range x.doors {
			if over {
				x.startDoor(node)
			} else {
				x.nodeDies(node)
			}
		}
	}
}

func (x *product) coordinatorDies(over bool) {
	if !over {
		x.coord = nil
		x.net.Drop(0)
	} else if len(x.coord) == 0 {
		x.startCoordinator()
	}
}

func (x *product) siteDies(f *fault, i int, over bool) {
	s := &x.sites[i]
	switch {
	case !over:
		for _, p := range s.holders {
			x.leave(i, p)
		}
		x.net.Drop(x.siteEnd(i))
		x.w.judge.died[i] = x.w.now
		return
	case len(s.holders) > 0: // another fault was over first
		return
	case f.lose:
		s.key.Incarnation++
		s.journal, s.mark = nil, 0
		x.w.judge.forgot[i] = x.w.now
	}
	x.takeOver(i)
}

// pause stops a process. Another takes a role over that it has when the others have not heard of
// it for long enough; what was stopped goes on for a moment before it notices.
func (x *product) pause(f *fault, over bool) {
	switch f.what {
	case "node":
		node := int(x.w.firstOf[f.site]) + f.node
		d := &x.doors[node]
		x.quiets(node, over)
		if !over {
			d.paused = d.up
		} else if d.up && d.paused {
			x.goOn(&d.process, func(m memlink.Message) { x.atDoor(node, m.Data) })
		}
	case "coordinator":
		for _, c := range x.coord {
			if !over {
				c.paused = true
				if f.takes > 0 {
					x.w.later(f.takes, func() {
						if c.paused && slices.Contains(x.coord, c) {
							x.startCoordinator()
						}
					})
				}
			} else if c.paused {
				x.goOn(&c.process, func(m memlink.Message) { x.atCoordinator(c, m.Data) })
			}
		}
	case "site":
		for _, p := range x.sites[f.site].holders {
			if !over {
				p.paused = true
				if f.takes > 0 {
					x.w.later(f.takes, func() {
						if p.paused && p == x.holder(f.site) {
							x.takeOver(f.site)
						}
					})
				}
			} else if p.paused {
				x.goOn(&p.process, func(m memlink.Message) { x.atSite(f.site, p, m) })
				x.w.later(noticing, func() { x.notices(f.site, p) })
			}
		}
	}
}

// noticing is how long a process takes itself for the holder of a role that it has lost.
const noticing = 300 * time.Millisecond

// notices ends a process that is not the site any more.
func (x *product) notices(i int, p *siteProcess) {
	if p != x.holder(i) && slices.Contains(x.sites[i].holders, p) {
		x.leave(i, p)
	}
}

// handOver has another process take a role. In good order, the one before takes nothing more,
// finishes what is under way, and only then gives the role up; else it goes on until the fault is
// over, with the same messages.
func (x *product) handOver(f *fault, over bool) {
	if f.what == "coordinator" {
		switch {
		case len(x.coord) == 0: // nobody has the role
		case f.orderly:
			if !over {
				x.coord = nil
				x.startCoordinator()
			}
		case !over:
			f.older = append(f.older[:0], x.coord...)
			x.startCoordinator()
		default:
			x.coord = slices.DeleteFunc(slices.Clone(x.coord), func(c *coordinatorProcess) bool { return slices.Contains(f.older, c) })
		}
		return
	}
	p := x.holder(f.site)
	switch {
	case over:
		for _, p := range f.before {
			x.notices(f.site, p)
		}
	case p == nil:
	case f.orderly:
		p.over = true
		x.handOverWhenDone(f.site, p)
	default:
		f.before = append(f.before[:0], p)
		x.takeOver(f.site)
	}
}

// handOverWhenDone hands a role over when what is under way is recorded and told.
func (x *product) handOverWhenDone(i int, p *siteProcess) {
	switch {
	case !slices.Contains(x.sites[i].holders, p):
	case p.outbox.Last() != nil:
		x.w.later(writing, func() { x.handOverWhenDone(i, p) })
	default:
		newest := p == x.holder(i)
		x.leave(i, p)
		if newest { // one that was stopped before it has lost the role for good
			x.takeOver(i)
		}
	}
}
