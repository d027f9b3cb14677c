package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
)

// echo is an origin that takes a WebSocket and says back what it hears, unframed.
func echo(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" {
		http.Error(rw, "no upgrade", http.StatusBadRequest)
		return
	}
	c, brw, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	io.Copy(c, brw)
}

// dialWebSocket opens a tunnel and returns it with the answer to its handshake.
func dialWebSocket(t *testing.T, addr, headers string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: shop.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+headers+"\r\n")
	br := bufio.NewReader(c)
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, br, res
}

func isClosed(br *bufio.Reader) bool {
	_, err := br.ReadByte()
	ne, _ := err.(net.Error)
	return err != nil && (ne == nil || !ne.Timeout())
}

func TestTunnel(t *testing.T) {
	w := newWorld(t, admit, withOrigin(echo))
	c, br, res := dialWebSocket(t, w.addr(), "")
	if res.StatusCode != 101 || len(res.Header["Set-Cookie"]) != 1 {
		t.Fatalf("%d %q", res.StatusCode, res.Header)
	}
	io.WriteString(c, "hello\n")
	if line, _ := br.ReadString('\n'); line != "hello\n" {
		t.Errorf("heard %q", line)
	}
	if n := w.gw.Stats().Tunnels; n != 1 {
		t.Errorf("%d tunnels", n)
	}
	close(w.door.ended)
	start := time.Now()
	if !isClosed(br) || time.Since(start) > 2*time.Second {
		t.Error("the tunnel outlives its session")
	}
}

func TestTunnelRenewsItsSession(t *testing.T) {
	w := newWorld(t, admit, withOrigin(echo), withRoom(func(r *anteroom.Room) { r.SessionDuration = time.Second }))
	_, br, _ := dialWebSocket(t, w.addr(), "")
	for range 2 {
		select {
		case <-w.door.touched:
		case <-time.After(900 * time.Millisecond):
			t.Fatal("a session of one second was not renewed in time")
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.gw.Drain(ctx)
	if !isClosed(br) {
		t.Error("the tunnel outlives the process's end")
	}
}

func TestTunnelEndsWithTheOrigin(t *testing.T) {
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		c, _, _ := http.NewResponseController(rw).Hijack()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbye")
		c.Close()
	}))
	_, br, _ := dialWebSocket(t, w.addr(), "")
	if b, err := io.ReadAll(br); string(b) != "bye" || err != nil {
		t.Errorf("heard %q, %v", b, err)
	}
}

func TestTunnelRefusedByTheOrigin(t *testing.T) {
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) { http.Error(rw, "no", http.StatusForbidden) }))
	if _, _, res := dialWebSocket(t, w.addr(), ""); res.StatusCode != 403 {
		t.Errorf("status %d", res.StatusCode)
	}
}

// TestStream: the waiting page's stream says the place, then that it is the visitor's turn.
func TestStream(t *testing.T) {
	w := newWorld(t, line)
	updates := make(chan *anteroom.Decision)
	w.door.watch = func(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
		if !v.Stream || !v.NoHold {
			t.Errorf("visit %+v", v)
		}
		return line(v), updates
	}
	r, _ := http.NewRequest("GET", w.front.URL+"/p?__anteroom=stream", nil)
	r.Host = testHost
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Cache-Control") != "private, no-store, max-age=0" || len(res.Header["Set-Cookie"]) != 1 {
		t.Errorf("%d %q", res.StatusCode, res.Header)
	}
	br := bufio.NewReader(res.Body)
	event := func() (kind, data string) {
		for {
			l, err := br.ReadString('\n')
			switch {
			case err != nil:
				return "end", ""
			case strings.HasPrefix(l, "event: "):
				kind = strings.TrimSpace(l[7:])
			case strings.HasPrefix(l, "data: "):
				data = strings.TrimSpace(l[6:])
			case l == "\n":
				return kind, data
			}
		}
	}
	if kind, data := event(); kind != "place" || !strings.Contains(data, `"ahead":41`) {
		t.Errorf("first: %s %s", kind, data)
	}
	d := line(anteroom.Visit{Ticket: waiting()})
	d.Ahead = 7
	updates <- &d
	if kind, data := event(); kind != "place" || !strings.Contains(data, `"ahead":7`) {
		t.Errorf("second: %s %s", kind, data)
	}
	if n := w.gw.Stats().Streams; n != 1 {
		t.Errorf("%d streams", n)
	}
	turn := admit(anteroom.Visit{Ticket: waiting()})
	updates <- &turn
	if kind, data := event(); kind != "go" || !strings.Contains(data, `"admitted":true`) || strings.Contains(data, `"offer"`) {
		t.Errorf("third: %s %s", kind, data)
	}
	if kind, _ := event(); kind != "end" {
		t.Errorf("after the end: %s", kind)
	}
}

