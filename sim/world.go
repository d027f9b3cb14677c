package sim

import (
	"cmp"
	"context"
	"io"
	"math/rand/v2"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// Options of a run; the zero value runs the product without a word.
type Options struct {
	Algorithm string // one of Algorithms; empty means Anteroom
	// Progress is called now and then with the virtual time that has passed and the whole.
	Progress func(done, total time.Duration)
	// Trace takes every decision and message as a line of text. Nil: only its hash is made.
	Trace io.Writer
}

// epoch is the true time at which every run starts.
var epoch = anteroom.TimeOf(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))

// system is what visitors meet: the product, a published way of sharing slots, or the ideal.
type system interface {
	// request hands in a request at a node; world.answered follows, perhaps before it returns.
	request(r uint32)
	// closed says that a visitor's stream at a node has ended.
	closed(node, who int32)
	// revoke has a node end a session, as the origin asks; false: nobody is there to do it.
	revoke(node int32, id anteroom.ID) bool
	// reported has a node hear from an edge that it has let in somebody with a ticket; taken is called if the session goes on.
	reported(node int32, t anteroom.Ticket, taken func())
	// event is one that the system scheduled.
	event(e event)
	// next is when the system has something to do beside its events; ok is false when never.
	next() (at anteroom.Time, ok bool)
	// advance does what is due at w.now.
	advance()
	// configure puts new settings in force.
	configure(s anteroom.Settings)
	// act has an operator do something.
	act(a Act)
	// inLine says whether a ticket that waits has a place in the room's line.
	inLine(id anteroom.ID) bool
	// silence is how long a node has been out of touch with its site.
	silence(node int32) time.Duration
	// roomTime is what the site of a node takes for the time, once it has heard a coordinator; without a process of the site, what the node does.
	roomTime(node int32) (t anteroom.Time, known bool)
	// settled says that every unit is back which nobody uses; while a grant is on its way, it is nowhere.
	settled() bool
	// finish fills in what only the system knows.
	finish(n *Numbers)
}

// world is a run under way.
type world struct {
	sc    Scenario
	opt   Options
	now   anteroom.Time
	end   anteroom.Time
	queue eventQueue

	nodes    []place // all nodes of all sites
	firstOf  []int32 // first node of each site
	loads    [][]float64
	arrivals []arrival
	arrived  int
	emptyAt  anteroom.Time // since when nobody is here, and no clone of a cookie was let in
	turnedAt anteroom.Time // when the page last said something else

	people   []person
	byID     map[anteroom.ID]int32     // waiting tickets that a stream or an offer may name
	lanes    map[anteroom.ID]uint8     // of all tickets, in a world with lanes
	fetched  int64                     // the stretch of the queue whose people are at hand
	unused   anteroom.Time             // what fetch has read
	kept     map[int32]anteroom.Ticket // waiting cookies to come back with after the session
	copies   map[anteroom.ID]bool      // tickets that were used again, see copied
	requests []request
	spare    []uint32
	ids      *rand.Rand
	crowd    *rand.Rand
	chance   *rand.Rand // of faults
	calls    []func()   // see later

	spareCalls []int32

	system system
	origin *origin // nil: the scenario has none
	edges  *edges  // nil: the room issues no passes
	judge  *judge
	trace  *trace
}

// place is a node of a site.
type place struct {
	site  int16
	index int16
}

type eventKind uint8

const (
	evWake      eventKind = iota // a person does what is next; arg is its generation
	evLeave                      // a person gives up
	evExtra                      // a person's additional request: reload, tab
	evStream                     // a person opens a stream
	evCheck                      // a page with a stream asks where its visitor is
	evDrop                       // a person's stream breaks, and the browser opens another
	evParts                      // a browser loads the parts of a page
	evSleep                      // a person's phone falls asleep; arg 1: wakes up
	evRoam                       // a person goes on at another site
	evClone                      // a second client uses the person's cookie
	evQuit                       // a person gives up the place by the button of the page
	evReplay                     // a person comes back with an old ticket
	evChange                     // settings; who indexes Scenario.Changes
	evAct                        // who indexes Scenario.Acts
	evPoint                      // a point of the result
	evFault                      // who indexes the plan of faults, arg 1 ends it
	evTick                       // who is the end of a process
	evFlush                      // who is a node
	evCall                       // who indexes world.calls
	evNodeDeath                  // who is a node
)

