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
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/extauthz"
	"github.com/anteroom/anteroom/gateway/route"
)

// verdictHeader is the header in which [Gateway.ForwardAuth] tells a proxy what becomes of the visitor's request:
// admit, pass, wait or refuse.
const verdictHeader = "X-Anteroom-Verdict"

// ticketHeader repeats the Set-Cookie line of the ticket. Proxies pass on only some of the Set-Cookie lines of an
// answer that admits, join them into a broken one, or drop them.
const ticketHeader = "X-Anteroom-Set-Ticket"

// dialect is how a kind of proxy asks about a visitor's request (forward-auth).
type dialect struct {
	kind int // index of EdgeKinds
	// prefix begins the headers for the visitor's method, host and address. Empty: they are the question's own, and the
	// address follows its path.
	prefix string
	// hosted proxies also ask with the visitor's Host.
	hosted bool
	// page proxies pass the answer's headers and body on to a visitor who waits. The others send such a visitor's request
	// to Anteroom, which then gives the place in line and the page.
	page bool
}

// EdgeKinds are the names of dialects in the path of the question and in metrics.
var EdgeKinds = [...]string{"nginx", "haproxy", "caddy", "traefik", "envoy"}

// dialects by their names.
var dialects = map[string]dialect{
	EdgeKinds[0]: {kind: 0, prefix: "X-Original-", hosted: true},
	EdgeKinds[1]: {kind: 1, prefix: "X-Original-", hosted: true},
	EdgeKinds[2]: {kind: 2, prefix: "X-Forwarded-", hosted: true, page: true},
	EdgeKinds[3]: {kind: 3, prefix: "X-Forwarded-", page: true},
	EdgeKinds[4]: {kind: 4, page: true},
}

// loopback are the addresses that may ask unless Config.ForwardAuthPeers names them.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// ForwardAuth returns the handler for proxies that keep the traffic and ask about each request of a visitor. It
// belongs on a listener of its own, because it believes what a proxy says about the visitor. Questions from other
// addresses than Config.ForwardAuthPeers get 403.
//
// The path is /check/ and the kind of the proxy: nginx, haproxy, caddy, traefik or envoy. Before it, /rooms/NAME says which
// room has to cover the request, or else it is refused. Envoy may also ask by gRPC, with HTTP/2 and [extauthz.Path]; then "room" in the
// context_extensions of its route names the room.
//
// The status is 200 if the request may go to the origin, and 401 otherwise, whatever queueing_status_code is. A question
// that does not say what the visitor asks for, or says it in two ways, gets 400. The verdict is in [verdictHeader], the
// cookie in Set-Cookie and in [ticketHeader], the proof in its usual header.
func (g *Gateway) ForwardAuth() http.Handler { return http.HandlerFunc(g.serveQuestion) }

func (g *Gateway) serveQuestion(w http.ResponseWriter, q *http.Request) {
	s := g.live.Load()
	peer := peerOf(q.RemoteAddr)
	if !containsAddr(s.askers, peer) {
		g.refuseQuestion(s, w, q, refusal{http.StatusForbidden, "not in forward_auth.peers", true})
		return
	}
	if q.RequestURI == extauthz.Path {
		g.serveCheck(s, w, q)
		return
	}
	d, room, target, ok := dialectOf(q.RequestURI)
	if !ok {
		g.refuseQuestion(s, w, q, refusal{http.StatusBadRequest, "the path is not /check/ and nginx, haproxy, caddy, traefik or envoy", false})
		return
	}
	g.askedBy(d, peer, time.Now())
	r, err := s.asked(d, q, target)
	if err != nil {
		g.refuseQuestion(s, w, q, refusal{http.StatusBadRequest, err.Error(), false})
		return
	}
	g.judge(s, &verdict{ResponseWriter: w, dialect: d, proofHeader: s.proofHeader, noBody: !d.page || r.Method == http.MethodHead}, r, room)
}

// askedBy counts a question.
func (g *Gateway) askedBy(d dialect, peer netip.Addr, at time.Time) *edge {
	g.count.questions[d.kind].Add(1)
	return g.edges.saw(edgeKey{kind: EdgeKinds[d.kind], peer: peer}, edgeQuestion, at)
}

