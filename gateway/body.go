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

// stallWriter is the way of an origin's answer to the visitor, who has to take each part
// within the stall time. The answer as a whole may last for ever.
type stallWriter struct {
	http.ResponseWriter
	conn  *conn // bounds the writes where it can; nil in HTTP/2, whose deadlines are a stream's
	stall time.Duration
	armed time.Time // when the deadline was set last, where conn cannot
}

func (s *stallWriter) Write(p []byte) (int, error) {
	s.begin()
	n, err := s.ResponseWriter.Write(p)
	s.conn.keepOpen()
	return n, err
}

func (s *stallWriter) FlushError() error {
	s.begin()
	err := http.NewResponseController(s.ResponseWriter).Flush()
	s.conn.keepOpen()
	return err
}

// Unwrap is for http.ResponseController: hijacking for WebSockets, deadlines.
func (s *stallWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// begin bounds the time until keepOpen is called, or the time to the next write. At the
// end of the answer it bounds what net/http still has to send.
func (s *stallWriter) begin() {
	now := time.Now()
	if !s.conn.closeAt(now.Add(s.stall)) && now.Sub(s.armed) > s.stall/4 {
		s.armed = now
		http.NewResponseController(s.ResponseWriter).SetWriteDeadline(now.Add(s.stall))
	}
}