type event struct {
	at   anteroom.Time
	seq  uint64
	kind eventKind
	who  int32
	arg  uint32
}

func (w *world) after(d time.Duration, kind eventKind, who int32, arg uint32) {
	w.queue.push(event{at: w.now.Add(d), kind: kind, who: who, arg: arg})
}

// later calls fn after a while.
func (w *world) later(d time.Duration, fn func()) {
	slot := int32(len(w.calls))
	if n := len(w.spareCalls); n > 0 {
		slot, w.spareCalls = w.spareCalls[n-1], w.spareCalls[:n-1]
		w.calls[slot] = fn
	} else {
		w.calls = append(w.calls, fn)
	}
	w.after(d, evCall, slot, 0)
}

func (w *world) since(t anteroom.Time) time.Duration { return t.Sub(epoch) }

// Run runs the scenario from the seed. The error is about the scenario (see Check) or
// ctx's; a broken promise is in the Result.
func Run(ctx context.Context, sc Scenario, seed uint64, opt Options) (*Result, error) {
	began := time.Now()
	w, err := newWorld(sc, seed, opt)
	if err != nil {
		return nil, err
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	return w.result(seed, time.Since(began)), nil
}

// newWorld returns the scenario's world before anything has happened in it.
func newWorld(sc Scenario, seed uint64, opt Options) (*world, error) {
	sc = sc.withDefaults()
	if err := sc.Check(); err != nil {
		return nil, err
	}
	opt.Algorithm = cmp.Or(opt.Algorithm, Anteroom)
	w := &world{sc: sc, opt: opt, now: epoch, end: epoch.Add(sc.Length), byID: map[anteroom.ID]int32{}, lanes: map[anteroom.ID]uint8{}, kept: map[int32]anteroom.Ticket{}, copies: map[anteroom.ID]bool{},
		ids:    rand.New(rand.NewPCG(seed, 1)),
		crowd:  rand.New(rand.NewPCG(seed, 2)),
		chance: rand.New(rand.NewPCG(seed, 3)),
		trace:  newTrace(opt.Trace),
	}
	w.layout()
	w.arrivals = arrivalsOf(sc, rand.New(rand.NewPCG(seed, 4)))
	w.judge = newJudge(w)
	w.origin, w.edges = newOrigin(w), newEdges(w, seed)
	w.requests = make([]request, 1) // 0 names none
	switch opt.Algorithm {
	case Anteroom:
		w.system = newProduct(w, seed)
	case Ideal:
		w.system = newIdeal(w)
	default:
		w.system = newPublished(w, seed)
	}
	for i := range sc.Acts {
		w.after(sc.Acts[i].At, evAct, int32(i), 0)
	}
	for i := range sc.Changes {
		w.after(sc.Changes[i].At, evChange, int32(i), 0)
	}
	w.after(0, evPoint, 0, 0)
	return w, nil
}

func (w *world) layout() {
	for i, s := range w.sc.Sites {
		w.firstOf = append(w.firstOf, int32(len(w.nodes)))
		for k := range s.Nodes {
			w.nodes = append(w.nodes, place{site: int16(i), index: int16(k)})
		}
		w.loads = append(w.loads, cumulative(s.Loads, s.Nodes))
	}
}

// cumulative turns relative loads into an ascending scale that ends at 1.
func cumulative(loads []float64, n int) []float64 {
	out, sum := make([]float64, n), 0.0
	for i := range out {
		if len(loads) == 0 {
			sum++
		} else {
			sum += loads[i]
		}
		out[i] = sum
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func pick(scale []float64, x float64) int {
	for i, at := range scale {
		if x < at {
			return i
		}
	}
	return len(scale) - 1
}

// run is the loop: arrivals, events and what the system has to do, in the order of time.
func (w *world) run(ctx context.Context) error {
	longest := epoch.Add(MaxLength)
	total := w.sc.Length
	for n := 0; ; n++ {
		if n&0xfff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if w.opt.Progress != nil && n&0xffff == 0 {
				w.opt.Progress(min(w.since(w.now), total), total)
			}
		}
		const none = anteroom.Time(1<<63 - 1)
		at, which := none, 0
		if w.arrived < len(w.arrivals) {
			at, which = epoch.Add(w.arrivals[w.arrived].at), 1
		}
		if t, ok := w.queue.first(); ok && t < at {
			at, which = t, 2
			w.fetch()
		}
		if t, ok := w.system.next(); ok && t < at {
			at, which = t, 3
		}
		if !w.empty() {
			w.emptyAt = w.now
		}
		if which == 0 || at > w.end && !(w.sc.Drain && at <= longest && w.drains()) {
			w.now = max(w.now, min(at, w.end))
			w.judge.settle()
			if w.opt.Progress != nil {
				w.opt.Progress(total, total)
			}
			return nil
		}
		w.now = max(w.now, at)
		switch which {
		case 1:
			w.arrive()
		case 2:
			w.handle(w.queue.pop())
		case 3:
			w.system.advance()
		}
	}
}

// fetch reads the people for whom something happens in the present stretch of time. Their
// records are far apart and none is in the processor's cache: read one after the other they
// are fetched all at once, where each would be waited for when its turn comes.
func (w *world) fetch() {
	if w.queue.present == w.fetched {
		return
	}
	w.fetched = w.queue.present
	for i := range w.queue.near {
		if e := &w.queue.near[i]; e.kind <= evReplay {
			p := &w.people[e.who]
			w.unused += p.ticket.Arrival + p.expected
		}
	}
}

// empty says that nobody is to come, waits or browses.
func (w *world) empty() bool {
	return w.arrived == len(w.arrivals) && w.judge.outside == 0 && w.judge.inside == 0
}

// drains says that something is about to come back still: for some seconds longer than must be, because
// messages are under way.
func (w *world) drains() bool {
	return w.now < w.quiet() || w.empty() && w.now < w.quiet().Add(5*time.Second) && !w.system.settled()
}

// quiet is when the last sessions and minutes of those who were here must have passed. A node that ended may
// have let sessions in for as long as no other process speaks for it.
func (w *world) quiet() anteroom.Time {
	d := w.judge.set.SeatDuration()
	if w.sc.Faults.NodeLife > 0 {
		d += engine.AloneFor(d)
	}
	return w.emptyAt.Add(max(d, engine.RateHold) + 5*time.Second)
}

func (w *world) handle(e event) {
	switch e.kind {
	case evChange:
		before, now := w.judge.set, w.sc.settingsAt(w.since(w.now))
		w.judge.limits(now)
		w.system.configure(now)
		if before.QueueingMethod != now.QueueingMethod || before.QueueAll != now.QueueAll || before.Suspended != now.Suspended {
			w.turned()
		}
	case evAct:
		a := w.sc.Acts[e.who]
		if a.What == "reset" {
			w.judge.resets()
			w.judge.limits(w.sc.settingsAt(w.since(w.now)))
			w.system.configure(w.judge.set)
			w.turned()
		}
		w.system.act(a)
	case evPoint:
		w.judge.point()
		w.after(w.sc.step(), evPoint, 0, 0)
	case evCall:
		fn := w.calls[e.who]
		w.calls[e.who], w.spareCalls = nil, append(w.spareCalls, e.who)
		fn()
	case evFault, evTick, evFlush, evNodeDeath:
		w.system.event(e)
	default:
		w.act(e)
	}
}

func (w *world) newID() (id anteroom.ID) {
	a, b := w.ids.Uint64(), w.ids.Uint64()
	for i := range 8 {
		id[i], id[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	return id
}
