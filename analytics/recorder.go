package analytics

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
)

// Recorder gathers what one process sees of one room. Its doors, its site and its coordinator, as far
// as the process has them, share it. Moments are room time. Safe for concurrent use; nothing is
// recorded by a nil one.
type Recorder struct {
	room    anteroom.RoomID
	process uint64
	now     func() anteroom.Time

	current atomic.Pointer[open] // where requests are counted

	mu    sync.Mutex
	open  []*open       // ascending
	after anteroom.Time // the end of the latest minute that was forgotten: none before it comes back

	totals totals
}

// open is a minute as long as something of it may be told.
type open struct {
	begin, end anteroom.Time

	reasons    [mostReasons]atomic.Int64 // by anteroom.Reason
	bypassed   [bypasses]atomic.Int64
	turnedAway atomic.Int64

	mu         sync.Mutex
	gauges     [gauges]Stat
	counts     [Metrics - gauges]int64 // those that are not counted above
	histograms [Spans]Histogram
	refusals   map[string]int64
	inForce    InForce

	told int64 // Seq of what was taken last
	sent int   // how often it was repeated since it ended
}

const (
	mostReasons = 32 // room for those to come
	inMinute    = anteroom.Time(time.Minute / time.Microsecond)
)

// NewRecorder returns a recorder for a room. The process is a number that no other process has or had; now returns the
// room time for records without a time of their own.
func NewRecorder(room anteroom.RoomID, process uint64, now func() anteroom.Time) *Recorder {
	return &Recorder{room: room, process: process, now: now}
}

// Bypass is why a request passed without the room.
type Bypass uint8

// The reasons to pass.
const (
	ByRule Bypass = iota
	ByCrawler
	InShadow // the room would have shown the waiting page
	bypasses
)

var bypassWords = [bypasses]string{ByRule: "rule", ByCrawler: "crawler", InShadow: "shadow"}

// String returns the reason's word.
func (b Bypass) String() string {
	if b < bypasses {
		return bypassWords[b]
	}
	return "invalid"
}

// at returns the minute of a moment.
func (r *Recorder) at(t anteroom.Time) *open {
	if m := r.current.Load(); m != nil && m.begin <= t && t < m.end {
		return m
	}
	return r.turn(t)
}

// turn makes the minute of a moment the current one. What comes too late for its minute is counted
// in the next that is not forgotten.
func (r *Recorder) turn(t anteroom.Time) *open {
	r.mu.Lock()
	defer r.mu.Unlock()
	begin := max(anteroom.Time(anteroom.BucketOf(t)), r.after)
	i, there := slices.BinarySearchFunc(r.open, begin, func(m *open, t anteroom.Time) int { return int(min(max(m.begin-t, -1), 1)) })
	if !there {
		r.open = slices.Insert(r.open, i, &open{begin: begin, end: begin + inMinute})
	}
	r.current.Store(r.open[i])
	return r.open[i]
}

// Decided records the answer to a request, which presented a ticket or none (the zero one, or a fresh one). It costs some
// nanoseconds and no memory, but at a check-in or when the cookie of a session is renewed.
func (r *Recorder) Decided(d *anteroom.Decision, presented *anteroom.Ticket) {
	if r == nil {
		return
	}
	m := r.at(d.At)
	if d.Reason < mostReasons {
		m.reasons[d.Reason].Add(1)
	}
	if d.Verdict == anteroom.Refuse {
		m.turnedAway.Add(1)
	}
	if !d.SetCookie || d.Ticket.ID != presented.ID || presented.LastCheckIn == 0 {
		return
	}
	switch {
	case d.Verdict == anteroom.Wait && !presented.Accepted():
		m.span(InQueue, d.At.Sub(d.Ticket.Arrival))
	case d.Verdict == anteroom.Admit && presented.Accepted():
		m.span(BetweenRefreshes, d.At.Sub(presented.LastCheckIn))
	}
}

// Bypassed records a request that passed without the room.
func (r *Recorder) Bypassed(why Bypass) {
	if r != nil && why < bypasses {
		r.at(r.now()).bypassed[why].Add(1)
	}
}

// RefusedTicket records a ticket that was not accepted, and why in a word of small letters and _.
func (r *Recorder) RefusedTicket(why string) {
	if r == nil {
		return
	}
	m := r.at(r.now())
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refusals == nil {
		m.refusals = map[string]int64{}
	}
	if m.refusals[why] > 0 || len(m.refusals) < mostWords {
		m.refusals[why]++
	}
	m.counts[Refused-gauges]++
}

// Count adds to a count of the site: NewUsers, Joined, Abandoned, NoShows, Overtakes or Revoked.
func (r *Recorder) Count(at anteroom.Time, c Metric, n int64) {
	if r == nil || n == 0 || c.IsGauge() || c >= Metrics {
		return
	}
	r.totals.counts[c-gauges].Add(n)
	m := r.at(at)
	m.mu.Lock()
	m.counts[c-gauges] += n
	m.mu.Unlock()
}

