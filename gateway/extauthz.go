package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/gateway/extauthz"
)

// serveCheck answers Envoy's question by gRPC. It differs from the one by HTTP in its form alone: the visitor's request and the
// verdict come from the same steps. Envoy gives the visitor the status of the page here, because the verdict does not depend on it.
func (g *Gateway) serveCheck(s *setup, w http.ResponseWriter, q *http.Request) {
	if q.ProtoMajor != 2 || q.Method != http.MethodPost || !strings.HasPrefix(q.Header.Get("Content-Type"), extauthz.ContentType) {
		g.refuseQuestion(s, w, q, refusal{http.StatusBadRequest, "a question by gRPC has HTTP/2, POST and the type " + extauthz.ContentType, false})
		return
	}
	d := dialect{kind: dialects["envoy"].kind, page: true}
	at := time.Now()
	asker := g.askedBy(d, peerOf(q.RemoteAddr), at)
	message, code, err := extauthz.ReadFrame(q.Body)
	if err != nil {
		g.refuseCheck(s, w, q, code, err)
		return
	}
	c, err := extauthz.Read(message)
	if err != nil {
		g.refuseCheck(s, w, q, extauthz.InvalidArgument, err)
		return
	}
	asker.said(c.Time, at)
	forged := s.forged(c.Header)
	r, err := s.checked(c, q)
	if err != nil {
		g.refuseCheck(s, w, q, extauthz.InvalidArgument, err)
		return
	}
	a := &checkAnswer{header: http.Header{}}
	v := &verdict{ResponseWriter: a, dialect: d, proofHeader: s.proofHeader, noBody: r.Method == http.MethodHead}
	g.judge(s, v, r, c.Context["room"])
	answerCall(w, extauthz.Frame(a.message(v, forged)), extauthz.OK, "")
}

// checked makes the visitor's request from a question by gRPC.
func (s *setup) checked(c extauthz.Check, q *http.Request) (*http.Request, error) {
	h := http.Header(c.Header)
	if len(h["X-Forwarded-Proto"]) == 0 && c.Scheme != "" {
		h["X-Forwarded-Proto"] = []string{c.Scheme}
	}
	delete(h, "Host")            // Envoy says it in a field of its own
	delete(h, "Accept-Encoding") // the body of the answer is text in a message
	source, _ := netip.ParseAddr(c.Source)
	source = source.Unmap().WithZone("")
	client := source
	if !source.IsValid() || s.isTrusted(source) {
		client = s.clientOf(h, source)
	}
	asked := &http.Request{Method: c.Method, Host: c.Host, RequestURI: c.Target, Header: h}
	var ok bool
	if asked.ProtoMajor, asked.ProtoMinor, ok = http.ParseHTTPVersion(c.Protocol); ok {
		asked.Proto = c.Protocol
	} else {
		asked.Proto, asked.ProtoMajor, asked.ProtoMinor = "HTTP/1.1", 1, 1
	}
	return s.visitors(asked, client, q)
}

// forged returns the names of a visitor's headers that only Anteroom may send, in any spelling. They are for Envoy to remove.
func (s *setup) forged(h map[string][]string) (names []string) {
	for name := range h {
		if f := fold(name); f == s.proofFolded || strings.HasPrefix(f, ourPrefix) {
			names = append(names, strings.ToLower(name))
		}
	}
	return names
}

// refuseCheck answers a call that is not about a visitor's request, which Envoy takes for a failure of its own.
func (g *Gateway) refuseCheck(s *setup, w http.ResponseWriter, q *http.Request, code int, problem error) {
	g.count.refuse(http.StatusBadRequest)
	if s.log != nil && g.lines.allow(s.now()) {
		s.log.LogAttrs(context.Background(), slog.LevelWarn, "forward-auth question refused",
			slog.String("peer", addrString(peerOf(q.RemoteAddr))), slog.String("path", extauthz.Path), slog.String("problem", problem.Error()))
	}
	answerCall(w, nil, code, problem.Error())
}

// answerCall ends a call of gRPC: the status of HTTP is always 200, and that of the call comes behind the message.
func answerCall(w http.ResponseWriter, frame []byte, code int, text string) {
	h := w.Header()
	h["Content-Type"] = []string{extauthz.ContentType}
	h[http.TrailerPrefix+"Grpc-Status"] = []string{strconv.Itoa(code)}
	if text != "" {
		h[http.TrailerPrefix+"Grpc-Message"] = []string{strings.Map(func(c rune) rune { // percent-encoding, as far as our own texts need it
			if c < ' ' || c > '~' || c == '%' {
				return '?'
			}
			return c
		}, text)}
	}
	w.WriteHeader(http.StatusOK)
	w.Write(frame)
}

// checkAnswer collects what the gateway answers.
type checkAnswer struct {
	header http.Header
	status int // of the verdict: 200 or 401
	body   bytes.Buffer
}

func (a *checkAnswer) Header() http.Header { return a.header }

func (a *checkAnswer) WriteHeader(status int) { a.status = status }

func (a *checkAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }

// message is the answer as Envoy reads it. Envoy removes headers after it has set others.
func (a *checkAnswer) message(v *verdict, forged []string) []byte {
	cookies := a.header["Set-Cookie"]
	if a.status == http.StatusOK {
		var toOrigin, toVisitor []extauthz.Field
		own := strings.ToLower(v.proofHeader)
		if proof := a.header[v.proofHeader]; len(proof) > 0 {
			toOrigin = []extauthz.Field{{Name: own, Value: proof[0]}}
			forged = slices.DeleteFunc(forged, func(name string) bool { return name == own })
		}
		for _, c := range cookies {
			toVisitor = append(toVisitor, extauthz.Field{Name: "set-cookie", Value: c, Added: true})
		}
		if len(cookies) > 0 { // no cache may give this visitor's ticket to others
			toVisitor = append(toVisitor, extauthz.Field{Name: "cache-control", Value: "private, no-store"})
		}
		return extauthz.Allow(toOrigin, toVisitor, forged)
	}
	var fields []extauthz.Field
	for name, values := range a.header {
		switch name {
		case "Content-Length", ticketHeader: // Envoy counts, and Set-Cookie comes whole
			continue
		}
		for i, value := range values {
			fields = append(fields, extauthz.Field{Name: strings.ToLower(name), Value: value, Added: i > 0 || name == "Set-Cookie"})
		}
	}
	status := v.shown
	if status < http.StatusOK || http.StatusText(status) == "" { // Envoy refuses an answer with a status that it does not know
		status = http.StatusForbidden
	}
	return extauthz.Deny(status, fields, bytes.ToValidUTF8(a.body.Bytes(), []byte("\uFFFD")))
}
