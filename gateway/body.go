package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// bodyGrace is how long the visitor may keep a body waiting before its least rate counts.
const bodyGrace = 20 * time.Second

// bodyReader is the body of an admitted request on its way to the origin. Each read must
// bring something within the stall time, all of them keep up the least rate, and the whole be
// there in time. It remembers a failure, so that a client's broken body is not blamed on the
// origin.
type bodyReader struct {
	body  io.ReadCloser
	rc    *http.ResponseController
	stall time.Duration
	rate  float64 // least bytes per second; zero: none
	end   time.Time

	got   int64         // bytes
	spent time.Duration // on waiting for them; a slow origin is not the visitor's doing

	mu     sync.Mutex
	armed  time.Time
	until  time.Time // the deadline in force
	closed bool
	err    error // the first, other than io.EOF
}

func (s *setup) newBodyReader(body io.ReadCloser, w http.ResponseWriter) *bodyReader {
	return &bodyReader{body: body, rc: http.NewResponseController(w), stall: s.Timeouts.Stall, rate: s.bodyRate, end: time.Now().Add(s.Timeouts.Body)}
}

// deadline is when the next read has to bring something.
func (b *bodyReader) deadline(now time.Time) time.Time {
	wait := b.stall
	if b.rate > 0 {
		earned := min(float64(b.got)/b.rate, b.end.Sub(now).Seconds()+b.spent.Seconds())
		wait = min(wait, bodyGrace-b.spent+time.Duration(earned*float64(time.Second)))
	}
	if by := now.Add(wait); by.Before(b.end) {
		return by
	}
	return b.end
}

var errBodyClosed = errors.New("gateway: the request is over")

func (b *bodyReader) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return 0, errBodyClosed
	}
	now := time.Now()
	// Setting a deadline costs; a late one only makes the bounds tighter by a quarter.
	if now.Sub(b.armed) > b.until.Sub(b.armed)/4 {
		b.armed, b.until = now, b.deadline(now)
		b.rc.SetReadDeadline(b.until)
	}
	b.mu.Unlock()
	n, err := b.body.Read(p)
	b.got, b.spent = b.got+int64(n), b.spent+time.Since(now)
	if err != nil {
		b.mu.Lock()
		// The deadline stays: net/http clears it at the end of the body, and after a failure
		// nobody shall wait for the rest.
		if !b.closed && err != io.EOF && b.err == nil {
			b.err = err
		}
		b.mu.Unlock()
	}
	return n, err
}

func (b *bodyReader) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	return b.body.Close()
}

// failure returns why the body could not be read, if it was the client's doing.
func (b *bodyReader) failure() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// stallWriter is the way of an origin's answer to the visitor, who has to take each write, of
// copyBuffer bytes at most, within a time. The answer as a whole may last for ever, and a
// stream may be silent.
type stallWriter struct {
	http.ResponseWriter
	limit *limit // the connection's, or in HTTP/2 that of the exchange
	time  time.Duration
}

func (s *stallWriter) Write(p []byte) (int, error) {
	s.limit.until(time.Now().Add(s.time))
	n, err := s.ResponseWriter.Write(p)
	s.limit.lift()
	return n, err
}

// WriteHeader implements http.ResponseWriter. The status of an answer leaves with its body, an interim one at once.
func (s *stallWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		s.limit.until(time.Now().Add(s.time))
		defer s.limit.lift()
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *stallWriter) FlushError() error {
	s.limit.until(time.Now().Add(s.time))
	err := http.NewResponseController(s.ResponseWriter).Flush()
	s.limit.lift()
	return err
}

// Unwrap is for http.ResponseController: hijacking for WebSockets, deadlines.
func (s *stallWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// boundWrites makes x.out the visitor's writer with bounds.
func (x *exchange) boundWrites() {
	x.out = stallWriter{ResponseWriter: x.w, limit: &x.slow, time: x.s.Timeouts.Write}
	if x.r.ProtoMajor == 1 && x.conn != nil && x.conn.nc != nil {
		x.out.limit = &x.conn.limit
		return
	}
	x.slow.calls(x.resetSlow)
}

// boundRest bounds what net/http still has to send when the handler has returned.
func (x *exchange) boundRest() {
	by := time.Now().Add(x.out.time)
	if x.out.limit == &x.slow {
		x.slow.end()
		http.NewResponseController(x.w).SetWriteDeadline(by)
		return
	}
	x.conn.closeAt(by)
}

// resetSlow ends the writing of an answer that the visitor does not take: by resetting the
// HTTP/2 stream. If that does not help, because the visitor does not read the connection at
// all, it closes the connection a second later.
func (x *exchange) resetSlow() time.Duration {
	if x.reset {
		if x.conn != nil && x.conn.nc != nil {
			x.conn.nc.Close()
		}
		return 0
	}
	x.reset = true
	http.NewResponseController(x.w).SetWriteDeadline(time.Unix(1, 0))
	return time.Second
}
