package node

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/internal/wire"
)

// A journal record is a batch: version, mark, then entries. An entry is an event (its kind first), a switch to another
// room, or the start of a process. All integers are little endian.
const (
	recordVersion = 1
	headBytes     = 1 + 8 + 16 + 8

	entryRoom  = 0xF0 // 16 bytes of room id follow; zeros: the process has ended in order
	entryStart = 0xF1 // 8 bytes of shift (ns) follow

	endOfProcess = "\xF0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

	maxBatch = 512 << 10 // bytes of one record
	maxQueue = 64 << 20  // bytes waiting for a journal that does not write

	// gather is the least time from one write to the next: what comes meanwhile shares a write. A disk that syncs in a quarter of a
	// millisecond would otherwise be asked thousands of times a second, and that took an eighth of the processor time of a rush. Who
	// comes alone does not wait.
	gather = time.Millisecond
	// commitWait is how long a request waits for the record of its session; then it gets the waiting page.
	commitWait = time.Second
	// stallAfter is how long a write may take until no new visitor is admitted. sayAfter is when that is logged.
	stallAfter = 250 * time.Millisecond
	sayAfter   = time.Second
	// sayAgain is how often a journal that cannot be written is logged.
	sayAgain = time.Minute
	// syncWithin is how long new rooms wait for writes in progress; then they are refused.
	syncWithin = 2 * time.Second
)

// JournalStats counts what the journal has done since the start.
type JournalStats struct {
	Records, Bytes, Events uint64
	Failures               uint64        // appends that failed and were repeated
	Late                   uint64        // requests whose session was not recorded in time
	Lost                   uint64        // events dropped because the queue was full
	Failing                bool          // the last append failed, or the current one takes too long
	Slowest                time.Duration // append
}

type batch struct {
	data     []byte
	added    anteroom.Time
	admitted anteroom.Time   // the earliest admission in it; 0: there is none
	room     anteroom.RoomID // of the last event
	done     chan struct{}   // closed when the batch is durable
}

type journal struct {
	to   cluster.Journal
	now  func() anteroom.Time // room time
	log  *slog.Logger
	wake chan struct{}

	// For the journal of a site role; nil otherwise.
	post   func([]parcel) // sends what waited for a batch
	fenced func()         // called when another handle has taken the journal over

	failing atomic.Bool     // the last append failed
	oldest  atomic.Int64    // room time at which the oldest batch that is not durable was added; 0: all are durable
	entered atomic.Int64    // time of the earliest admission that is not durable; 0: all are durable
	dropped [2]atomic.Int64 // times of the first and the last admission that were dropped; 0: none

	mu     sync.Mutex
	outbox engine.Outbox[*batch, parcel]
	queue  []*batch // batches in the outbox
	queued int
	begun  time.Time // of the last write
	counts JournalStats
	ready  bool
	fault  error // of the last append
}

func newJournal(to cluster.Journal, now func() anteroom.Time, log *slog.Logger) *journal {
	return &journal{to: to, now: now, log: log, wake: make(chan struct{}, 1)}
}

func (j *journal) head() []byte {
	m := mark{at: j.now()}
	m.boot, m.up = bootClock()
	return appendMark(make([]byte, 0, 4096), m)
}

// start records the start of this process. On a full disk, it is recorded when there is room again.
func (j *journal) start(ctx context.Context, shift time.Duration) error {
	data := binary.LittleEndian.AppendUint64(append(j.head(), entryStart), uint64(shift))
	// Urgent: the start may use the space that the store keeps in reserve. If even that is used up, active sessions are
	// served without the record.
	err := j.to.Append(cluster.Urgent(ctx), data)
	if !errors.Is(err, cluster.ErrFull) {
		return err
	}
	j.log.Error("the journal cannot be written; meanwhile on_failure decides about new visitors", "error", err)
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.begin()
	b.data = data
	j.failing.Store(true)
	j.poke()
	return nil
}