// Spans adds durations to a distribution.
func (r *Recorder) Spans(at anteroom.Time, s Span, all ...time.Duration) {
	if r == nil || len(all) == 0 || s >= Spans {
		return
	}
	r.totals.observe(s, all)
	m := r.at(at)
	m.mu.Lock()
	for _, d := range all {
		m.histograms[s].Record(d)
	}
	m.mu.Unlock()
}

func (m *open) span(s Span, d time.Duration) {
	m.mu.Lock()
	m.histograms[s].Record(d)
	m.mu.Unlock()
}

// Sample records the room's figures and what is in force, from a Status with its InForce. The process that has them
// calls it once per second: a standalone process, or the one with the room's coordinator.
func (r *Recorder) Sample(s *anteroom.Status) {
	if r == nil || s.InForce == nil {
		return
	}
	f := s.InForce
	m := r.at(s.At)
	m.mu.Lock()
	defer m.mu.Unlock()
	gauge := func(g Metric, v int64) { m.gauges[g].Record(min(max(0, v), mostGauge)) }
	gauge(ActiveUsers, int64(s.ActiveUsers))
	gauge(QueuedUsers, int64(s.Waiting))
	if s.WaitKnown {
		gauge(Estimate, int64(s.WaitOfNewcomer/time.Second))
	}
	gauge(ActiveLimit, int64(f.TotalActiveUsers))
	gauge(NewLimit, int64(f.NewUsersPerMinute))
	gauge(SessionDuration, int64(f.SessionDuration/time.Second))
	m.inForce = InForce{At: s.At, Method: f.QueueingMethod, QueueAll: f.QueueAll, Suspended: f.Suspended}
	if f.Event != nil {
		m.inForce.Event = f.Event.ID
	}
}

// seq is how much was recorded. The caller holds the minute's lock.
func (m *open) seq() (n int64) {
	n = m.turnedAway.Load()
	for i := range m.reasons {
		n += m.reasons[i].Load()
	}
	for i := range m.bypassed {
		n += m.bypassed[i].Load()
	}
	for _, c := range m.counts {
		n += c
	}
	for i := range m.histograms {
		n += m.histograms[i].Count()
	}
	for i := range m.gauges {
		n += m.gauges[i].N
	}
	return n
}

// minute returns a copy.
func (m *open) minute(room anteroom.RoomID, process uint64) *Minute {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The order matters: what is counted meanwhile makes the next Seq higher.
	out := &Minute{Room: room, Start: m.begin.Std(), Process: process, Seq: m.seq(), Gauges: m.gauges, Counts: m.counts, InForce: m.inForce}
	m.told = out.Seq
	for i := range m.histograms {
		if m.histograms[i].Count() > 0 {
			out.Histograms[i] = m.histograms[i].Clone()
		}
	}
	for i := range m.reasons {
		if n := m.reasons[i].Load(); n > 0 {
			out.Reasons = added(out.Reasons, map[string]int64{anteroom.Reason(i).String(): n})
		}
	}
	for i := range m.bypassed {
		if n := m.bypassed[i].Load(); n > 0 {
			out.BypassReasons = added(out.BypassReasons, map[string]int64{Bypass(i).String(): n})
			out.Counts[Bypassed-gauges] += n
		}
	}
	out.Counts[TurnedAway-gauges] = m.turnedAway.Load()
	out.TicketRefusals = added(nil, m.refusals)
	return out
}

// changed reports whether there is more than was taken last.
func (m *open) changed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seq() != m.told
}

// repeats is how often a minute is told again after its end, when that is asked for: after 1, 2, 4, … 32
// minutes.
const repeats = 6

// Take returns what has changed since the last call: each minute as a whole, to replace what was sent of it before.
// With again, finished minutes are repeated during the following half-hour, for receivers that missed them. Call it
// once per second. A minute is forgotten once there is nothing more to send of it, at the earliest a minute after its
// end.
func (r *Recorder) Take(again bool) (out []*Minute) {
	if r == nil {
		return nil
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.open[:0]
	for _, m := range r.open {
		due := false
		for again && m.sent < repeats && now >= m.end+inMinute<<m.sent {
			due = true
			m.sent++
		}
		if m.changed() || due {
			out = append(out, m.minute(r.room, r.process))
		}
		if now < m.end+inMinute || again && m.sent < repeats {
			kept = append(kept, m)
		} else {
			r.after = max(r.after, m.end)
			r.totals.fold(m)
		}
	}
	clear(r.open[len(kept):])
	if r.open = kept; !slices.Contains(kept, r.current.Load()) {
		r.current.Store(nil)
	}
	return out
}

// Idle reports that the recorder has nothing.
func (r *Recorder) Idle() bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open) == 0
}
