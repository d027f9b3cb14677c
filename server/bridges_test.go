package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

const bridged = `
aws:
  - {event_id: Sample, room: shop, url: "http://127.0.0.1/aws/sample"}
rooms:
  - {name: shop, host: "*", path: /shop, total_active_users: 1, new_users_per_minute: 100, session_duration: 1h}
`

// bridge sends a request to the public API of the bridge.
func (r *running) bridge(method, path, body string) answer {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.s.Addresses().Visitors[0]+"/aws/sample"+path, strings.NewReader(body))
	return r.do(req, err)
}

func (a answer) member(name string) string {
	var all map[string]any
	json.Unmarshal([]byte(a.body), &all)
	s, _ := all[name].(string)
	return s
}

// claim asks for the tokens of a request id until the room admits it.
func (r *running) claim(id string) answer {
	r.t.Helper()
	for {
		if a := r.bridge("POST", "/generate_token", `{"event_id":"Sample","request_id":"`+id+`"}`); a.StatusCode != http.StatusAccepted {
			return a
		}
	}
}

// A bridge is served beside the gateway, which lets nobody but its visitors into the room; the private API is at the admin
// address. Changes of the section need a restart.
func TestBridge(t *testing.T) {
	t.Parallel()
	r := startServer(t, bridged)
	id := r.bridge("POST", "/assign_queue_num", `{"event_id":"Sample"}`).member("api_request_id")
	token := r.claim(id).member("access_token")
	if token == "" {
		t.Fatal("no token")
	}
	if a := r.visitWith("/shop/checkout", "Authorization", token); !a.isIn() || a.Header.Get("Set-Cookie") != "" {
		t.Errorf("with the token: %s %v", a.Status, a.Header)
	}
	if a := r.visit("/elsewhere"); !a.isIn() {
		t.Errorf("outside the room: %s", a.Status)
	}
	for name, header := range map[string][]string{"no token": nil, "a request id": {"Authorization", id}, "changed": {"Authorization", token[:len(token)-8] + "AAAAAAAA"},
		"two": {"Authorization", token, "Authorization", token}, "a cookie of the room": {"Cookie", "__cfwaitingroom=" + token}} {
		a := r.visitWith("/shop/checkout", header...)
		if a.StatusCode != http.StatusUnauthorized || a.body != `{"message":"Unauthorized"}` || a.Header.Get("Set-Cookie") != "" || a.Header.Get("Cache-Control") == "" {
			t.Errorf("%s: %s %s %v", name, a.Status, a.body, a.Header)
		}
	}
	admin := func(path, body string) answer {
		return r.operate("POST", "/aws/"+path, body, "Authorization", "Bearer "+r.s.FirstToken())
	}
	if a := admin("Other/increment_serving_counter", `{"event_id":"Other","increment_by":1}`); a.StatusCode != http.StatusForbidden {
		t.Errorf("an event without a bridge: %s", a.Status)
	}
	if a := r.bridge("POST", "/update_session", `{"event_id":"Sample","request_id":"`+id+`","status":1}`); a.StatusCode != http.StatusForbidden {
		t.Errorf("the private API at the visitors' address: %s", a.Status)
	}
	if a := admin("Sample/update_session", `{"event_id":"Sample","request_id":"`+id+`","status":1}`); a.StatusCode != http.StatusOK {
		t.Errorf("update_session: %s %s", a.Status, a.body)
	}
	if a := r.visitWith("/shop/checkout", "Authorization", token); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the session: %s", a.Status)
	}
	// The room may change while the bridge runs, and the bridge with a restart.
	r.mustReload(strings.Replace(bridged, "session_duration: 1h", "session_duration: 2h", 1))
	next := r.bridge("POST", "/assign_queue_num", `{"event_id":"Sample"}`).member("api_request_id")
	if a := r.claim(next); !strings.Contains(a.body, `"expires_in": 7`) {
		t.Errorf("after a reload: %s %s", a.Status, a.body)
	}
	mark := r.log.mark()
	r.mustReload(strings.Replace(bridged, "room: shop", "room: shop, inlet: custom", 1))
	if line := r.log.await(t, mark, "restart"); !strings.Contains(line, "aws") {
		t.Error(line)
	}
	if a := r.bridge("GET", "/serving_num?event_id=Sample", ""); !strings.Contains(a.body, "serving_counter") {
		t.Errorf("until the restart: %s %s", a.Status, a.body)
	}
	if a := r.visit("/shop/checkout"); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("until the restart: %s", a.Status)
	}
}

