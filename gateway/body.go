package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// bodyReader is the body of an admitted request on its way to the origin. Each read must
// bring something within the stall time, and the whole must stay below the bound. It
// remembers a failure, so that a client's broken body is not blamed on the origin.
type bodyReader struct {
	body  io.ReadCloser
	rc    *http.ResponseController
	stall time.Duration

	mu     sync.Mutex
	armed  time.Time
	closed bool
	err    error // the first, other than io.EOF
}

var errBodyClosed = errors.New("gateway: the request is over")

func (b *bodyReader) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return 0, errBodyClosed
	}
	if now := time.Now(); now.Sub(b.armed) > b.stall/4 {
		b.armed = now
		b.rc.SetReadDeadline(now.Add(b.stall))
	}
	b.mu.Unlock()
	n, err := b.body.Read(p)
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
