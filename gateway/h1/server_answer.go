package h1

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// outBuffer is how much of an answer is kept until it is written, in bytes. An answer that is complete before has its
// Content-Length from here.
const outBuffer = 4 << 10

// reply is the http.ResponseWriter of the loop. An answer whose body is one Write leaves in one write to the network.
type reply struct {
	v      *visitor
	out    []byte // not yet written
	header http.Header

	r       *http.Request
	status  int  // 0: not said
	sent    bool // the head is in out, or has left
	chunked bool
	close   bool
	length  int64 // said; -1: not
	wrote   int64 // of the body
	pending []byte
	err     error // of writing
	trailer []string
	relay   Relay
}

var outBuffers = sync.Pool{New: func() any { return new([outBuffer]byte) }}

func (w *reply) begin(r *http.Request) {
	w.header = w.v.asked.fields.answer
	w.r, w.status, w.sent, w.chunked, w.close, w.length, w.wrote, w.err = r, 0, false, false, r.Close, -1, 0, nil
	w.trailer = w.trailer[:0]
}

// buffer has b be there: one that is given back when a connection is idle or a stream waits.
func buffer(b []byte) []byte {
	if b == nil {
		b = outBuffers.Get().(*[outBuffer]byte)[:0]
	}
	return b
}

// Header implements http.ResponseWriter.
func (w *reply) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *reply) WriteHeader(status int) {
	switch {
	case w.status != 0:
		w.v.srv.logf("http: superfluous response.WriteHeader call for %s", w.r.URL.Path)
		return
	case status < 100 || status > 999 || status == http.StatusSwitchingProtocols:
		panic("h1: invalid status " + strconv.Itoa(status))
	case status < 200:
		w.out = appendStatus(buffer(w.out), status)
		w.out, _ = appendFields(w.out, w.header, nil, false)
		w.out = append(w.out, "\r\n"...)
		w.flush()
		return
	}
	w.status = status
	if all := w.header["Content-Length"]; len(all) > 0 {
		n, err := strconv.ParseInt(all[0], 10, 64)
		if err != nil || n < 0 {
			delete(w.header, "Content-Length")
		} else {
			w.length = n
		}
	}
}

// hasBody reports whether the answer has a body.
func (w *reply) hasBody() bool {
	return w.r.Method != http.MethodHead && bodyAllowed(w.status)
}

// Write implements http.ResponseWriter.
func (w *reply) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, w.err
	}
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.wrote += int64(len(p))
	if w.length >= 0 && w.wrote > w.length {
		return 0, http.ErrContentLength
	}
	if w.r.Method == http.MethodHead {
		if !w.sent && len(w.pending) < 512 {
			w.pending = append(buffer(w.pending), p[:min(len(p), 512)]...) // says what type it is
		}
		return len(p), w.err
	}
	if !w.sent && w.length < 0 {
		if len(w.pending)+len(p) <= outBuffer/2 {
			w.pending = append(buffer(w.pending), p...)
			return len(p), nil
		}
		w.head(p, false)
		w.body(w.pending)
		w.pending = give(w.pending)
	} else if !w.sent {
		w.head(p, false)
	}
	w.body(p)
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// head puts the status line and the fields into out. first is the beginning of the body as far as it is known; whole says
// that the handler has returned, so that the body is as long as what it wrote.
func (w *reply) head(first []byte, whole bool) {
	w.sent = true
	for _, line := range w.header["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = http.CanonicalHeaderKey(strings.Trim(name, " \t")); mayTrail(name) {
				w.trailer = append(w.trailer, name)
			}
		}
	}
	w.out = appendStatus(buffer(w.out), w.status)
	var own said
	w.out, own = appendFields(w.out, w.header, w.trailer, w.status == http.StatusNotModified)
	w.close = w.close || own.close || w.v.srv.closeEach.Load()
	if !w.close && !w.v.asked.discard() {
		w.close = true
	}
	if !own.typed && len(first) > 0 && bodyAllowed(w.status) && len(w.header["Content-Encoding"]) == 0 {
		w.out = appendField(w.out, "Content-Type", http.DetectContentType(first))
	}
	if !own.dated {
		w.out = appendField(w.out, "Date", date())
	}
	if whole && w.length < 0 && (w.r.Method != http.MethodHead || w.wrote > 0) && !own.trails {
		w.length = w.wrote
	}
	switch {
	case !bodyAllowed(w.status):
	case w.length >= 0:
		w.out = append(w.out, "Content-Length: "...)
		w.out = strconv.AppendInt(w.out, w.length, 10)
		w.out = append(w.out, "\r\n"...)
	case w.r.Method != http.MethodHead:
		w.chunked = true
		w.out = append(w.out, "Transfer-Encoding: chunked\r\n"...)
	}
	if w.close {
		w.out = append(w.out, "Connection: close\r\n"...)
	}
	w.out = append(w.out, "\r\n"...)
}

// bodyAllowed reports whether an answer to anything but HEAD may have a body.
func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// body writes a part of the body: large ones at once, together with what waits before them.
func (w *reply) body(p []byte) {
	if len(p) == 0 || w.err != nil {
		return
	}
	w.out = buffer(w.out)
	if w.chunked {
		w.out = strconv.AppendInt(w.out, int64(len(p)), 16)
		w.out = append(w.out, "\r\n"...)
	}
	switch {
	case len(w.out)+len(p)+2 <= outBuffer:
		w.out = append(w.out, p...)
	case w.v.sock != nil:
		_, w.err = w.v.sock.WriteBoth(w.out, p)
		w.out = w.out[:0]
	default:
		w.flush()
		w.write(p)
	}
	if w.chunked {
		w.out = append(w.out, "\r\n"...)
	}
}