// Joins are bounded by the address of the client, which a trusted proxy names.
func TestJoinsOfABridgeAreBounded(t *testing.T) {
	t.Parallel()
	r := startServer(t, "trusted_proxies: [127.0.0.1]\n"+bridged)
	join := func(client string) int {
		req, err := http.NewRequest("POST", "http://"+r.s.Addresses().Visitors[0]+"/aws/sample/assign_queue_num", strings.NewReader(`{"event_id":"Sample"}`))
		req.Header.Set("X-Forwarded-For", client)
		return r.do(req, err).StatusCode
	}
	var all sync.WaitGroup
	var tooMany atomic.Bool
	for range 20 { // which share the writes of the numbers
		all.Go(func() {
			for range 100 {
				if !tooMany.Load() && join("198.51.100.1") == http.StatusTooManyRequests {
					tooMany.Store(true)
				}
			}
		})
	}
	all.Wait()
	if !tooMany.Load() {
		t.Error("an address joins as often as it likes")
	}
	if status := join("203.0.113.1"); status != http.StatusOK {
		t.Errorf("another address: %d", status)
	}
}

// A body that does not arrive is given up, and until then its request is in flight.
func TestSlowBodiesToABridge(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	r := startServer(t, "limits: {requests_in_flight: 1}\n"+bridged)
	c, err := net.Dial("tcp", r.s.Addresses().Visitors[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, "POST /aws/sample/assign_queue_num HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
	eventually(t, "the request is not in flight", func() bool { return r.s.gateway.Stats().InFlight == 1 })
	if a := r.visit("/"); a.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("beside it: %s", a.Status)
	}
	if all, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 400 ") {
		t.Errorf("%s %v", all, err)
	}
}

// deadlined is a response writer that remembers whether it has a write deadline.
type deadlined struct {
	httptest.ResponseRecorder
	bounded bool
}

func (d *deadlined) SetWriteDeadline(by time.Time) error {
	d.bounded = time.Until(by) > time.Second && time.Until(by) < time.Minute
	return nil
}

// Visitors have to take every answer that is not the gateway's, as they have to take the gateway's.
func TestShortAnswersHaveAWriteDeadline(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	mustWrite(t, secret, "sample-secret-0123456789abcdef\n")
	r := startServer(t, fmt.Sprintf(`
aws:
  - {event_id: Sample, room: shop, url: "http://127.0.0.1/aws/sample"}
queue_it:
  - {customer_id: acme, event_id: launch1, room: sale, url: "http://wait.example.com", secret_file: %q}
rooms:
  - {name: shop, host: "*", path: /shop, total_active_users: 1, new_users_per_minute: 100}
  - {name: sale, host: shop.example.com, path: /checkout, total_active_users: 1, new_users_per_minute: 100, suspended: true}
`, secret))
	h := r.s.visitorServer(r.s.Config()).Handler
	for address, status := range map[string]int{
		"http://127.0.0.1" + healthPath:                                                      http.StatusOK,
		"http://127.0.0.1/aws/sample/serving_num?event_id=Sample":                            http.StatusOK,
		"http://127.0.0.1/aws/sample/nothing":                                                http.StatusForbidden,
		"http://wait.example.com/nothing":                                                    http.StatusNotFound,
		"http://wait.example.com/status/integrationconfig/acme":                              http.StatusOK,
		"http://wait.example.com/launch1?t=https%3A%2F%2Felsewhere.example.com":              http.StatusBadRequest,
		"http://wait.example.com/launch1?t=https%3A%2F%2Fshop.example.com%2Fcheckout%2Fcart": http.StatusFound,
	} {
		w := &deadlined{ResponseRecorder: *httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequest("GET", address, nil))
		if w.Code != status || !w.bounded {
			t.Errorf("%s: %d %v, with a deadline: %v", address, w.Code, w.Header(), w.bounded)
		}
	}
}

// Without bridges there is nothing of them.
func TestNoBridge(t *testing.T) {
	t.Parallel()
	r := startServer(t, oneRoom)
	if a := r.bridge("GET", "/serving_num?event_id=Sample", ""); !a.isIn() {
		t.Errorf("%s %s", a.Status, a.body)
	}
	if a := r.operate("POST", "/aws/Sample/reset_initial_state", `{"event_id":"Sample"}`); strings.Contains(a.body, "Missing Authentication Token") {
		t.Errorf("%s %s", a.Status, a.body)
	}
}

