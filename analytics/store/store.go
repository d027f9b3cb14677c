// Package store keeps what package analytics records: in one SQLite file, at minute, quarter, hour and day resolution.
//
// Put takes minutes from the recorders, again and again while they grow. They are in memory immediately, so that a
// query sees figures as recent as the last Put, and in the file some seconds later. What is not in the file when the
// process ends is lost: the seconds since the last write.
//
// For the last two days, the file has the minutes of each process ("parts") and the rows made from them. The parts make
// a repeated or late minute harmless: the row of the minute is made again from its parts, and with it, in the same
// transaction, the quarter, hour and day that contain it. Spans that are not over yet are put together by the query.
//
// A file that cannot be written or read costs figures and nothing else: Put never fails, and Run tries again.
// docs/adr/0011-analytics.md says why.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// Config says where a store keeps what, and for how long. Only Path is required.
type Config struct {
	Path string // of the file; its directory is made
	// Retention is how long hours and days are kept, Minutes how long minutes are; quarters are
	// kept three times as long as minutes, and nothing longer than Retention. Zero means the default.
	Retention, Minutes time.Duration
	// MaxSize bounds the file, in bytes: the oldest minutes go first, then the oldest quarters,
	// hours and days. Zero means the default, and less than minSize means minSize.
	MaxSize int64
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Log; nil means none.
	Log *slog.Logger
}

// Bounds and defaults of a store.
const (
	defaultRetention = 400 * 24 * time.Hour
	defaultMinutes   = 32 * 24 * time.Hour
	defaultSize      = 2 << 30
	minSize          = 16 << 20
)

const (
	// writeEvery is between two writes of what has changed.
	writeEvery = 5 * time.Second
	// window is how far back minutes stay in memory, in minutes.
	window = 3
	// settle is how long after its end a span is rolled up: by then nearly everybody has told.
	settle = 90 * time.Second
	// partsKept is for how long minutes of single processes are kept, and thus how late a minute
	// may come.
	partsKept = 48 * time.Hour
	// ahead is how far in the future a minute may be, for clocks differ.
	ahead = time.Hour
	// mostHeld is how many parts wait in memory at most for a file that cannot be written.
	mostHeld = 100_000
	// batch is how many minutes are written in one transaction.
	batch = 500
	// mostRooms bounds the rooms of a file.
	mostRooms = 1 << 20
)

// Store keeps rows. Safe for concurrent use. It implements [analytics.Reader].
type Store struct {
	cfg Config
	log *slog.Logger

	writing sync.Mutex // held by whoever writes the file, opens or closes it
	retryAt time.Time  // when a failing file is tried again
	pruneAt time.Time
	again   time.Duration

	mu      sync.Mutex
	file    *file // nil while it cannot be opened
	live    map[anteroom.RoomID]map[int64]*entry
	from    int64 // minutes from here on that are not in memory have nothing in the file either
	held    int   // parts in memory
	asOf    time.Time
	health  Health
	closed  bool
	suspect error // what a query met that says that the file is damaged; nil: nothing
}

// entry is what is known of a minute of a room.
type entry struct {
	parts map[uint64]*analytics.Minute // by process; never changed, but exchanged
	dirty map[uint64]bool              // not in the file
	whole bool                         // the file has no other parts
}

// Health says how a store is.
type Health struct {
	// Failing says why the file cannot be written or read, in the operator's words; empty means
	// that it can. Since is when that began.
	Failing string    `json:"failing,omitempty"`
	Since   time.Time `json:"failing_since,omitzero"`
	// Bytes of the file and its log, and what they may become.
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
	// Oldest is where minutes, quarters, hours and days begin; zero if there are none.
	Oldest [len(levels)]time.Time `json:"-"`
	// Kept is how long minutes, quarters, hours and days are.
	Kept [len(levels)]time.Duration `json:"-"`
	// Waiting is the number of minutes of processes in memory that are not in the file.
	Waiting int `json:"waiting"`
	// Lost is the number of those that were dropped because the file could not be written for too
	// long, Refused of those that came too late, or from the future.
	Lost    uint64 `json:"lost"`
	Refused uint64 `json:"refused"`
	// Shortened says that rows were dropped for MaxSize before their time.
	Shortened bool `json:"shortened,omitempty"`
	// Damaged is where the last damaged file is now; empty: there was none.
	Damaged string `json:"damaged_file,omitempty"`
}

