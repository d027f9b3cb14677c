package h1

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"

	"github.com/anteroom/anteroom/gateway/socket"
)

// Faults of an answer's framing, beside those of its head.
var (
	errLength   = errors.New("h1: Content-Length is not valid, or there are two different ones")
	errCoding   = errors.New("h1: the answer has a Transfer-Encoding other than chunked")
	errBoth     = errors.New("h1: the answer has both Transfer-Encoding and Content-Length")
	errTrailer  = errors.New("h1: the trailer of the answer is not valid")
	errSwitched = errors.New("h1: the origin switched protocols without being asked")
	errInterim  = errors.New("h1: too many interim answers")
	errClosed   = errors.New("h1: read after Close")
)

// maxTrailer bounds a trailer, in bytes.
const maxTrailer = 4 << 10

// answer is a response with its body, in one allocation.
type answer struct {
	http.Response
	body body
}

// framing is what a head says about where its message ends and whether the connection goes on.
type framing struct {
	length  int64 // -1: not said
	chunked bool
	close   bool
}

// framingOf reads the fields that frame the message of a head.
func framingOf(h *head, minor byte) (f framing, err error) {
	f.length = -1
	alive := false
	var first []byte
	for i := range h.Len() {
		name, value := h.Field(i)
		switch len(name) {
		case len("connection"):
			if isNamed(name, "connection") {
				f.close = f.close || hasToken(value, "close")
				alive = alive || hasToken(value, "keep-alive")
			}
		case len("content-length"):
			if isNamed(name, "content-length") {
				n, ok := parseLength(value)
				if !ok || f.length >= 0 && !bytes.Equal(first, value) {
					return f, errLength
				}
				f.length, first = n, value
			}
		case len("transfer-encoding"):
			if isNamed(name, "transfer-encoding") {
				if f.chunked || minor == '0' || !isNamed(value, "chunked") {
					return f, errCoding
				}
				f.chunked = true
			}
		}
	}
	if f.chunked && f.length >= 0 {
		return f, errBoth
	}
	f.close = f.close || minor == '0' && !alive
	return f, nil
}

// parseLength reads a Content-Length: digits and nothing else.
func parseLength(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// parseStatus reads a status line: version, code, and a reason that may be empty.
func parseStatus(line []byte) (minor byte, code int, ok bool) {
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' {
		return 0, 0, false
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		code = code*10 + int(c-'0')
	}
	return line[7], code, code >= 100 && (len(line) == 12 || line[12] == ' ')
}

// readAnswer reads the head of the next answer, of at most limit bytes, to a request with that method. It sets up the
// answer but for its body's connection.
// Its fields are in into unless its status is 1xx; see [head.Header].
func readAnswer(in *bufio.Reader, h *head, method string, limit int, into http.Header) (*answer, error) {
	raw, discard, err := readHead(in, limit)
	if err != nil {
		return nil, err
	}
	if err := h.Parse(raw); err != nil {
		return nil, err
	}
	minor, code, ok := parseStatus(h.Line())
	if !ok {
		return nil, errStartLine
	}
	f, err := framingOf(h, minor)
	if err != nil {
		return nil, err
	}
	a := &answer{}
	a.Status, a.StatusCode = statusText(h.Line()[9:]), code
	a.Proto, a.ProtoMajor, a.ProtoMinor = "HTTP/1.1", 1, 1
	if minor == '0' {
		a.Proto, a.ProtoMinor = "HTTP/1.0", 0
	}
	if code < 200 {
		into = nil
	}
	a.Header = h.Header(into)
	in.Discard(discard)
	if all := a.Header["Content-Length"]; len(all) > 1 {
		a.Header["Content-Length"] = all[:1]
	}
	a.ContentLength, a.Close = f.length, f.close
	if f.chunked {
		delete(a.Header, "Transfer-Encoding")
		a.TransferEncoding = chunked
		if a.Trailer, err = announced(a.Header); err != nil {
			return nil, err
		}
	}
	switch {
	case method == http.MethodHead:
		a.Body = http.NoBody
	case code < 200, code == http.StatusNoContent, code == http.StatusNotModified, f.length == 0:
		a.ContentLength, a.Body = 0, http.NoBody
	case f.chunked:
		a.body.src = httputil.NewChunkedReader(in)
	default:
		a.body.left = f.length
		a.Close = a.Close || f.length < 0
	}
	if a.Body == nil {
		a.Body = &a.body
	}
	return a, nil
}

