package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// TestReadAsWritten: values come back in their order, and nothing is left.
func TestReadAsWritten(t *testing.T) {
	t.Parallel()
	b := []byte{7}
	for _, v := range []uint64{0, 127, 128, math.MaxUint64} {
		b = binary.AppendUvarint(b, v)
	}
	for _, v := range []int64{0, -1, 63, -65, math.MinInt64, math.MaxInt64} {
		b = binary.AppendVarint(b, v)
	}
	b = AppendSized(AppendSized(b, "text"), []byte{})
	b = binary.BigEndian.AppendUint16(b, 0x0102)
	b = binary.BigEndian.AppendUint32(b, 0x01020304)
	b = binary.BigEndian.AppendUint64(b, 0x0102030405060708)
	b = binary.LittleEndian.AppendUint32(b, 0x01020304)
	b = binary.LittleEndian.AppendUint64(b, 0x0102030405060708)
	b = append(b, 2, 10, 20, 1, 2, 3)

	r := Read(b)
	if r.Byte() != 7 || r.Uvarint() != 0 || r.Number(127) != 127 || r.Uvarint() != 128 || r.Uvarint() != math.MaxUint64 {
		t.Error("numbers")
	}
	for _, v := range []int64{0, -1, 63, -65, math.MinInt64, math.MaxInt64} {
		if got := r.Varint(); got != v || Unzigzag(Zigzag(v)) != v {
			t.Errorf("%d, want %d", got, v)
		}
	}
	if text, none := r.Sized(4), r.Sized(math.MaxInt64); string(text) != "text" || cap(text) != 4 || none == nil || len(none) > 0 {
		t.Errorf("%q with room for %d, %v", text, cap(text), none)
	}
	if r.Big16() != 0x0102 || r.Big32() != 0x01020304 || r.Big64() != 0x0102030405060708 || r.Little32() != 0x01020304 || r.Little64() != 0x0102030405060708 {
		t.Error("numbers of fixed length")
	}
	if r.Elements(1) != 2 || r.Byte() != 10 || r.Byte() != 20 {
		t.Error("elements")
	}
	part := r.Part(2)
	if part.Byte() != 1 || part.Left() != 1 || part.Byte() != 2 || part.End() != nil {
		t.Error("a part")
	}
	if rest := r.Rest(); !bytes.Equal(rest, []byte{3}) || r.Left() != 0 || r.End() != nil || len(r.Rest()) != 0 || r.Err() != nil {
		t.Errorf("rest %v, %v", rest, r.Err())
	}
}

// TestFaults: the first fault is kept, says where it is, and everything after it is zero.
func TestFaults(t *testing.T) {
	t.Parallel()
	number := bytes.Repeat([]byte{0xff}, 11)
	for name, c := range map[string]struct {
		b    []byte
		read func(*Reader)
		want string
	}{
		"nothing":             {nil, func(r *Reader) { r.Byte() }, "at byte 1: it ends too early"},
		"too few bytes":       {[]byte{1}, func(r *Reader) { r.Bytes(2) }, "at byte 1: it ends too early"},
		"fewer than none":     {[]byte{1}, func(r *Reader) { r.Bytes(-1) }, "ends too early"},
		"no number":           {[]byte{0x80}, func(r *Reader) { r.Uvarint() }, "ends too early"},
		"endless number":      {number, func(r *Reader) { r.Uvarint() }, "shortest form"},
		"long number":         {[]byte{0x85, 0}, func(r *Reader) { r.Varint() }, "at byte 1: a number is not in its shortest form"},
		"large number":        {[]byte{200, 1}, func(r *Reader) { r.Number(100) }, "200 is too large, at most 100"},
		"long text":           {[]byte{3, 'a', 'b'}, func(r *Reader) { r.Sized(9) }, "ends too early"},
		"longer text":         {[]byte{3, 'a', 'b', 'c'}, func(r *Reader) { r.Sized(2) }, "3 is too large"},
		"text of any length":  {number[:9], func(r *Reader) { r.b = append(r.b, 1); r.Sized(math.MaxInt64) }, "too large"},
		"many elements":       {[]byte{2, 0, 0, 0}, func(r *Reader) { r.Elements(2) }, "2 elements in 3 bytes"},
		"elements of nothing": {number[:9], func(r *Reader) { r.b = append(r.b, 1); r.Elements(1) }, "elements in 0 bytes"},
		"two bytes":           {[]byte{1}, func(r *Reader) { r.Big16() }, "ends too early"},
		"four bytes":          {[]byte{1, 2, 3}, func(r *Reader) { r.Little32() }, "ends too early"},
		"four, too":           {[]byte{1, 2, 3}, func(r *Reader) { r.Big32() }, "ends too early"},
		"eight bytes":         {[]byte{1, 2, 3, 4, 5, 6, 7}, func(r *Reader) { r.Little64() }, "ends too early"},
		"eight, too":          {[]byte{1, 2, 3, 4, 5, 6, 7}, func(r *Reader) { r.Big64() }, "ends too early"},
		"bytes left":          {[]byte{1, 2}, func(r *Reader) { r.Byte(); r.End() }, "at byte 2: 1 bytes too many"},
		"long part":           {[]byte{1, 2}, func(r *Reader) { p := r.Part(3); p.Byte() }, "at byte 1: it ends too early"},
		"in a part": {[]byte{1, 2, 3, 4}, func(r *Reader) {
			p := r.Part(2)
			p.Bytes(2)
			p.Byte()
			*r = p
		}, "at byte 3: it ends too early"},
		"said": {[]byte{1}, func(r *Reader) { r.Failf("%d is no color", r.Byte()) }, "at byte 2: 1 is no color"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Read(append([]byte{0}, c.b...))
			r.Byte()
			c.read(&r)
			err := r.Err()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %s", err, c.want)
			}
			part := r.Part(1)
			zero := r.Byte() == 0 && r.Uvarint() == 0 && r.Varint() == 0 && r.Number(9) == 0 && r.Elements(1) == 0 && r.Bytes(1) == nil &&
				r.Sized(9) == nil && r.Big64() == 0 && r.Little32() == 0 && r.Left() == 0 && part.Left() == 0 && part.Err() == err
			r.Failf("something else")
			if !zero || r.Err() != err || r.End() != err {
				t.Errorf("after the fault: %v", r.Err())
			}
		})
	}
}