// Open opens the file, or creates it. A failure is not an error: Health reports it, what is put stays in memory, and
// Run tries again.
func Open(cfg Config) *Store {
	if cfg.Retention <= 0 {
		cfg.Retention = defaultRetention
	}
	if cfg.Minutes <= 0 {
		cfg.Minutes = defaultMinutes
	}
	if cfg.MaxSize <= 0 {
		cfg.MaxSize = defaultSize
	}
	cfg.MaxSize = max(cfg.MaxSize, minSize)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg, log: cfg.Log, live: map[anteroom.RoomID]map[int64]*entry{}}
	s.from = minuteOf(cfg.Now()) - window
	s.health.MaxBytes = cfg.MaxSize
	for l := range levels {
		s.health.Kept[l] = s.keptFor(l)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.tell(s.reopen(context.Background()))
	return s
}

// Close lets go of the file. What was put since the last write is lost; the end of Run writes.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	f := s.file
	s.file, s.closed = nil, true
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.close()
}

// Put takes what processes saw; the minutes must not change any more. Of minutes with the same key, only the newest
// counts. It never waits for the file.
func (s *Store) Put(minutes []*analytics.Minute) {
	now := s.cfg.Now()
	oldest, newest := minuteOf(now.Add(-s.cfg.Minutes)), minuteOf(now.Add(ahead))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asOf = now
	for _, m := range minutes {
		at := minuteOf(m.Start)
		if at < oldest || at > newest || !m.Start.Equal(timeOf(at)) || m.Room == "" || len(m.Room) > mostText {
			s.health.Refused++
			continue
		}
		s.take(m, at, true)
	}
	for s.held > mostHeld {
		s.dropOldest()
	}
}

// take puts a minute of a process into memory. The caller holds mu.
func (s *Store) take(m *analytics.Minute, at int64, dirty bool) {
	room := s.live[m.Room]
	if room == nil {
		room = map[int64]*entry{}
		s.live[m.Room] = room
	}
	e := room[at]
	if e == nil {
		e = &entry{parts: map[uint64]*analytics.Minute{}, dirty: map[uint64]bool{}, whole: at >= s.from}
		room[at] = e
	}
	old := e.parts[m.Process]
	switch {
	case old == nil:
		s.held++
	case !m.Newer(old):
		return
	}
	e.parts[m.Process] = m
	if dirty && !e.dirty[m.Process] {
		e.dirty[m.Process] = true
		s.health.Waiting++
	}
}

// forget drops an entry. The caller holds mu.
func (s *Store) forget(id anteroom.RoomID, at int64) {
	room := s.live[id]
	e := room[at]
	s.held -= len(e.parts)
	s.health.Waiting -= len(e.dirty)
	if delete(room, at); len(room) == 0 {
		delete(s.live, id)
	}
}

// dropOldest makes room in memory while the file cannot be written. The caller holds mu.
func (s *Store) dropOldest() {
	oldest := int64(0)
	for _, room := range s.live {
		for at := range room {
			if oldest == 0 || at < oldest {
				oldest = at
			}
		}
	}
	for id, room := range s.live {
		if e := room[oldest]; e != nil {
			s.health.Lost += uint64(len(e.dirty))
			s.forget(id, oldest)
		}
	}
	s.from = max(s.from, oldest+1)
}

// Run writes what was put, rolls it up and drops what is too old, until ctx ends; then it writes one last time.
func (s *Store) Run(ctx context.Context) {
	var checking sync.WaitGroup
	checking.Go(func() { s.inspect(ctx) })
	defer checking.Wait()
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Step(ctx)
		case <-ctx.Done():
			last, done := context.WithTimeout(context.WithoutCancel(ctx), writeEvery)
			defer done()
			s.Step(last)
			return
		}
	}
}

// inspect reads the whole file once, for damage may lie where nobody looks for months. A damaged file is
// replaced by the next step.
func (s *Store) inspect(ctx context.Context) {
	s.mu.Lock()
	f := s.file
	s.mu.Unlock()
	if f == nil {
		return
	}
	var said string
	err := f.read.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&said)
	if err == nil && said != "ok" {
		err = fmt.Errorf("%w: %s", errInconsistent, said)
	}
	if damaged(err) {
		s.mu.Lock()
		s.suspect = err
		s.mu.Unlock()
	}
}

// Step does now what Run does from time to time.
func (s *Store) Step(ctx context.Context) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.isClosed() {
		return
	}
	now := s.cfg.Now()
	if now.Before(s.retryAt) {
		return
	}
	err := s.taken()
	if err == nil {
		err = s.step(ctx, now)
	}
	if damaged(err) {
		if err = s.replace(ctx, err); err == nil {
			err = s.step(ctx, now)
		}
	}
	if err != nil && ctx.Err() != nil {
		return // a stop is no failure
	}
	s.tell(err)
}

