package analytics

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
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

var (
	errVersion = errors.New("analytics: a minute of another format: run the same release everywhere")
	errAfter   = errors.New("analytics: bytes after the end of a minute: it was damaged")
	errStat    = errors.New("analytics: a gauge whose sum does not lie between its least and its most: it was damaged")
	errWord    = errors.New("analytics: words that do not ascend, or of other letters than a to z and _: it was damaged")
	errMethod  = errors.New("analytics: a queueing method that nobody knows: it was damaged, or written by another release")
)

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
		b = appendString(b, string(f.Method))
		b = appendString(b, string(f.Event))
	}
	b = binary.AppendUvarint(b, uint64(len(m.Histograms)))
	for _, h := range m.Histograms {
		own := h.AppendWire(nil)
		b = binary.AppendUvarint(b, uint64(len(own)))
		b = append(b, own...)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendWords(b []byte, words map[string]int64) []byte {
	b = binary.AppendUvarint(b, uint64(len(words)))
	for _, word := range slices.Sorted(maps.Keys(words)) {
		b = appendString(b, word)
		b = binary.AppendUvarint(b, uint64(words[word]))
	}
	return b
}

// ParseMinute reads a minute of a room, all of b, which may come from anywhere. What it takes is
// bounded by a multiple of what b has.
func ParseMinute(room anteroom.RoomID, b []byte) (*Minute, error) {
	if len(b) == 0 {
		return nil, errShort
	}
	if b[0] != wireVersion {
		return nil, errVersion
	}
	r := reader{b: b[1:]}
	m := &Minute{Room: room, Process: r.unsigned()}
	m.Seq = r.number(mostCount)
	m.Start = time.Unix(60*r.number(mostMinute), 0).UTC()
	for i := range r.number(mostMembers) {
		if g := r.stat(); i < int64(len(m.Gauges)) {
			m.Gauges[i] = g
		}
	}
	for i := range r.number(mostMembers) {
		if n := r.number(mostCount); i < int64(len(m.Counts)) {
			m.Counts[i] = n
		}
	}
	m.Reasons, m.TicketRefusals, m.BypassReasons = r.words(), r.words(), r.words()
	m.InForce = r.inForce()
	for i := range r.number(mostMembers) {
		own := r.bytes(mostDistrib)
		if r.err != nil {
			break
		}
		h, rest, err := ParseHistogram(own)
		switch {
		case i >= int64(len(m.Histograms)): // of a newer release
		case err != nil:
			return nil, err
		case len(rest) > 0:
			return nil, errAfter
		case h.Count() > 0:
			m.Histograms[i] = h
		}
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errAfter
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

func (r *reader) stat() (s Stat) {
	if s.N = r.number(mostSamples); s.N == 0 {
		return s
	}
	s.Min, s.Max = r.number(mostGauge), r.number(mostGauge)
	s.Sum = r.number(mostSamples * mostGauge)
	if r.err == nil && (s.Min > s.Max || s.Sum < s.N*s.Min || s.Sum > s.N*s.Max) {
		r.err = errStat
	}
	return s
}

func (r *reader) inForce() (f InForce) {
	flags := r.number(knownInForce | holdsAll | suspended)
	if flags&knownInForce == 0 {
		if flags != 0 && r.err == nil {
			r.err = errTooLarge
		}
		return f
	}
	f.QueueAll, f.Suspended = flags&holdsAll != 0, flags&suspended != 0
	f.At = anteroom.Time(r.number(1 << 62))
	f.Method = anteroom.QueueingMethod(r.bytes(mostWord))
	f.Event = anteroom.EventID(r.bytes(mostWord))
	switch {
	case r.err != nil:
	case f.At == 0 || !slices.Contains(anteroom.QueueingMethods, f.Method):
		r.err = errMethod
	case !isWord(string(f.Event)):
		r.err = errWord
	}
	return f
}

func (r *reader) words() (words map[string]int64) {
	last := ""
	for range r.number(mostWords) {
		word := string(r.bytes(mostWord))
		n := r.number(mostCount)
		switch {
		case r.err != nil:
			return nil
		case word <= last || n == 0 || !isWord(word):
			r.err = errWord
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

// bytes reads a length of at most most, and as many bytes.
func (r *reader) bytes(most int64) []byte {
	n := r.number(most)
	if r.err == nil && n > int64(len(r.b)) {
		r.err, r.b = errShort, nil
	}
	if r.err != nil {
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// unsigned reads any number of 64 bits.
func (r *reader) unsigned() uint64 {
	v, n := binary.Uvarint(r.b)
	switch {
	case r.err != nil:
		return 0
	case n == 0:
		r.err = errShort
	case n < 0 || n > 1 && r.b[n-1] == 0:
		r.err = errTooLarge
	default:
		r.b = r.b[n:]
		return v
	}
	r.b = nil
	return 0
}
