package store

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/internal/wire"
)

// codecVersion is the first byte of what is kept of a row.
const codecVersion = 1

// Bounds of what is read back, of a file that somebody may have damaged.
const (
	mostMembers = 64 // metrics, distributions
	mostWords   = 1 << 10
	mostText    = 256 // bytes of a word or an id

)

// The methods by their number in the file; 0 is none.
var methods = [...]anteroom.QueueingMethod{"", anteroom.FIFO, anteroom.Random, anteroom.Passthrough, anteroom.Reject}

const (
	flagQueueAll = 1 << iota
	flagSuspended
)

// appendRow appends what of a row every query needs. Room, Start and Every are not in it.
func appendRow(b []byte, r *analytics.Row) []byte {
	flags := byte(0)
	if r.QueueAll {
		flags |= flagQueueAll
	}
	if r.Suspended {
		flags |= flagSuspended
	}
	b = append(b, codecVersion, flags, byte(max(0, slices.Index(methods[:], r.Method))))
	b = wire.AppendSized(b, r.Event)
	b = binary.AppendUvarint(b, uint64(r.Minutes))
	b = append(b, byte(len(r.Stats)))
	for _, s := range r.Stats {
		b = binary.AppendUvarint(b, uint64(s.N))
		switch {
		case s.N == 1: // a minute's count: least and most are the sum
			b = binary.AppendVarint(b, s.Sum)
		case s.N > 1:
			b = binary.AppendVarint(b, s.Min)
			b = binary.AppendUvarint(b, uint64(s.Max-s.Min))
			b = binary.AppendVarint(b, s.Sum)
		}
	}
	b = append(b, byte(len(r.Summaries)))
	for _, s := range r.Summaries {
		b = binary.AppendUvarint(b, uint64(s.N))
		last := int64(0)
		for _, q := range s.Quantiles {
			if s.N > 0 {
				ms := q.Milliseconds()
				b = binary.AppendVarint(b, ms-last)
				last = ms
			}
		}
	}
	b = append(b, byte(len(r.Weighted)))
	for i, w := range r.Weighted {
		if w.Sum == weighed(w.Weight, &r.Summaries[i]) { // as in every minute
			b = binary.AppendUvarint(b, uint64(w.Weight)<<1)
			continue
		}
		b = binary.AppendUvarint(b, uint64(w.Weight)<<1|1)
		for _, sum := range w.Sum {
			b = appendSeconds(b, sum)
		}
	}
	return b
}

// weighed is what the sums of a weight are where all of it is of one minute.
func weighed(weight int64, s *analytics.Summary) (sums [len(analytics.Quantiles)]float64) {
	for i, q := range s.Quantiles {
		sums[i] = float64(weight) * q.Seconds()
	}
	return sums
}

// appendSeconds appends a number of seconds exactly: in few bytes when it is whole milliseconds,
// as sums of quantiles mostly are.
func appendSeconds(b []byte, v float64) []byte {
	if ms := math.Round(v * 1000); ms >= 0 && ms < 1<<52 && ms/1000 == v {
		return binary.AppendUvarint(b, uint64(ms)<<1)
	}
	return binary.LittleEndian.AppendUint64(append(b, 1), math.Float64bits(v))
}

// appendDetails appends the maps of a row; nothing when they are empty.
func appendDetails(b []byte, r *analytics.Row) []byte {
	all := [...]map[string]int64{r.Reasons, r.TicketRefusals, r.BypassReasons}
	if len(all[0])+len(all[1])+len(all[2]) == 0 {
		return b
	}
	for _, words := range all {
		b = binary.AppendUvarint(b, uint64(len(words)))
		for _, word := range slices.Sorted(maps.Keys(words)) {
			b = wire.AppendSized(b, word)
			b = binary.AppendUvarint(b, uint64(words[word]))
		}
	}
	return b
}

// appendHistograms appends the histograms of a row; nothing when they are empty.
func appendHistograms(b []byte, r *analytics.Row) []byte {
	if !slices.ContainsFunc(r.Histograms[:], func(h *analytics.Histogram) bool { return h.Count() > 0 }) {
		return b
	}
	b = append(b, byte(len(r.Histograms)))
	for _, h := range r.Histograms {
		b = h.AppendWire(b)
	}
	return b
}