// taken returns what a query met, once.
func (s *Store) taken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.suspect
	s.suspect = nil
	return err
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Store) step(ctx context.Context, now time.Time) error {
	if err := s.reopen(ctx); err != nil {
		return err
	}
	err := s.writeAll(ctx)
	if full(err) && s.shrink(ctx, now) == nil { // by MaxSize, perhaps: then there is something to drop
		err = s.writeAll(ctx)
	}
	if err != nil {
		return err
	}
	s.evict(now)
	if err := s.rollUp(ctx, now); err != nil {
		return err
	}
	if wait := s.pruneAt.Sub(now); wait > 0 && wait <= pruneEvery { // unless the clock was set back
		return nil
	}
	s.pruneAt = now.Add(pruneEvery)
	return s.prune(ctx, now)
}

// tell notes how the last attempt went, and says it when that has changed. The caller holds
// writing.
func (s *Store) tell(err error) {
	now := s.cfg.Now()
	s.mu.Lock()
	before := s.health.Failing
	since := s.health.Since
	if err != nil {
		s.health.Failing = explained(err).Error()
		if before == "" {
			s.health.Since = now
		}
	} else {
		s.health.Failing, s.health.Since = "", time.Time{}
	}
	after, lost := s.health.Failing, s.health.Lost
	s.mu.Unlock()
	switch {
	case err == nil:
		s.again, s.retryAt = 0, time.Time{}
		if before != "" {
			s.log.Info("analytics can be written again", "failed_for", now.Sub(since).Round(time.Second).String(), "minutes_lost", lost)
		}
		return
	case before == "":
		s.log.Error("analytics cannot be written; everything else continues, and the last minutes stay in memory", "file", s.cfg.Path, "error", after)
	}
	s.again = min(max(2*s.again, writeEvery), time.Minute)
	s.retryAt = now.Add(s.again)
}

// reopen opens the file when it is not open. The caller holds writing.
func (s *Store) reopen(ctx context.Context) error {
	if s.file != nil {
		return nil
	}
	f, err := openFile(ctx, s.cfg.Path, s.cfg.MaxSize)
	if damaged(err) {
		if err = s.aside(err); err == nil {
			f, err = openFile(ctx, s.cfg.Path, s.cfg.MaxSize)
		}
	}
	if err != nil {
		return err
	}
	if err := s.adopt(ctx, f); err != nil {
		f.close()
		return err
	}
	s.mu.Lock()
	s.file = f
	s.mu.Unlock()
	return nil
}

// aside moves the damaged file away and says so.
func (s *Store) aside(cause error) error {
	to, err := moveAside(s.cfg.Path, s.cfg.Now())
	if err != nil {
		return err
	}
	s.log.Error("the analytics file is damaged and was moved aside; a new one was created", "file", s.cfg.Path, "aside", to, "error", cause)
	s.mu.Lock()
	s.health.Damaged = to
	s.mu.Unlock()
	return nil
}

// replace goes on with a new file after an open one proved damaged.
func (s *Store) replace(ctx context.Context, cause error) error {
	s.mu.Lock()
	f := s.file
	s.file = nil
	for _, room := range s.live { // what is in memory is not lost with the file
		for _, e := range room {
			for process := range e.parts {
				if !e.dirty[process] {
					e.dirty[process] = true
					s.health.Waiting++
				}
			}
		}
	}
	s.mu.Unlock()
	if f != nil {
		f.close()
	}
	if err := s.aside(cause); err != nil {
		return err
	}
	return s.reopen(ctx)
}

// adopt sets the marks of a new file, and loads the parts of minutes that may still grow.
func (s *Store) adopt(ctx context.Context, f *file) error {
	now := s.cfg.Now()
	w, err := f.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	for l := range levels {
		if l > minutes {
			w.exec(`INSERT OR IGNORE INTO mark (name, value) VALUES (?, ?)`, rolledMark(l), minuteOf(now.Truncate(levels[l].length())))
		}
		w.exec(`INSERT OR IGNORE INTO mark (name, value) VALUES (?, 0)`, floorMark(l))
	}
	s.lowerFloors(w, now)
	w.exec(`INSERT OR IGNORE INTO mark (name, value) VALUES (?, ?)`, idMark, newID())
	s.mu.Lock()
	from := s.from
	s.mu.Unlock()
	parts := w.parts(`SELECT room.id, part.body FROM part JOIN room ON room.no = part.room WHERE part.minute >= ?`, from)
	if err := w.commit(); err != nil {
		return err
	}
	s.mu.Lock()
	for _, m := range parts {
		s.take(m, minuteOf(m.Start), false)
	}
	s.mu.Unlock()
	return s.measure(ctx, f)
}

// evict drops from memory what is in the file and hardly grows any more.
func (s *Store) evict(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = max(s.from, minuteOf(now)-window)
	for id, room := range s.live {
		for at, e := range room {
			if at < s.from && len(e.dirty) == 0 {
				s.forget(id, at)
			}
		}
	}
}

// Health returns how the store is.
func (s *Store) Health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health
}
