package coordinator

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// world is hosts and sites of a test, in a synctest bubble. The sites are engine.Site machines
// whose messages go over links.
type world struct {
	t     *testing.T
	links *memlink.World

	mu    sync.Mutex
	plans map[anteroom.RoomID]anteroom.Room
	knows func(shard int, at time.Time) (anteroom.Time, bool) // of hosts that begin
	ahead atomic.Int64                                        // by how much the clocks of hosts are wrong

	admitted map[anteroom.RoomID][]admission
}

// admission is a session as the sites' answers tell it.
type admission struct {
	id anteroom.ID
	at time.Time
}

func newWorld(t *testing.T, rooms ...anteroom.Room) *world {
	w := &world{t: t, links: memlink.NewWorld(), plans: map[anteroom.RoomID]anteroom.Room{}, admitted: map[anteroom.RoomID][]admission{}}
	for _, r := range rooms {
		r = r.WithDefaults()
		w.plans[r.ID] = r
	}
	return w
}

func (w *world) plan(id anteroom.RoomID) (anteroom.Room, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.plans[id]
	return r, ok
}

func roomOf(n int, s anteroom.Settings) anteroom.Room {
	return anteroom.Room{ID: anteroom.RoomID(fmt.Sprintf("%032x", n)), Name: fmt.Sprint("room", n), Settings: s}
}

// host begins a host that has every shard.
func (w *world) host(node string, epoch uint64) (h *Host, kill func()) {
	return w.hostOn(w.links.Join("hub", node), epoch)
}

func (w *world) hostOn(link cluster.Link, epoch uint64) (h *Host, kill func()) {
	now := func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	h = New(Config{Link: link, Plan: w.plan, Time: w.knows, Now: now})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Run(ctx)
	}()
	for shard := range cluster.Shards {
		h.Gain(shard, epoch)
	}
	var once sync.Once
	kill = func() {
		once.Do(func() {
			link.Close()
			cancel()
			<-done
		})
	}
	w.t.Cleanup(kill)
	return h, kill
}

// siteProc is a site's process for all rooms.
type siteProc struct {
	w     *world
	link  cluster.Link
	key   engine.SiteKey
	start time.Time
	off   time.Duration // of its wall clock
	stop  chan struct{}
	sent  atomic.Int64 // reports

	mu     sync.Mutex
	closed bool
	clocks [cluster.Shards]*engine.Clock
	rooms  map[anteroom.RoomID]*engine.Site
	pushes map[anteroom.ID]time.Time
	caches map[anteroom.RoomID]*engine.FiguresCache
	states map[anteroom.RoomID]uint64 // epoch of the newest message
	told   map[anteroom.ID]anteroom.Decision
	held   map[uint64]anteroom.ID
}

func (w *world) site(name string) *siteProc {
	s := &siteProc{w: w, link: w.links.Join(name, name+"-1"), key: engine.SiteKey{Name: name, Incarnation: 1}, start: time.Now(), stop: make(chan struct{}),
		rooms: map[anteroom.RoomID]*engine.Site{}, pushes: map[anteroom.ID]time.Time{}, caches: map[anteroom.RoomID]*engine.FiguresCache{}, states: map[anteroom.RoomID]uint64{},
		told: map[anteroom.ID]anteroom.Decision{}, held: map[uint64]anteroom.ID{}}
	for shard := range cluster.Shards {
		s.clocks[shard] = engine.NewClock()
		if _, err := s.link.Subscribe(siteSubject(name, shard), func(m cluster.Message) { s.receive(shard, m) }); err != nil {
			w.t.Fatal(err)
		}
	}
	go func() {
		tick := time.NewTicker(tickEvery)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
			s.mu.Lock()
			for _, id := range slices.Sorted(maps.Keys(s.rooms)) {
				if r := s.rooms[id]; !r.Idle() {
					r.Tick(s.now(id))
					s.settle(id)
				}
			}
			s.mu.Unlock()
		}
	}()
	w.t.Cleanup(s.end)
	return s
}

func (s *siteProc) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.stop)
		s.link.Close()
	}
}

func (s *siteProc) local() anteroom.Time {
	return anteroom.TimeOf(s.start.Add(s.off)).Add(time.Since(s.start))
}

// now is room time. The caller holds the lock.
func (s *siteProc) now(id anteroom.RoomID) anteroom.Time {
	return s.clocks[cluster.ShardOf(string(id))].Now(s.local())
}

// clock is the room time, and by how much it is ahead of the site's own.
func (s *siteProc) clock(id anteroom.RoomID) (now anteroom.Time, ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.now(id)
	return now, now.Sub(s.local())
}

// room is the machine of a room, made when it is needed. The caller holds the lock.
func (s *siteProc) room(id anteroom.RoomID) *engine.Site {
	if s.rooms[id] == nil {
		plan, _ := s.w.plan(id)
		s.rooms[id] = engine.NewSite(s.now(id), s.key, plan.At(anteroom.TimeOf(time.Now())).Settings)
		s.caches[id] = &engine.FiguresCache{}
	}
	return s.rooms[id]
}

