package gateway

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// defaultProofHeader carries the signed proof of admission to the origin.
const defaultProofHeader = "X-Anteroom-Assertion"

// forward sends the request on: to the next handler, or to an origin of the site.
func (x *exchange) forward() {
	s, w, r := x.s, x.w, x.r
	x.conn.waits(false)
	if x.next == nil {
		x.origin = x.site.pick(nil)
	}
	if !x.enterLimiters() {
		return
	}
	if r.ContentLength != 0 && r.Body != nil {
		x.body = s.newBodyReader(r.Body, w)
		r.Body = x.body
	}
	if x.next != nil {
		x.hand()
		return
	}
	if x.websocket {
		x.tunnel()
		return
	}
	x.boundWrites()
	defer x.boundRest()
	x.pass()
}

// rewrite makes the request that the origin sees. The proxy has copied the visitor's
// without hop-by-hop headers, and it did so before: nothing that is set here can be named
// away by a Connection header (CVE-2021-33197, CVE-2024-45410).
func (x *exchange) rewrite(p *httputil.ProxyRequest) {
	in, out := p.In, p.Out
	o := x.origin
	out.URL.Scheme, out.URL.Host = o.url.Scheme, o.url.Host
	keepTarget(out.URL, in)
	if !x.site.preserve {
		out.Host = ""
	}
	out.Trailer = nil
	x.setForwarded(out.Header)
	x.s.stripTickets(out.Header)
	if x.span != nil {
		x.traceOrigin(out.Header)
	}
}

// keepTarget makes path and query leave as they came in. net/http would drop query pairs
// with a ';' and re-encode what it would have encoded differently.
func keepTarget(out *url.URL, in *http.Request) {
	out.RawQuery, out.ForceQuery = in.URL.RawQuery, in.URL.ForceQuery
	path, _, _ := strings.Cut(in.RequestURI, "?")
	if path == "" || path[0] != '/' || strings.HasPrefix(path, "//") || path == in.URL.EscapedPath() {
		return
	}
	// Opaque goes on the request line as it is. Two slashes at its beginning would make it an
	// absolute address; such a path keeps net/http's encoding, which keeps its meaning.
	out.Opaque = path
}

// hopHeader lists the gateways that a request has passed, so that a loop is seen. It is not
// Via, which would say the same: nginx and others stop compressing for whoever sends that,
// and an origin's traffic would multiply. A Via of somebody else passes as it is.
const hopHeader = "Anteroom-Hop"

// setForwarded says who the visitor is, in the headers that origins read, and proves the admission. What an
// untrusted peer said of that is gone since checkHeaders.
func (x *exchange) setForwarded(h http.Header) {
	in := x.r.Header
	// One allocation for all; the transport may hold the values after the exchange is reused.
	v := new([6]string)
	peer := x.peerString()
	client := peer
	if x.client != x.peer {
		client = addrString(x.client)
	}
	v[0], v[1], v[2], v[3] = peer, x.r.Host, "http", client
	if x.https {
		v[2] = "https"
	}
	v[4] = x.g.token
	if x.trusted {
		if chain := in["X-Forwarded-For"]; len(chain) > 0 {
			v[0] = strings.Join(chain, ", ") + ", " + peer
		}
		if host := in["X-Forwarded-Host"]; len(host) == 1 {
			v[1] = host[0]
		}
	}
	if before := in[hopHeader]; len(before) > 0 {
		v[4] = strings.Join(before, ", ") + ", " + v[4]
	}
	h["X-Forwarded-For"] = v[0:1:1]
	h["X-Forwarded-Host"] = v[1:2:2]
	h["X-Forwarded-Proto"] = v[2:3:3]
	h["X-Real-Ip"] = v[3:4:4]
	h[hopHeader] = v[4:5:5]
	if v[5] = x.proof(); v[5] != "" {
		h[x.s.proofHeader] = v[5:6:6]
	}
}

// peerString is the peer's address, written once for a connection.
func (x *exchange) peerString() string {
	if x.conn != nil {
		return x.conn.written
	}
	return addrString(x.peer)
}

// addrString is "unknown" for peers without an address, like those on a Unix socket.
func addrString(a netip.Addr) string {
	if !a.IsValid() {
		return "unknown"
	}
	return a.String()
}

// RoundTrip sends the proxied request to the exchange's origin. When no connection could be
// made, nothing has left, and a request that may be repeated and has no body goes to one
// other origin.
func (x *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	began := x.clock
	if began.IsZero() {
		began = time.Now()
	}
	res, now, err := x.roundTrip(r, began)
	x.clock = now
	took := now.Sub(began)
	if err == nil {
		x.g.count.origin.Observe(took)
	}
	if x.ask != nil {
		x.traceAnswer(took, res, err)
	}
	return res, err
}

