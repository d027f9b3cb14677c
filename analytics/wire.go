package analytics

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/wire"
)

// A Minute travels as a version byte and numbers in their shortest form (varint). Whatever there
// are several of says how many there are, so that a release that knows more of them at the end can be
// read by one that does not, and the other way round.
const wireVersion = 1

// Bounds of what is read.
const (
	mostWords    = 64      // of a kind
	mostWord     = 40      // bytes of a word, or of an event's id
	mostMembers  = 64      // gauges, counts or distributions
	mostGauge    = 1 << 40 // value of a gauge
	mostSamples  = 1 << 20 // in a minute
	mostMinute   = 1 << 40 // number of a minute
	mostDistrib  = 1 << 18 // bytes of one histogram
	knownInForce = 1
	holdsAll     = 2
	suspended    = 4
)

// badWord is what Failf says of words.
const badWord = "words do not ascend, or have other letters than a to z, digits, _ and -: it was damaged"

// AppendWire appends what ParseMinute reads. The room is not in it.
func (m *Minute) AppendWire(b []byte) []byte {
	b = append(b, wireVersion)
	b = binary.AppendUvarint(b, m.Process)
	b = binary.AppendUvarint(b, uint64(m.Seq))
	b = binary.AppendUvarint(b, uint64(m.Start.Unix()/60))
	b = binary.AppendUvarint(b, uint64(len(m.Gauges)))
	for _, g := range m.Gauges {
		b = binary.AppendUvarint(b, uint64(g.N))
		if g.N > 0 {
			b = binary.AppendUvarint(b, uint64(g.Min))
			b = binary.AppendUvarint(b, uint64(g.Max))
			b = binary.AppendUvarint(b, uint64(g.Sum))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(m.Counts)))
	for _, n := range m.Counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, words := range []map[string]int64{m.Reasons, m.TicketRefusals, m.BypassReasons} {
		b = appendWords(b, words)
	}
	f := m.InForce
	if f.At == 0 {
		b = append(b, 0)
	} else {
		flags := byte(knownInForce)
		if f.QueueAll {
			flags |= holdsAll
		}
		if f.Suspended {
			flags |= suspended
		}
		b = append(b, flags)
		b = binary.AppendUvarint(b, uint64(f.At))
		b = wire.AppendSized(b, f.Method)
		b = wire.AppendSized(b, f.Event)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Histograms)))
	for _, h := range m.Histograms {
		b = wire.AppendSized(b, h.AppendWire(nil))
	}
	return b
}

func appendWords(b []byte, words map[string]int64) []byte {
	b = binary.AppendUvarint(b, uint64(len(words)))
	for _, word := range slices.Sorted(maps.Keys(words)) {
		b = wire.AppendSized(b, word)
		b = binary.AppendUvarint(b, uint64(words[word]))
	}
	return b
}

// ParseMinute reads a minute of a room, all of b, which may come from anywhere. What it takes is
// bounded by a multiple of what b has.
func ParseMinute(room anteroom.RoomID, b []byte) (*Minute, error) {
	r := reader{wire.Read(b)}
	if v := r.Byte(); v != wireVersion {
		r.Failf("it has format version %d, this program speaks %d: run the same release everywhere", v, wireVersion)
	}
	m := &Minute{Room: room, Process: r.Uvarint()}
	m.Seq = r.Number(mostCount)
	m.Start = time.Unix(60*r.Number(mostMinute), 0).UTC()
	for i := range r.Number(mostMembers) {
		if g := r.stat(); i < int64(len(m.Gauges)) {
			m.Gauges[i] = g
		}
	}
	for i := range r.Number(mostMembers) {
		if n := r.Number(mostCount); i < int64(len(m.Counts)) {
			m.Counts[i] = n
		}
	}
	m.Reasons, m.TicketRefusals, m.BypassReasons = r.words(), r.words(), r.words()
	m.InForce = r.inForce()
	for i := range r.Number(mostMembers) {
		own := r.Part(int(r.Number(mostDistrib)))
		if i >= int64(len(m.Histograms)) { // of a newer release
			continue
		}
		h := ReadHistogram(&own)
		if err := own.End(); err != nil {
			return nil, fmt.Errorf("analytics: minute %w", err)
		}
		if h.Count() > 0 {
			m.Histograms[i] = h
		}
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("analytics: minute %w", err)
	}
	return m, nil
}

// reader reads what a minute has.
type reader struct{ wire.Reader }

func (r *reader) stat() (s Stat) {
	if s.N = r.Number(mostSamples); s.N == 0 {
		return s
	}
	s.Min, s.Max = r.Number(mostGauge), r.Number(mostGauge)
	s.Sum = r.Number(mostSamples * mostGauge)
	if s.Min > s.Max || s.Sum < s.N*s.Min || s.Sum > s.N*s.Max {
		r.Failf("the sum of a gauge does not lie between its least and its most: it was damaged")
	}
	return s
}

func (r *reader) inForce() (f InForce) {
	flags := r.Number(knownInForce | holdsAll | suspended)
	if flags&knownInForce == 0 {
		if flags != 0 {
			r.Failf("what is in force is not known and has flags: it was damaged")
		}
		return f
	}
	f.QueueAll, f.Suspended = flags&holdsAll != 0, flags&suspended != 0
	f.At = anteroom.Time(r.Number(1 << 62))
	f.Method = anteroom.QueueingMethod(r.Sized(mostWord))
	f.Event = anteroom.EventID(r.Sized(mostWord))
	switch {
	case f.At == 0 || !slices.Contains(anteroom.QueueingMethods, f.Method):
		r.Failf("the queueing method is not known: it was damaged, or written by another release")
	case !isWord(string(f.Event)):
		r.Failf(badWord)
	}
	return f
}

func (r *reader) words() (words map[string]int64) {
	last := ""
	for range r.Number(mostWords) {
		word := string(r.Sized(mostWord))
		n := r.Number(mostCount)
		switch {
		case word <= last || n == 0 || !isWord(word):
			r.Failf(badWord)
			return nil
		case words == nil:
			words = map[string]int64{}
		}
		words[word], last = n, word
	}
	return words
}

// isWord reports whether a string has nothing but small letters, digits and _, as words and
// events' ids do.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
