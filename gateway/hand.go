package gateway

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/socket"
)

// hand gives the request to the caller's handler, which stands where the origin stands
// otherwise.
func (x *exchange) hand() {
	if proof := x.proof(); proof != "" {
		x.r.Header[x.s.proofHeader] = []string{proof}
	}
	x.s.stripTickets(x.r.Header)
	if x.span != nil {
		x.traceOrigin(x.r.Header)
		defer func() { x.ask.End(time.Now()) }()
	}
	w := &handWriter{ResponseWriter: x.w, g: x.g, x: x}
	r := x.r
	if x.websocket {
		w.socket = x.openSocket()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(w.socket.ctx, cancel)()
		defer w.socket.returned(x.g)
		r = r.WithContext(ctx)
	}
	x.next.ServeHTTP(w, r)
	w.finish()
}

// handSocket is a WebSocket of the caller's handler, which counts as a tunnel: its visitor is active until the connection that the handler
// took over is closed, or the handler has returned without one. Libraries let handlers return before the connection is closed.
type handSocket struct {
	ctx   context.Context // ends with the session, too
	end   context.CancelFunc
	taken bool
}

func (x *exchange) openSocket() *handSocket {
	g, id := x.g, x.decision.Ticket.ID
	var dr door
	if x.room != nil && x.decision.Verdict == anteroom.Admit {
		dr = x.room.door
	}
	s := &handSocket{}
	s.ctx, s.end = context.WithCancel(context.WithoutCancel(x.r.Context()))
	g.count.tunnels.Add(1)
	go func() {
		defer g.count.tunnels.Add(-1)
		defer s.end()
		g.watch(s.ctx, dr, id)
	}()
	return s
}

// returned is told that the handler has returned, after which its request is no longer counted as in flight.
func (s *handSocket) returned(g *Gateway) {
	if !s.taken {
		s.end()
		return
	}
	g.count.inFlight.Add(1)
	context.AfterFunc(s.ctx, func() { g.count.inFlight.Add(-1) })
}

// socketConn is the connection that a handler has taken over.
type socketConn struct {
	net.Conn
	end context.CancelFunc
}

func (c *socketConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// CloseWrite closes one direction, as reverse proxies do.
func (c *socketConn) CloseWrite() error { return socket.CloseWrite(c.Conn) }

// handWriter calls finish before the handler's headers leave.
type handWriter struct {
	http.ResponseWriter
	g      *Gateway
	x      *exchange   // nil once the headers have left
	socket *handSocket // nil: no WebSocket is asked for
}

// handWriterIn finds the writer of a [Gateway.Middleware] under those that other middlewares have put around it.
func handWriterIn(w http.ResponseWriter) *handWriter {
	for {
		switch one := w.(type) {
		case *handWriter:
			return one
		case interface{ Unwrap() http.ResponseWriter }:
			w = one.Unwrap()
		default:
			return nil
		}
	}
}

func (w *handWriter) finish() {
	if w.x != nil {
		w.x.finish(w.Header())
		w.x = nil
	}
}

func (w *handWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.finish()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *handWriter) Write(p []byte) (int, error) {
	w.finish()
	return w.ResponseWriter.Write(p)
}

// Admission is what [AdmissionOf] says of a request.
type Admission struct {
	// Decision has the verdict Admit or Pass; the zero value is for a request that bypassed its room, or has none.
	anteroom.Decision
	// Settled says that the session is not on probation any more: its visitor has sent an earlier request with the ticket.
	Settled bool
}

// AdmissionOf returns how the request came to a handler behind [Gateway.Middleware], which asks before it writes anything.
// Other middlewares may have wrapped w if their writers have an Unwrap method, as [http.ResponseController] needs it.
func AdmissionOf(w http.ResponseWriter) (a Admission) {
	if h := handWriterIn(w); h != nil && h.x != nil {
		a.Decision, a.Settled = h.x.decision, h.x.settled()
	}
	return a
}

// FlushError is for http.ResponseController, Flush for those who ask for http.Flusher.
func (w *handWriter) FlushError() error {
	w.finish()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *handWriter) Flush() { w.FlushError() }

// Hijack implements http.Hijacker, which WebSocket libraries ask for. The connection is closed when the session ends.
func (w *handWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil || w.socket == nil {
		return c, rw, err
	}
	w.socket.taken = true
	context.AfterFunc(w.socket.ctx, func() { c.Close() })
	return &socketConn{c, w.socket.end}, rw, nil
}

// Unwrap is for http.ResponseController.
func (w *handWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
