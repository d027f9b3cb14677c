package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// codecVersion is the first byte of what is kept of a row.
const codecVersion = 1

// Bounds of what is read back, of a file that somebody may have damaged.
const (
	mostMembers = 64 // metrics, distributions
	mostWords   = 1 << 10
	mostText    = 256 // bytes of a word or an id

)

var (
	errDamaged = errors.New("analytics: a stored row is damaged")
	errVersion = errors.New("analytics: a stored row is of another release")
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
	b = appendText(b, string(r.Event))
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

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
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
			b = appendText(b, word)
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

// decoder takes values from the front of b. After the first fault everything is zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() { d.b, d.err = nil, errDamaged }

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count is a number of members that follow.
func (d *decoder) count(most uint64) int {
	if v := d.uint(); v <= most {
		return int(v)
	}
	d.fail()
	return 0
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.b) {
		d.fail()
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) text() string { return string(d.bytes(d.count(mostText))) }

func (d *decoder) seconds() float64 {
	v := d.uint()
	if v&1 == 0 {
		return float64(v>>1) / 1000
	}
	raw := d.bytes(8)
	if raw == nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(raw))
}

// row reads what appendRow wrote into r.
func (d *decoder) row(r *analytics.Row) {
	if d.byte() != codecVersion && d.err == nil {
		d.b, d.err = nil, errVersion
		return
	}
	flags := d.byte()
	r.QueueAll, r.Suspended = flags&flagQueueAll != 0, flags&flagSuspended != 0
	if m := d.byte(); int(m) < len(methods) {
		r.Method = methods[m]
	}
	r.Event = anteroom.EventID(d.text())
	r.Minutes = int64(d.uint())
	for i := range d.count(mostMembers) {
		s := analytics.Stat{N: int64(d.uint())}
		switch {
		case s.N == 1:
			s.Sum = d.int()
			s.Min, s.Max = s.Sum, s.Sum
		case s.N != 0:
			s.Min = d.int()
			s.Max = s.Min + int64(d.uint())
			s.Sum = d.int()
		}
		if i < len(r.Stats) {
			r.Stats[i] = s
		}
	}
	for i := range d.count(mostMembers) {
		s := analytics.Summary{N: int64(d.uint())}
		last := int64(0)
		for j := range s.Quantiles {
			if s.N != 0 {
				last += d.int()
				s.Quantiles[j] = time.Duration(last) * time.Millisecond
			}
		}
		if i < len(r.Summaries) {
			r.Summaries[i] = s
		}
	}
	for i := range d.count(mostMembers) {
		v := d.uint()
		w := analytics.Weighted{Weight: int64(v >> 1)}
		if v&1 != 0 {
			for j := range w.Sum {
				w.Sum[j] = d.seconds()
			}
		} else if i < len(r.Summaries) {
			w.Sum = weighed(w.Weight, &r.Summaries[i])
		}
		if i < len(r.Weighted) {
			r.Weighted[i] = w
		}
	}
}

// details reads what appendDetails wrote into r.
func (d *decoder) details(r *analytics.Row) {
	if len(d.b) == 0 {
		return
	}
	for _, to := range []*map[string]int64{&r.Reasons, &r.TicketRefusals, &r.BypassReasons} {
		n := d.count(mostWords)
		if n > 0 && d.err == nil {
			*to = map[string]int64{}
		}
		for range n {
			word, n := d.text(), int64(d.uint())
			if d.err != nil {
				return
			}
			(*to)[word] = n
		}
	}
}

// histograms reads what appendHistograms wrote into r.
func (d *decoder) histograms(r *analytics.Row) {
	if len(d.b) == 0 {
		return
	}
	for i := range d.count(mostMembers) {
		h, rest, err := analytics.ParseHistogram(d.b)
		if err != nil {
			d.b, d.err = nil, fmt.Errorf("%w: %w", errDamaged, err)
			return
		}
		d.b = rest
		if i < len(r.Histograms) && h.Count() > 0 {
			r.Histograms[i] = h
		}
	}
}

// ended returns the first fault, of which bytes after the end are one.
func (d *decoder) ended() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errDamaged
	}
	return d.err
}

// parseRow reads a stored row; details and histograms may be nil.
func parseRow(r *analytics.Row, body, details, histograms []byte) error {
	d := decoder{b: body}
	d.row(r)
	if err := d.ended(); err != nil {
		return err
	}
	d.b = details
	d.details(r)
	if err := d.ended(); err != nil {
		return err
	}
	return parseHistograms(r, histograms)
}

// parseHistograms reads what appendHistograms wrote into a row; nothing leaves it as it is.
func parseHistograms(r *analytics.Row, histograms []byte) error {
	d := decoder{b: histograms}
	d.histograms(r)
	return d.ended()
}

// addHistograms adds what appendHistograms wrote.
func addHistograms(to *[analytics.Spans]analytics.Sum, b []byte) (err error) {
	if len(b) == 0 {
		return nil
	}
	d := decoder{b: b}
	n := d.count(mostMembers)
	var beyond analytics.Sum // distributions of a later release
	for i, b := 0, d.b; i < n && err == nil; i++ {
		sum := &beyond
		if i < len(to) {
			sum = &to[i]
		}
		b, err = sum.AddWire(b)
	}
	return err
}
