package node

// A room whose site decides: what this node's door tells it and hears from it.

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

// far is the connection of a room to its site, which decides.
type far struct {
	*Room
	of      *member
	doorway *engine.Doorway // the machine; nil until somebody comes
	shard   *shard
	raw     [16]byte      // the room's id
	step    time.Duration // by which the shard's clock was set, as far as the machine knows
	saying  bool          // among shard.waiting; guarded by its lock
	cache   engine.FiguresCache

	asking  sync.Mutex // one request for the live figures at a time
	asked   time.Time  // the last time; guarded by asking
	numbers anteroom.Status

	drawn draws
}

// openFar opens a room at a node of a cluster. A door that nobody has come to has nothing to tell and need not hear: it begins as that of a new
// process would.
func (x *member) openFar(room *anteroom.Room) *Room {
	r := &far{Room: newRoom(x.node, room), of: x, shard: x.shards[cluster.ShardOf(string(room.ID))]}
	hex.Decode(r.raw[:], []byte(room.ID))
	r.decider = r
	r.schedule.evaluate(walltime.Now())
	return r.Room
}

func (r *far) begin() {
	r.doorway = engine.NewDoorway(r.of.cfg.Process, r.schedule.inForce.Settings)
	r.doorway.SetNode(r.of.number)
	r.doorway.OnFailure(r.node.lenient.Load())
	r.use(r.doorway)
	r.Room.apply()
}

func (r *far) visit(now anteroom.Time, v anteroom.Visit) (d anteroom.Decision, held uint64) {
	return r.doorway.Visit(now, v)
}

func (r *far) origin(_ anteroom.Time, f engine.OriginFacts) { r.doorway.Origin(f) }

func (r *far) settled() {
	// A visitor waits for the answer to this question; all other messages wait for the tick, where they share one message.
	if r.doorway.Urgent() {
		r.shard.say(r, true)
	}
}

func (r *far) ticked(anteroom.Time) {
	// The flag may change at any time, and doors have no other way to learn of it.
	r.doorway.OnFailure(r.node.lenient.Load())
	r.shard.say(r, false)
}

func (r *far) idle() bool { return r.doorway.Idle() }

// end has the door say its last word, and reports whether the site has confirmed it.
func (r *far) end() (confirmed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine == nil || r.doorway.End(r.now()) {
		return true
	}
	r.shard.say(r, true)
	return false
}

func (r *far) admitNow(ctx context.Context, n int) (int, error) {
	return r.of.client.AdmitNow(ctx, r.id, n)
}

// What is not a door's to do: the site records, restarts and calls.

func (r *far) restart() func(context.Context) error                              { return nil }
func (r *far) apply(anteroom.Time, time.Time)                                    {}
func (r *far) recorded(anteroom.Time) bool                                       { return true }
func (r *far) record()                                                           {}
func (r *far) onRecord(_ context.Context, d anteroom.Decision) anteroom.Decision { return d }

// hear handles a message of the site to this room.
func (r *far) hear(body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.doorway == nil {
		return
	}
	m, err := r.cache.ParseToDoor(body)
	if err != nil {
		r.of.malformed(r.id, err)
		return
	}
	if r.shard.clock.hear(m.Echo, m.Now); !r.shard.clock.synced() {
		// While room time is not known here, an echo says nothing about the age of the answer.
		m.Echo = 0
	}
	now := r.now()
	r.doorway.Receive(now, m)
	r.settle(now)
}

func (r *far) now() anteroom.Time { return r.timeAt(walltime.Now()) }

// timeAt returns room time. It also tells the machine by how much the clock has been set since the last call, possibly
// by the answer to another room. The caller holds the room's lock.
func (r *far) timeAt(wall time.Time) anteroom.Time {
	now, step := r.shard.clock.read(wall)
	if step != r.step {
		if r.doorway != nil {
			r.doorway.ClockSet(step - r.step)
		}
		r.step = step
	}
	return now
}

// status asks the coordinator at most once per statusFor, however many pages show the
// room.
func (r *far) status() anteroom.Status {
	r.asking.Lock()
	if time.Since(r.asked) >= statusFor {
		ctx, cancel := context.WithTimeout(context.Background(), statusFor)
		said, err := r.of.client.Status(ctx, r.id)
		cancel()
		r.asked = time.Now()
		if r.numbers = said.Status; err != nil {
			r.numbers = anteroom.Status{Mode: engine.Cut.String()}
		}
	}
	s := r.numbers
	r.asking.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.follow()
	if s.At == 0 { // the coordinator did not answer
		set := r.schedule.inForce.Settings
		s.At, s.TotalActiveUsers, s.NewPerMinute, s.Pace = now, set.TotalActiveUsers, set.NewUsersPerMinute, set.NewUsersPerMinute
	}
	return s
}

// find looks in all sites.
func (r *far) find(ctx context.Context, prefix []byte) ([]engine.Visitor, error) {
	answers, unheard := r.of.askAll(ctx, r.shard.number, question{Op: "find", Room: r.id, ID: hex.EncodeToString(prefix)})
	best := map[anteroom.ID]engine.Visitor{}
	var order []anteroom.ID
	for _, a := range answers {
		for _, v := range a.Visitors {
			old, known := best[v.ID]
			if !known {
				order = append(order, v.ID)
			}
			// A ticket may be known as used at one site and have a session at another.
			if !known || old.Standing == engine.Used || v.Standing == engine.Seated {
				best[v.ID] = v
			}
		}
	}
	var found []engine.Visitor
	for _, id := range order[:min(len(order), maxFound)] {
		v := best[id]
		v.AheadKnown = v.AheadKnown && !r.shuffling()
		found = append(found, v)
	}
	if len(found) == 0 && len(unheard) > 0 {
		return nil, unheardError("no visitor was found", unheard)
	}
	return found, nil
}

func (r *far) endSession(ctx context.Context, id anteroom.ID) (bool, error) {
	answers, unheard := r.of.askAll(ctx, r.shard.number, question{Op: "revoke", Room: r.id, ID: hex.EncodeToString(id[:])})
	if slices.ContainsFunc(answers, func(a reply) bool { return a.Done }) {
		return true, nil
	}
	if len(unheard) == 0 {
		return false, nil
	}
	if r.Revoke(id) { // ends it at this node, and at the site as soon as it hears of it
		return true, nil
	}
	return false, unheardError("no session was found", unheard)
}

// revoked asks all sites. When there are too many, each has the same share, with its newest.
func (r *far) revoked(ctx context.Context) (ids []anteroom.ID, complete bool) {
	answers, unheard := r.of.askAll(ctx, r.shard.number, question{Op: "revoked", Room: r.id})
	const size = len(anteroom.ID{})
	complete = len(unheard) == 0
	for _, a := range answers {
		n := min(len(a.Revoked)/size, engine.MaxRevoked/len(answers))
		for i := range n {
			ids = append(ids, anteroom.ID(a.Revoked[i*size:]))
		}
		complete = complete && !a.More && n*size == len(a.Revoked)
	}
	return ids, complete
}
