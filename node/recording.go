package node

// What is recorded about the rooms, and how it leaves the process: see package analytics.

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
	"github.com/anteroom/anteroom/internal/walltime"
)

const (
	// figuresSubject carries what the processes of a cluster have recorded: frames of analytics.Minute, for all sites.
	figuresSubject = "analytics"
	figuresEvery   = time.Second
)

// figures holds the recorders of a process.
type figures struct {
	process uint64        // unique to this process
	ahead   time.Duration // of the clock, of room time at the start, in whole minutes

	mu  sync.Mutex
	all map[anteroom.RoomID]*analytics.Recorder
}

// uniqueProcess returns a number that no other process has or had.
func uniqueProcess() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// recorder returns the recorder of a room, which all parts of the process share.
func (n *Node) recorder(id anteroom.RoomID) *analytics.Recorder {
	f := &n.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.all[id]
	if r == nil {
		r = analytics.NewRecorder(id, f.process, n.part.roomTime(id))
		f.all[id] = r
	}
	return r
}

// Recorder returns what records the room in this process.
func (r *Room) Recorder() *analytics.Recorder { return r.recorder }

// takeFigures returns the minutes that have changed, and forgets unused recorders.
func (n *Node) takeFigures() (out []*analytics.Minute) {
	f := &n.figures
	f.mu.Lock()
	all := make([]*analytics.Recorder, 0, len(f.all))
	for id, r := range f.all {
		// A deleted room still has figures to send.
		if r.Idle() && n.Room(id) == nil {
			delete(f.all, id)
			continue
		}
		all = append(all, r)
	}
	f.mu.Unlock()
	for _, r := range all {
		out = append(out, r.Take(n.part.shares())...)
	}
	for _, m := range out {
		m.Start = m.Start.Add(-f.ahead)
	}
	return out
}

// tellFigures passes on what is new: here, and in a cluster to every node. A minute is sent as a whole, so repetition
// does no harm.
func (n *Node) tellFigures() {
	minutes := n.takeFigures()
	if len(minutes) == 0 {
		return
	}
	if n.cfg.Minutes != nil {
		n.cfg.Minutes(minutes)
	}
	n.part.share(minutes)
}

func (x *member) shares() bool { return true }

func (x *member) share(minutes []*analytics.Minute) {
	var frame, body []byte
	var room [16]byte
	for _, m := range minutes {
		body = m.AppendWire(body[:0])
		if len(body)+cluster.FrameOverhead > cluster.MaxMessage {
			continue
		}
		if len(frame)+len(body)+cluster.FrameOverhead > cluster.MaxMessage {
			x.publish(figuresSubject, frame)
			frame = nil
		}
		hex.Decode(room[:], []byte(m.Room))
		frame = cluster.AppendFrame(frame, room, body)
	}
	x.publish(figuresSubject, frame)
}

// publish sends something to all sites. What gets lost is repeated later.
func (x *member) publish(subject string, data []byte) {
	if x.link.Publish(subject, data) != nil {
		x.unsent.Add(1)
	}
}

// tellAlways tells figures until ctx ends.
func (n *Node) tellAlways(ctx context.Context) {
	tick := time.NewTimer(walltime.NextBeat(figuresEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Reset(walltime.NextBeat(figuresEvery))
			n.tellFigures()
		}
	}
}

// hearFigures takes what other processes have recorded about rooms that are known here.
func (x *member) hearFigures(m cluster.Message) {
	frames, err := cluster.Frames(m.Data)
	if err != nil {
		x.malformed("", err)
		return
	}
	var minutes []*analytics.Minute
	for raw, body := range frames {
		r := x.roomOf(raw)
		if r == nil {
			continue
		}
		minute, err := analytics.ParseMinute(r.id, body)
		if err != nil {
			x.malformed(r.id, err)
			continue
		}
		if minute.Process != x.cfg.Process { // its own are here already
			minutes = append(minutes, minute)
		}
	}
	if len(minutes) > 0 {
		x.node.cfg.Minutes(minutes)
	}
}

// recordTally records what a site has counted.
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
