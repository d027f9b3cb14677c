package h1

import (
	"errors"
	"os"
	"sync"
	"time"
)

// watch notices a visitor who leaves while the handler works: a request's context then ends. It reads ahead on the
// connection, as net/http does, but only for requests that take longer than leftTime.
type watch struct {
	v     *visitor
	mu    sync.Mutex
	woken sync.Cond   // reading has ended
	timer *time.Timer // looks at the request in progress
	armed bool
	since time.Time // when the request in progress began to arrive; zero: none
	quiet bool      // nothing more of the request is to come
	read  bool      // a read is in progress
	gone  bool
}

var past = time.Unix(1, 0)

func (w *watch) init(v *visitor) {
	w.v = v
	w.woken.L = &w.mu
}

// begin is told of a request, since when it arrives, and quiet that its body has been read.
func (w *watch) begin(since time.Time, quiet bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.quiet = since, quiet
	switch {
	case w.armed:
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(leftTime, w.look)
	default:
		w.timer.Reset(leftTime)
	}
	w.armed = true
}

func (w *watch) bodyRead() {
	w.mu.Lock()
	w.quiet = true
	w.mu.Unlock()
}

// look is what the timer does. A busy connection has it look five times a second rather than set it for each request.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	v := w.v
	switch took := time.Since(w.since); {
	case w.since.IsZero():
		return
	case took < leftTime || !w.quiet:
		w.armed = true
		w.timer.Reset(max(leftTime-took, leftTime/4))
		return
	case v.from < v.to: // the next request is there already
		return
	}
	v.from, v.to = 0, 0
	v.armed = past // no deadline of before is right any more
	v.nc.SetReadDeadline(time.Time{})
	w.read = true
	if v.sock != nil {
		v.GiveBuffer() // a stream lasts for hours
	}
	w.mu.Unlock()
	n, gone := w.wait()
	w.mu.Lock()
	w.read = false
	v.to = n
	if gone {
		w.gone = true
		v.ended()
	}
	w.woken.Broadcast()
}

// wait returns when the visitor has left, or sends more, of which it may have read n bytes.
func (w *watch) wait() (n int, gone bool) {
	v := w.v
	if v.sock != nil {
		gone, err := v.sock.Wait()
		return 0, gone || err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	n, err := v.nc.Read(v.in)
	return n, err != nil && n == 0 && !errors.Is(err, os.ErrDeadlineExceeded)
}

// stop is told that the request is over. It reports whether the visitor is still there.
func (w *watch) stop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
	for w.read {
		w.v.armed = past
		w.v.nc.SetReadDeadline(past)
		w.woken.Wait()
	}
	return !w.gone
}

// end is told that the connection is over.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
	if w.timer != nil {
		w.timer.Stop()
	}
}
