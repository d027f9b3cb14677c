package gateway

import (
	"context"
	"net/http"
	"testing"

	"github.com/anteroom/anteroom"
)

// knownSession finds one session, in "Authorization: token".
func knownSession(t anteroom.Ticket) option {
	return func(w *world, c *Config) {
		c.Sessions = map[anteroom.RoomID]FindSession{w.room.WithDefaults().ID: func(_ context.Context, authorization string) (anteroom.Ticket, bool) {
			return t, authorization == "token"
		}}
	}
}

// A room whose sessions are in a header asks its door about those alone, and never for a place or a seat. It sets no cookie and
// takes none for a session.
func TestSessionsInAHeader(t *testing.T) {
	known := session()
	w := newWorld(t, admit, knownSession(known))
	res, body := w.do("GET", "/cart", header("Authorization", "token"))
	if res.StatusCode != http.StatusOK || body != "origin" || res.Header["Set-Cookie"] != nil {
		t.Fatalf("%s %q %v", res.Status, body, res.Header)
	}
	if v := w.door.seen(); len(v) != 1 || v[0].Ticket.ID != known.ID || !v[0].NoClaim || !v[0].NoJoin || !v[0].NoHold || v[0].Fresh {
		t.Errorf("the door was asked %+v", v)
	}
	if got := w.origin.last(t).Header.Get("Authorization"); got != "token" {
		t.Errorf("the origin sees %q", got)
	}
	for name, c := range map[string]struct {
		method, target string
		header         []string
	}{
		"nothing":                   {"GET", "/", nil},
		"another token":             {"GET", "/", []string{"Authorization", "other"}},
		"two":                       {"GET", "/", []string{"Authorization", "token", "Authorization", "token"}},
		"a ticket of the room":      {"GET", "/", []string{"Cookie", w.seal(known)}},
		"a request of the page":     {"GET", "/?" + reservedParam + "=status", nil},
		"a stream of the page":      {"GET", "/?" + reservedParam + "=stream", nil},
		"a WebSocket":               {"GET", "/", []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}},
		"another spelling":          {"GET", "//cart/..%2f", nil},
		"a request with a body":     {"POST", "/", []string{"Content-Type", "application/json"}},
		"a preflight of no browser": {"OPTIONS", "/", nil},
	} {
		res, body := w.do(c.method, c.target, header(c.header...))
		if res.StatusCode != http.StatusUnauthorized || body != `{"message":"Unauthorized"}` || res.Header["Set-Cookie"] != nil || res.Header.Get("Cache-Control") != valueNoStore[0] {
			t.Errorf("%s: %s %q %v", name, res.Status, body, res.Header)
		}
	}
	if n := len(w.door.seen()); n != 1 {
		t.Errorf("the door was asked %d times", n)
	}
	if n := len(w.origin.requests()); n != 1 {
		t.Errorf("the origin saw %d requests", n)
	}
	if res, _ := w.do("OPTIONS", "/", header("Origin", "https://other.example", "Access-Control-Request-Method", "POST")); res.StatusCode != http.StatusOK {
		t.Errorf("a preflight: %s", res.Status)
	}
	// The door has the last word.
	w.door.program(func(v anteroom.Visit) anteroom.Decision {
		return anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonNotJoining, At: testNow()}
	})
	if res, _ := w.do("GET", "/", header("Authorization", "token")); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session that is over: %s", res.Status)
	}
	w.door.in.Suspended = true // nobody is asked for anything then
	if res, _ := w.do("GET", "/", header("Authorization", "other")); res.StatusCode != http.StatusOK {
		t.Errorf("a room that is off: %s", res.Status)
	}
}

// A proxy that asks gets the same verdicts.
func TestSessionsInAHeaderOfAQuestion(t *testing.T) {
	w := newWorld(t, admit, knownSession(session()))
	for token, verdict := range map[string]string{"token": "admit", "other": "refuse"} {
		says(t, w.asks(question("nginx", "GET", testHost, "/", "Authorization", token)), verdict)
	}
}
