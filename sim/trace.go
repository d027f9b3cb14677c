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
}

func newTrace(out io.Writer) *trace { return &trace{out: out, hash: sha256.New()} }

// line begins a line with the time and a word.
func (t *trace) line(at anteroom.Time, word string) []byte {
	us := int64(at - epoch)
	b := strconv.AppendInt(t.buf[:len(t.buf)], us/1e6, 10)
	b = append(b, '.')
	frac := us % 1e6
	for unit := int64(100_000); unit > 0; unit /= 10 {
		b = append(b, byte('0'+frac/unit%10))
	}
	b = append(b, ' ')
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
	return strconv.AppendInt(b, n, 10)
}
