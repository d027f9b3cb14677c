package engine

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/anteroom/anteroom"
)

// FiguresCache remembers the two newest [Figures] in both forms, for the sake of long lines: a
// coordinator encodes them once and not for every site, and a process that hears the same
// bytes again keeps the Figures that it has. It belongs to one goroutine (or lock), which is
// why it is not a part of the Figures, which everybody shares. The zero value is ready; a nil
// one remembers nothing. One cache may serve sender and receiver in the same process, which
// then share the Figures as they would without a wire; the older of the two are those that
// are still on their way.
type FiguresCache struct {
	kept [2]figuresForms // the newer first
}

type figuresForms struct {
	figures *Figures
	wire    []byte
}

func (f *FiguresCache) keep(figures *Figures, wire []byte) {
	f.kept[0], f.kept[1] = f.kept[1], f.kept[0]
	f.kept[0] = figuresForms{figures, append(f.kept[0].wire[:0], wire...)}
}

// wireOf is the encoded form, nil when it is not known.
func (f *FiguresCache) wireOf(figures *Figures) []byte {
	if f != nil {
		for i := range f.kept {
			if f.kept[i].figures == figures {
				return f.kept[i].wire
			}
		}
	}
	return nil
}

// figuresOf is the reverse.
func (f *FiguresCache) figuresOf(wire []byte) *Figures {
	if f != nil {
		for i := range f.kept {
			if f.kept[i].figures != nil && bytes.Equal(wire, f.kept[i].wire) {
				return f.kept[i].figures
			}
		}
	}
	return nil
}

// figures are preceded by their length in four bytes, 0 for nil.
func (c *coder) figures(p **Figures, cache *FiguresCache) {
	if !c.reads {
		c.writeFigures(*p, cache)
		return
	}
	part := c.Part(int(c.Little32()))
	whole := part
	own := whole.Rest()
	if len(own) == 0 {
		return
	}
	if known := cache.figuresOf(own); known != nil {
		*p = known
		return
	}
	f := new(Figures)
	if c.within(part, func(c *coder) { c.figuresBody(f) }); c.Err() != nil {
		return
	}
	if cache != nil {
		cache.keep(f, own)
	}
	*p = f
}

func (c *coder) writeFigures(f *Figures, cache *FiguresCache) {
	c.b = append(c.b, 0, 0, 0, 0)
	start := len(c.b)
	if f != nil {
		if known := cache.wireOf(f); known != nil {
			c.b = append(c.b, known...)
		} else {
			c.figuresBody(f)
			if cache != nil {
				cache.keep(f, c.b[start:])
			}
		}
	}
	binary.LittleEndian.PutUint32(c.b[start-4:], uint32(len(c.b)-start))
}

// figuresBody depends on nothing else in the message, so that it can be remembered.
func (c *coder) figuresBody(f *Figures) {
	c.moment(&f.At, 0)
	unsigned(c, &f.Number)
	signed(c, &f.Waiting)
	signed(c, &f.Hot)
	c.moment(&f.Front, f.At)
	c.moment(&f.Oldest, f.At)
	c.moment(&f.Shuffled, f.At)
	unsigned(c, &f.Released)
	c.moment(&f.CurveAt, f.At)
	served := f.Released
	c.follow(&f.CurveFrom, &served)
	sums, bounds, lanes := !c.reads && f.sums(), f.Seats != 0 || f.Ends != 0, len(f.Lanes) > 0
	c.flags(&f.Known, &sums, &bounds, &lanes)
	signed(c, &f.Step)
	if c.reads {
		f.Leave = math.Float64frombits(c.Little64())
	} else {
		c.b = binary.LittleEndian.AppendUint64(c.b, math.Float64bits(f.Leave))
	}
	for i := range f.Draw {
		signed(c, &f.Draw[i])
	}
	list(c, &f.Curve, 4, (*coder).point)
	if bounds {
		unsigned(c, &f.Seats)
		signed(c, &f.Ends)
		if c.reads && c.Err() == nil && f.Seats == 0 && f.Ends == 0 {
			c.Failf("bounds are there and say nothing: it was damaged")
		}
	}
	c.seconds(f, sums)
	if lanes {
		c.laneFigures(f)
	}
}

// mostLanes bounds those of a message: all that a room may have, and the ordinary one.
const mostLanes = anteroom.MaxLanes + 1

// laneFigures are those of each lane, which have none themselves.
func (c *coder) laneFigures(f *Figures) {
	before := 256
	list(c, &f.Lanes, 20, func(c *coder, of *LaneFigures) {
		unsigned(c, &of.Lane)
		if c.figuresBody(&of.Figures); c.reads && (len(of.Lanes) > 0 || int(of.Lane) >= before) {
			c.Failf("lane %d comes after lane %d, or has lanes: it was damaged", of.Lane, before)
		}
		before = int(of.Lane)
	})
	if c.reads && c.Err() == nil && (len(f.Lanes) == 0 || len(f.Lanes) > mostLanes) {
		c.Failf("%d lanes: it was damaged", len(f.Lanes))
	}
}

func (c *coder) point(p *float32) {
	if !c.reads {
		c.b = binary.LittleEndian.AppendUint32(c.b, math.Float32bits(*p))
		return
	}
	*p = math.Float32frombits(c.Little32())
}

// sums says that every Before is the sum of the counts before, as it should be.
func (f *Figures) sums() bool {
	var sum uint32
	for i := range f.Seconds {
		if f.Seconds[i].Before != sum {
			return false
		}
		sum += f.Seconds[i].Count
	}
	return true
}

// seconds: of a busy second the last arrival is near its end, of a lonely one it is the
// first. Before is not written when it is the sum.
func (c *coder) seconds(f *Figures, sums bool) {
	second, sum := int64(f.At)/1e6, uint32(0)
	list(c, &f.Seconds, 4, func(c *coder, s *SecondCount) {
		gap := s.Second - second
		signed(c, &gap)
		unsigned(c, &s.Count)
		unsigned(c, &s.First)
		end := int64(1e6 - 1)
		if s.Count == 1 {
			end = int64(s.First)
		}
		left := end - int64(s.Last)
		signed(c, &left)
		if c.reads {
			s.Second, s.Last, s.Before = second+gap, uint32(end-left), sum
			if int64(s.Last) != end-left {
				c.Failf("%d is not a microsecond of a second", end-left)
			}
		}
		if !sums {
			unsigned(c, &s.Before)
		}
		second, sum = s.Second, sum+s.Count
	})
	if c.reads && c.Err() == nil && !sums && f.sums() {
		c.Failf("sums are written that are known: it was damaged")
	}
}
