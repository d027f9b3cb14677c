package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// byCookie admits whoever carries a ticket and lets all others wait.
func byCookie(v anteroom.Visit) anteroom.Decision {
	d := anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonLine, Ticket: v.Ticket, At: testNow(), Refresh: 20 * time.Second}
	if !v.Fresh {
		d.Verdict, d.Reason = anteroom.Admit, anteroom.ReasonSession
	}
	return d
}

// TestIdleConnectionsOfThoseWhoWaitCloseEarlier asks on two connections; when the one that
// was shown the waiting page has been closed, the other must still serve.
func TestIdleConnectionsOfThoseWhoWaitCloseEarlier(t *testing.T) {
	w := newWorld(t, byCookie, withConfig(func(c *Config) { c.Timeouts.IdleWaiting = 50 * time.Millisecond }))
	type client struct {
		net.Conn
		in *bufio.Reader
	}
	dial := func() client {
		c, err := net.Dial("tcp", w.addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(10 * time.Second))
		return client{c, bufio.NewReader(c)}
	}
	get := func(c client, cookie string) error {
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+testHost+"\r\nCookie: "+cookie+"\r\n\r\n")
		res, err := http.ReadResponse(c.in, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		return err
	}
	inside, outside := dial(), dial()
	if err := get(inside, w.seal(session())); err != nil {
		t.Fatal(err)
	}
	if err := get(outside, "other=1"); err != nil {
		t.Fatal(err)
	}
	if _, err := outside.in.ReadByte(); err != io.EOF {
		t.Errorf("the connection of the waiting visitor: %v, want it closed", err)
	}
	if err := get(inside, w.seal(session())); err != nil {
		t.Errorf("the connection of the session: %v", err)
	}
}

func TestIdleHTTP2ConnectionOfWhoWaitsIsClosed(t *testing.T) {
	w := newWorld(t, byCookie, withConfig(func(c *Config) { c.Timeouts.IdleWaiting = 50 * time.Millisecond }))
	front := httptest.NewUnstartedServer(w.gw)
	srv := w.gw.Server(nil)
	closed := make(chan struct{}, 1)
	inner := srv.ConnState
	srv.ConnState = func(c net.Conn, s http.ConnState) {
		inner(c, s)
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	front.EnableHTTP2 = true
	start(front, srv, true)
	defer front.Close()
	r, _ := http.NewRequest("GET", front.URL+"/", nil)
	r.Host = testHost
	res, err := front.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.ProtoMajor != 2 {
		t.Fatalf("spoke %s", res.Proto)
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("still open after ten seconds")
	}
}

// deadlined is a response writer that remembers its write deadline.
type deadlined struct {
	httptest.ResponseRecorder
	at time.Time
}

func (d *deadlined) SetWriteDeadline(at time.Time) error { d.at = at; return nil }

func TestWaitingPageHasItsOwnWriteTime(t *testing.T) {
	w := newWorld(t, byCookie, withConfig(func(c *Config) { c.Timeouts.Page = 3 * time.Minute }))
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = testHost
	out := &deadlined{ResponseRecorder: *httptest.NewRecorder()}
	w.gw.ServeHTTP(out, r)
	if left := time.Until(out.at); left < 2*time.Minute || left > 3*time.Minute {
		t.Errorf("the page may take %v, want 3m", left)
	}
}
