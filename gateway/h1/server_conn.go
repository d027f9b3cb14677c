package h1

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/gateway/socket"
)

// States of a visitor's connection.
const (
	isFresh  int32 = iota // has brought no byte yet
	isIdle                // between two requests
	isActive              // with a request that has begun to arrive
	isGone                // closed while idle
)

// inBuffer is the size of the buffer for heads, in bytes; a longer head is left to net/http.
const inBuffer = 8 << 10

// leftTime is how long a visitor has to wait for the answer before somebody looks whether they are still there. It is
// later than in net/http, which starts a goroutine for each request to look at once.
const leftTime = 200 * time.Millisecond

// lingerTime is how long a connection is kept after its last answer while the visitor may still send, so that the
// answer is not lost with it (RFC 9112 §9.6); as in net/http.
const lingerTime = 500 * time.Millisecond

// unreadBody is the most that is read of a body that the handler left, for the sake of the connection; as in net/http.
const unreadBody = 256 << 10

// visitor is a connection of the loop.
type visitor struct {
	srv   *Server
	nc    net.Conn
	tls   *tls.ConnectionState
	state atomic.Int32
	since time.Time
	ended func()    // ends the context of its requests
	begun time.Time // when the request in progress began to arrive
	armed time.Time // the read deadline; zero: none
	slow  bool      // there is a write deadline

	sock *socket.Conn // of a TCP connection without TLS; nil otherwise

	buffer *[inBuffer]byte // nil while nothing comes
	in     []byte          // in[from:to] has been received and not been used
	from   int
	to     int
	head   head
	asked  asked
	answer reply

	watch watch
}

var inBuffers = sync.Pool{New: func() any { return new([inBuffer]byte) }}

func newVisitor(s *Server, nc net.Conn) *visitor {
	v := &visitor{srv: s, nc: nc, since: time.Now()}
	if t, ok := nc.(*tls.Conn); ok {
		state := t.ConnectionState()
		v.tls = &state
	}
	v.answer.v = v
	v.watch.init(v)
	if v.tls == nil {
		if u, ok := nc.(interface{ NetConn() net.Conn }); ok {
			nc = u.NetConn()
		}
		v.sock = socket.Of(nc)
	}
	return v
}

// TakeBuffer has v.in be there. GiveBuffer gives it back, which may be done while nothing is in it: an idle connection
// has none.
func (v *visitor) TakeBuffer() []byte {
	if v.buffer == nil {
		v.buffer = inBuffers.Get().(*[inBuffer]byte)
		v.in = v.buffer[:]
	}
	return v.in
}

func (v *visitor) GiveBuffer() {
	if v.buffer != nil {
		inBuffers.Put(v.buffer)
		v.buffer, v.in, v.from, v.to = nil, nil, 0, 0
	}
}

// read is Read into what is free of the buffer.
func (v *visitor) read() (int, error) {
	if v.sock == nil || v.to > 0 {
		v.TakeBuffer()
		return v.nc.Read(v.in[v.to:])
	}
	runtime.Gosched() // as in exchange.try: the next request may be there after the others' turns
	return v.sock.ReadInto(v)
}

// serve serves requests until the connection ends or is handed over.
func (v *visitor) serve(ctx context.Context) {
	keep := false
	defer func() {
		v.ended()
		v.watch.end()
		if keep {
			v.says(http.StateHijacked)
			v.giveAway(ctx)
		} else {
			v.nc.Close()
			v.says(http.StateClosed)
		}
		v.GiveBuffer()
		v.answer.giveBack()
		v.asked.giveBack()
	}()
	if f := v.srv.ConnContext; f != nil {
		ctx = f(ctx, v.nc)
	}
	ctx, cancel := context.WithCancel(ctx)
	life := &life{Context: ctx}
	v.ended = func() { life.end(cancel) }
	v.asked.init(life, v)
	v.says(http.StateNew)
	for {
		plain, ok := v.next()
		if !ok {
			return
		}
		if !plain {
			keep = true
			return
		}
		if !v.handle() {
			return
		}
		v.answer.giveBack()
		v.asked.giveBack()
		v.state.Store(isIdle)
		v.says(http.StateIdle)
		if v.srv.closeEach.Load() {
			return
		}
	}
}

