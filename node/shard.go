package node

// The doors of a node: what its rooms tell the site and hear from it, one shard of rooms at a time.

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

// gatherFor is how long requests collect after a message has left, to share the next one. The first request after a
// pause leaves at once: waiting would only slow it down.
const gatherFor = 250 * time.Microsecond

// Subjects. Messages between doors and their site stay inside the site; all others reach all sites.
func toSiteSubject(shard int) string            { return fmt.Sprintf("site.%02d", shard) }
func toDoorSubject(process uint64) string       { return fmt.Sprintf("door.%016x", process) }
func toDoorsSubject(shard int) string           { return fmt.Sprintf("doors.%02d", shard) }
func toCoordinatorSubject(shard int) string     { return fmt.Sprintf("coordinator.%02d", shard) }
func fromCoordinator(site string, s int) string { return fmt.Sprintf("to.%s.%02d", site, s) }
func askSiteSubject(shard int) string           { return fmt.Sprintf("ask.site.%02d", shard) }
func askThatSite(site string, shard int) string { return fmt.Sprintf("ask.%s.%02d", site, shard) }
func askViaHub(shard int) string                { return fmt.Sprintf("via.%02d", shard) }

// shard connects the doors of a shard to their site.
type shard struct {
	number int
	node   *Node
	site   cluster.Space
	clock  roomClock
	wake   chan struct{}

	mu      sync.Mutex // taken after a room's lock
	waiting []*Room    // rooms with something to send
	lost    uint64     // messages that could not be sent

	buffer, frame []byte // of flush, which only one goroutine calls
}

func newShard(n *Node, number int) *shard {
	s := &shard{number: number, node: n, site: n.cfg.Link.Site(), wake: make(chan struct{}, 1)}
	s.clock.own = n.clock
	return s
}

// say queues the room's message: an urgent one leaves at once, with everything else that waits, another one with the
// next. The caller holds the room's lock.
func (s *shard) say(r *Room, urgent bool) {
	s.mu.Lock()
	if !r.saying {
		r.saying = true
		s.waiting = append(s.waiting, r)
	}
	s.mu.Unlock()
	if urgent {
		s.poke()
	}
}

func (s *shard) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// speak sends everything that waits for the tick.
func (x *member) speak() {
	for _, s := range x.shards {
		s.mu.Lock()
		waits := len(s.waiting) > 0
		s.mu.Unlock()
		if waits {
			s.poke()
		}
	}
}

// run sends until ctx ends.
func (s *shard) run(ctx context.Context) {
	gather := time.NewTimer(gatherFor)
	defer gather.Stop()
	for {
		select {
		case <-ctx.Done():
			s.flush() // the site should learn which visitors have left
			return
		case <-s.wake:
		}
		// While one message is on its way, requests collect for the next: under load, hundreds share a message, and an
		// idle door adds no delay.
		s.flush()
		gather.Reset(gatherFor)
		select {
		case <-ctx.Done():
		case <-gather.C:
		}
	}
}

// flush sends what the rooms have to say, in as few messages as possible.
func (s *shard) flush() {
	s.mu.Lock()
	rooms := s.waiting
	s.waiting = nil
	for _, r := range rooms {
		r.saying = false
	}
	s.mu.Unlock()
	subject := toSiteSubject(s.number)
	send := func() {
		if len(s.frame) > 0 && s.site.Publish(subject, s.frame) != nil {
			s.mu.Lock()
			s.lost++
			s.mu.Unlock()
		}
		s.frame = s.frame[:0]
	}
	for _, r := range rooms {
		// Bounded, so that one busy room does not keep the others of its shard waiting.
		for range mostAtOnce {
			r.mu.Lock()
			m, ok := r.doorway.Take(r.now())
			// Only a door that knows room time may tell it to a new holder of the role.
			if ok && s.clock.synced() {
				m.Known = m.Sent
			}
			if ok {
				s.buffer = m.AppendWire(s.buffer[:0])
			}
			r.mu.Unlock()
			if !ok {
				break
			}
			if len(s.frame)+len(s.buffer)+cluster.FrameOverhead > cluster.MaxMessage {
				send()
			}
			s.frame = cluster.AppendFrame(s.frame, r.raw, s.buffer)
		}
	}
	send()
	// One burst must not keep megabytes per shard for good.
	if cap(s.frame) > spareBuffer {
		s.frame = nil
	}
	if cap(s.buffer) > spareBuffer {
		s.buffer = nil
	}
}

