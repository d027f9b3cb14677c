package h1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strings"
)

// maxFields bounds the fields of one head and of one trailer.
const maxFields = 500

// Faults of a head. Every one of them makes the message unusable and its connection with it.
var (
	errBareLF    = errors.New("h1: a line of the head does not end with CRLF")
	errHeadSize  = errors.New("h1: the head is too large")
	errFields    = errors.New("h1: the head has too many fields")
	errStartLine = errors.New("h1: the first line is not valid")
	errField     = errors.New("h1: a field of the head is not valid")
)

// head is the first line and the fields of a message, as they were received. It refers to the bytes it was parsed
// from and is valid as long as they are.
type head struct {
	raw    []byte
	line   int // its length, without CRLF
	fields []field
}

// field says where name and value are.
type field struct{ name, colon, value, end int32 }

// Parse reads a complete head: a first line, fields, an empty line. It accepts less than RFC 9112 lets recipients
// accept: no bare LF, no control character but tabs, no folded value, no space around a name. The first line may be
// anything else.
func (h *head) Parse(raw []byte) error {
	h.raw, h.fields = raw, h.fields[:0]
	h.line = bytes.IndexByte(raw, '\n') - 1
	if h.line < 1 || !isValue(raw[:h.line]) {
		return errStartLine
	}
	return h.parseFields(h.line + 2)
}

// parseFields reads fields up to the empty line, from an offset on.
func (h *head) parseFields(at int) error {
	for {
		n := bytes.IndexByte(h.raw[at:], '\n')
		if n < 1 || h.raw[at+n-1] != '\r' {
			return errBareLF
		}
		if n == 1 {
			return nil
		}
		if len(h.fields) == maxFields {
			return errFields
		}
		end := at + n - 1
		colon := at + bytes.IndexByte(h.raw[at:end], ':')
		if name := h.raw[at:max(at, colon)]; !isCommon(name) && !isToken(name) {
			return errField
		}
		value := colon + 1
		for value < end && isBlank(h.raw[value]) {
			value++
		}
		last := end
		for last > value && isBlank(h.raw[last-1]) {
			last--
		}
		if !isValue(h.raw[value:last]) {
			return errField
		}
		h.fields = append(h.fields, field{int32(at), int32(colon), int32(value), int32(last)})
		at += n + 1
	}
}

// Line is the first line, without its end.
func (h *head) Line() []byte { return h.raw[:h.line] }

// Len is the number of fields.
func (h *head) Len() int { return len(h.fields) }

// Field returns name and value of field i, the name as it was received.
func (h *head) Field(i int) (name, value []byte) {
	f := h.fields[i]
	return h.raw[f.name:f.colon], h.raw[f.value:f.end]
}

// Header returns a copy of the fields, with canonical names, in out, which is empty; nil: in a new one. All of its texts
// share one allocation.
func (h *head) Header(out http.Header) http.Header {
	text := string(h.raw)
	if out == nil {
		out = make(http.Header, len(h.fields))
	}
	values := make([]string, len(h.fields))
	for i, f := range h.fields {
		name := text[f.name:f.colon]
		if !isCommon(name) && !isCanonical(name) {
			name = textproto.CanonicalMIMEHeaderKey(name)
		}
		if before, ok := out[name]; ok {
			out[name] = append(before, text[f.value:f.end])
			continue
		}
		values[i] = text[f.value:f.end]
		out[name] = values[i : i+1 : i+1]
	}
	return out
}

// headEnd looks for the empty line that ends a head in b, whose lines are complete up to from. It returns where the
// head ends, or 0 and from where to look when there is more.
func headEnd(b []byte, from int) (end, next int, err error) {
	for {
		n := bytes.IndexByte(b[from:], '\n')
		if n < 0 {
			return 0, from, nil
		}
		if n == 0 || b[from+n-1] != '\r' {
			return 0, 0, errBareLF
		}
		from += n + 1
		if n == 1 {
			return from, from, nil
		}
	}
}

// readHead reads up to the empty line that ends a head of at most limit bytes. The head is valid until the next read of
// in, of which discard bytes have to be discarded by then.
func readHead(in *bufio.Reader, limit int) (head []byte, discard int, err error) {
	from := 0
	for {
		b, _ := in.Peek(in.Buffered())
		end, next, err := headEnd(b, from)
		switch {
		case err != nil:
			return nil, 0, err
		case end > limit || end == 0 && len(b) >= limit:
			return nil, 0, errHeadSize
		case end > 0:
			return b[:end], end, nil
		case len(b) == in.Size():
			head, err = readLongHead(in, limit)
			return head, 0, err
		}
		from = next
		if _, err := in.Peek(len(b) + 1); err != nil {
			return nil, 0, noEOF(err)
		}
	}
}

