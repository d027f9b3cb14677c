package gateway

import (
	"net/http"
	"time"
)

// Beside returns a handler that serves requests by h on a listener of the gateway, within the gateway's bounds: they count among the
// requests in flight, and their bodies, which have to be small, must arrive within 10 s. After that, reading the body fails.
func (g *Gateway) Beside(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer g.count.inFlight.Add(-1)
		if !g.enter(g.live.Load(), w, r) {
			return
		}
		if r.ContentLength != 0 { // without a body, net/http reads ahead and would take the visitor for gone
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		}
		h.ServeHTTP(w, r)
	})
}
