package gateway

import (
	"net/http"
	"time"
)

// Beside returns a handler that serves requests by h on a listener of the gateway, within the gateway's bounds: they count among the
// requests in flight, and their bodies, which have to be small, must arrive within 10 s. After that, reading the body fails. Answers are
// [Gateway.Bounded].
func (g *Gateway) Beside(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer g.count.inFlight.Add(-1)
		if !g.enter(g.live.Load(), w, r) {
			return
		}
		if r.ContentLength != 0 { // without a body, net/http reads ahead and would take the visitor for gone
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		}
		h.ServeHTTP(g.Bounded(w, r), r)
	})
}

// Bounded returns a writer for an answer that is short, and complete when its handler returns: the visitor has to receive it within
// [Timeouts.Page], counted from its beginning. It is for answers beside the gateway's on a listener of [Gateway.Server].
func (g *Gateway) Bounded(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	return &boundedWriter{w, g, r}
}

func (g *Gateway) boundAnswer(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	boundAnswer(w, r, c, time.Now().Add(g.live.Load().Timeouts.Page))
}

// boundedWriter sets the bound when the answer begins: a body or the store may have taken time before.
type boundedWriter struct {
	http.ResponseWriter
	g *Gateway
	r *http.Request // nil once the answer has begun
}

func (w *boundedWriter) begin() {
	if w.r != nil {
		w.g.boundAnswer(w.ResponseWriter, w.r)
		w.r = nil
	}
}

func (w *boundedWriter) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *boundedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
