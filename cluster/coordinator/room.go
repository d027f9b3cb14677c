package coordinator

import (
	"crypto/rand"
	"reflect"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster/coordinator/shuffles"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

const (
	// maxOffers is how many turns fit into one message, well below cluster.MaxMessage.
	maxOffers = 32 << 10
	// restEvery is how often a room checks whether it is still in use.
	restEvery = time.Second
)

// room is the coordinator of one room.
type room struct {
	id    anteroom.RoomID
	key   [16]byte
	shard *shard

	mu      sync.Mutex
	ended   bool
	machine *engine.Coordinator // nil before the start and after the end
	before  engine.Accession    // collects reports until there is a machine

	plan    anteroom.Room
	inForce *anteroom.InForce
	at      anteroom.Time // time of inForce
	timer   *time.Timer   // fires at InForce.Until

	stage  shuffles.Stage // phase of the event in force, or of the last one
	staged bool           // stage is in the store
	done   anteroom.ID    // tag of the completed shuffle
	draw   *draw          // a shuffle in progress

	writing  sync.Mutex // one write at a time; taken before mu
	revision uint64     // of the ledger record; guarded by writing
	storing  bool       // a write is in progress or due
	keeping  bool       // the stage is being written
	keepAt   time.Time  // no attempt before this, after a failure
	restAt   time.Time  // no check before this

	recorder *analytics.Recorder // nil: figures are not recorded
	sampled  anteroom.Time       // when the figures were last recorded

	cache engine.FiguresCache
	buf   []byte
}

func newRoom(s *shard, id anteroom.RoomID, key [16]byte, plan anteroom.Room) *room {
	// A room without events has nothing to store about them, and storing stays set until begin has read and written the
	// first record.
	r := &room{id: id, key: key, shard: s, plan: plan.WithDefaults(), staged: true, storing: true}
	if of := s.host.cfg.Recorder; of != nil {
		r.recorder = of(id)
	}
	r.evaluate(s.host.cfg.Now())
	return r
}

// newSeed returns the key of one coordinator's random order. It is secret and new each time, so that no one can predict
// who is called next.
func newSeed() []byte {
	seed := make([]byte, 32)
	rand.Read(seed)
	return seed
}

// evaluate determines what is in force. Events follow the wall clock and its corrections, except for small steps back:
// an event that has begun must not begin again. The caller holds the lock.
func (r *room) evaluate(wall time.Time) {
	if at := anteroom.TimeOf(wall); at > r.at || at < r.at.Add(-walltime.SetBack) {
		r.at = at
	}
	r.inForce = r.plan.AtWithAhead(r.at)
	r.arm(wall)
}

// arm sets the timer for what begins or ends next. The caller holds the lock.
func (r *room) arm(wall time.Time) {
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	// A timer instead of the tick: an event has to start on time even if the host's ticks are late.
	if until := r.inForce.Until; until != 0 && !r.ended {
		r.timer = time.AfterFunc(until.Sub(anteroom.TimeOf(wall)), r.wake)
	}
}

// wake applies the plan when something begins or ends.
func (r *room) wake() {
	r.mu.Lock()
	r.follow()
	r.arm(r.shard.host.cfg.Now()) // the clock may have been set back meanwhile
	r.drain()
	r.mu.Unlock()
	r.shard.flush()
}

// follow applies what has changed in the plan since the last call, and returns room time. The caller holds the lock.
func (r *room) follow() anteroom.Time {
	wall := r.shard.host.cfg.Now()
	// The timer may fire late. Every call therefore checks the time itself, so that no decision is made under the
	// settings of an event that is over.
	at, until := anteroom.TimeOf(wall), r.inForce.Until
	if due := until != 0 && at >= until || len(r.plan.Events) > 0 && at < r.at.Add(-walltime.SetBack); due && !r.ended {
		r.evaluate(wall)
		r.apply()
	}
	return r.shard.at(wall)
}

// configure puts a changed plan in force.
func (r *room) configure(plan anteroom.Room) {
	plan = plan.WithDefaults()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.plan
	// Most changes of the configuration do not concern this room, and each call of the machine may send messages to all
	// sites.
	if r.ended || plan.Settings == p.Settings && plan.Controls == p.Controls && reflect.DeepEqual(plan.Events, p.Events) {
		return
	}
	r.plan = plan
	r.evaluate(r.shard.host.cfg.Now())
	r.apply()
	r.drain()
}

// apply puts in force what the plan says. Admissions stop until a due shuffle is done. The caller holds the lock.
func (r *room) apply() {
	if r.machine == nil {
		return
	}
	now := r.shard.now()
	// The stage first: it may begin a shuffle, and the settings below then stop admissions.
	r.advance(now)
	r.machine.Configure(now, r.settings())
	r.gather(now)
}

func (r *room) settings() anteroom.Settings {
	s := r.inForce.Settings
	s.Prequeueing = s.Prequeueing || r.draw != nil || r.shuffleDue() // no one is called before the shuffle is done
	return s
}

// receive takes a site's report.
func (r *room) receive(report engine.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
	case r.machine != nil:
		// The plan first: the report has to be judged by the settings that are in force now.
		now := r.follow()
		r.machine.Receive(now, report)
		r.drain()
	default:
		// The machine is not there yet. The report waits, so that the first decisions already know of every site.
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

// sample records the figures once per second. The caller holds the lock.
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

// drain sends what the last call of the machine produced. The caller holds the lock.
func (r *room) drain() {
	if r.machine == nil {
		return
	}
	// A site has heard from a newer coordinator. From now on nothing that this one says may leave: the newer one has
	// granted the same units.
	if r.machine.Fenced() {
		r.fenced("a site reports a newer coordinator")
		return
	}
	for _, m := range r.machine.Take() {
		// Sites take offers one message at a time, so a long list may be cut anywhere.
		if o := m.Offers; o != nil && len(o.IDs) > maxOffers {
			for ids := o.IDs; len(ids) > 0; {
				part := *o
				part.IDs = ids[:min(len(ids), maxOffers)]
				ids = ids[len(part.IDs):]
				r.send(engine.ToSite{Site: m.Site, Offers: &part})
				o.Ahead = nil // the first part has them
			}
			continue
		}
		r.send(m)
	}
	// A grant beyond the stored bound stays in the machine until the record is written.
	r.storeSoon()
}

func (r *room) send(m engine.ToSite) {
	r.buf = r.cache.AppendToSite(r.buf[:0], &m)
	r.shard.send(m.Site.Name, r.key, r.buf)
}

// fenced drops the room, because another host has taken it over. If that host had an older epoch of the role, the next
// report opens the room here again.
func (r *room) fenced(why string) {
	r.shard.host.counts.fenced.Add(1)
	r.shard.fenced.Store(true)
	r.shard.complain("another node coordinates a room now", "room", string(r.id), "why", why)
	r.stop()
	go r.shard.drop(r) // drop ends the room, which takes the lock held here
}

// end stops this coordinator: it sends nothing from now on.
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