var chunked = []string{"chunked"}

// statusText is a copy of what follows the version in a status line.
func statusText(b []byte) string {
	if string(b) == "200 OK" {
		return "200 OK"
	}
	return strings.TrimRight(string(b), " ")
}

// announced takes the names of the trailer out of the header.
func announced(h http.Header) (http.Header, error) {
	lines, ok := h["Trailer"]
	if !ok {
		return nil, nil
	}
	delete(h, "Trailer")
	var out http.Header
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = http.CanonicalHeaderKey(strings.Trim(name, " \t")); name == "" {
				continue
			}
			if !mayTrail(name) {
				return nil, errTrailer
			}
			if out == nil {
				out = make(http.Header)
			}
			out[name] = nil
		}
	}
	return out, nil
}

// mayTrail reports whether a canonical name may stand in a trailer: what frames the message must not.
func mayTrail(name string) bool {
	return name != "Content-Length" && name != "Transfer-Encoding" && name != "Trailer"
}

// readTrailer reads what follows the last chunk.
func (a *answer) readTrailer(in *bufio.Reader) error {
	if b, err := in.Peek(2); err != nil {
		return noEOF(err)
	} else if string(b) == "\r\n" {
		in.Discard(2)
		return nil
	}
	raw, discard, err := readHead(in, maxTrailer)
	if err != nil {
		return err
	}
	h := head{raw: raw}
	if err := h.parseFields(0); err != nil {
		return err
	}
	fields := h.Header(nil)
	in.Discard(discard)
	for name, values := range fields {
		if !mayTrail(name) {
			return errTrailer
		}
		if a.Trailer == nil {
			a.Trailer = make(http.Header, len(fields))
		}
		a.Trailer[name] = values
	}
	return nil
}

// body is the body of an answer. The exchange with the origin ends with its last byte, its first error, or Close.
type body struct {
	answer *answer
	x      *exchange
	keep   bool      // the connection may be used again
	src    io.Reader // removes the chunks; nil: the body is as it is on the connection
	left   int64     // without src: bytes to come, -1: up to the connection's end

	mu      sync.Mutex
	reading bool
	over    bool // nothing is to come
	closed  bool
}

// Read reads the next part. A body that is cut short ends with io.ErrUnexpectedEOF.
func (b *body) Read(p []byte) (int, error) { return b.next(p, nil) }

// next is Read into p, or into a pipe.
func (b *body) next(p []byte, pipe *socket.Pipe) (n int, err error) {
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return 0, errClosed
	case b.over:
		b.mu.Unlock()
		return 0, io.EOF
	}
	b.reading = true
	b.mu.Unlock()

	if pipe != nil {
		n, err = b.fill(pipe)
	} else {
		n, err = b.read(p)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	switch {
	case b.closed:
		b.x.end(false)
		return n, errClosed
	case err == errors.ErrUnsupported: // of the pipe
	case err == io.EOF:
		b.over = true
		b.x.end(b.keep && b.x.in.Buffered() == 0)
	case err != nil:
		b.closed = true
		err = cmp.Or(b.x.end(false), err)
	}
	return n, err
}

func (b *body) read(p []byte) (n int, err error) {
	in := b.x.in
	switch {
	case b.src != nil:
		if n, err = b.src.Read(p); err == io.EOF {
			if err = b.answer.readTrailer(in); err == nil {
				err = io.EOF
			}
		}
		return n, err
	case b.left < 0:
		return in.Read(p)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err = in.Read(p)
	return b.got(n, err)
}

func (b *body) fill(pipe *socket.Pipe) (int, error) { return b.got(pipe.Fill(b.x.conn.sock, b.left)) }

// got counts what has come of a body of a known length.
func (b *body) got(n int, err error) (int, error) {
	if b.left -= int64(n); b.left == 0 {
		return n, io.EOF
	}
	return n, noEOF(err)
}

// Close ends the exchange. The connection is closed if the body was not read to its end.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	switch {
	case b.over:
	case b.reading:
		// The reader of now will find that the body is closed, and end the exchange.
		if c := b.x.conn; c != nil {
			c.abort()
		}
	default:
		b.x.end(false)
	}
	return nil
}