// add queues events of a room, and returns the batch to wait for until they are durable.
func (j *journal) add(room anteroom.RoomID, events []engine.Event) *batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	// Memory is bounded: a journal that cannot be written for hours must not take the process down. Sessions stay
	// valid, but a crash would forget these changes.
	if j.queued > maxQueue {
		if j.counts.Lost == 0 {
			j.log.Error("the journal's queue is full: changes of sessions are not recorded from now on", "bytes", maxQueue)
		}
		j.counts.Lost += uint64(len(events))
		for _, e := range events {
			if e.Kind == engine.EventAdmitted {
				j.dropped[0].CompareAndSwap(0, int64(e.At))
				j.dropped[1].Store(int64(e.At))
			}
		}
		return nil
	}
	var b *batch
	if open := j.outbox.Open(); open != nil {
		b = *open
	}
	for _, e := range events {
		// A batch that is already being written is closed; events go into the next one.
		if b == nil || len(b.data) > maxBatch {
			b = j.begin()
		}
		before := len(b.data)
		// The room is written once per run of events, not with each event.
		if b.room != room {
			b.room = room
			raw, _ := hex.DecodeString(string(room))
			b.data = append(b.data, entryRoom)
			b.data = append(b.data, raw...)
		}
		b.data = appendEvent(b.data, e)
		if e.Kind == engine.EventAdmitted && (b.admitted == 0 || e.At < b.admitted) {
			b.admitted = e.At
		}
		j.queued += len(b.data) - before
	}
	j.counts.Events += uint64(len(events))
	j.unrecorded()
	j.poke()
	return b
}

// begin adds a batch. The caller holds the lock.
func (j *journal) begin() *batch {
	b := &batch{data: j.head(), done: make(chan struct{}), added: j.now()}
	j.oldest.CompareAndSwap(0, int64(b.added))
	j.outbox.Add(b)
	j.queue = append(j.queue, b)
	return b
}

// unrecorded notes the earliest admission that is not durable. The caller holds the lock.
func (j *journal) unrecorded() {
	earliest := anteroom.Time(0)
	for _, b := range j.queue {
		if b.admitted != 0 && (earliest == 0 || b.admitted < earliest) {
			earliest = b.admitted
		}
	}
	j.entered.Store(int64(earliest))
}

// last returns the newest batch, or nil if everything is durable.
func (j *journal) last() *batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	if b := j.outbox.Last(); b != nil {
		return *b
	}
	return nil
}

// waitFor lets parcels leave when everything added so far is durable, after parcels that already wait. It returns false
// if nothing has to be waited for.
func (j *journal) waitFor(parcels []parcel) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.outbox.After(parcels)
}

// waiting returns how many bytes of events are not durable.
func (j *journal) waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queued
}

// beat records that time has passed, unless a batch that will do so is waiting.
func (j *journal) beat() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.outbox.Last() == nil {
		j.begin()
		j.poke()
	}
}

func (j *journal) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// recorded reports whether an admission at this time is durable.
func (j *journal) recorded(at anteroom.Time) bool {
	// Admissions in a span with drops count as unrecorded: which of them were dropped is not known.
	if from := j.dropped[0].Load(); from != 0 && at >= anteroom.Time(from) && at <= anteroom.Time(j.dropped[1].Load()) {
		return false
	}
	entered := j.entered.Load()
	return entered == 0 || at < anteroom.Time(entered)
}

// stalled reports whether the journal is not writing now: it fails, or takes too long. A time limit is needed because a
// hanging disk returns no error.
func (j *journal) stalled() bool {
	oldest := j.oldest.Load()
	return j.failing.Load() || oldest != 0 && j.now().Sub(anteroom.Time(oldest)) > stallAfter
}

// wait waits until an admission at this time is durable, ctx ends, or the journal has not written for too long, and
// reports whether it is durable.
func (j *journal) wait(ctx context.Context, at anteroom.Time) bool {
	// The batch first: one that is added after the check below would never be waited for.
	b := j.last()
	if j.recorded(at) {
		return true
	}
	// A failing journal is not waited for, since every request would hang for a second.
	if b != nil && !j.failing.Load() {
		select {
		case <-b.done:
			return j.recorded(at)
		case <-ctx.Done():
			return false
		case <-time.After(commitWait):
		}
	}
	j.mu.Lock()
	j.counts.Late++
	j.mu.Unlock()
	return false
}

func (j *journal) stats() JournalStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.counts
	s.Failing = j.stalled()
	return s
}

