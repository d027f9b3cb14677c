package gateway

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// FuzzCookies: no ticket is left on what an origin sees, nothing else is lost, and
// whatever eachCookie finds is what stripTickets removes.
func FuzzCookies(f *testing.F) {
	s := &setup{cookieName: "__cfwaitingroom"}
	f.Fuzz(func(t *testing.T, line string) {
		h := http.Header{"Cookie": {line}}
		s.stripTickets(h)
		left := strings.Join(h["Cookie"], "; ")
		for _, name := range []string{"__cfwaitingroom", "__cfwaitingroom_s"} {
			eachCookie([]string{left}, name, func(string) { t.Errorf("%q became %q", line, left) })
		}
		var want []string
		for _, pair := range pairs(line) {
			name, _, _ := strings.Cut(pair, "=")
			if !s.isOurs(strings.TrimRight(name, " \t")) {
				want = append(want, pair)
			}
		}
		if got := pairs(left); !slices.Equal(got, want) {
			t.Errorf("%q became %q, want %q", line, got, want)
		}
	})
}

// pairs splits a Cookie line; what is empty is left out.
func pairs(line string) []string {
	var out []string
	for pair := range strings.SplitSeq(line, ";") {
		if pair = strings.TrimLeft(pair, " \t"); strings.Trim(pair, " \t") != "" {
			out = append(out, pair)
		}
	}
	return out
}

// FuzzClientAddress: what a client puts in front of the trusted proxy's entry changes
// nothing.
func FuzzClientAddress(f *testing.F) {
	f.Fuzz(func(t *testing.T, claim string) {
		peer := peerOf("10.0.0.1")
		s := &setup{trusted: prefixes("10.0.0.0/8")}
		h := http.Header{"X-Forwarded-For": {claim, "192.0.2.7"}, "Forwarded": {claim}}
		if got := s.clientOf(h, peer); got.String() != "192.0.2.7" {
			t.Errorf("%q: %v", claim, got)
		}
		one := http.Header{"X-Forwarded-For": {claim + ", 192.0.2.7"}, "Forwarded": {claim}}
		if got := s.clientOf(one, peer); got.String() != "192.0.2.7" {
			t.Errorf("%q in one line: %v", claim, got)
		}
	})
}

// FuzzAsk: what has been asked for is found, and gone from the query that is left.
func FuzzAsk(f *testing.F) {
	f.Fuzz(func(t *testing.T, query string) {
		left := withoutAsk(query)
		if ask, _ := askOf(left); ask != askNone {
			t.Errorf("%q leaves %q", query, left)
		}
		if ask, _ := askOf(query); ask == askNone && left != strings.TrimRight(query, "&;") {
			t.Errorf("%q leaves %q", query, left)
		}
	})
}

// FuzzRequest: whatever net/http takes for a request, the gate's answer is never a failure
// of ours, never stored, and nobody gets through who waits.
func FuzzRequest(f *testing.F) {
	room := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}}, JSONResponse: true}.WithDefaults()
	g, _ := roleGateway("127.0.0.1:9", room, line, true)
	inside := false
	h := g.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside = true }))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(bytes))))
		if err != nil {
			return
		}
		if ask, _ := askOf(r.URL.RawQuery); ask == askStream {
			return
		}
		inside = false
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code >= 500 {
			t.Errorf("status %d", rec.Code)
		}
		if inside && !isPreflight(r) {
			t.Error("let in")
		}
		if c := rec.Header().Get("Cache-Control"); !inside && !strings.Contains(c, "no-store") && !strings.HasPrefix(r.URL.Path, wellKnown) {
			t.Errorf("status %d, Cache-Control %q", rec.Code, c)
		}
	})
}

// FuzzQuestion: whatever a proxy is made to say about a visitor's request, the visitor waits while everybody does.
func FuzzQuestion(f *testing.F) {
	room := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}}}.WithDefaults()
	g, _ := roleGateway("127.0.0.1:9", room, line, true)
	f.Fuzz(func(t *testing.T, path, method, host, target, scheme string) {
		q := httptest.NewRequest("GET", "/", nil)
		q.RequestURI, q.Host, q.RemoteAddr = path, host, "127.0.0.1:1"
		for _, prefix := range []string{"X-Original-", "X-Forwarded-"} {
			q.Header[prefix+"Method"], q.Header[prefix+"Host"], q.Header[prefix+"Uri"] = []string{method}, []string{host}, []string{target}
		}
		q.Header["X-Forwarded-Proto"] = []string{scheme}
		rec := httptest.NewRecorder()
		g.ForwardAuth().ServeHTTP(rec, q)
		verdict := rec.Header().Get(verdictHeader)
		if (rec.Code != http.StatusUnauthorized && rec.Code != http.StatusBadRequest) || (verdict != "wait" && verdict != "refuse") {
			t.Errorf("%d %q", rec.Code, verdict)
		}
	})
}
