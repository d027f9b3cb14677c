package coordinator

import (
	"crypto/rand"
	"reflect"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/coordinator/shuffles"
	"github.com/anteroom/anteroom/engine"
)

const (
	// maxOffers is how many turns fit one message, well below cluster.MaxMessage.
	maxOffers = 32 << 10
	// restEvery is how often a room is asked whether anybody uses it.
	restEvery = time.Second
)

// room is the coordinator of one room.
type room struct {
	id    anteroom.RoomID
	key   [16]byte
	shard *shard

	mu      sync.Mutex
	ended   bool
	machine *engine.Coordinator // nil: not yet, or no more
	before  engine.Accession    // until there is one

	plan    anteroom.Room
	inForce *anteroom.InForce
	at      anteroom.Time // when inForce was found: it never goes back
	timer   *time.Timer   // when InForce.Until has come

	stage  shuffles.Stage // of the event in force or the last one
	staged bool           // and in the store
	done   anteroom.ID    // tag of the shuffle that has been done
	draw   *draw          // a shuffle that is under way

	writing  sync.Mutex // one write at a time; before mu
	revision uint64     // of the ledger record; guarded by writing
	storing  bool       // a write is under way or due
	keeping  bool       // of what is known of events
	keepAt   time.Time  // not before, after a failure
	restAt   time.Time  // not before

	recorder *analytics.Recorder // nil: nobody records
	sampled  anteroom.Time       // when the figures were recorded last

	cache engine.FiguresCache
	buf   []byte
}

func newRoom(s *shard, id anteroom.RoomID, key [16]byte, plan anteroom.Room) *room {
	r := &room{id: id, key: key, shard: s, plan: plan.WithDefaults(), staged: true, storing: true}
	if of := s.host.cfg.Recorder; of != nil {
		r.recorder = of(id)
	}
	r.evaluate(s.host.cfg.Now())
	return r
}

// newSeed keys the draws of one coordinator.
func newSeed() []byte {
	seed := make([]byte, 32)
	rand.Read(seed)
	return seed
}

// evaluate finds out what is in force. Events follow the wall clock and its corrections, but for
// those that set it back. The caller holds the lock.
func (r *room) evaluate(wall time.Time) {
	r.at = max(r.at, anteroom.TimeOf(wall))
	r.inForce = r.plan.At(r.at)
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	if until := r.inForce.Until; until != 0 && !r.ended {
		r.timer = time.AfterFunc(until.Sub(anteroom.TimeOf(wall)), r.wake)
	}
}

// wake follows the plan at the moment at which something begins or ends.
func (r *room) wake() {
	r.mu.Lock()
	r.follow()
	r.drain()
	r.mu.Unlock()
	r.shard.flush()
}

// follow does what the plan has brought since the last call, and returns room time. The caller
// holds the lock.
func (r *room) follow() anteroom.Time {
	wall := r.shard.host.cfg.Now()
	if until := r.inForce.Until; until != 0 && anteroom.TimeOf(wall) >= until && !r.ended {
		r.evaluate(wall)
		r.apply()
	}
	return r.shard.at(wall)
}

// configure takes another plan.
func (r *room) configure(plan anteroom.Room) {
	plan = plan.WithDefaults()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.plan
	if r.ended || plan.Settings == p.Settings && plan.Controls == p.Controls && reflect.DeepEqual(plan.Events, p.Events) {
		return
	}
	r.plan = plan
	r.evaluate(r.shard.host.cfg.Now())
	r.apply()
	r.drain()
}

// apply puts in force what the plan says; the line is held until it is shuffled. The caller holds
// the lock.
func (r *room) apply() {
	if r.machine == nil {
		return
	}
	now := r.shard.now()
	r.advance(now)
	r.machine.Configure(now, r.settings())
	r.gather(now)
}

func (r *room) settings() anteroom.Settings {
	s := r.inForce.Settings
	s.Prequeueing = s.Prequeueing || r.draw != nil || r.shuffleDue() // nobody is called before
	return s
}

// receive takes a site's report.
func (r *room) receive(report engine.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
	case r.machine != nil:
		now := r.follow()
		r.machine.Receive(now, report)
		r.drain()
	default:
		r.before.Hear(report)
	}
}

func (r *room) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine == nil {
		return
	}
	wall := r.shard.host.cfg.Now()
	now := r.follow()
	r.machine.Tick(now)
	r.proceed(now)
	r.keepSoon(wall)
	r.sample(now)
	r.drain()
	if wall.Sub(r.restAt) >= restEvery {
		r.restAt = wall
		r.rest(now)
	}
}

// sample records the figures once in each second. The caller holds the lock.
func (r *room) sample(now anteroom.Time) {
	const second = anteroom.Time(time.Second / time.Microsecond)
	if r.recorder == nil || r.machine == nil || now/second == r.sampled/second {
		return
	}
	r.sampled = now
	s := r.machine.Status(now)
	s.InForce = r.inForce
	r.recorder.Sample(&s)
}

// drain passes on what came of a call to the machine. The caller holds the lock.
func (r *room) drain() {
	if r.machine == nil {
		return
	}
	if r.machine.Fenced() {
		r.fenced("a site reports a newer coordinator")
		return
	}
	for _, m := range r.machine.Take() {
		if o := m.Offers; o != nil && len(o.IDs) > maxOffers {
			for ids := o.IDs; len(ids) > 0; {
				part := *o
				part.IDs = ids[:min(len(ids), maxOffers)]
				ids = ids[len(part.IDs):]
				r.send(engine.ToSite{Site: m.Site, Offers: &part})
			}
			continue
		}
		r.send(m)
	}
	r.storeSoon()
}

func (r *room) send(m engine.ToSite) {
	r.buf = r.cache.AppendToSite(r.buf[:0], &m)
	r.shard.send(m.Site.Name, r.key, r.buf)
}

// fenced drops the room: another host has it. When that had an older epoch of the role, the next
// report opens it again.
func (r *room) fenced(why string) {
	r.shard.host.counts.fenced.Add(1)
	r.shard.fenced.Store(true)
	r.shard.complain("another node coordinates a room now", "room", string(r.id), "why", why)
	r.stop()
	go r.shard.drop(r)
}

// end is the end of this coordinator: nothing more comes of it.
func (r *room) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
}

// stop is end for a caller that holds the lock.
func (r *room) stop() {
	r.ended, r.machine, r.before, r.draw = true, nil, engine.Accession{}, nil
	if r.timer != nil {
		r.timer.Stop()
	}
}
