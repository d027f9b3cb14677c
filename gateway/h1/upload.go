package h1

import (
	"errors"
	"io"
	"sync"
	"time"
)

// upload sends a request's body beside the exchange, because the origin may answer before it has all of it.
type upload struct {
	conn   *conn
	body   io.ReadCloser
	length int64     // -1: in chunks
	go100  chan bool // not nil: wait until the origin wants the body; false: it does not

	mu       sync.Mutex
	answered bool // the head of the final answer has come
	sent     bool // nothing more will be sent
	left     bool // the exchange is over but for this
	err      error
	timer    *time.Timer // closes the connection of an exchange that is over
}

var errUnwanted = errors.New("h1: the origin answered without the body")

// run sends the body. It closes it in any case.
func (u *upload) run(t *Transport) {
	err := u.send(t)
	u.body.Close()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sent, u.err = true, err
	if _, ok := err.(bodyError); ok {
		u.conn.abort() // nobody must wait for an answer to half a request
	}
	if !u.answered {
		u.conn.expect(t.base.ResponseHeaderTimeout, time.Now())
	}
	if u.left {
		t.leave(u.conn, u.timer.Stop() && err == nil)
	}
}

func (u *upload) send(t *Transport) error {
	if u.go100 != nil {
		timer := time.NewTimer(t.base.ExpectContinueTimeout)
		defer timer.Stop()
		select {
		case wanted := <-u.go100:
			if !wanted {
				return errUnwanted
			}
		case <-timer.C:
		}
	}
	part := t.parts.Get().(*[partSize]byte)
	defer t.parts.Put(part)
	left := u.length
	for left != 0 {
		room := part[chunkHead : partSize-2]
		if left > 0 && int64(len(room)) > left {
			room = room[:left]
		}
		n, err := u.body.Read(room)
		if err != nil && err != io.EOF {
			return bodyError{err}
		}
		if left > 0 {
			left -= int64(n)
			if err == io.EOF && left > 0 {
				return bodyError{io.ErrUnexpectedEOF}
			}
			if _, err := u.conn.Write(room[:n]); err != nil {
				return err
			}
			continue
		}
		if n > 0 {
			if _, err := u.conn.Write(chunk(part, n)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			_, err := io.WriteString(u.conn, "0\r\n\r\n")
			return err
		}
	}
	return nil
}

// bodyError is a failure to read a request's body, for which the origin is not to blame.
type bodyError struct{ error }

func (e bodyError) Unwrap() error { return e.error }

const (
	partSize  = 32 << 10
	chunkHead = len("7fff\r\n")
)

// chunk makes n bytes of data, which stand after the room for its head, a chunk.
func chunk(part *[partSize]byte, n int) []byte {
	const digits = "0123456789abcdef"
	at := chunkHead - 2
	copy(part[at:], "\r\n")
	for rest := n; rest > 0; rest >>= 4 {
		at--
		part[at] = digits[rest&15]
	}
	end := chunkHead + n
	return append(part[at:end], "\r\n"...)
}

// want says whether the origin wants the body, if the upload waits for that.
func (u *upload) want(yes bool) {
	if u == nil || u.go100 == nil {
		return
	}
	select {
	case u.go100 <- yes:
	default: // it has been said
	}
}

// gotAnswer says that the head of the final answer has come: what the upload does is no reason any more to wait for it.
func (u *upload) gotAnswer() {
	if u != nil {
		u.mu.Lock()
		u.answered = true
		u.mu.Unlock()
	}
}

// finish is called when the exchange is over but for the upload. Mine says that the connection is the caller's to
// leave, whole that all of the body has been sent; bad is why it could not be read, if it could not.
func (u *upload) finish(keep bool) (mine, whole bool, bad error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if e, ok := u.err.(bodyError); ok {
		bad = e.error
	}
	if u.sent || !keep {
		return true, u.sent && u.err == nil, bad
	}
	// The origin may have answered when it had everything, and the upload is about to notice.
	u.left = true
	u.timer = time.AfterFunc(50*time.Millisecond, u.conn.abort)
	return false, false, nil
}