func (w *reply) write(p []byte) {
	if w.err != nil {
		return
	}
	if w.v.sock != nil {
		_, w.err = w.v.sock.Write(p)
	} else {
		_, w.err = w.v.nc.Write(p)
	}
}

// flush writes what waits.
func (w *reply) flush() {
	if len(w.out) > 0 {
		w.write(w.out)
		w.out = w.out[:0]
	}
}

// FlushError is for http.ResponseController, Flush for those who ask for http.Flusher.
func (w *reply) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.sent {
		w.head(w.pending, false)
		if w.hasBody() {
			w.body(w.pending)
		}
		w.pending = give(w.pending)
	}
	w.flush()
	w.out = give(w.out)
	return w.err
}

// Flush implements http.Flusher.
func (w *reply) Flush() { w.FlushError() }

// SetReadDeadline is for http.ResponseController.
func (w *reply) SetReadDeadline(by time.Time) error { return w.v.readBy(by) }

// SetWriteDeadline is for http.ResponseController. The deadline is taken back at the end of the request.
func (w *reply) SetWriteDeadline(by time.Time) error {
	w.v.slow = true
	return w.v.nc.SetWriteDeadline(by)
}

// Forget says that the handler uses neither its request nor the header of its answer any more, whose head has left: an answer
// that lasts for hours needs no memory for them.
func (w *reply) Forget() {
	if a := &w.v.asked; w.sent && a.body == nil && len(w.trailer) == 0 {
		a.giveBack()
		a.url, a.req.RequestURI, a.req.Host, w.header = url.URL{}, "", "", nil
	}
}

// EnableFullDuplex is for http.ResponseController: a body may be read after the answer has begun anyway.
func (w *reply) EnableFullDuplex() error { return nil }

// finish writes what is left. It reports whether the answer left as it was announced.
func (w *reply) finish() bool {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.sent {
		w.head(w.pending, true)
		if w.hasBody() {
			w.body(w.pending)
		}
	}
	if w.chunked {
		w.out = append(buffer(w.out), "0\r\n"...)
		for _, name := range w.trailer {
			for _, value := range w.header[name] {
				w.out = appendField(w.out, name, value)
			}
		}
		for name, values := range w.header {
			if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && mayTrail(name) {
				for _, value := range values {
					w.out = appendField(w.out, name, value)
				}
			}
		}
		w.out = append(w.out, "\r\n"...)
	}
	w.flush()
	if w.v.slow {
		w.v.slow = false
		w.v.nc.SetWriteDeadline(time.Time{})
	}
	if w.err != nil {
		return false
	}
	return !w.hasBody() || w.length < 0 || w.wrote == w.length
}

// giveBack gives the buffers back.
func (w *reply) giveBack() { w.out, w.pending = give(w.out), give(w.pending) }

// give gives an empty buffer, or one that is used no more, back.
func give(b []byte) []byte {
	if cap(b) == outBuffer {
		outBuffers.Put((*[outBuffer]byte)(b[:outBuffer]))
	}
	return nil
}

func appendStatus(b []byte, status int) []byte {
	if status == http.StatusOK {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = append(b, "status code "...)
		b = strconv.AppendInt(b, int64(status), 10)
	}
	return append(b, "\r\n"...)
}

// said is what the handler's own fields settle of an answer.
type said struct {
	close  bool
	typed  bool
	dated  bool
	trails bool // a trailer was announced, or is there
}

// appendFields writes the fields that a handler may say, without those that come at the end; those that frame the
// message are the loop's.
func appendFields(b []byte, h http.Header, later []string, untyped bool) ([]byte, said) {
	var s said
	for name, values := range h {
		switch name {
		case "Content-Length", "Transfer-Encoding":
			continue
		case "Connection":
			s.close = slices.ContainsFunc(values, func(line string) bool { return hasToken([]byte(line), "close") })
			// The loop says close itself.
			if len(values) == 1 && strings.EqualFold(values[0], "close") {
				continue
			}
		case "Content-Type":
			s.typed = true
			if untyped {
				continue
			}
		case "Date":
			s.dated = true
		case "Trailer":
			s.trails = true
		default:
			s.trails = s.trails || strings.HasPrefix(name, http.TrailerPrefix)
		}
		if len(later) > 0 && slices.Contains(later, name) {
			continue
		}
		for _, value := range values {
			b = appendField(b, name, value) // does nothing for http.TrailerPrefix, whose names are no tokens
		}
	}
	return b, s
}

// appendField writes a field, as net/http does: nothing with a name that is none, no line ends in values.
func appendField(b []byte, name, value string) []byte {
	if !isCommon(name) && !isToken(name) {
		return b
	}
	b = append(b, name...)
	b = append(b, ": "...)
	if isValue(value) {
		b = append(b, value...)
	} else {
		b = append(b, noLineEnds.Replace(value)...)
	}
	return append(b, "\r\n"...)
}

var noLineEnds = strings.NewReplacer("\n", " ", "\r", " ")

// now is the value of Date, written once for a second.
type now struct {
	second int64
	text   string
}

var clock atomic.Pointer[now]

func date() string {
	t := time.Now()
	n := clock.Load()
	if n == nil || n.second != t.Unix() {
		n = &now{t.Unix(), t.UTC().Format(http.TimeFormat)}
		clock.Store(n)
	}
	return n.text
}

var _ interface {
	http.ResponseWriter
	http.Flusher
} = (*reply)(nil)