func text(d *wire.Reader) string { return string(d.Sized(mostText)) }

func seconds(d *wire.Reader) float64 {
	v := d.Uvarint()
	if v&1 == 0 {
		return float64(v>>1) / 1000
	}
	return math.Float64frombits(d.Little64())
}

// readRow reads what appendRow wrote into r.
func readRow(d *wire.Reader, r *analytics.Row) {
	if v := d.Byte(); v != codecVersion {
		d.Failf("it has format version %d, this program knows %d: it is of another release", v, codecVersion)
		return
	}
	flags := d.Byte()
	r.QueueAll, r.Suspended = flags&flagQueueAll != 0, flags&flagSuspended != 0
	if m := d.Byte(); int(m) < len(methods) {
		r.Method = methods[m]
	}
	r.Event = anteroom.EventID(text(d))
	r.Minutes = int64(d.Uvarint())
	for i := range int(d.Number(mostMembers)) {
		s := analytics.Stat{N: int64(d.Uvarint())}
		switch {
		case s.N == 1:
			s.Sum = d.Varint()
			s.Min, s.Max = s.Sum, s.Sum
		case s.N != 0:
			s.Min = d.Varint()
			s.Max = s.Min + int64(d.Uvarint())
			s.Sum = d.Varint()
		}
		if i < len(r.Stats) {
			r.Stats[i] = s
		}
	}
	for i := range int(d.Number(mostMembers)) {
		s := analytics.Summary{N: int64(d.Uvarint())}
		last := int64(0)
		for j := range s.Quantiles {
			if s.N != 0 {
				last += d.Varint()
				s.Quantiles[j] = time.Duration(last) * time.Millisecond
			}
		}
		if i < len(r.Summaries) {
			r.Summaries[i] = s
		}
	}
	for i := range int(d.Number(mostMembers)) {
		v := d.Uvarint()
		w := analytics.Weighted{Weight: int64(v >> 1)}
		if v&1 != 0 {
			for j := range w.Sum {
				w.Sum[j] = seconds(d)
			}
		} else if i < len(r.Summaries) {
			w.Sum = weighed(w.Weight, &r.Summaries[i])
		}
		if i < len(r.Weighted) {
			r.Weighted[i] = w
		}
	}
}

// readDetails reads what appendDetails wrote into r.
func readDetails(d *wire.Reader, r *analytics.Row) {
	if d.Left() == 0 {
		return
	}
	for _, to := range []*map[string]int64{&r.Reasons, &r.TicketRefusals, &r.BypassReasons} {
		n := d.Number(mostWords)
		if n > 0 {
			*to = map[string]int64{}
		}
		for range n {
			word, n := text(d), int64(d.Uvarint())
			if d.Err() != nil {
				return
			}
			(*to)[word] = n
		}
	}
}

// asDamage says of what there is a fault, nil for none.
func asDamage(err error) error {
	if err != nil {
		return fmt.Errorf("analytics: stored row %w", err)
	}
	return nil
}

// parseRow reads a stored row; details and histograms may be nil.
func parseRow(r *analytics.Row, body, details, histograms []byte) error {
	d := wire.Read(body)
	readRow(&d, r)
	if err := d.End(); err != nil {
		return asDamage(err)
	}
	d = wire.Read(details)
	readDetails(&d, r)
	if err := d.End(); err != nil {
		return asDamage(err)
	}
	return parseHistograms(r, histograms)
}

// parseHistograms reads what appendHistograms wrote into a row; nothing leaves it as it is.
func parseHistograms(r *analytics.Row, histograms []byte) error {
	if len(histograms) == 0 {
		return nil
	}
	d := wire.Read(histograms)
	for i := range int(d.Number(mostMembers)) {
		if h := analytics.ReadHistogram(&d); i < len(r.Histograms) && h.Count() > 0 {
			r.Histograms[i] = h
		}
	}
	return asDamage(d.End())
}

// addHistograms adds what appendHistograms wrote.
func addHistograms(to *[analytics.Spans]analytics.Sum, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	d := wire.Read(b)
	var beyond analytics.Sum // distributions of a later release
	for i := range int(d.Number(mostMembers)) {
		sum := &beyond
		if i < len(to) {
			sum = &to[i]
		}
		sum.AddWire(&d)
	}
	return asDamage(d.Err())
}
