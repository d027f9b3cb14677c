// Package h1 is the fast path of HTTP/1.1, in the clear or over TLS: [Server] serves visitors' plain requests in a loop of
// its own, and [Transport] is the way to origins.
//
// net/http's client reads every connection in one goroutine and writes it in another, and a request passes between
// them and its own over channels, because it may be cancelled, answered early, or sent on whichever connection is
// free first. A gateway sends one request at a time from a goroutine that has nothing else to do. So here the
// goroutine of the request writes and reads its connection itself:
//
//  1. [Transport.RoundTrip] takes the connection that was used last from the origin's pool, looks whether the origin
//     has closed it or said something unasked (silent), or dials.
//  2. It writes the head, with the body if that is short. A longer one needs a goroutine of its own (upload), for the
//     origin may answer before it has all of it.
//  3. It reads the head of the answer (head.go, answer.go), strictly: what could be read in two ways is an error.
//  4. The connection goes back to the pool with the last byte of the answer.
//
// Whatever is unusual is left to the [http.Transport] around which a Transport is made: upgrades, proxies, HTTP/2, odd
// hosts (knows). head and what reads and writes it know nothing of connections.
package h1

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/gateway/socket"
)

const (
	// maxShort is the longest body of a request that is read before a connection is taken and sent with the head, in
	// bytes.
	maxShort = 8 << 10
	// maxInterim bounds the answers with a status of 1xx before the final one.
	maxInterim = 100
	// inSize is the buffer of an exchange for what it reads, in bytes.
	inSize = 8 << 10
)

// Transport sends requests to origins. Make it with [Over]. Safe for concurrent use.
type Transport struct {
	base  *http.Transport
	spare sync.Pool // of *exchange
	parts sync.Pool // of *[partSize]byte

	mu     sync.Mutex
	pools  map[poolKey]*pool // of all origins that were ever asked; few, the operator names them
	closed bool
	timer  *time.Timer // for sweep; nil: no connection is idle
}

// Over returns a Transport with the dialer, TLS configuration, timeouts and bounds of base, to which it leaves what it
// does not know. Base must have a DialContext, no Proxy, and speak HTTP/1 alone; it gets a DialTLSContext, and must not change
// afterwards. Where the system cannot tell whether a connection is still alive, base takes everything.
func Over(base *http.Transport) *Transport {
	base.DialTLSContext = dialTLS(base)
	t := &Transport{base: base, pools: make(map[poolKey]*pool)}
	t.spare.New = func() any {
		return &exchange{t: t, in: bufio.NewReaderSize(nil, inSize)}
	}
	t.parts.New = func() any { return new([partSize]byte) }
	return t
}

// RoundTrip sends a request and returns when the head of its answer is there. Its errors are those of the dialer
// (unchanged), those of the TLS handshake as a dialer's, of reading the request's body (unchanged), the cause of the request's context if
// that is over, timeouts that are a net.Error, and otherwise say what is wrong with the answer.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.Knows(r) {
		return t.base.RoundTrip(r)
	}
	var interim func(int, http.Header) error
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		interim = func(status int, h http.Header) error { return tellInterim(trace, status, h) }
	}
	return t.Send(r, nil, interim, time.Now())
}

// Knows reports whether RoundTrip sends the request itself, rather than leave it to the transport below.
func (t *Transport) Knows(r *http.Request) bool { return socket.Known && knows(r, bodyLength(r)) }

// Send is RoundTrip for a request that the Transport knows. It has read the request but for its body when it returns,
// and uses nothing else of it afterwards. Into becomes the header of the answer; it has to be empty, and nil makes a new
// one. Interim is called with each answer that has a status of 1xx before it
// returns, in the same goroutine; nil: nobody wants them. An error of it ends the exchange. Now is the time: a request asks for it often.
func (t *Transport) Send(r *http.Request, into http.Header, interim func(status int, h http.Header) error, now time.Time) (*http.Response, error) {
	x := t.spare.Get().(*exchange)
	x.into, x.interim, x.now = into, interim, now
	return x.do(r, bodyLength(r))
}

// exchange is a request and its answer. It is reused when both are over.
type exchange struct {
	t    *Transport
	in   *bufio.Reader // reads from conn
	out  []byte        // the head of the request, with its body if that is short
	head head

	conn    *conn // nil when the exchange needs it no more
	ctx     context.Context
	into    http.Header                           // see Send
	interim func(status int, h http.Header) error // nil: nobody wants them
	now     time.Time                             // when the request was about to be sent
	life    *life                                 // that watches over conn; nil: none does
	stop    func() bool                           // ends the watch over another context; nil: there is none
	upload  *upload                               // nil: the request has no body, or a short one
}

// do makes the round trip. The exchange is over with an error or an answer without a body.
func (x *exchange) do(r *http.Request, length int64) (*http.Response, error) {
	x.ctx = r.Context()
	expects := length != 0 && expectsContinue(r.Header)
	streams := length < 0 || length > maxShort || expects
	err := x.compose(r, length, streams)
	if err != nil {
		return nil, x.fail(r, err)
	}
	p := x.t.poolOf(r)
	c := x.t.take(p, x.now)
	for {
		reused := c != nil
		if !reused {
			if c, err = x.t.dial(x.ctx, p); err != nil {
				return nil, x.fail(r, err)
			}
			x.now = time.Now()
		}
		x.begin(c)
		a, again, err := x.try(r, length, streams, expects)
		if err == nil {
			x.deliver(a, r)
			return &a.Response, nil
		}
		if !again || !reused || x.ctx.Err() != nil {
			return nil, x.fail(r, err)
		}
		// The origin has closed the connection. It may have closed all that were idle: dial.
		x.detach(false)
		c = nil
	}
}

