package analytics

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Minute is what one process saw of one room in one minute of room time, from the minute's
// beginning up to now: cumulative, so that of two with the same room, start and process the one
// with the higher Seq replaces the other, and one that was lost or repeated changes nothing.
type Minute struct {
	Room  anteroom.RoomID
	Start time.Time // UTC, a whole minute
	// Process identifies a process, and each of its starts; no other process ever has the same number. 0 after several
	// were added up.
	Process uint64
	Seq     int64 // how much was recorded: it grows with every change

	Gauges [gauges]Stat
	Counts [Metrics - gauges]int64 // see Count
	// Histograms are nil where nothing was recorded.
	Histograms [Spans]*Histogram

	// Decisions by anteroom.Reason, refused tickets and bypasses, by their words; nil when there were none.
	Reasons        map[string]int64
	TicketRefusals map[string]int64
	BypassReasons  map[string]int64

	InForce InForce
}

// InForce is what was in force at a sample.
type InForce struct {
	At        anteroom.Time // 0: there was no sample, and nothing is known
	Method    anteroom.QueueingMethod
	QueueAll  bool
	Suspended bool
	Event     anteroom.EventID // the active one, from its prequeue on; empty means none
}

// Count returns one of the counts.
func (m *Minute) Count(c Metric) int64 { return m.Counts[c-gauges] }

// Key identifies the minutes that replace each other.
type Key struct {
	Room    anteroom.RoomID
	Start   time.Time
	Process uint64
}

// Key returns the minute's.
func (m *Minute) Key() Key { return Key{m.Room, m.Start, m.Process} }

// Newer reports whether m, of the same key, is to replace o.
func (m *Minute) Newer(o *Minute) bool { return m.Seq > o.Seq }

// Add adds what another process saw of the room in the same minute. The order does not matter. o does not change and
// shares nothing with m afterwards.
func (m *Minute) Add(o *Minute) {
	m.Process = 0
	m.Seq += o.Seq
	for i := range m.Gauges {
		m.Gauges[i].Add(o.Gauges[i])
	}
	for i := range m.Counts {
		m.Counts[i] += o.Counts[i]
	}
	for i, h := range o.Histograms {
		m.Histograms[i] = merged(m.Histograms[i], h)
	}
	m.Reasons = added(m.Reasons, o.Reasons)
	m.TicketRefusals = added(m.TicketRefusals, o.TicketRefusals)
	m.BypassReasons = added(m.BypassReasons, o.BypassReasons)
	if o.InForce.later(m.InForce) {
		m.InForce = o.InForce
	}
}

// later says which of two samples counts; at the same moment anything that is the same for all.
func (f InForce) later(o InForce) bool {
	switch {
	case f.At != o.At:
		return f.At > o.At
	case f.Method != o.Method:
		return f.Method > o.Method
	case f.Event != o.Event:
		return f.Event > o.Event
	case f.QueueAll != o.QueueAll:
		return f.QueueAll
	}
	return f.Suspended && !o.Suspended
}

// Clone returns a copy that shares nothing.
func (m *Minute) Clone() *Minute {
	c := &Minute{Room: m.Room, Start: m.Start}
	c.Add(m)
	c.Process = m.Process
	return c
}

// merged adds o to h, of which either may be nil.
func merged(h, o *Histogram) *Histogram {
	if o.Count() == 0 {
		return h
	}
	if h == nil {
		return o.Clone()
	}
	h.Merge(o)
	return h
}

// added adds o to m, of which either may be nil.
func added(m, o map[string]int64) map[string]int64 {
	if m == nil && len(o) > 0 {
		m = make(map[string]int64, len(o))
	}
	for word, n := range o {
		m[word] += n
	}
	return m
}
