package server

import (
	"net/http"
	"strings"
	"testing"
)

// asks is a question of nginx about a visitor's request.
func (r *running) asks(path string) answer {
	r.t.Helper()
	req, err := http.NewRequest("GET", "http://"+r.s.Addresses().ForwardAuth+path, nil)
	if err == nil {
		req.Host = "shop.example.com"
		for _, h := range []string{"X-Original-Method: GET", "X-Original-Host: shop.example.com", "X-Original-Uri: /", "X-Forwarded-Proto: http", "X-Forwarded-For: 192.0.2.7"} {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}
	}
	return r.do(req, err)
}

// The listener for proxies gives verdicts and serves nobody else: no page of the site, no health, no admin address. Who may
// ask can change while it runs.
func TestForwardAuthListener(t *testing.T) {
	t.Parallel()
	const on = "forward_auth: {listen: \"127.0.0.1:00\"}\n" // an address of its own, with any port
	r := startServer(t, on+oneRoom)
	if a := r.asks("/check/nginx"); a.StatusCode != http.StatusOK || a.Header.Get("X-Anteroom-Verdict") != "admit" || a.Header.Get("X-Anteroom-Assertion") == "" {
		t.Errorf("a free seat: %s %q", a.Status, a.Header)
	}
	if a := r.asks("/check/nginx"); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("no seat: %s %q", a.Status, a.Header)
	}
	for _, path := range []string{"/", healthPath, "/metrics", "/-/ready"} {
		if a := r.asks(path); a.StatusCode != http.StatusBadRequest || a.isIn() {
			t.Errorf("%s: %s", path, a.Status)
		}
	}
	if a := r.visit("/check/nginx"); a.Header.Get("X-Anteroom-Verdict") != "" {
		t.Error("visitors may ask for verdicts")
	}
	mark := r.log.mark()
	r.write(listenAnywhere + "forward_auth: {listen: \"127.0.0.1:00\", peers: 10.0.0.3}\n" + oneRoom)
	r.log.await(t, mark, "reloaded")
	if a := r.asks("/check/nginx"); a.StatusCode != http.StatusForbidden {
		t.Errorf("of a proxy that may not ask: %s", a.Status)
	}
	r.log.await(t, mark, "peer=127.0.0.1")
	mark = r.log.mark()
	r.write(listenAnywhere + oneRoom)
	if line := r.log.await(t, mark, "restart"); !strings.Contains(line, "listen") {
		t.Errorf("without the listener: %s", line)
	}
}
