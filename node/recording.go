package node

// What is recorded of the rooms, and how it leaves the process: see package analytics.

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

const (
	// figuresSubject is where the processes of a cluster tell what they have recorded: frames of
	// analytics.Minute, for all sites.
	figuresSubject = "analytics"
	figuresEvery   = time.Second
)

// figures are the recorders of a process.
type figures struct {
	process uint64 // nobody else has the number

	mu  sync.Mutex
	all map[anteroom.RoomID]*analytics.Recorder
}

// uniqueProcess is a number that no process has, nor had.
func uniqueProcess() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// recorder returns the recorder of a room, which everybody in the process shares.
func (n *Node) recorder(id anteroom.RoomID) *analytics.Recorder {
	f := &n.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.all[id]
	if r == nil {
		now := n.clock.now
		if n.member != nil {
			now = n.member.shards[cluster.ShardOf(string(id))].clock.now
		}
		r = analytics.NewRecorder(id, f.process, now)
		f.all[id] = r
	}
	return r
}

// Recorder returns what records the room in this process.
func (r *Room) Recorder() *analytics.Recorder { return r.recorder }

// takeFigures returns the minutes in which something new was recorded, and forgets recorders that
// nobody uses any more.
func (n *Node) takeFigures() (out []*analytics.Minute) {
	f := &n.figures
	f.mu.Lock()
	all := make([]*analytics.Recorder, 0, len(f.all))
	for id, r := range f.all {
		if r.Idle() && n.Room(id) == nil {
			delete(f.all, id)
			continue
		}
		all = append(all, r)
	}
	f.mu.Unlock()
	for _, r := range all {
		out = append(out, r.Take(n.member != nil)...)
	}
	return out
}

// tellFigures gives what is new to whoever keeps it: here, and in a cluster at every node. What
// comes twice does no harm.
func (n *Node) tellFigures() {
	minutes := n.takeFigures()
	if len(minutes) == 0 {
		return
	}
	if n.cfg.Minutes != nil {
		n.cfg.Minutes(minutes)
	}
	if n.member == nil {
		return
	}
	var frame, body []byte
	var room [16]byte
	for _, m := range minutes {
		body = m.AppendWire(body[:0])
		if len(body)+cluster.FrameOverhead > cluster.MaxMessage {
			continue
		}
		if len(frame)+len(body)+cluster.FrameOverhead > cluster.MaxMessage {
			n.member.publish(figuresSubject, frame)
			frame = nil
		}
		hex.Decode(room[:], []byte(m.Room))
		frame = cluster.AppendFrame(frame, room, body)
	}
	n.member.publish(figuresSubject, frame)
}

// publish sends something to all sites. What is lost is repeated.
func (x *member) publish(subject string, data []byte) {
	if x.link.Publish(subject, data) != nil {
		x.unsent.Add(1)
	}
}

// tellAlways tells figures until ctx ends.
func (n *Node) tellAlways(ctx context.Context) {
	tick := time.NewTicker(figuresEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.tellFigures()
		}
	}
}

// hearFigures takes what other processes have recorded of the rooms that are known here.
func (x *member) hearFigures(m cluster.Message) {
	frames, err := cluster.Frames(m.Data)
	if err != nil {
		x.malformed("", err)
		return
	}
	var minutes []*analytics.Minute
	for raw, body := range frames {
		r := x.node.roomOf(raw)
		if r == nil {
			continue
		}
		minute, err := analytics.ParseMinute(r.id, body)
		if err != nil {
			x.malformed(r.id, err)
			continue
		}
		if minute.Process != x.cfg.Process { // else it is here
			minutes = append(minutes, minute)
		}
	}
	if len(minutes) > 0 {
		x.node.cfg.Minutes(minutes)
	}
}

// recordTally takes what a site has counted.
func recordTally(r *analytics.Recorder, at anteroom.Time, t *engine.Tally) {
	for _, c := range []struct {
		metric analytics.Metric
		n      int
	}{{analytics.NewUsers, t.NewUsers}, {analytics.Joined, t.Joined}, {analytics.Abandoned, t.Abandoned},
		{analytics.NoShows, t.NoShows}, {analytics.Overtakes, t.Overtakes}, {analytics.Revoked, t.Revoked}} {
		r.Count(at, c.metric, int64(c.n))
	}
	r.Spans(at, analytics.Waited, t.Waited...)
	r.Spans(at, analytics.OnOrigin, t.Stayed...)
	r.Spans(at, analytics.Late, t.Late...)
	r.Spans(at, analytics.Early, t.Early...)
}

// sample records the live numbers of a room of a process alone, once in each second. The caller
// holds the lock.
func (r *Room) sample(now anteroom.Time) {
	const second = anteroom.Time(time.Second / time.Microsecond)
	if now/second == r.sampled/second {
		return
	}
	r.sampled = now
	s := r.single.Status(now)
	s.InForce = r.schedule.inForce
	r.recorder.Sample(&s)
}
