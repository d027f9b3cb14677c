package server

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
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

// A proxy that hangs and reads nothing more over HTTP/2, with answers under way, holds its connection and what it has asked for no
// longer than some verdictTime: no stream of the connection can end, so it is never idle.
func TestAnswersThatNobodyReads(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	r := startServer(t, "forward_auth: {listen: \"127.0.0.1:00\"}\n"+strings.Replace(oneRoom, "total_active_users: 1", "custom_page_html: \""+strings.Repeat("wait ", 20000)+"\", queue_all: true, total_active_users: 1", 1))
	c, err := net.Dial("tcp", r.s.Addresses().ForwardAuth)
	if err != nil {
		t.Fatal(err)
	}
	unread(t, c, 3*verdictTime, [][2]string{{":method", "GET"}, {":scheme", "http"}, {":path", "/check/envoy/"}, {":authority", "shop.example.com"}, {"accept", "text/html"},
		{"x-forwarded-proto", "http"}, {"x-envoy-external-address", "192.0.2.7"}})
}

// The same at the admin address, where files of the dashboard are for everybody.
func TestFilesOfTheDashboardThatNobodyReads(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	r := prepareServer(t, "")
	writeCertificate(t, r.dir, "ops", 1, "ops.example.com")
	r.write(listenAnywhere + "admin_tls: {cert: ops.pem, key: ops.key}\nrooms: []\n")
	r.start()
	to := &tls.Config{InsecureSkipVerify: true}
	res, err := (&http.Transport{DisableKeepAlives: true, TLSClientConfig: to.Clone()}).RoundTrip(httptest.NewRequest("GET", "https://"+r.s.Addresses().Admin+"/", nil))
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(res.Body)
	res.Body.Close()
	script := regexp.MustCompile(`/assets/dashboard-\w+\.js`).FindString(string(page))
	if err != nil || script == "" {
		t.Fatal(err, res.Status)
	}
	to.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", r.s.Addresses().Admin, to)
	if err != nil {
		t.Fatal(err)
	}
	unread(t, c, 50*time.Second, [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", script}, {":authority", "ops.example.com"}})
}

// unread asks many times over HTTP/2, reads nothing, and expects that the connection ends.
func unread(t *testing.T, c net.Conn, within time.Duration, fields [][2]string) {
	t.Helper()
	defer c.Close()
	frame := func(kind, flags byte, stream uint32, payload []byte) []byte {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
		return append(binary.BigEndian.AppendUint32(append(head, kind, flags), stream), payload...)
	}
	var question []byte // in the plainest HPACK
	for _, h := range fields {
		question = append(append(question, 0, byte(len(h[0]))), h[0]...)
		question = append(append(question, byte(len(h[1]))), h[1]...)
	}
	const settings, ping, windowUpdate, headers = 4, 6, 8, 1
	out := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(settings, 0, 0, []byte{0, 4, 0x7f, 0xff, 0xff, 0xff})...) // as much as there is of each answer
	out = append(out, frame(windowUpdate, 0, 0, []byte{0x7f, 0, 0, 0})...)
	for i := range 200 {
		out = append(out, frame(headers, 5, uint32(2*i+1), question)...)
	}
	if _, err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	asked, over := time.Now(), time.After(within)
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	for {
		select {
		case <-over:
			t.Fatalf("the connection is still there after %v", time.Since(asked))
		case <-tick.C:
		}
		if _, err := c.Write(frame(ping, 0, 0, make([]byte, 8))); err != nil {
			break
		}
	}
	t.Logf("ended after %v", time.Since(asked))
}