// readLongHead reads a head that is larger than the reader's buffer into memory of its own.
func readLongHead(in *bufio.Reader, limit int) (head []byte, err error) {
	from := 0
	for {
		part, err := in.ReadSlice('\n')
		if head = append(head, part...); len(head) > limit {
			return nil, errHeadSize
		}
		if err != nil && err != bufio.ErrBufferFull {
			return nil, noEOF(err)
		}
		end, next, fault := headEnd(head, from)
		if fault != nil || end > 0 {
			return head, fault
		}
		from = next
	}
}

// noEOF makes the end of a connection within a message an error.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// isValue reports whether b contains no control character but tabs (RFC 9110 §5.5).
func isValue[T []byte | string](b T) bool { return isText(b, 0) }

// isClear is isValue for ASCII alone: of bytes beyond it readers make different things.
func isClear[T []byte | string](b T) bool { return isText(b, eachByte<<7) }

// eachByte times a byte has that byte eight times.
const eachByte = 0x0101010101010101

// isText looks at sixteen bytes at a time, since a request with its cookie and proof has hundreds of them to look at, twice.
// Beyond has the bits that no byte may have.
func isText[T []byte | string](b T, beyond uint64) bool {
	for ; len(b) >= 16; b = b[16:] {
		if odd(eight(b[:8]))|odd(eight(b[8:16])) != 0 && !isTextSlowly(b[:16], beyond) {
			return false
		}
	}
	if len(b) >= 8 && odd(eight(b[:8])) == 0 {
		b = b[8:]
	}
	return isTextSlowly(b, beyond)
}

func eight[T []byte | string](b T) uint64 {
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// odd is zero if all eight bytes are printable ASCII. Less than a space borrows from the highest bit, which only a byte
// beyond ASCII has itself, and DEL and one make it.
func odd(w uint64) uint64 {
	return (w | (w - eachByte*' ') | (w + eachByte)) & (eachByte << 7)
}

func isTextSlowly[T []byte | string](b T, beyond uint64) bool {
	for i := range len(b) {
		if c := b[i]; c < 0x20 && c != '\t' || c == 0x7f || uint64(c)&beyond != 0 {
			return false
		}
	}
	return true
}

// isToken reports whether b is a token (RFC 9110 §5.6.2).
func isToken[T []byte | string](b T) bool {
	for i := range len(b) {
		if !tokenBytes[b[i]] {
			return false
		}
	}
	return len(b) > 0
}

var tokenBytes = func() (is [256]bool) {
	for _, c := range "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		is[c] = true
	}
	return is
}()

// isCanonical reports whether a token is spelled as http.Header wants its keys.
func isCanonical(name string) bool {
	upper := true
	for i := range len(name) {
		c := name[i]
		if upper && 'a' <= c && c <= 'z' || !upper && 'A' <= c && c <= 'Z' {
			return false
		}
		upper = c == '-'
	}
	return true
}

// common are canonical names of fields that most messages have. To compare with one of them is cheaper than to look at every
// byte, which a request would have done four times.
var common = func() (names [256]string) {
	for name := range strings.FieldsSeq(`Accept Accept-Encoding Accept-Language Cache-Control Connection Content-Encoding Content-Length Content-Type
		Cookie Date Etag Host If-Modified-Since If-None-Match Last-Modified Origin Referer Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User
		Server Set-Cookie Te Upgrade-Insecure-Requests User-Agent Vary X-Anteroom-Assertion X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-Ip
		Anteroom-Hop`) {
		if at := &names[commonPlace(name)]; *at == "" { // of two with one place, the other is looked at
			*at = name
		}
	}
	return names
}()

// commonPlace is where a name, which is not empty, is in common if it is there.
func commonPlace[T []byte | string](name T) uint8 {
	n := len(name)
	return uint8(n)*7 ^ name[0]<<1 ^ name[n-1]<<3 ^ name[n/2]
}

// isCommon reports whether a name is a token and spelled as http.Header wants its keys, as far as that can be told at once.
func isCommon[T []byte | string](name T) bool {
	return len(name) > 0 && common[commonPlace(name)] == string(name)
}

// isNamed reports whether a name is the lower-case one, in any case.
func isNamed(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i := range len(lower) {
		if c := name[i]; c != lower[i] && (c < 'A' || c > 'Z' || c|0x20 != lower[i]) {
			return false
		}
	}
	return true
}

// hasToken reports whether a comma-separated list contains the lower-case token, in any case.
func hasToken(list []byte, token string) bool {
	for part := range bytes.SplitSeq(list, []byte{','}) {
		if isNamed(bytes.Trim(part, " \t"), token) {
			return true
		}
	}
	return false
}