func (v *visitor) says(state http.ConnState) {
	if f := v.srv.ConnState; f != nil {
		f(v.nc, state)
	}
}

// next reads the head of the next request. Not ok means that the connection has ended.
func (v *visitor) next() (plain, ok bool) {
	if v.from == v.to {
		v.from, v.to = 0, 0
	} else if v.from > 0 {
		v.to = copy(v.in, v.in[v.from:v.to])
		v.from = 0
	}
	begun := time.Time{}
	if v.state.Load() == isFresh {
		begun = v.since
	}
	scanned, reading := 0, v.to == 0
	for {
		if reading {
			if !v.bound(begun) {
				return false, false
			}
			n, err := v.read()
			if n == 0 && err != nil {
				return false, err == io.EOF && v.to > 0 // net/http says what is wrong with half a head
			}
			v.to += n
		}
		reading = true
		if s := v.state.Load(); s != isActive {
			if s == isGone || !v.state.CompareAndSwap(s, isActive) {
				return false, false
			}
			v.says(http.StateActive)
		}
		if begun.IsZero() {
			begun = time.Now()
		}
		end, at, err := headEnd(v.in[:v.to], scanned)
		switch {
		case err != nil || end == 0 && v.to == len(v.in):
			return false, true
		case end > 0:
			if !v.plain(v.in[:end]) {
				return false, true
			}
			v.from, v.begun = end, begun
			return true, true
		}
		scanned = at
	}
}

// bound sets the time until which the next bytes have to come. begun is when the request began to arrive, zero while
// none has. A deadline that is nearly as wanted stays, because setting one costs as much as a decision.
func (v *visitor) bound(begun time.Time) bool {
	var by time.Time
	slack := time.Duration(0)
	switch now := time.Now(); {
	case !begun.IsZero():
		if v.srv.ReadHeaderTimeout > 0 {
			by = begun.Add(v.srv.ReadHeaderTimeout)
		}
	case v.srv.IdleTimeout > 0:
		by, slack = now.Add(v.srv.IdleTimeout), v.srv.IdleTimeout/32
	}
	if !by.IsZero() && !v.armed.IsZero() && !v.armed.After(by) && by.Sub(v.armed) <= slack || by.IsZero() && v.armed.IsZero() {
		return true
	}
	v.armed = by
	return v.nc.SetReadDeadline(by) == nil
}

// readBy sets a deadline that the handler wants.
func (v *visitor) readBy(by time.Time) error {
	v.watch.mu.Lock()
	defer v.watch.mu.Unlock()
	v.armed = past
	return v.nc.SetReadDeadline(by)
}

// unbound takes the deadline back: the handler bounds the reading of a body.
func (v *visitor) unbound() {
	if !v.armed.IsZero() {
		v.armed = time.Time{}
		v.nc.SetReadDeadline(time.Time{})
	}
}

// handle serves the request that next has read. It reports whether the connection goes on.
func (v *visitor) handle() (goesOn bool) {
	r := v.asked.request()
	w := &v.answer
	w.begin(r)
	v.watch.begin(v.begun, r.ContentLength == 0)
	defer func() {
		if err := recover(); err != nil {
			if err != http.ErrAbortHandler {
				v.srv.logf("http: panic serving %v: %v\n%s", v.nc.RemoteAddr(), err, debug.Stack())
			}
			v.watch.stop()
			goesOn = false
		}
	}()
	v.srv.handler.ServeHTTP(w, r)
	alive := v.watch.stop()
	sent := w.finish() && alive
	whole := v.asked.finish()
	switch {
	case sent && whole && !w.close:
		return true
	case sent && (!whole || v.from < v.to):
		v.linger()
	}
	return false
}

// linger ends the direction to the visitor and waits a moment.
func (v *visitor) linger() {
	if socket.CloseWrite(v.nc) == nil {
		time.Sleep(lingerTime)
	}
}

// giveAway hands the connection over with what has been read.
func (v *visitor) giveAway(ctx context.Context) {
	if !v.armed.IsZero() {
		v.nc.SetReadDeadline(time.Time{})
	}
	v.srv.other.take(&Handed{Conn: v.nc, Context: ctx, early: append([]byte(nil), v.in[v.from:v.to]...), tls: v.tls})
}
