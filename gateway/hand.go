package gateway

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/anteroom/anteroom"
)

// hand gives the request to the caller's handler, which stands where the origin stands
// otherwise. The context of a WebSocket's request ends with its session.
func (x *exchange) hand() {
	if proof := x.proof(); proof != "" {
		x.r.Header[x.s.proofHeader] = []string{proof}
	}
	x.s.stripTickets(x.r.Header)
	if x.span != nil {
		x.traceOrigin(x.r.Header)
		defer func() { x.ask.End(time.Now()) }()
	}
	w := &handWriter{ResponseWriter: x.w, x: x}
	r := x.r
	if x.websocket {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		if x.room != nil && x.decision.Verdict == anteroom.Admit {
			dr, id := x.room.door, x.decision.Ticket.ID
			go func() {
				defer cancel()
				x.g.watch(ctx, dr, id)
			}()
		}
	}
	x.next.ServeHTTP(w, r)
	w.finish()
}

// handWriter calls finish before the handler's headers leave.
type handWriter struct {
	http.ResponseWriter
	x *exchange // nil once the headers have left
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
func AdmissionOf(w http.ResponseWriter) (a Admission) {
	if h, ok := w.(*handWriter); ok && h.x != nil {
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

// Hijack implements http.Hijacker, which WebSocket libraries ask for.
func (w *handWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (w *handWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