const (
	mostAtOnce  = 100       // messages of a room per flush; the rest waits for the next tick
	spareBuffer = 256 << 10 // bytes of a buffer worth keeping
)

// hear handles a message of the site to all doors of the shard.
func (s *shard) hear(m cluster.Message) {
	frames, err := cluster.Frames(m.Data)
	if err != nil {
		s.node.member.malformed("", err)
		return
	}
	for raw, body := range frames {
		r := s.node.roomOf(raw)
		if r == nil || r.shard != s {
			continue // deleted, or not known here yet
		}
		r.hear(body)
	}
}

// far is the part of a room whose site decides.
type far struct {
	doorway *engine.Doorway // the machine
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

// openFar opens a room at a node of a cluster.
func (n *Node) openFar(room anteroom.Room) *Room {
	r := newRoom(n, room)
	s := n.member.shards[cluster.ShardOf(string(room.ID))]
	r.far = &far{doorway: engine.NewDoorway(n.member.cfg.Process, room.Settings), shard: s}
	r.far.doorway.SetNode(n.member.number)
	_, r.far.step = s.clock.read(time.Now())
	hex.Decode(r.raw[:], []byte(room.ID))
	r.machine = r.doorway
	r.schedule.evaluate(walltime.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doorway.OnFailure(n.lenient.Load())
	r.apply()
	return r
}

// hear handles a message of the site to this room.
func (r *Room) hear(body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	m, err := r.cache.ParseToDoor(body)
	if err != nil {
		r.node.member.malformed(r.id, err)
		return
	}
	if r.shard.clock.hear(m.Echo, m.Now); !r.shard.clock.synced() {
		// While room time is not known here, an echo says nothing about the age of the answer.
		m.Echo = 0
	}
	r.doorway.Receive(r.now(), m)
	r.settle()
}

// timeAt returns room time. It also tells the machine by how much the clock has been set since the last call, possibly
// by the answer to another room. The caller holds the room's lock.
func (f *far) timeAt(wall time.Time) anteroom.Time {
	now, step := f.shard.clock.read(wall)
	if step != f.step {
		f.doorway.ClockSet(step - f.step)
		f.step = step
	}
	return now
}

// statusFar is Status in a cluster. It asks the coordinator at most once per statusFor, however many pages show the
// room.
func (r *Room) statusFar() anteroom.Status {
	r.asking.Lock()
	if time.Since(r.asked) >= statusFor {
		ctx, cancel := context.WithTimeout(context.Background(), statusFor)
		said, err := r.node.member.client.Status(ctx, r.id)
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
	s.Room, s.InForce = r.id, r.schedule.inForce
	if s.At == 0 { // the coordinator did not answer
		set := s.InForce.Settings
		s.At, s.TotalActiveUsers, s.NewPerMinute, s.Pace = now, set.TotalActiveUsers, set.NewUsersPerMinute, set.NewUsersPerMinute
	}
	return s
}

// roomOf returns the room with an id as messages carry it, or nil.
func (n *Node) roomOf(raw [16]byte) *Room {
	var id [32]byte
	hex.Encode(id[:], raw[:])
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.rooms[anteroom.RoomID(id[:])]
}

// malformed counts messages that could not be read, because of a defect or another release, and logs one in a thousand:
// a mixed cluster would fill the log.
func (x *member) malformed(room anteroom.RoomID, err error) {
	if x.garbled.Add(1)%1000 == 1 {
		x.log.Error("a message between nodes cannot be read: their releases do not understand each other, or there is a defect", "room", string(room), "error", err,
			slog.Uint64("so_far", x.garbled.Load()))
	}
}
