package coordinator

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

// shard holds the rooms of one shard while this host has the role.
type shard struct {
	host   *Host
	number int
	epoch  uint64 // of the role; higher is later
	begun  time.Time
	ctx    context.Context
	cancel context.CancelFunc

	fenced atomic.Bool // another host has taken over a room

	offset atomic.Int64 // from the process's own clock to room time
	synced atomic.Bool  // offset is valid
	timing sync.Mutex   // held while offset is determined
	begin  engine.RoomTime

	mu    sync.RWMutex
	rooms map[anteroom.RoomID]*room
	used  chan struct{} // signals that a room was opened

	sending sync.Mutex
	lost    bool              // nothing is sent any more
	out     map[string][]byte // frames by site

	complaints complaints
}

func newShard(h *Host, number int, epoch uint64) *shard {
	s := &shard{host: h, number: number, epoch: epoch, begun: h.cfg.Now(), rooms: map[anteroom.RoomID]*room{}, used: make(chan struct{}, 1), out: map[string][]byte{},
		complaints: complaints{last: map[string]time.Time{}}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// run subscribes and ticks until the shard is lost.
func (s *shard) run() {
	for _, sub := range []struct {
		subject string
		fn      func(cluster.Message)
	}{{reportsSubject(s.number), s.receive}, {asking(s.number), s.ask}} {
		stop, err := s.host.cfg.Link.Subscribe(sub.subject, sub.fn)
		// Without its subscriptions a shard would be mute for good, so it retries for as long as it has the role.
		for err != nil {
			s.complain("messages cannot be received; retrying", "subject", sub.subject, "error", err)
			if !walltime.Sleep(s.ctx, storeAgain) {
				return
			}
			stop, err = s.host.cfg.Link.Subscribe(sub.subject, sub.fn)
		}
		defer stop()
	}
	tick := time.NewTimer(walltime.NextBeat(tickEvery))
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		rooms := s.all()
		for _, r := range rooms {
			r.tick()
		}
		s.flush()
		if len(rooms) == 0 { // sixteen idle shards that tick would cost more than everything else on an idle node
			select {
			case <-s.ctx.Done():
				return
			case <-s.used:
			}
		}
		tick.Reset(walltime.NextBeat(tickEvery))
	}
}

func (s *shard) lose() {
	// First the context, so that running writes stop; then sending, so that nothing leaves once lose has returned; then
	// the rooms.
	s.cancel()
	s.sending.Lock()
	s.lost = true
	s.out = nil
	s.sending.Unlock()
	s.mu.Lock()
	rooms := s.rooms
	s.rooms = map[anteroom.RoomID]*room{}
	s.mu.Unlock()
	for _, r := range rooms {
		r.end()
	}
}

func (s *shard) room(id anteroom.RoomID) *room {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rooms[id]
}

func (s *shard) all() []*room {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]*room, 0, len(s.rooms)), maps.Values(s.rooms))
}

// drop forgets a room, unless another room with the same id has replaced it.
func (s *shard) drop(r *room) {
	s.mu.Lock()
	if s.rooms[r.id] == r {
		delete(s.rooms, r.id)
	}
	s.mu.Unlock()
	r.end()
}

// now returns room time.
func (s *shard) now() anteroom.Time { return s.at(s.host.cfg.Now()) }

func (s *shard) at(t time.Time) anteroom.Time {
	return s.host.local(t) + anteroom.Time(s.offset.Load())
}

// follow determines room time from the first reports (see engine.RoomTime). It returns false while it is unknown.
func (s *shard) follow(r *engine.Report) bool {
	if s.synced.Load() {
		return true
	}
	s.timing.Lock()
	defer s.timing.Unlock()
	// Another report may have been faster.
	if s.synced.Load() {
		return true
	}
	now := s.host.cfg.Now()
	local := s.host.local(now)
	if s.host.cfg.Time != nil {
		if room, known := s.host.cfg.Time(s.number, now); known {
			s.begin.Know(local, room)
		}
	}
	room, ok := s.begin.Follow(local, now.Sub(s.begun), r)
	if ok {
		s.offset.Store(int64(room - local))
		s.synced.Store(true)
	}
	return ok
}