// judge answers the question about the visitor's request r. A room that is named has to cover it.
func (g *Gateway) judge(s *setup, v *verdict, r *http.Request, room string) {
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

// refuseQuestion answers a question that is not about a visitor's request. The operator has to read why.
func (g *Gateway) refuseQuestion(s *setup, w http.ResponseWriter, q *http.Request, no refusal) {
	g.count.refuse(no.status)
	if s.log != nil && g.lines.allow(s.now()) {
		path, _, _ := strings.Cut(q.RequestURI, "?")
		s.log.LogAttrs(context.Background(), slog.LevelWarn, "forward-auth question refused",
			slog.String("peer", addrString(peerOf(q.RemoteAddr))), slog.String("path", path[:min(len(path), logPathBytes)]), slog.String("problem", no.text))
	}
	w.Header()[verdictHeader] = []string{anteroom.Refuse.String()}
	no.answer(w, q)
}

// dialectOf reads the path of a question: the kind of proxy, the room if one is named, and what follows.
func dialectOf(uri string) (d dialect, room, rest string, ok bool) {
	path := uri
	if after, found := strings.CutPrefix(path, "/rooms/"); found {
		i := max(strings.IndexByte(after, '/'), 0)
		if room, path = after[:i], after[i:]; room == "" {
			return d, "", "", false
		}
	}
	after, found := strings.CutPrefix(path, "/check/")
	if i := strings.IndexAny(after, "/?"); i >= 0 {
		after, rest = after[:i], after[i:]
	}
	d, known := dialects[after]
	// Caddy adds the visitor's query to the path of its questions.
	return d, room, rest, found && known && (d.prefix == "" || rest == "" || rest[0] == '?')
}

// asked makes the visitor's request from a proxy's question, as if it had arrived here. Target is what follows the
// question's path. An error says what the proxy should have said. The URL is nil if the visitor's address is none: one
// with a "#", above all, where a proxy may stop reading and an origin may not.
func (s *setup) asked(d dialect, q *http.Request, target string) (*http.Request, error) {
	h := q.Header
	method, host := q.Method, q.Host
	if d.prefix != "" {
		var err error
		if method, err = only(h, d.prefix+"Method"); err != nil {
			return nil, err
		}
		if host, err = only(h, d.prefix+"Host"); err != nil {
			return nil, err
		}
		if target, err = only(h, d.prefix+"Uri"); err != nil {
			return nil, err
		}
		if q.Method != http.MethodGet && q.Method != method {
			return nil, errors.New("the method is neither GET nor the one in " + d.prefix + "Method")
		}
		if d.hosted && !isSameHost(q.Host, host) {
			return nil, errors.New("Host and " + d.prefix + "Host differ")
		}
	}
	r := &http.Request{Method: method, Host: host, RequestURI: target, Proto: q.Proto, ProtoMajor: q.ProtoMajor, ProtoMinor: q.ProtoMinor, Header: h}
	return s.visitors(r, s.clientOf(h, netip.Addr{}), q)
}

// visitors completes the visitor's request of a question q: method, host, target and headers are there.
func (s *setup) visitors(r *http.Request, client netip.Addr, q *http.Request) (*http.Request, error) {
	h, target := r.Header, r.RequestURI
	r.Body = http.NoBody
	scheme, err := only(h, "X-Forwarded-Proto")
	if err != nil {
		return nil, err
	}
	port := 80
	switch strings.ToLower(scheme) {
	case "http", "ws":
	case "https", "wss":
		r.TLS, port = new(tls.ConnectionState), 443
	default:
		return nil, errors.New("X-Forwarded-Proto is neither http nor https")
	}
	if client.IsValid() {
		r.RemoteAddr = client.String()
	}
	for name := range h {
		if s.reserved(name, false) {
			delete(h, name)
		}
	}
	delete(h, "Upgrade")
	if len(h["Sec-Websocket-Key"]) > 0 { // proxies take the Upgrade off their questions
		h["Upgrade"], h["Connection"] = []string{"websocket"}, []string{"Upgrade"}
	}
	if strings.HasPrefix(target, "/") && !strings.Contains(target, "#") {
		if u, err := url.ParseRequestURI(target); err == nil {
			r.URL = u
		}
	}
	// Rules see the port that the scheme stands for, not that of this listener.
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

// verdict is the answer to a proxy's question. For the exchange it is two things: the writer to the visitor, and the
// handler in the place of the origin. Only what arrives there may go to the origin; all else that the exchange writes,
// with whatever status, tells the proxy that it may not.
type verdict struct {
	http.ResponseWriter
	dialect     dialect
	proofHeader string
	noBody      bool

	room     anteroom.Verdict // of the room
	asked    bool             // there is one
	through  bool             // the request has arrived where the origin is otherwise
	answered bool
	shown    int // the status that a visitor would get
}

// verdict returns that of the question which the request comes from; nil if it comes from a visitor.
func (x *exchange) verdict() *verdict {
	v, _ := x.next.(*verdict)
	return v
}

// pageElsewhere reports whether the waiting page of the request will come of another one, which then joins the queue. In shadow
// mode there is no page, so this request joins.
func (x *exchange) pageElsewhere() bool {
	v := x.verdict()
	return v != nil && !v.dialect.page && !x.room.Shadow
}

// decided takes the decision of the room.
func (v *verdict) decided(is anteroom.Verdict) { v.room, v.asked = is, true }

// ServeHTTP stands where the origin stands otherwise.
func (v *verdict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Cache-Control"] = valueNoStore
	if proof := r.Header[v.proofHeader]; len(proof) > 0 {
		h[v.proofHeader] = proof
	} else if v.dialect.prefix == "" {
		h["X-Envoy-Auth-Headers-To-Remove"] = []string{strings.ToLower(v.proofHeader)} // the visitor's forgery
	}
	v.through = true
	w.WriteHeader(http.StatusOK)
}

// verdict is what the proxy is told.
func (v *verdict) verdict() anteroom.Verdict {
	switch {
	case v.through && !v.asked:
		return anteroom.Pass
	case v.through, v.asked && v.room == anteroom.Wait:
		return v.room
	}
	return anteroom.Refuse
}

// WriteHeader implements http.ResponseWriter. The status is for a visitor, and the proxy gets its own.
func (v *verdict) WriteHeader(shown int) {
	if v.answered {
		return
	}
	v.answered, v.shown = true, shown
	is := v.verdict()
	status := http.StatusUnauthorized
	if is == anteroom.Admit || is == anteroom.Pass {
		status = http.StatusOK
	}
	h := v.Header()
	h[verdictHeader] = []string{is.String()}
	if status == http.StatusUnauthorized && !v.dialect.page {
		delete(h, "Set-Cookie") // Anteroom sets one when it shows the page
	}
	if cookie := h["Set-Cookie"]; len(cookie) > 0 {
		h[ticketHeader] = cookie[:1:1]
	}
	delete(h, "Connection") // to the proxy, it stays
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