func (s *siteProc) receive(shard int, m cluster.Message) {
	entries, err := cluster.Frames(m.Data)
	if err != nil {
		s.w.t.Error(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, body := range entries {
		id := anteroom.RoomID(hex.EncodeToString(key[:]))
		r := s.room(id)
		m, err := s.caches[id].ParseToSite(body)
		if err != nil {
			s.w.t.Error(err)
			continue
		}
		if m.Site != s.key {
			continue
		}
		if m.State != nil {
			s.states[id] = max(s.states[id], m.State.Epoch)
			if m.State.Echo != 0 {
				if step := s.clocks[shard].Heard(s.local(), m.State.Echo, m.State.Now); step != 0 {
					r.ClockSet(s.now(id), step)
				}
			}
		}
		r.Deliver(s.now(id), m)
		s.settle(id)
	}
}

// settle passes on what came of a call. The caller holds the lock.
func (s *siteProc) settle(id anteroom.RoomID) {
	r := s.rooms[id]
	for {
		report, ok := r.Report(s.now(id))
		if !ok {
			break
		}
		s.send(id, report.AppendWire(nil))
	}
	for _, a := range r.TakeAnswers() {
		s.note(id, s.held[a.Token], a.Decision)
		delete(s.held, a.Token)
	}
	for _, id := range r.TakePushes() {
		s.pushes[id] = time.Now()
	}
	r.TakeEvents()
	r.TakeEnded()
}

func (s *siteProc) send(id anteroom.RoomID, body []byte) {
	key, err := hex.DecodeString(string(id))
	if err != nil {
		s.w.t.Error(err)
		return
	}
	s.sent.Add(1)
	s.link.Publish(reportsSubject(cluster.ShardOf(string(id))), cluster.AppendFrame(nil, [16]byte(key), body))
}

// note keeps what a ticket was told last.
func (s *siteProc) note(room anteroom.RoomID, id anteroom.ID, d anteroom.Decision) {
	s.told[id] = d
	if d.Verdict == anteroom.Admit && d.Reason != anteroom.ReasonSession {
		s.w.mu.Lock()
		s.w.admitted[room] = append(s.w.admitted[room], admission{id, time.Now()})
		s.w.mu.Unlock()
	}
}

// visit is a request with a ticket; a new one where it has no ID, which is returned.
func (s *siteProc) visit(room anteroom.RoomID, t anteroom.Ticket, stream bool) anteroom.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.room(room)
	v := anteroom.Visit{Ticket: t, Fresh: t.ID.IsZero(), Stream: stream, NewID: newID()}
	if v.Fresh {
		v.Ticket.ID = newID()
	}
	d, held := r.Visit(s.now(room), v)
	if held == 0 {
		s.note(room, v.Ticket.ID, d)
	} else {
		s.held[held] = v.Ticket.ID
	}
	s.settle(room)
	return v.Ticket.ID
}

// line lets n newcomers come and open a stream.
func (s *siteProc) line(room anteroom.RoomID, n int) (ids []anteroom.ID) {
	for range n {
		ids = append(ids, s.visit(room, anteroom.Ticket{}, false))
	}
	time.Sleep(3 * time.Second / 2) // newcomers are held for up to engine.HoldSoon
	for _, id := range ids {
		if d := s.decision(id); d.Verdict == anteroom.Wait {
			s.visit(room, d.Ticket, true)
		}
	}
	synctest.Wait()
	return ids
}

func (s *siteProc) decision(id anteroom.ID) anteroom.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[id]
}

// pushed is when the turn of a ticket with a stream came; zero: it has not.
func (s *siteProc) pushed(id anteroom.ID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushes[id]
}

// enter takes the turns that have come, with one request each.
func (s *siteProc) enter(room anteroom.RoomID, ids []anteroom.ID) {
	for _, id := range ids {
		if d := s.decision(id); d.Verdict == anteroom.Wait && !s.pushed(id).IsZero() {
			s.visit(room, d.Ticket, false)
		}
	}
}

func (s *siteProc) epoch(room anteroom.RoomID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[room]
}

var ids atomic.Uint64

func newID() (id anteroom.ID) {
	n := ids.Add(1) * 0x9e3779b97f4a7c15
	for i := range 8 {
		id[i], id[8+i] = byte(n>>(8*i)), byte(n>>(56-8*i))
	}
	return id
}

// admissions of a room so far.
func (w *world) admissions(id anteroom.RoomID) []admission {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.admitted[id])
}

// within checks that no more were let in than the limits of a room allow, while no session ends.
func (w *world) within(id anteroom.RoomID) {
	w.t.Helper()
	set, all := w.plans[id].Settings, w.admissions(id)
	if len(all) > set.TotalActiveUsers {
		w.t.Errorf("%d were let in, the limit is %d", len(all), set.TotalActiveUsers)
	}
	for i, a := range all {
		n := 0
		for _, b := range all[i:] {
			if b.at.Sub(a.at) < time.Minute {
				n++
			}
		}
		if n > set.NewUsersPerMinute {
			w.t.Errorf("%d were let in within a minute, the limit is %d", n, set.NewUsersPerMinute)
		}
	}
}
