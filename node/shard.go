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
	of     *member
	site   cluster.Space
	clock  roomClock
	wake   chan struct{}

	mu      sync.Mutex // taken after a room's lock
	waiting []*far     // rooms with something to send

	buffer, frame []byte // of flush, which only one goroutine calls
}

func newShard(x *member, number int) *shard {
	s := &shard{number: number, of: x, site: x.link.Site(), wake: make(chan struct{}, 1)}
	s.clock.own = x.node.clock
	return s
}

// say queues the room's message: an urgent one leaves at once, with everything else that waits, another one with the
// next. The caller holds the room's lock.
func (s *shard) say(r *far, urgent bool) {
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
		if len(s.frame) > 0 {
			s.site.Publish(subject, s.frame) // what gets lost is said again
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
		s.of.malformed("", err)
		return
	}
	for raw, body := range frames {
		if r := s.of.roomOf(raw); r != nil && r.shard == s { // else deleted, or not known here yet
			r.hear(body)
		}
	}
}

// roomOf returns the room with an id as messages carry it, or nil.
func (x *member) roomOf(raw [16]byte) *far {
	var id [32]byte
	hex.Encode(id[:], raw[:])
	x.node.mu.RLock()
	defer x.node.mu.RUnlock()
	if r := x.node.rooms[anteroom.RoomID(id[:])]; r != nil {
		return r.decider.(*far)
	}
	return nil
}

// malformed counts messages that could not be read, because of a defect or another release, and logs one in a thousand:
// a mixed cluster would fill the log.
func (x *member) malformed(room anteroom.RoomID, err error) {
	if x.garbled.Add(1)%1000 == 1 {
		x.log.Error("a message between nodes cannot be read: their releases do not understand each other, or there is a defect", "room", string(room), "error", err,
			slog.Uint64("so_far", x.garbled.Load()))
	}
}