// sync returns when everything added so far is durable, and what waited for it has left.
func (j *journal) sync(ctx context.Context) error {
	j.mu.Lock()
	running := j.ready
	j.mu.Unlock()
	b := j.last()
	if b == nil {
		return nil
	}
	if !running { // nothing has happened yet except the start, which may have to wait for a full disk
		if err := j.flush(ctx); !errors.Is(err, cluster.ErrFull) {
			return err
		}
		return nil
	}
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		j.mu.Lock()
		defer j.mu.Unlock()
		return fmt.Errorf("node: the journal does not write: %w", cmp.Or(j.fault, ctx.Err()))
	}
}

// errUnrecorded: the last changes are not recorded.
var errUnrecorded = errors.New("node: the last journal records could not be written")

// run writes batches until ctx ends, then the rest and a mark that this is the end. While one batch is written, the
// next one grows: a slow disk makes batches larger, but not the queue longer.
func (j *journal) run(ctx context.Context) error {
	j.mu.Lock()
	j.ready = true
	j.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			// The context has ended, but what has happened still has to be written.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			last = cluster.Urgent(last)
			err := j.flush(last)
			// The mark says that nothing is missing, so it must not follow a gap. A site role has no mark: its
			// successor writes on.
			if err == nil && j.fenced == nil && j.stats().Lost == 0 {
				err = j.to.Append(last, append(j.head(), endOfProcess...))
			}
			j.mu.Lock()
			j.ready = false
			j.mu.Unlock()
			if err != nil || j.stats().Lost > 0 {
				return fmt.Errorf("%w: %w", errUnrecorded, cmp.Or(err, errors.New("the queue was full")))
			}
			return nil
		case <-j.wake:
		}
		var said time.Time
		// A full or broken disk is asked again soon at first, then every five seconds: admissions wait for it.
		for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
			err := j.flush(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			// The successor has recorded since. Writing again would be refused forever.
			if j.fenced != nil && errors.Is(err, cluster.ErrFenced) {
				j.fenced()
				return nil
			}
			if time.Since(said) >= sayAgain {
				said = time.Now()
				j.log.Error("the journal cannot be written; meanwhile on_failure decides about new visitors", "error", err)
			}
			walltime.Sleep(ctx, wait)
		}
	}
}

// flush writes every queued batch. A batch stays queued until it is durable.
func (j *journal) flush(ctx context.Context) error {
	for {
		j.mu.Lock()
		if soon := gather - time.Since(j.begun); soon > 0 && j.outbox.Last() != nil {
			j.mu.Unlock()
			time.Sleep(soon) // the batch stays open
			j.mu.Lock()
		}
		next := j.outbox.Next()
		if next == nil {
			if j.outbox.Last() == nil {
				j.oldest.Store(0)
			}
			j.mu.Unlock()
			return nil
		}
		b := *next
		// From now on the age of this batch counts, not that of one before it.
		j.oldest.Store(int64(b.added))
		began := time.Now()
		j.begun = began
		j.mu.Unlock()
		slow := time.AfterFunc(sayAfter, func() {
			j.log.Error("writing the journal takes long; meanwhile on_failure decides about new visitors")
		})
		err := j.to.Append(ctx, b.data)
		took := time.Since(began)
		if !slow.Stop() && err == nil {
			j.log.Info("the journal can be written again", "after", took.String())
		}

		j.mu.Lock()
		j.fault = err
		if j.failing.Swap(err != nil) && err == nil {
			j.log.Info("the journal can be written again")
		}
		// The batch goes back to the front: order matters, because a replay applies events one after the other.
		if err != nil {
			j.counts.Failures++
			j.outbox.Failed()
			j.mu.Unlock()
			return err
		}
		// post takes other locks and publishes, so it runs without this one; new parcels may arrive meanwhile.
		for out := j.outbox.Written(); len(out) > 0; out = j.outbox.Written() {
			j.mu.Unlock()
			j.post(out)
			j.mu.Lock()
		}
		j.queue = j.queue[1:]
		j.unrecorded()
		j.counts.Records++
		j.counts.Bytes += uint64(len(b.data))
		j.counts.Slowest = max(j.counts.Slowest, took)
		j.queued = max(0, j.queued-(len(b.data)-headBytes))
		j.mu.Unlock()
		close(b.done) // only now do waiting requests see the figures above
	}
}

// history is what a journal says, read in one go or in parts.
type history struct {
	want   func(anteroom.RoomID) bool
	events map[anteroom.RoomID][]engine.Event
	last   mark // the newest; zero if there is no record
	newest anteroom.Time
	shifts []time.Duration           // by process, in the order of their starts
	born   map[anteroom.RoomID][]int // by which process an event was written
}

