package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/anteroom/anteroom"
)

// coder writes a message to b, or reads it from there. Its methods take pointers and look at
// what they point to when it writes, change it when it reads: never both, for what is sent
// may be shared. After the first fault everything reads as zero.
type coder struct {
	b     []byte // writing: what was written; reading: the message, or a part of it
	at    int    // reading: where in b
	reads bool
	kind  wireKind
	err   error
}

func writing(b []byte, kind wireKind) coder {
	return coder{b: append(b, wireVersion<<4|byte(kind)), kind: kind}
}

func reading(b []byte, kind wireKind) coder {
	c := coder{b: b, reads: true, kind: kind}
	switch {
	case len(b) > WireLimit:
		c.fail("it has %d bytes, at most %d are allowed: send less at once", len(b), WireLimit)
	case len(b) == 0:
		c.fail("it is empty")
	case b[0]>>4 != wireVersion:
		c.fail("it has format version %d, this program speaks %d: run the same release everywhere", b[0]>>4, wireVersion)
	case wireKind(b[0]&15) != kind:
		c.fail("it is of kind %d (%v), not %d: it was sent to the wrong place", b[0]&15, wireKind(b[0]&15), kind)
	default:
		c.at = 1
	}
	return c
}

func (c *coder) left() int { return len(c.b) - c.at }

// end returns the first fault; bytes that are left over are one.
func (c *coder) end() error {
	if c.err == nil && c.left() > 0 {
		c.fail("%d bytes too many: it was damaged, or written by another release", c.left())
	}
	return c.err
}

func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("engine: %v at byte %d: "+format, append([]any{c.kind, c.at}, args...)...)
	}
	c.b, c.at = nil, 0
}

func (c *coder) failShort() { c.fail("it ends too early: it was damaged") }

// next reads a varint in its shortest form.
func (c *coder) next() uint64 {
	if c.at < len(c.b) && c.b[c.at] < 0x80 {
		c.at++
		return uint64(c.b[c.at-1])
	}
	v, n := binary.Uvarint(c.b[c.at:])
	switch {
	case n == 0:
		c.failShort()
		return 0
	case n < 0 || c.b[c.at+n-1] == 0:
		c.fail("a number is not in its shortest form: it was damaged")
		return 0
	}
	c.at += n
	return v
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, p *T) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, uint64(*p))
		return
	}
	v := c.next()
	if uint64(T(v)) != v {
		c.fail("%d is too large", v)
		v = 0
	}
	*p = T(v)
}

func signed[T ~int | ~int64](c *coder, p *T) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, zigzag(int64(*p)))
		return
	}
	v := unzigzag(c.next())
	if int64(T(v)) != v {
		c.fail("%d is too large for this machine", v)
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
	v := T(c.octet())
	if c.err == nil && (v < first || v > last) {
		c.fail("%d has no name, %d to %d have: it was damaged", uint8(v), uint8(first), uint8(last))
	}
	if c.err != nil {
		v = first
	}
	*p = v
}

func (c *coder) octet() byte {
	if c.left() == 0 {
		c.failShort()
		return 0
	}
	c.at++
	return c.b[c.at-1]
}

// flags are at most seven.
func (c *coder) flags(of ...*bool) {
	var nothing uint8
	c.lane(&nothing, of...)
	if nothing != 0 {
		c.fail("there are flags without a meaning: it was damaged")
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
		c.fail("%d is not a lane", v)
	}
}

// moment is written as the difference to another, and zero ("never") as 0 however far away
// it is: the differences that are nearer than it move up by one.
func (c *coder) moment(p *anteroom.Time, base anteroom.Time) {
	never := zigzag(int64(-base))
	if !c.reads {
		u := zigzag(int64(*p - base))
		if u == never {
			u = 0
		} else if u < never {
			u++
		}
		c.b = binary.AppendUvarint(c.b, u)
		return
	}
	u := c.next()
	switch {
	case u == 0:
		*p = 0
	case u <= never:
		*p = base + anteroom.Time(unzigzag(u-1))
	default:
		*p = base + anteroom.Time(unzigzag(u))
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
	if c.left() < len(p) {
		c.failShort()
		return
	}
	*p = anteroom.ID(c.b[c.at:])
	c.at += len(p)
}

func (c *coder) text(p *string) {
	n := uint64(len(*p))
	unsigned(c, &n)
	if !c.reads {
		c.b = append(c.b, *p...)
		return
	}
	if n > uint64(c.left()) {
		c.failShort()
		return
	}
	*p = string(c.b[c.at : c.at+int(n)])
	c.at += int(n)
}

// list is a number of elements and the elements, which take at least so many bytes each:
// nothing is allocated that the message has not the bytes for.
func list[T any](c *coder, p *[]T, least int, each func(*coder, *T)) {
	n := uint64(len(*p))
	unsigned(c, &n)
	if c.reads {
		if n > uint64(c.left()/least) {
			c.fail("%d elements in %d bytes: it was damaged", n, c.left())
			return
		}
		if n == 0 {
			return
		}
		*p = make([]T, n)
	}
	for i := range *p {
		if c.err != nil {
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
	n := c.next()
	if n > maxExtensions {
		c.fail("%d extensions, at most %d are allowed: it was damaged", n, maxExtensions)
	}
	before := uint64(0)
	for range n {
		tag, size := c.next(), c.next()
		switch {
		case c.err != nil:
			return
		case tag <= before:
			c.fail("extension %d follows %d: it was damaged", tag, before)
			return
		case size > uint64(c.left()):
			c.failShort()
			return
		}
		before = tag
		if tag > uint64(len(known)) {
			c.at += int(size)
			continue
		}
		x, whole := known[tag-1], c.b
		c.b = whole[:c.at+int(size)]
		x.code(c)
		if c.end() != nil {
			return
		}
		c.b = whole
		if !x.set() {
			c.fail("extension %d is there and says nothing: it was damaged", tag)
			return
		}
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