// A turn that is told on a stream has no session yet: a page in the background may count down.
func TestStreamOffersTheTurn(t *testing.T) {
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.TurnCountdown, r.PlaceHold = 5*time.Minute, 90*time.Second }))
	updates := make(chan *anteroom.Decision, 1)
	updates <- &anteroom.Decision{Verdict: anteroom.Admit, Reason: anteroom.ReasonTurn, At: testNow()}
	w.door.watch = func(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
		return line(v), updates
	}
	// Never for so long that the place could expire.
	if res, body := w.do("GET", "/p?__anteroom=stream", nil); res.StatusCode != 200 || !strings.Contains(body, "event: go\ndata: {\"admitted\":true") || !strings.Contains(body, `"offer":45`) || strings.Count(body, "offer") != 1 {
		t.Errorf("%s %s", res.Status, body)
	}
}

// A script does not see comments, and a client that reads every message as JSON must not meet anything else.
func TestStreamBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rm := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}}, Settings: anteroom.Settings{QueueAll: true, TotalActiveUsers: 1, NewUsersPerMinute: 600}}.WithDefaults()
		_, h := bubbleGateway(t, rm, http.NotFoundHandler())
		bob := &customer{t: t, shop: h}
		bob.ask("/")
		ctx, stop := context.WithTimeout(t.Context(), 40*time.Second)
		defer stop()
		r := httptest.NewRequestWithContext(ctx, "GET", "/?__anteroom=stream", nil)
		r.Header.Set("Cookie", bob.cookie)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if body := rec.Body.String(); strings.Count(body, "event: beat\ndata: {}\n\n") != 2 || strings.Contains(body, ":\n\n") {
			t.Errorf("within 40 s the stream said %q", body)
		}
	})
}

func TestStreamEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		watch func(v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision)
		drain bool
		want  int
		body  string
	}{
		{"none to be had", func(v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) { return line(v), nil }, false, 204, ""},
		{"already admitted", func(v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) { return admit(v), nil }, false, 200, "event: go\n"},
		{"the room goes away", func(v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
			ch := make(chan *anteroom.Decision)
			close(ch)
			return line(v), ch
		}, false, 200, "\n\nretry: "},
		{"the room ends it later than the last event had to be written", func(v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
			ch := make(chan *anteroom.Decision)
			time.AfterFunc(300*time.Millisecond, func() { close(ch) })
			return line(v), ch
		}, false, 200, "\n\nretry: "},
		{"the process ends", func(v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
			return line(v), make(chan *anteroom.Decision)
		}, true, 200, "\n\nretry: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, line, withConfig(func(c *Config) { c.Timeouts.Page = 100 * time.Millisecond }))
			w.door.watch = func(_ context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
				if c.drain {
					go w.gw.Drain(context.Background())
				}
				return c.watch(v)
			}
			res, body := w.do("GET", "/?__anteroom=stream", nil)
			if res.StatusCode != c.want || !strings.Contains(body, c.body) {
				t.Errorf("%d %q", res.StatusCode, body)
			}
			if c.drain {
				if res, _ := w.do("GET", "/?__anteroom=stream", nil); res.StatusCode != 204 {
					t.Errorf("while draining: %d", res.StatusCode)
				}
			}
		})
	}
}