// A room for connectors is at the queue's host, and nowhere else. Its sessions are the connectors' to end. Changes of the section
// need a restart, those of the room do not.
func TestQueueIt(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("sample-secret-0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := fmt.Sprintf(`
queue_it:
  - {customer_id: acme, event_id: launch1, room: shop, url: "http://wait.example.com", secret_file: %q, redeem: 30s}
rooms:
  - {name: shop, host: shop.example.com, path: /checkout, total_active_users: 1, new_users_per_minute: 100, session_duration: 1h}
`, secret)
	r := startServer(t, yaml)
	jar := map[string]string{}
	get := func(host, path string) answer {
		t.Helper()
		req, err := http.NewRequest("GET", "http://"+r.s.Addresses().Visitors[0]+path, nil)
		req.Host = host
		for name, value := range jar {
			req.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		a := r.do(req, err)
		for _, c := range (&http.Response{Header: a.Header}).Cookies() {
			jar[c.Name] = c.Value
		}
		return a
	}
	enter := func() string {
		t.Helper()
		at := "/?c=acme&e=launch1&ver=javascript-5.0.1&cver=1&man=shop&t=https%3A%2F%2Fshop.example.com%2Fcheckout"
		for range 5 {
			a := get("wait.example.com", at)
			if at = a.Header.Get("Location"); !strings.HasPrefix(at, "/") {
				break
			}
		}
		return at
	}
	if to := enter(); !strings.HasPrefix(to, "https://shop.example.com/checkout?queueittoken=e_launch1~q_") || !strings.Contains(to, "~ce_false~cv_60~rt_safetynet~h_") {
		t.Fatal(to)
	}
	if a := get("shop.example.com", "/checkout"); a.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("the connector's pages: %s", a.Status)
	}
	if a := get("wait.example.com", "/elsewhere"); a.StatusCode != http.StatusNotFound {
		t.Errorf("elsewhere at the queue's host: %s %s", a.Status, a.body)
	}
	if a := get("wait.example.com", "/status/integrationconfig/acme"); !strings.Contains(a.body, `"QueueDomain":"wait.example.com"`) {
		t.Errorf("%s %s", a.Status, a.body)
	}
	for room := range r.s.manage.State().Rooms() {
		if _, err := (doors{r.s}).Revoke(t.Context(), room.ID, anteroom.ID{1}); anteroom.KindOf(err) != anteroom.Conflict {
			t.Errorf("revoked: %v", err)
		}
	}
	r.mustReload(strings.Replace(yaml, "session_duration: 1h", "session_duration: 2h", 1))
	if to := enter(); !strings.Contains(to, "~cv_120~") {
		t.Errorf("after a reload: %s", to)
	}
	mark := r.log.mark()
	r.mustReload(strings.Replace(yaml, "redeem: 30s", "redeem: 40s", 1))
	if line := r.log.await(t, mark, "restart"); !strings.Contains(line, "queue_it") {
		t.Error(line)
	}
}

// A room takes over from Fastly's Compute starter: its first visitor is ahead of the one who came here earlier.
func TestFastlyVisitorsKeepTheirOrder(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("sample-jwt-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := fmt.Sprintf(`
rooms:
  - {name: shop, host: shop.example.com, total_active_users: 1, new_users_per_minute: 1, queue_all: true}
fastly:
  - {room: shop, starter: compute, secret_file: %q, since: %s, length: 100}
`, secret, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
	r := startServer(t, yaml)
	arrival := func(cookie string) string {
		t.Helper()
		req, err := http.NewRequest("GET", "http://"+r.s.Addresses().Visitors[0]+"/?__anteroom=status", nil)
		req.Host = "shop.example.com"
		if cookie != "" {
			req.Header.Set("Cookie", cookie)
		}
		_, rest, _ := strings.Cut(r.do(req, err).body, `"ref":"`)
		ref, _, _ := strings.Cut(rest, `"`)
		return ref
	}
	// The published cookie of position 42.
	const cookie = "queue=eyJhbGciOiJIUzI1NiJ9.eyJwb3NpdGlvbiI6NDIsImV4cGlyeSI6IjIxMDAtMDEtMDFUMDA6MDA6MDAuMDAwWiJ9.3hMz2_DD3NR_LUKKyUfRSRJnVWiSQrxrQKcZTYxLc-0"
	first, again, other := arrival(cookie), arrival(cookie), arrival("")
	if first == "" || first != again || first == other {
		t.Errorf("the cookie's visitor is %q and %q, another is %q", first, again, other)
	}
	if forged := arrival(cookie + "A"); forged == first {
		t.Error("a forged cookie is read")
	}
}
