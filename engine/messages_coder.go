package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/wire"
)

// coder writes a message to b, or reads it. Its methods take pointers and look at what they point to
// when it writes, change it when it reads: never both, for what is sent may be shared. After the first
// fault everything reads as zero.
type coder struct {
	b []byte // what was written
	wire.Reader
	reads bool
	kind  wireKind
}

func writing(b []byte, kind wireKind) coder {
	return coder{b: append(b, wireVersion<<4|byte(kind)), kind: kind}
}

func reading(b []byte, kind wireKind) coder {
	c := coder{Reader: wire.Read(b), reads: true, kind: kind}
	if len(b) > wireLimit {
		c.Failf("it has %d bytes, at most %d are allowed: send less at once", len(b), wireLimit)
		return c
	}
	if len(b) == 0 {
		c.Failf("it is empty")
		return c
	}
	switch first := c.Byte(); {
	case first>>4 != wireVersion:
		c.Failf("it has format version %d, this program speaks %d: run the same release everywhere", first>>4, wireVersion)
	case wireKind(first&15) != kind:
		c.Failf("it is of kind %d (%v), not %d: it was sent to the wrong place", first&15, wireKind(first&15), kind)
	}
	return c
}

// end returns the first fault; bytes that are left over are one.
func (c *coder) end() error {
	if err := c.End(); err != nil {
		return fmt.Errorf("engine: %v %w", c.kind, err)
	}
	return nil
}

func unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, p *T) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, uint64(*p))
		return
	}
	v := c.Uvarint()
	if uint64(T(v)) != v {
		c.Failf("%d is too large", v)
		v = 0
	}
	*p = T(v)
}

func signed[T ~int | ~int64](c *coder, p *T) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, wire.Zigzag(int64(*p)))
		return
	}
	v := c.Varint()
	if int64(T(v)) != v {
		c.Failf("%d is too large for this machine", v)
		v = 0
	}
	*p = T(v)
}

// named is a value of an enumeration, from first to last. Others do not come in: they have
// no String and no case.
func named[T ~uint8](c *coder, p *T, first, last T) {
	if !c.reads {
		c.b = append(c.b, byte(*p))
		return
	}
	v := T(c.Byte())
	if c.Err() == nil && (v < first || v > last) {
		c.Failf("%d has no name, %d to %d have: it was damaged", uint8(v), uint8(first), uint8(last))
	}
	if c.Err() != nil {
		v = first
	}
	*p = v
}

// flags are at most seven.
func (c *coder) flags(of ...*bool) {
	var nothing uint8
	c.lane(&nothing, of...)
	if nothing != 0 {
		c.Failf("there are flags without a meaning: it was damaged")
	}
}

// lane goes in one number with flags, so that the ordinary one takes no space.
func (c *coder) lane(p *uint8, of ...*bool) {
	v := uint16(*p) << len(of)
	for i, f := range of {
		if *f {
			v |= 1 << i
		}
	}
	unsigned(c, &v)
	if !c.reads {
		return
	}
	for i, f := range of {
		*f = v>>i&1 == 1
	}
	v >>= len(of)
	*p = uint8(v)
	if v > math.MaxUint8 {
		c.Failf("%d is not a lane", v)
	}
}

// moment is written as the difference to another, and zero ("never") as 0 however far away
// it is: the differences that are nearer than it move up by one.
func (c *coder) moment(p *anteroom.Time, base anteroom.Time) {
	never := wire.Zigzag(int64(-base))
	if !c.reads {
		u := wire.Zigzag(int64(*p - base))
		if u == never {
			u = 0
		} else if u < never {
			u++
		}
		c.b = binary.AppendUvarint(c.b, u)
		return
	}
	u := c.Uvarint()
	switch {
	case u == 0:
		*p = 0
	case u <= never:
		*p = base + anteroom.Time(wire.Unzigzag(u-1))
	default:
		*p = base + anteroom.Time(wire.Unzigzag(u))
	}
}

// follow is a number that is mostly a little more than the one before.
func (c *coder) follow(p, before *uint64) {
	d := int64(*p - *before)
	signed(c, &d)
	if c.reads {
		*p = *before + uint64(d)
	}
	*before = *p
}

func (c *coder) id(p *anteroom.ID) {
	if !c.reads {
		c.b = append(c.b, p[:]...)
		return
	}
	if b := c.Bytes(len(p)); b != nil {
		*p = anteroom.ID(b)
	}
}

func (c *coder) text(p *string) {
	if !c.reads {
		c.b = wire.AppendSized(c.b, *p)
		return
	}
	*p = string(c.Sized(math.MaxInt64))
}

// list is a number of elements and the elements, which take at least so many bytes each:
// nothing is allocated that the message has not the bytes for.
func list[T any](c *coder, p *[]T, least int, each func(*coder, *T)) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, uint64(len(*p)))
	} else if n := c.Elements(least); n > 0 {
		*p = make([]T, n)
	} else {
		return
	}
	for i := range *p {
		if c.Err() != nil {
			return
		}
		each(c, &(*p)[i])
	}
}

// present makes what a pointer has to point to when it is read.
func present[T any](c *coder, p **T) {
	if c.reads {
		*p = new(T)
	}
}

// extension is a member of a message that not every release knows. Its tag is its place in the
// list, from 1 on.
type extension struct {
	set  func() bool // it is not zero
	code func(*coder)
}

// maxExtensions bounds those of a message.
const maxExtensions = 64

// extensions end a message: how many there are, then each with its tag, ascending, and its
// length.
func (c *coder) extensions(known ...extension) {
	if !c.reads {
		c.writeExtensions(known)
		return
	}
	n := c.Uvarint()
	if n > maxExtensions {
		c.Failf("%d extensions, at most %d are allowed: it was damaged", n, maxExtensions)
		return
	}
	before := uint64(0)
	for range n {
		tag := c.Uvarint()
		part := c.Part(int(c.Number(math.MaxInt)))
		switch {
		case c.Err() != nil:
			return
		case tag <= before:
			c.Failf("extension %d follows %d: it was damaged", tag, before)
			return
		}
		before = tag
		if tag > uint64(len(known)) {
			continue
		}
		x := known[tag-1]
		if c.within(part, x.code); c.Err() == nil && !x.set() {
			c.Failf("extension %d is there and says nothing: it was damaged", tag)
		}
	}
}

// within reads a part of the message, all of it, and goes on after it.
func (c *coder) within(part wire.Reader, code func(*coder)) {
	whole := c.Reader
	c.Reader = part
	if code(c); c.End() == nil {
		c.Reader = whole
	}
}

func (c *coder) writeExtensions(known []extension) {
	n := uint64(0)
	for _, x := range known {
		if x.set() {
			n++
		}
	}
	unsigned(c, &n)
	for i, x := range known {
		if !x.set() {
			continue
		}
		c.b = binary.AppendUvarint(c.b, uint64(i+1))
		start := len(c.b)
		x.code(c)
		var size [binary.MaxVarintLen64]byte
		c.b = slices.Insert(c.b, start, size[:binary.PutUvarint(size[:], uint64(len(c.b)-start))]...)
	}
}
