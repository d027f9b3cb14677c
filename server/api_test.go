package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// envelope is what every answer of the API is.
type envelope struct {
	Success bool
	Errors  []struct {
		Code    int
		Message string
	}
	Result any
}

// exchange sends text as it is and returns the status with the envelope of the answer.
func exchange(t *testing.T, address, text string) (int, envelope) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	defer res.Body.Close()
	var e envelope
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil || res.Header.Get("Content-Type") != "application/json" || e.Success != (len(e.Errors) == 0) {
		t.Errorf("%q: %d is not the envelope: %v", text, res.StatusCode, err)
	}
	return res.StatusCode, e
}

// TestTheAPIAnswersTheEnvelopeOverTheWire: whatever spelling of a path, host, origin or token
// comes, a client of the published API can read the answer, and only the right one gets in.
func TestTheAPIAnswersTheEnvelopeOverTheWire(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	token := r.s.FirstToken()
	zone, room := r.makeRoom("127.0.0.1", localRoom("/sale"))
	path := fmt.Sprintf("/client/v4/zones/%s/waiting_rooms/%s", zone, room.ID)
	for _, c := range []struct {
		name, line string
		headers    string
		status     int
		code       int
	}{
		{"as published", "GET " + path, "", 200, 0},
		{"the token is in force", "GET /client/v4/user/tokens/verify", "", 200, 0},
		{"without a token", "GET " + path, "Authorization:\r\n", 401, 10000},
		{"another token", "GET " + path, "Authorization: Bearer " + token + "x\r\n", 403, 10000},
		{"dot segments", "GET /client/v4/zones/x/../" + string(zone) + "/waiting_rooms", "", 404, 7000},
		{"a trailing slash", "GET " + path + "/", "", 404, 7000},
		{"two slashes", "GET " + strings.Replace(path, "/waiting", "//waiting", 1), "", 404, 7000},
		{"an escaped slash", "GET " + strings.Replace(path, "/waiting", "%2fwaiting", 1), "", 404, 7000},
		{"a zone in capitals", "GET /client/v4/zones/" + strings.ToUpper(string(zone)), "", 404, 7003},
		{"the prefix alone", "GET /client/v4", "", 404, 7000},
		{"the prefix with a slash", "GET /client/v4/", "", 404, 7000},
		{"a method that is none", "BREW " + path, "", 405, 10405},
		{"another host", "GET " + path, "Host: attacker.example\r\n", 421, 6003},
		{"a page of another origin", "DELETE " + path, "Origin: https://attacker.example\r\n", 403, 6003},
		{"a cookie for a token", "GET " + path, "Authorization:\r\nCookie: token=" + token + "\r\n", 401, 10000},
	} {
		text := c.line + " HTTP/1.1\r\nConnection: close\r\n" + c.headers
		if !strings.Contains(c.headers, "Host:") {
			text += "Host: localhost\r\n"
		}
		if !strings.Contains(c.headers, "Authorization:") {
			text += "Authorization: Bearer " + token + "\r\n"
		}
		status, e := exchange(t, r.s.Addresses().Admin, text+"\r\n")
		if status != c.status || c.code != 0 && (len(e.Errors) != 1 || e.Errors[0].Code != c.code) {
			t.Errorf("%s: %d %+v, want %d with %d", c.name, status, e.Errors, c.status, c.code)
		}
	}
	if a := r.visit("/client/v4/user/tokens/verify"); !a.isIn() {
		t.Errorf("visitors reach %d %q, want the origin", a.StatusCode, a.body)
	}
}

// TestBodiesThatNeverEnd: who sends a body too slowly, or one that is too large, gets the
// envelope and no more of our time.
func TestBodiesThatNeverEnd(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	serves := func(srv *http.Server) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go srv.Serve(l)
		t.Cleanup(func() { srv.Close() })
		return l.Addr().String()
	}
	usual, hasty := r.s.adminServer(), r.s.adminServer()
	hasty.ReadTimeout = 300 * time.Millisecond
	at, hastily := serves(usual), serves(hasty)
	head := "POST /client/v4/zones HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + r.s.FirstToken() + "\r\n"
	for _, c := range []struct {
		name, at, text string
		status         int
	}{
		{"slow", hastily, head + "Content-Length: 100\r\n\r\n{\"name\":", 400},
		{"slow in chunks", hastily, head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{\"\r\n", 400},
		{"large", at, head + "Content-Length: 4000000\r\n\r\n" + strings.Repeat(" ", 2_200_000), 413},
	} {
		if status, e := exchange(t, c.at, c.text); status != c.status || e.Errors[0].Code != 1002 {
			t.Errorf("%s: %d %+v", c.name, status, e.Errors)
		}
	}
}
