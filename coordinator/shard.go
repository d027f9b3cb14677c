package coordinator

import (
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

// shard is the rooms of one shard, as long as this host has the role.
type shard struct {
	host   *Host
	number int
	epoch  uint64 // of the role
	begun  time.Time
	ctx    context.Context
	cancel context.CancelFunc

	fenced atomic.Bool // a room was taken away by another host

	offset atomic.Int64 // of room time from the process's own clock
	synced atomic.Bool  // offset counts
	timing sync.Mutex   // of who sets it
	begin  engine.RoomTime

	mu    sync.RWMutex
	rooms map[anteroom.RoomID]*room
	used  chan struct{} // a room was opened

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
	}{{Reports(s.number), s.receive}, {asking(s.number), s.ask}} {
		stop, err := s.host.cfg.Link.Subscribe(sub.subject, sub.fn)
		for err != nil {
			s.complain("messages cannot be received; retrying", "subject", sub.subject, "error", err)
			if !s.sleep(storeAgain) {
				return
			}
			stop, err = s.host.cfg.Link.Subscribe(sub.subject, sub.fn)
		}
		defer stop()
	}
	tick := time.NewTicker(tickEvery)
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
		if len(rooms) == 0 { // sixteen shards that tick for nobody cost more than all else of an idle node
			tick.Stop()
			select {
			case <-s.ctx.Done():
				return
			case <-s.used:
			}
			tick.Reset(tickEvery)
		}
	}
}

// sleep waits; it is false when the shard is lost meanwhile.
func (s *shard) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (s *shard) lose() {
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
	if len(s.rooms) == 0 {
		return nil
	}
	all := make([]*room, 0, len(s.rooms))
	for _, r := range s.rooms {
		all = append(all, r)
	}
	return all
}

// drop forgets a room, if it is that one still.
func (s *shard) drop(r *room) {
	s.mu.Lock()
	if s.rooms[r.id] == r {
		delete(s.rooms, r.id)
	}
	s.mu.Unlock()
	r.end()
}

// now is room time.
func (s *shard) now() anteroom.Time { return s.at(s.host.cfg.Now()) }

func (s *shard) at(t time.Time) anteroom.Time {
	return s.host.local(t) + anteroom.Time(s.offset.Load())
}

// follow finds out the room time (see engine.RoomTime). It is false while that is not known.
func (s *shard) follow(r *engine.Report) bool {
	if s.synced.Load() {
		return true
	}
	s.timing.Lock()
	defer s.timing.Unlock()
	if s.synced.Load() {
		return true
	}
	now := s.host.cfg.Now()
	local := s.host.local(now)
	room, ok := s.begin.Follow(local, now.Sub(s.begun), r)
	if ok {
		s.offset.Store(int64(room - local))
		s.synced.Store(true)
	}
	return ok
}

// roomTime is how the room time was found out.
func (s *shard) roomTime() engine.RoomTime {
	s.timing.Lock()
	defer s.timing.Unlock()
	return s.begin
}

// receive takes a frame of reports.
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
			continue
		}
		s.report(key, r)
	}
	s.flush()
}

// checkSite refuses a name that would be no part of a subject.
func checkSite(name string) error {
	if strings.Contains(name, ".") {
		return cluster.ErrKey
	}
	return cluster.CheckKey(ToSite(name, 0))
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

// open adds a room whose coordinator begins as soon as the record of its predecessor is read.
func (s *shard) open(id anteroom.RoomID, key [16]byte, plan anteroom.Room) *room {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	default:
	}
	go r.begin()
	return r
}

// send adds a message to the frame for its site. The caller holds the room's lock, so that the
// messages of a room stay in order.
func (s *shard) send(site string, key [16]byte, body []byte) {
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
	if len(frame)+len(body)+cluster.FrameOverhead > cluster.MaxMessage {
		s.publish(site, frame)
		frame = frame[:0]
	}
	s.out[site] = cluster.AppendFrame(frame, key, body)
}

// flush sends what there is.
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
	if err := s.host.cfg.Link.Publish(ToSite(site, s.number), frame); err != nil {
		s.complain("a message cannot be sent", "site", site, "error", err)
	}
}

// complaints says of each kind of trouble once in a while.
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