// compose writes the head of the request and reads its body if that is short.
func (x *exchange) compose(r *http.Request, length int64, streams bool) (err error) {
	if x.out, err = appendRequest(x.out[:0], r, length); err != nil || streams || length == 0 {
		return err
	}
	at := len(x.out)
	x.out = slices.Grow(x.out, int(length))[:at+int(length)]
	if _, err = io.ReadFull(r.Body, x.out[at:]); err != nil {
		return noEOF(err)
	}
	x.now = time.Now() // visitors may send slowly
	return r.Body.Close()
}

// fail ends the exchange without an answer, and returns the error that says most about it.
func (x *exchange) fail(r *http.Request, err error) error {
	if r.Body != nil && x.upload == nil {
		r.Body.Close()
	}
	return cmp.Or(x.end(false), err)
}

// begin takes a connection for the exchange and closes it when the request's context ends.
func (x *exchange) begin(c *conn) {
	x.conn, c.since = c, x.now
	x.in.Reset(c.Conn)
	if l, ok := x.ctx.(*life); ok && l.watch(c.abort) {
		x.life = l
	} else if x.ctx.Done() != nil {
		x.stop = context.AfterFunc(x.ctx, c.abort)
	}
}

// try sends the request and reads the answer up to its body. Again says that the failure may be that of a connection
// which the origin had closed before, and that the request may be sent once more.
func (x *exchange) try(r *http.Request, length int64, streams, expects bool) (a *answer, again bool, err error) {
	c, wait := x.conn, x.t.base.ResponseHeaderTimeout
	if n, err := c.Write(x.out); err != nil {
		return nil, n == 0 || !streams && isRepeatable(r), err
	}
	if streams {
		c.expect(0, x.now)
		x.upload = &upload{conn: c, body: r.Body, length: length}
		if expects {
			x.upload.go100 = make(chan bool, 1)
		}
		go x.upload.run(x.t)
	} else {
		c.expect(wait, x.now)
	}
	// A read that comes before the answer costs a system call for nothing and puts the connection on the poller's list. Under
	// load, the answer is there when the others have had their turn; without load, there are no others.
	runtime.Gosched()
	if _, err := x.in.Peek(1); err != nil {
		if err == io.EOF {
			err = errNoAnswer
		}
		return nil, !streams && isRepeatable(r) && !isTimeout(err), err
	}
	for range maxInterim {
		a, err := readAnswer(x.in, &x.head, r.Method, int(x.t.base.MaxResponseHeaderBytes), x.into)
		switch {
		case err != nil:
			return nil, false, err
		case a.StatusCode >= 200:
			return a, false, nil
		case a.StatusCode == http.StatusSwitchingProtocols:
			return nil, false, errSwitched
		}
		if a.StatusCode == http.StatusContinue {
			x.upload.want(true)
		}
		if x.interim != nil {
			if err := x.interim(a.StatusCode, a.Header); err != nil {
				return nil, false, err
			}
		}
	}
	return nil, false, errInterim
}

// tellInterim passes an answer with a status of 1xx on as net/http does.
func tellInterim(trace *httptrace.ClientTrace, status int, h http.Header) error {
	if status == http.StatusContinue && trace.Got100Continue != nil {
		trace.Got100Continue()
	}
	if trace.Got1xxResponse != nil {
		return trace.Got1xxResponse(status, textproto.MIMEHeader(h))
	}
	return nil
}

// deliver makes the answer ready for its reader. The connection is free at once when nothing more has to come from it.
func (x *exchange) deliver(a *answer, r *http.Request) {
	a.Request, a.TLS = r, x.conn.state
	x.upload.want(false)
	x.upload.gotAnswer()
	b := &a.body
	b.keep = !a.Close && !r.Close
	left := int64(x.in.Buffered()) - b.left
	switch {
	case a.Body == http.NoBody:
		x.end(b.keep && x.in.Buffered() == 0)
		return
	case b.src == nil && b.left >= 0 && left >= 0 && x.upload == nil:
		x.detach(b.keep && left == 0)
	default:
		x.conn.expect(0, x.now)
	}
	b.answer, b.x = a, x
}

// detach gives the connection back, or closes it when it cannot be used again. It returns why reading or writing it has
// failed, if it has and the reason is on our side.
func (x *exchange) detach(keep bool) (cause error) {
	c := x.conn
	if c == nil {
		return nil
	}
	x.conn = nil
	if x.life != nil && !x.life.forget() || x.stop != nil && !x.stop() {
		keep, cause = false, context.Cause(x.ctx)
	}
	x.life, x.stop = nil, nil
	if u := x.upload; u != nil {
		x.upload = nil
		mine, whole, bad := u.finish(keep)
		cause = cmp.Or(bad, cause)
		if !mine {
			return cause
		}
		keep = keep && whole
	}
	x.t.leave(c, keep)
	return cause
}

// end is detach at the end of the exchange, which must not be used any more.
func (x *exchange) end(keep bool) error {
	cause := x.detach(keep)
	x.ctx, x.head.raw = nil, nil
	x.in.Reset(nil)
	if cap(x.out) > 2*maxShort {
		x.out = nil
	}
	x.t.spare.Put(x)
	return cause
}

var errNoAnswer = errors.New("h1: the origin closed the connection without an answer")

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// expectsContinue reports whether the body waits for the origin's leave.
func expectsContinue(h http.Header) bool {
	for _, v := range h["Expect"] {
		if hasToken([]byte(v), "100-continue") {
			return true
		}
	}
	return false
}