// roundTrip also returns the time, so that a request asks for it once.
func (x *exchange) roundTrip(r *http.Request, began time.Time) (*http.Response, time.Time, error) {
	res, now, err := x.try(r, began)
	if err == nil || !isDialError(err) || r.Context().Err() != nil || r.Body != nil || len(x.site.origins) < 2 || !isIdempotent(r.Method) {
		return res, now, err
	}
	x.logOrigin(kindOf(r.Context(), err), err) // the visitor will not see it
	failed := x.origin
	x.origin = x.site.pick(failed)
	failed.pending.Add(-1)
	if !x.enterOrigin(x.patience(began)) {
		return res, now, err
	}
	again := r.WithContext(r.Context())
	u := *r.URL
	u.Scheme, u.Host = x.origin.url.Scheme, x.origin.url.Host
	again.URL = &u
	return x.try(again, time.Now())
}

// try sends a request to the exchange's origin and notes what came of it, and when.
func (x *exchange) try(r *http.Request, began time.Time) (*http.Response, time.Time, error) {
	res, err := x.send(r, began)
	now := time.Now()
	x.site.report(x.origin, err == nil || !isDialError(err) || r.Context().Err() != nil)
	switch {
	case err == nil:
		x.origin.seen.answered(now.Sub(began), res.StatusCode)
	case x.body.failure() == nil && kindOf(r.Context(), err) != clientGone:
		x.origin.seen.unanswered.Add(1)
	}
	return res, now, err
}

// send takes the way that pass has chosen.
func (x *exchange) send(r *http.Request, now time.Time) (*http.Response, error) {
	if x.fast {
		// What the origin says becomes the header of our own answer, unless there is something in it already.
		into := x.out.Header()
		if len(into) > 0 {
			into = nil
		}
		x.inPlace = into != nil
		res, err := x.s.fast.Send(r, into, x.told, now)
		if err != nil {
			clear(into)
		}
		return res, err
	}
	return x.s.origins().RoundTrip(r)
}

// isIdempotent follows RFC 9110 §9.2.2.
func isIdempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE":
		return true
	}
	return false
}

// failed answers a request whose origin did not. The visitor keeps what the decision
// gave: the cookie goes with the error.
func (x *exchange) failed(w http.ResponseWriter, r *http.Request, err error) {
	if x.body.failure() != nil {
		x.g.refuse(w, x.r, refusal{http.StatusBadRequest, "The request body ended early", true})
		return
	}
	kind := kindOf(r.Context(), err)
	x.g.count.originErrors[kind].Add(1)
	if kind == clientGone {
		panic(http.ErrAbortHandler)
	}
	x.logOrigin(kind, err)
	if x.room != nil && x.room.Protect && x.decision.Verdict == anteroom.Admit && x.retries() {
		x.askToRetry()
		return
	}
	status, text := http.StatusBadGateway, "The website is not responding at the moment."
	if kind == originTimeout {
		status, text = http.StatusGatewayTimeout, "The website takes too long to respond."
	}
	h := x.neverStored()
	if x.room != nil && x.decision.Verdict == anteroom.Admit {
		x.giveTicket(h)
	}
	h["Content-Type"] = valueTextHTML
	h["Retry-After"] = []string{"5"}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
	w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		w.Write([]byte("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>" +
			http.StatusText(status) + "</title><p>" + text + " Please try again in a few seconds.</p></html>\n"))
	}
}

// retries reports whether the request is one that a browser repeats when it loads the page again.
func (x *exchange) retries() bool {
	return (x.r.Method == http.MethodGet || x.r.Method == http.MethodHead) && !isSubresource(x.r) && !x.websocket
}

// askToRetry answers an admitted visitor whose origin did not answer with a page in the room's style
// that loads itself again. The session goes on, and each try renews it.
func (x *exchange) askToRetry() {
	d := &x.decision
	h := x.neverStored()
	x.giveTicket(h)
	// Spread, so that not everybody comes back in the same second.
	seconds := x.value(strconv.Itoa(retryLeast + int(d.Ticket.ID[0])%retrySpread))
	h["Refresh"], h["Retry-After"] = seconds, seconds
	d.Reason, d.Verdict, d.Refresh = anteroom.ReasonOrigin, anteroom.Wait, 0
	view := x.view(false)
	x.writePage(h, http.StatusServiceUnavailable, &view)
}

// A page that asks to retry comes back after so many seconds.
const (
	retryLeast  = 4
	retrySpread = 5
)
