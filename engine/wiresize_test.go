package engine

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// wireLoad is a message with many elements of a kind, as they are in a busy hour.
type wireLoad struct {
	name  string
	wire  int // index of wires
	count int
	most  float64 // bytes of an element
	make  func(r *rand.Rand, n int) any
}

const wireNow = anteroom.Time(1_800_000_000_000_000)

// ago is up to so long before wireNow.
func ago(r *rand.Rand, most time.Duration) anteroom.Time {
	return wireNow - anteroom.Time(r.Int64N(int64(most/time.Microsecond)))
}

func drawID(r *rand.Rand) (id anteroom.ID) {
	binary.LittleEndian.PutUint64(id[:8], r.Uint64())
	binary.LittleEndian.PutUint64(id[8:], r.Uint64())
	return id
}

func drawIDs(r *rand.Rand, n int) []anteroom.ID {
	ids := make([]anteroom.ID, n)
	for i := range ids {
		ids[i] = drawID(r)
	}
	return ids
}

// drawDue is when a check-in comes next.
func drawDue(r *rand.Rand) anteroom.Time { return wireNow - ago(r, MaxInterval) + wireNow }

func drawTicket(r *rand.Rand) anteroom.Ticket {
	return anteroom.Ticket{ID: drawID(r), Arrival: ago(r, time.Hour), LastCheckIn: ago(r, time.Second), Next: drawDue(r), Refresh: 20 * time.Second, Told: r.Uint32N(100_000)}
}

// wireLoads: the goals are those of the study (24 B a join, 16 B an offer; with raw ids 16 B
// a touch and 16 B more than its 12 B a poll), the others what it came to.
var wireLoads = []wireLoad{
	{"joins", 0, 500, 24.1, func(r *rand.Rand, n int) any {
		m := &Report{Sent: wireNow}
		for range n {
			m.Arrivals = append(m.Arrivals, Arrival{ID: drawID(r), Key: ago(r, flushEvery), Shown: true, Due: drawDue(r)})
		}
		return m
	}},
	{"full report", 0, 10_000, 26, func(r *rand.Rand, n int) any {
		m := &Report{Sent: wireNow, Full: true}
		for range n {
			m.Arrivals = append(m.Arrivals, Arrival{ID: drawID(r), Key: ago(r, time.Hour), Shown: true, Due: drawDue(r)})
		}
		return m
	}},
	{"offers", 1, 500, 16.1, func(r *rand.Rand, n int) any {
		return &ToSite{Offers: &Offers{At: wireNow, IDs: drawIDs(r, n)}}
	}},
	{"touches", 2, 500, 16.1, func(r *rand.Rand, n int) any { return &FromDoor{Touches: drawIDs(r, n)} }},
	{"polls", 2, 500, 30.5, func(r *rand.Rand, n int) any {
		m := &FromDoor{}
		for range n {
			m.Polls = append(m.Polls, Poll{ID: drawID(r), Key: ago(r, time.Hour), Due: drawDue(r), Last: ago(r, MaxInterval)})
		}
		return m
	}},
	{"newcomers", 2, 500, 44, func(r *rand.Rand, n int) any {
		m := &FromDoor{}
		for i := range n {
			m.Visits = append(m.Visits, Asked{Token: uint64(1000 + i), Visit: anteroom.Visit{Ticket: anteroom.Ticket{ID: drawID(r)}, Fresh: true, NewID: drawID(r)}})
		}
		return m
	}},
	{"answers", 3, 500, 74, func(r *rand.Rand, n int) any {
		m := &ToDoor{}
		for i := range n {
			m.Answers = append(m.Answers, Answer{Token: uint64(1000 + i), Decision: anteroom.Decision{Reason: anteroom.ReasonWaiting, At: ago(r, time.Second), Ticket: drawTicket(r),
				Method: anteroom.FIFO, Ahead: r.IntN(100_000), AheadKnown: true, Waiting: 100_000, WaitTime: time.Duration(r.Int64N(int64(time.Hour))), WaitKnown: true,
				Refresh: 20 * time.Second, KeptUntil: drawDue(r) + 300e6}})
		}
		return m
	}},
	{"seconds of a long line", 3, 3600, 9, func(_ *rand.Rand, n int) any { return &ToDoor{Figures: longLine(n)} }},
}

func TestWireSizes(t *testing.T) {
	t.Parallel()
	for _, l := range wireLoads {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			m := l.make(rand.New(rand.NewPCG(1, 1)), l.count)
			if got := float64(len(wires[l.wire].encode(nil, m))) / float64(l.count); got > l.most {
				t.Errorf("%.1f bytes, want at most %.1f", got, l.most)
			}
			roundTrip(t, wires[l.wire], m)
		})
	}
}

func BenchmarkWire(b *testing.B) {
	for _, l := range wireLoads {
		m := l.make(rand.New(rand.NewPCG(1, 1)), l.count)
		wire := wires[l.wire].encode(nil, m)
		report := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(l.count), "ns/element")
			b.ReportMetric(float64(len(wire))/float64(l.count), "B/element")
		}
		b.Run(l.name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			buffer := make([]byte, 0, len(wire))
			for b.Loop() {
				wires[l.wire].encode(buffer, m)
			}
			report(b)
		})
		b.Run(l.name+"/parse", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wires[l.wire].parse(wire); err != nil {
					b.Fatal(err)
				}
			}
			report(b)
		})
	}
}

// BenchmarkWireCached is a State for one of many sites, whose Figures the others got before.
func BenchmarkWireCached(b *testing.B) {
	m := &ToSite{State: &State{Now: wireNow, Figures: longLine(3600)}}
	wire := m.AppendWire(nil)
	b.Run("encode", func(b *testing.B) {
		var c FiguresCache
		buffer := make([]byte, 0, len(wire))
		b.ReportAllocs()
		for b.Loop() {
			c.AppendToSite(buffer, m)
		}
	})
	b.Run("parse", func(b *testing.B) {
		var c FiguresCache
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.ParseToSite(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// longLine is figures of a line of so many busy seconds.
func longLine(seconds int) *Figures {
	const now = wireNow
	f := &Figures{At: now, Known: true, Step: baseStep, Leave: 0.001, CurveAt: now - 2e6, Released: 5000, CurveFrom: 4000, Front: now - 3600e6}
	var before uint32
	for i := range seconds {
		count := uint32(200 + i*37%200)
		f.Seconds = append(f.Seconds, SecondCount{Second: int64(now)/1e6 - int64(seconds-i), Before: before, Count: count, First: uint32(i * 31 % 5000), Last: 999_999 - uint32(i*17%5000)})
		before += count
	}
	f.Waiting = int(before)
	for i := range min(horizon, seconds) {
		f.Curve = append(f.Curve, float32(i)*333.3)
	}
	return f
}
