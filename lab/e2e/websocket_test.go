package e2e

import (
	"fmt"
	"io"
	"testing"
	"time"

	"golang.org/x/net/websocket"
)

// opensSocket is a promise of what becomes of a WebSocket: "open" or "refused".
const opensSocket = `new Promise(done => {
	window.socket = new WebSocket(location.origin.replace('http', 'ws') + '/echo')
	socket.onopen = () => done('open')
	socket.onerror = () => done('refused')
	socket.onclose = () => { window.socketClosed = true }
})`

// echoes is a promise of what comes back for a message.
func echoes(message string) string {
	return fmt.Sprintf(`new Promise(done => { socket.onmessage = e => done(e.data); socket.send(%q) })`, message)
}

func TestWebSocketIsForAdmittedVisitorsAndEndsWithTheSession(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	if got := eval[string](b, opensSocket); got != "refused" {
		t.Errorf("the WebSocket of a waiting visitor is %s", got)
	}
	if n := len(g.origin.seen("GET", "/echo")); n != 0 {
		t.Errorf("the origin saw %d WebSockets of a waiting visitor", n)
	}
	inside.leave()
	b.getsIn()
	if got := eval[string](b, opensSocket); got != "open" {
		t.Fatalf("the WebSocket of an admitted visitor is %s", got)
	}
	if got := eval[string](b, echoes("hello ✓")); got != "hello ✓" {
		t.Errorf("came back: %q", got)
	}
	// The session ends elsewhere: another client of the same visitor leaves.
	other := newVisitor(t, g)
	other.hold(b.ticket(g.url("/")).Value)
	other.leave()
	b.becomes(2*time.Second, "window.socketClosed")
	if a := other.get("/"); g.room("shop").Active > 1 {
		t.Errorf("after leaving: %s, %+v", a.Status, g.room("shop"))
	}
}

func TestOpenWebSocketKeepsTheSession(t *testing.T) {
	t.Parallel()
	g := startGate(t, `  - name: shop
    host: "*"
    total_active_users: 1
    new_users_per_minute: 600
    session_duration: 2s
`)
	v := newVisitor(t, g).enter()
	config, err := websocket.NewConfig("ws://"+g.host+"/echo", "http://"+g.host+"/")
	if err != nil {
		t.Fatal(err)
	}
	config.Header.Set("Cookie", ticketCookie+"="+v.ticketValue())
	ws, err := config.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	always(t, 5*time.Second, func() string {
		if r := g.room("shop"); r.Active != 1 {
			return fmt.Sprintf("the session ended under an open WebSocket: %+v", r)
		}
		return ""
	})
	if _, err := io.WriteString(ws, "still here"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 64)
	n, err := ws.Read(got)
	if err != nil || string(got[:n]) != "still here" {
		t.Errorf("came back: %q, %v", got[:n], err)
	}
	ws.Close()
	eventually(t, 10*time.Second, func() string {
		if r := g.room("shop"); r.Active != 0 {
			return fmt.Sprintf("the session outlives its WebSocket: %+v", r)
		}
		return ""
	})
}
