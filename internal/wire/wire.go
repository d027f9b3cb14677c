// Package wire reads the binary forms in which tickets, journals, stores and messages are kept and
// sent, and which somebody may have damaged.
//
// What writes them are the Append functions of encoding/binary, and [AppendSized]; each form says what
// follows what. What reads them is a [Reader]: it takes values from the front, checks every bound
// against the bytes that are there, keeps the first fault and where it was, and gives zeros from
// then on. So a form is read straight through, and asked once in the end whether it was good.
package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AppendSized appends the number of bytes of s as a varint, and s.
func AppendSized[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Zigzag makes small numbers of both signs small ones without a sign, as encoding/binary does for varints.
func Zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// Unzigzag is the reverse of [Zigzag].
func Unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// A Fault says what is wrong with bytes, and where.
type fault struct {
	At   int // bytes before it
	What string
}

// Error reads on after the name of the form: "ticket at byte 3: it ends too early: it was damaged".
func (f *fault) Error() string { return fmt.Sprintf("at byte %d: %s", f.At, f.What) }

// Reader takes values from the front of bytes. After the first fault everything is zero and nothing is
// left. The zero Reader has nothing to read.
type Reader struct {
	b   []byte // all of them, or up to the end of a part, so that at says where
	at  int
	err error
}

// Read returns a reader of b. What it returns of b is a part of it.
func Read(b []byte) Reader { return Reader{b: b} }

// Left is how many bytes there are to read.
func (r *Reader) Left() int { return len(r.b) - r.at }

// Err returns the first fault, a [*Fault].
func (r *Reader) Err() error { return r.err }

// End returns the first fault; bytes that are left over are one.
func (r *Reader) End() error {
	if r.Left() > 0 {
		r.Failf("%d bytes too many: it was damaged, or written by another release", r.Left())
	}
	return r.err
}

// Failf says what is wrong with what was read last, unless something was wrong before.
func (r *Reader) Failf(format string, args ...any) {
	if r.err == nil {
		r.err = &fault{r.at, fmt.Sprintf(format, args...)}
	}
	r.b, r.at = nil, 0
}

func (r *Reader) short() { r.Failf("it ends too early: it was damaged") }

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if r.at >= len(r.b) {
		r.short()
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

// Bytes reads n bytes, nil when there are not so many.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > r.Left() {
		r.short()
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at : r.at]
}

// Rest reads all that is left.
func (r *Reader) Rest() []byte { return r.Bytes(r.Left()) }

// Part reads n bytes as a form of their own, whose faults say where they are in the whole.
func (r *Reader) Part(n int) Reader {
	start := r.at
	if r.Bytes(n) == nil {
		return Reader{err: r.err}
	}
	return Reader{b: r.b[:r.at], at: start}
}

// Uvarint reads a varint, which has to be in its shortest form.
func (r *Reader) Uvarint() uint64 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		r.at++
		return uint64(r.b[r.at-1])
	}
	return r.uvarint()
}

func (r *Reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b[r.at:])
	switch {
	case n == 0:
		r.short()
		return 0
	case n < 0 || r.b[r.at+n-1] == 0:
		r.Failf("a number is not in its shortest form: it was damaged")
		return 0
	}
	r.at += n
	return v
}

// Varint reads a varint with a sign.
func (r *Reader) Varint() int64 { return Unzigzag(r.Uvarint()) }

// Number reads a varint from 0 to most.
func (r *Reader) Number(most int64) int64 {
	v := r.Uvarint()
	if v > uint64(most) {
		r.Failf("%d is too large, at most %d is allowed: it was damaged", v, most)
		return 0
	}
	return int64(v)
}

// Sized reads what [AppendSized] wrote, of at most most bytes.
func (r *Reader) Sized(most int64) []byte { return r.Bytes(int(r.Number(min(most, math.MaxInt)))) }

// Elements reads a varint that says how many elements follow, which take at least so many bytes each,
// from 1 on: nothing needs to be allocated that there are no bytes for.
func (r *Reader) Elements(least int) int {
	n := r.Uvarint()
	if n > uint64(r.Left()/least) {
		r.Failf("%d elements in %d bytes: it was damaged", n, r.Left())
		return 0
	}
	return int(n)
}

// Little32 reads four bytes, the least first.
func (r *Reader) Little32() uint32 {
	if b := r.Bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Little64 reads eight bytes, the least first.
func (r *Reader) Little64() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Big16 reads two bytes, the greatest first.
func (r *Reader) Big16() uint16 {
	if b := r.Bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// Big32 reads four bytes, the greatest first.
func (r *Reader) Big32() uint32 {
	if b := r.Bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Big64 reads eight bytes, the greatest first.
func (r *Reader) Big64() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}
