package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"strconv"

	"github.com/anteroom/anteroom"
)

// trace is the story of a run: its text goes to a writer, its hash tells two runs apart.
type trace struct {
	out  io.Writer
	hash hash.Hash
	buf  []byte

	second int64 // of the line before
	shown  []byte
}

func newTrace(out io.Writer) *trace { return &trace{out: out, hash: sha256.New()} }

// line begins a line with the time and a word.
func (t *trace) line(at anteroom.Time, word string) []byte {
	us := int64(at - epoch)
	if s := us / 1e6; s != t.second || len(t.shown) == 0 {
		t.second = s
		t.shown = append(strconv.AppendInt(t.shown[:0], s, 10), '.')
	}
	b := append(t.buf, t.shown...)
	frac := uint32(us % 1e6)
	b = append(b, '0'+byte(frac/100_000), '0'+byte(frac/10_000%10), '0'+byte(frac/1000%10),
		'0'+byte(frac/100%10), '0'+byte(frac/10%10), '0'+byte(frac%10), ' ')
	return append(b, word...)
}

func (t *trace) end(b []byte) {
	t.buf = append(b, '\n')
	if len(t.buf) > 1<<16 {
		t.flush()
	}
}

func (t *trace) flush() {
	t.hash.Write(t.buf)
	if t.out != nil {
		t.out.Write(t.buf) // a trace that cannot be written changes no run
	}
	t.buf = t.buf[:0]
}

func (t *trace) sum() string {
	t.flush()
	return hex.EncodeToString(t.hash.Sum(nil))
}

func appendNumber(b []byte, word string, n int64) []byte {
	b = append(b, ' ')
	b = append(b, word...)
	if n < 0 {
		return strconv.AppendInt(b, n, 10)
	}
	var digits [20]byte
	i := len(digits)
	for more := true; more; more = n > 0 {
		i--
		digits[i] = '0' + byte(n%10)
		n /= 10
	}
	return append(b, digits[i:]...)
}

// appendReference is the text of ID.Reference.
func appendReference(b []byte, id *anteroom.ID) []byte {
	var hexes [10]byte
	hex.Encode(hexes[:], id[:5])
	b = append(b, hexes[:5]...)
	b = append(b, '-')
	return append(b, hexes[5:]...)
}
