package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// shown is a log that a test can read while it is written.
type shown struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *shown) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSuffix(s.buf.String(), "\n"), "\n")
}

func TestAccessLog(t *testing.T) {
	var out shown
	w := newWorld(t, admit, withConfig(func(c *Config) { c.Log = slog.New(slog.NewJSONHandler(&out, nil)) }), withProof(t))
	w.do("GET", "/a?secret=1", nil)
	cookie := w.seal(session())
	for range 150 {
		w.do("GET", "/p", header("Cookie", cookie))
	}
	lines := out.lines()
	if len(lines) != 3 {
		t.Errorf("%d lines for one new session and 150 requests of another", len(lines))
	}
	for _, want := range []string{`"verdict":"admit"`, `"reason":"free_slot"`, `"path":"/a"`, `"room":"shop"`, `"client":"127.0.0.1"`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%s without %s", lines[0], want)
		}
	}
	_, value, _ := strings.Cut(cookie, "=")
	proof := w.origin.last(t).Header.Get("X-Anteroom-Assertion")
	for _, l := range lines {
		if strings.Contains(l, "secret") || strings.Contains(l, value) || strings.Contains(l, proof) || strings.Contains(l, "__cf") {
			t.Errorf("a line tells too much: %s", l)
		}
	}
}

// TestLogCannotBeForged: whatever a client sends, a decision is one line of ASCII, and as JSON
// it has the members that it always has.
func TestLogCannotBeForged(t *testing.T) {
	const end = " HTTP/1.1\nHost: shop.example.com\nConnection: close\n\n"
	requests := []string{
		"GET /\"},{\"level\":\"ERROR\",\"msg\":\"x" + end,
		"GET /%0d%0a{\"msg\":\"forged\"}" + end,
		"GET /a\tb" + end,
		"GET /\u202egnp.exe" + end,
		"GET /%E2%80%AEgnp.exe" + end,
		"GET /\xff\xfe" + end,
		"GET /\x1b[31mred" + end,
		"GET /" + strings.Repeat("%41", 2000) + end,
		"GET /?forged=\u2028\nx" + end,
		"GET / HTTP/1.1\nHost: shop.example.com:80\nUser-Agent: a\u2028b\nConnection: close\n\n",
		"GET / HTTP/1.1\nHost: \u202eshop.example.com\nConnection: close\n\n",
		"POST /' AND 1=1 --" + end,
	}
	for format, handler := range map[string]func(io.Writer) slog.Handler{
		"json": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
	} {
		var out shown
		w := newWorld(t, line, withConfig(func(c *Config) { c.Log = slog.New(handler(&out)) }))
		for _, bytes := range requests {
			raw(t, w.addr(), bytes)
		}
		lines := out.lines()
		if n := len(w.door.seen()); len(lines) != n || n < 5 {
			t.Errorf("%s: %d lines for %d decisions", format, len(lines), n)
		}
		for _, l := range lines {
			if strings.ContainsFunc(l, func(c rune) bool { return c < ' ' || c > '~' }) || len(l) > 1000 {
				t.Errorf("%s: %q", format, l)
			}
			if format != "json" {
				continue
			}
			var m map[string]string
			if err := json.Unmarshal([]byte(l), &m); err != nil || len(m) != 12 || m["msg"] != "decision" || m["level"] != "INFO" {
				t.Errorf("%v, %d members: %s", err, len(m), l)
			}
		}
	}
}

func TestAccessLogIsBounded(t *testing.T) {
	var b logBound
	n := 0
	for range 3 * linesPerSecond {
		if b.allow(5e6) {
			n++
		}
	}
	if n != linesPerSecond || !b.allow(6e6) {
		t.Errorf("%d lines in a second, and the next", n)
	}
}

func TestStats(t *testing.T) {
	w := newWorld(t, line)
	w.do("GET", "/", nil)
	w.do("TRACE", "/", nil)
	w.do("GET", "/", header("Cookie", "__cfwaitingroom=x"))
	w.do("GET", "/", func(r *http.Request) { r.Host = "open.example.com"; r.Header.Set("Forwarded", "for=x") })
	s := w.gw.Stats()
	if s.Requests != 4 || s.Gate.Count != 2 || s.Uncovered != 1 || s.ForeignHops != 1 || w.recorded().TicketRefusals["malformed"] != 1 {
		t.Errorf("%+v", s)
	}
	refused := 0
	for i, n := range s.Refused {
		if n > 0 && RefusedStatus(i) == 405 {
			refused++
		}
	}
	if refused != 1 || s.Gate.Count != 2 || s.Origin.Count != 1 || s.Gate.Sum <= 0 {
		t.Errorf("%+v", s)
	}
}
