package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/route"
)

// VerdictHeader is the header in which [Gateway.ForwardAuth] tells an edge what becomes of the visitor's request:
// admit, pass, wait or refuse.
const VerdictHeader = "X-Anteroom-Verdict"

// TicketHeader repeats the Set-Cookie line of the ticket. Edges pass Set-Cookie of an answer that admits on in part, join
// several lines into a broken one, or drop it.
const TicketHeader = "X-Anteroom-Set-Ticket"

// edge is how a kind of proxy asks about a visitor's request.
type edge struct {
	// prefix begins the headers for the visitor's method, host and address. Empty: they are the question's own, and the
	// address follows its path.
	prefix string
	// hosted edges also ask with the visitor's Host.
	hosted bool
	// page edges pass the answer's headers and body on to a visitor who waits. The others send such a visitor's request
	// to Anteroom, which then gives the place in line and the page.
	page bool
}

// edges are the dialects, by their names in the path of the question.
var edges = map[string]edge{
	"nginx":   {prefix: "X-Original-", hosted: true},
	"haproxy": {prefix: "X-Original-", hosted: true},
	"caddy":   {prefix: "X-Forwarded-", hosted: true, page: true},
	"traefik": {prefix: "X-Forwarded-", page: true},
	"envoy":   {page: true},
}

// loopback are the edges' addresses unless Config.EdgePeers names them.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// ForwardAuth returns the handler for edges: proxies that keep the traffic and ask about each request of a visitor. It
// belongs on a listener of its own, because it believes what an edge says about the visitor. Questions from other
// addresses than Config.EdgePeers get 403.
//
// The path is /check/ and the kind of the edge: nginx, haproxy, caddy, traefik or envoy. Before it, /rooms/NAME says which
// room has to cover the request, or else it is refused.
//
// The status is 200 if the request may go to the origin, and 401 otherwise, whatever queueing_status_code is. A question
// that does not say what the visitor asks for, or says it in two ways, gets 400. The verdict is in [VerdictHeader], the
// cookie in Set-Cookie and in [TicketHeader], the proof in its usual header.
func (g *Gateway) ForwardAuth() http.Handler { return http.HandlerFunc(g.serveEdge) }

func (g *Gateway) serveEdge(w http.ResponseWriter, q *http.Request) {
	s := g.live.Load()
	peer := peerOf(q.RemoteAddr)
	if !containsAddr(s.edgePeers, peer) {
		g.refuseEdge(s, w, q, refusal{http.StatusForbidden, "not in forward_auth.peers", true})
		return
	}
	e, room, target, ok := edgeOf(q.RequestURI)
	if !ok {
		g.refuseEdge(s, w, q, refusal{http.StatusBadRequest, "the path is not /check/ and nginx, haproxy, caddy, traefik or envoy", false})
		return
	}
	r, err := s.asked(e, q, target)
	if err != nil {
		g.refuseEdge(s, w, q, refusal{http.StatusBadRequest, err.Error(), false})
		return
	}
	v := &verdict{ResponseWriter: w, edge: e, proofHeader: s.proofHeader, noBody: !e.page || r.Method == http.MethodHead}
	if r.URL == nil || room != "" && !s.isCovered(r, room) {
		g.refuse(v, r, refusal{http.StatusBadRequest, "The address is not valid here", false})
		return
	}
	if ask, _ := askOf(r.URL.RawQuery); ask != askNone || strings.HasPrefix(r.URL.Path, wellKnown) {
		// Only Anteroom itself can answer these, and some answers do not end.
		v.decided(anteroom.Wait)
		refusal{http.StatusUnauthorized, "Send requests with the parameter " + reservedParam + " and below " + wellKnown + " to Anteroom", false}.answer(v, r)
		return
	}
	g.serve(v, r, v)
	if !v.answered { // net/http would answer 200
		v.WriteHeader(http.StatusServiceUnavailable)
	}
}

// refuseEdge answers a question that is not about a visitor's request. The operator has to read why.
func (g *Gateway) refuseEdge(s *setup, w http.ResponseWriter, q *http.Request, no refusal) {
	g.count.refuse(no.status)
	if s.log != nil && g.lines.allow(s.now()) {
		path, _, _ := strings.Cut(q.RequestURI, "?")
		s.log.LogAttrs(context.Background(), slog.LevelWarn, "forward-auth question refused",
			slog.String("peer", addrString(peerOf(q.RemoteAddr))), slog.String("path", path[:min(len(path), logPathBytes)]), slog.String("problem", no.text))
	}
	w.Header()[VerdictHeader] = []string{anteroom.Refuse.String()}
	no.answer(w, q)
}

// edgeOf reads the path of a question: the kind of edge, the room if one is named, and what follows.
func edgeOf(uri string) (e edge, room, rest string, ok bool) {
	path := uri
	if after, found := strings.CutPrefix(path, "/rooms/"); found {
		i := max(strings.IndexByte(after, '/'), 0)
		if room, path = after[:i], after[i:]; room == "" {
			return e, "", "", false
		}
	}
	after, found := strings.CutPrefix(path, "/check/")
	if i := strings.IndexAny(after, "/?"); i >= 0 {
		after, rest = after[:i], after[i:]
	}
	e, known := edges[after]
	// Caddy adds the visitor's query to the path of its questions.
	return e, room, rest, found && known && (e.prefix == "" || rest == "" || rest[0] == '?')
}