// roomTime returns how room time was determined.
func (s *shard) roomTime() engine.RoomTime {
	s.timing.Lock()
	defer s.timing.Unlock()
	return s.begin
}

// receive handles a frame of reports.
func (s *shard) receive(m cluster.Message) {
	entries, err := cluster.Frames(m.Data)
	if err != nil {
		s.undecodable(err)
		return
	}
	for key, body := range entries {
		r, err := engine.ParseReport(body)
		if err == nil {
			err = checkSite(r.From.Name)
		}
		if err != nil {
			s.undecodable(err)
			// One bad entry does not spoil the others: nodes of a later release may send reports that this one cannot
			// read.
			continue
		}
		s.report(key, r)
	}
	// Answers to all reports of a frame leave in one message per site.
	s.flush()
}

// checkSite refuses a name that cannot be part of a subject: a site whose name has a dot could subscribe to messages
// for another.
func checkSite(name string) error {
	if strings.Contains(name, ".") {
		return cluster.ErrKey
	}
	return cluster.CheckKey(siteSubject(name, 0))
}

func (s *shard) undecodable(err error) {
	s.host.counts.undecodable.Add(1)
	s.complain("a message cannot be read: it comes from a later version, or from something else", "error", err)
}

func (s *shard) report(key [16]byte, report engine.Report) {
	if !s.follow(&report) {
		return
	}
	id := anteroom.RoomID(hex.EncodeToString(key[:]))
	r := s.room(id)
	if r == nil {
		plan, ok := s.host.cfg.Plan(id)
		// A node with an older configuration may still report a room that was deleted, or has moved to another shard.
		if !ok || cluster.ShardOf(string(id)) != s.number {
			s.host.counts.misplaced.Add(1)
			return
		}
		if r = s.open(id, key, plan); r == nil {
			return
		}
	}
	r.receive(report)
}

// open adds a room. Its coordinator starts as soon as the record of its predecessor has been read.
func (s *shard) open(id anteroom.RoomID, key [16]byte, plan anteroom.Room) *room {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Two reports may open the same room at the same time.
	if r := s.rooms[id]; r != nil {
		return r
	}
	if len(s.rooms) >= anteroom.MaxRooms || s.ctx.Err() != nil {
		return nil
	}
	r := newRoom(s, id, key, plan)
	s.rooms[id] = r
	select {
	case s.used <- struct{}{}:
	default: // the loop is awake already
	}
	go r.begin()
	return r
}

// send adds a message to the frame for its site. The caller holds the room's lock, which keeps the messages of a room
// in order.
func (s *shard) send(site string, key [16]byte, body []byte) {
	// One message that is too large must not block those of other rooms.
	if len(body)+cluster.FrameOverhead > cluster.MaxMessage {
		s.complain("a message to a site is too large and was dropped", "site", site, "bytes", len(body))
		return
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.lost {
		return
	}
	frame := s.out[site]
	// A full frame leaves at once; the next one starts empty.
	if len(frame)+len(body)+cluster.FrameOverhead > cluster.MaxMessage {
		s.publish(site, frame)
		frame = frame[:0]
	}
	s.out[site] = cluster.AppendFrame(frame, key, body)
}

// flush sends all collected frames.
func (s *shard) flush() {
	s.sending.Lock()
	defer s.sending.Unlock()
	for site, frame := range s.out {
		if len(frame) > 0 {
			s.publish(site, frame)
			s.out[site] = frame[:0]
		}
	}
}

func (s *shard) publish(site string, frame []byte) {
	if err := s.host.cfg.Link.Publish(siteSubject(site, s.number), frame); err != nil {
		s.complain("a message cannot be sent", "site", site, "error", err) // lost messages are harmless: the next report is answered in full
	}
}

// complaints limits how often each kind of problem is logged.
type complaints struct {
	mu   sync.Mutex
	last map[string]time.Time // by message
}

func (s *shard) complain(what string, args ...any) {
	c, now := &s.complaints, s.host.cfg.Now()
	c.mu.Lock()
	if last, said := c.last[what]; said && now.Sub(last) < complainEvery {
		c.mu.Unlock()
		return
	}
	c.last[what] = now
	c.mu.Unlock()
	s.host.log.Warn(what, append([]any{"shard", s.number}, args...)...)
}