func newHistory(want func(anteroom.RoomID) bool) *history {
	return &history{want: want, events: map[anteroom.RoomID][]engine.Event{}, shifts: []time.Duration{0}, born: map[anteroom.RoomID][]int{}}
}

// add takes the next record.
func (h *history) add(_ time.Time, rec []byte) error {
	// Times of a process that had a wrong idea of how much time had passed are corrected by the starts after it, so
	// each event needs to know which process wrote it.
	m, err := readRecord(rec, func(d time.Duration) { h.shifts = append(h.shifts, d) },
		func(room anteroom.RoomID, e engine.Event) {
			h.newest = max(h.newest, e.At)
			if h.want(room) {
				h.events[room] = append(h.events[room], e)
				h.born[room] = append(h.born[room], len(h.shifts)-1)
			}
		})
	if err != nil {
		return err
	}
	if m.at >= h.last.at {
		h.last = m
	}
	h.last.ended = string(rec[headBytes:]) == endOfProcess
	return nil
}

// end returns the events of the wanted rooms, with their times moved to the room time of the journal's end, and the newest
// mark. Nothing may be added any more.
func (h *history) end() (events map[anteroom.RoomID][]engine.Event, last mark) {
	h.last.newest = max(h.newest, h.last.at)
	// An event is moved by the shift of every start after it.
	after := make([]time.Duration, len(h.shifts))
	for i := len(h.shifts) - 2; i >= 0; i-- {
		after[i] = after[i+1] + h.shifts[i+1]
	}
	for room, list := range h.events {
		for i := range list {
			list[i].At = list[i].At.Add(after[h.born[room][i]])
		}
	}
	return h.events, h.last
}

// readHistory replays the journal: the events of the wanted rooms, and the newest mark; zero if there is no record.
func readHistory(ctx context.Context, from cluster.Journal, want func(anteroom.RoomID) bool) (events map[anteroom.RoomID][]engine.Event, last mark, err error) {
	h := newHistory(want)
	if err := from.Replay(ctx, h.add); err != nil {
		return nil, h.last, err
	}
	events, last = h.end()
	return events, last, nil
}

// appendMark starts a record.
func appendMark(b []byte, m mark) []byte {
	b = append(b, recordVersion)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.at))
	b = append(b, m.boot[:]...)
	return binary.LittleEndian.AppendUint64(b, uint64(m.up))
}

// appendEvent adds an event of the room that was named last.
func appendEvent(b []byte, e engine.Event) []byte {
	b = append(b, byte(e.Kind), e.Lane)
	b = append(b, e.ID[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.At))
	return binary.LittleEndian.AppendUint64(b, uint64(e.Key))
}

// readRecord returns the mark that a record starts with, and calls start and event for its entries. The link checks
// records; one that still cannot be parsed is damaged.
func readRecord(rec []byte, start func(time.Duration), event func(anteroom.RoomID, engine.Event)) (m mark, err error) {
	r := wire.Read(rec)
	// A record of a later release may mean something else, so it is never guessed at.
	if v := r.Byte(); v != recordVersion {
		r.Failf("it has format version %d, this program knows %d", v, recordVersion)
	}
	m.at = anteroom.Time(r.Little64())
	copy(m.boot[:], r.Bytes(len(m.boot)))
	m.up = time.Duration(r.Little64())
	var room anteroom.RoomID
	for r.Left() > 0 {
		switch kind := r.Byte(); kind {
		case entryRoom:
			room = anteroom.RoomID(hex.EncodeToString(r.Bytes(16)))
		case entryStart:
			if d := time.Duration(r.Little64()); r.Err() == nil {
				start(d)
			}
		default:
			e := engine.Event{Kind: engine.EventKind(kind), Lane: r.Byte()}
			copy(e.ID[:], r.Bytes(len(e.ID)))
			e.At, e.Key = anteroom.Time(r.Little64()), anteroom.Time(r.Little64())
			if room == "" {
				r.Failf("an event without a room")
			}
			if r.Err() == nil {
				event(room, e)
			}
		}
	}
	if err := r.Err(); err != nil {
		return m, &cluster.DamagedError{What: "journal record", Err: err}
	}
	return m, nil
}