// asked makes the visitor's request from an edge's question, as if it had arrived here. Target is what follows the
// question's path. An error says what the edge should have said. The URL is nil if the visitor's address is none: one
// with a "#", above all, where an edge may stop reading and an origin may not.
func (s *setup) asked(e edge, q *http.Request, target string) (*http.Request, error) {
	h := q.Header
	method, host := q.Method, q.Host
	if e.prefix != "" {
		var err error
		if method, err = only(h, e.prefix+"Method"); err != nil {
			return nil, err
		}
		if host, err = only(h, e.prefix+"Host"); err != nil {
			return nil, err
		}
		if target, err = only(h, e.prefix+"Uri"); err != nil {
			return nil, err
		}
		if q.Method != http.MethodGet && q.Method != method {
			return nil, errors.New("the method is neither GET nor the one in " + e.prefix + "Method")
		}
		if e.hosted && !isSameHost(q.Host, host) {
			return nil, errors.New("Host and " + e.prefix + "Host differ")
		}
	}
	scheme, err := only(h, "X-Forwarded-Proto")
	if err != nil {
		return nil, err
	}
	r := &http.Request{Method: method, Host: host, RequestURI: target, Proto: q.Proto, ProtoMajor: q.ProtoMajor, ProtoMinor: q.ProtoMinor, Header: h, Body: http.NoBody}
	port := 80
	switch strings.ToLower(scheme) {
	case "http", "ws":
	case "https", "wss":
		r.TLS, port = new(tls.ConnectionState), 443
	default:
		return nil, errors.New("X-Forwarded-Proto is neither http nor https")
	}
	if client := s.clientOf(h, netip.Addr{}); client.IsValid() {
		r.RemoteAddr = client.String()
	}
	for name := range h {
		if s.reserved(name, false) {
			delete(h, name)
		}
	}
	delete(h, "Upgrade")
	if len(h["Sec-Websocket-Key"]) > 0 { // edges take the Upgrade off their questions
		h["Upgrade"], h["Connection"] = []string{"websocket"}, []string{"Upgrade"}
	}
	if strings.HasPrefix(target, "/") && !strings.Contains(target, "#") {
		if u, err := url.ParseRequestURI(target); err == nil {
			r.URL = u
		}
	}
	// Rules see the port that the scheme stands for, not that of the edges' listener.
	return r.WithContext(context.WithValue(q.Context(), http.LocalAddrContextKey, &net.TCPAddr{Port: port})), nil
}

// only returns the value of a header that has to be there once.
func only(h http.Header, name string) (string, error) {
	switch v := h[name]; {
	case len(v) == 0 || v[0] == "":
		return "", errors.New(name + " is missing")
	case len(v) > 1:
		return "", errors.New(name + " is there more than once")
	default:
		return v[0], nil
	}
}

// isSameHost compares two Host headers, whose ports may differ.
func isSameHost(a, b string) bool {
	x, errA := route.Host(a)
	y, errB := route.Host(b)
	if errA != nil || errB != nil {
		return a == b
	}
	return x == y
}

// isCovered reports whether the room of this name covers the request.
func (s *setup) isCovered(r *http.Request, room string) bool {
	m, err := s.table.Lookup(r.Host, r.RequestURI)
	return err == nil && m != nil && m.Room.Name == room
}

// verdict is the answer to an edge's question. For the exchange it is two things: the writer to the visitor, and the
// handler in the place of the origin. Only what arrives there may go to the origin; all else that the exchange writes,
// with whatever status, tells the edge that it may not.
type verdict struct {
	http.ResponseWriter
	edge        edge
	proofHeader string
	noBody      bool

	room     anteroom.Verdict // of the room
	asked    bool             // there is one
	through  bool             // the request has arrived where the origin is otherwise
	answered bool
}

// verdict returns that of the question which the request comes from; nil if it comes from a visitor.
func (x *exchange) verdict() *verdict {
	v, _ := x.next.(*verdict)
	return v
}

// pageElsewhere reports whether the waiting page of the request will come of another one, which then joins the queue.
func (x *exchange) pageElsewhere() bool {
	v := x.verdict()
	return v != nil && !v.edge.page
}

// decided takes the decision of the room.
func (v *verdict) decided(is anteroom.Verdict) { v.room, v.asked = is, true }

// ServeHTTP stands where the origin stands otherwise.
func (v *verdict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Cache-Control"] = valueNoStore
	if proof := r.Header[v.proofHeader]; len(proof) > 0 {
		h[v.proofHeader] = proof
	} else if v.edge.prefix == "" {
		h["X-Envoy-Auth-Headers-To-Remove"] = []string{strings.ToLower(v.proofHeader)} // the visitor's forgery
	}
	v.through = true
	w.WriteHeader(http.StatusOK)
}

// verdict is what the edge is told.
func (v *verdict) verdict() anteroom.Verdict {
	switch {
	case v.through && !v.asked:
		return anteroom.Pass
	case v.through, v.asked && v.room == anteroom.Wait:
		return v.room
	}
	return anteroom.Refuse
}

// WriteHeader implements http.ResponseWriter. The status is for a visitor, and the edge gets its own.
func (v *verdict) WriteHeader(int) {
	if v.answered {
		return
	}
	v.answered = true
	is := v.verdict()
	status := http.StatusUnauthorized
	if is == anteroom.Admit || is == anteroom.Pass {
		status = http.StatusOK
	}
	h := v.Header()
	h[VerdictHeader] = []string{is.String()}
	if status == http.StatusUnauthorized && !v.edge.page {
		delete(h, "Set-Cookie") // Anteroom sets one when it shows the page
	}
	if cookie := h["Set-Cookie"]; len(cookie) > 0 {
		h[TicketHeader] = cookie[:1:1]
	}
	delete(h, "Connection") // to the edge, it stays
	if v.noBody {
		delete(h, "Content-Length")
		delete(h, "Content-Encoding")
	}
	v.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (v *verdict) Write(p []byte) (int, error) {
	v.WriteHeader(http.StatusOK)
	if v.noBody {
		return len(p), nil
	}
	return v.ResponseWriter.Write(p)
}
