package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/ticket"
)

func inShadow(rm *anteroom.Room) { rm.Shadow = true }

// Whatever a room in shadow mode decides, the visitor sees the shop, without a delay, and never with a proof that nobody gave.
func TestShadowShowsNobodyThePage(t *testing.T) {
	reject := func(anteroom.Visit) anteroom.Decision {
		return anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonReject, At: testNow()}
	}
	for _, c := range []struct {
		name, method string
		decide       func(anteroom.Visit) anteroom.Decision
		edit         func(*http.Request)
		cookie       bool
	}{
		{"newcomer", "GET", line, nil, true},
		{"form", "POST", line, nil, true},
		{"part of a page", "GET", line, header("Sec-Fetch-Dest", "image", "Sec-Fetch-Mode", "no-cors"), false},
		{"script", "GET", line, header("Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "cors"), false},
		{"rejected", "GET", reject, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.decide, withProof(t), withRoom(inShadow))
			res, body := w.do(c.method, "/cart", c.edit)
			if res.StatusCode != 200 || body != "origin" {
				t.Fatalf("%d %.60q", res.StatusCode, body)
			}
			if got := len(res.Header["Set-Cookie"]) > 0; got != c.cookie {
				t.Errorf("a cookie: %v, want %v", got, c.cookie)
			}
			if p := w.origin.last(t).Header["X-Anteroom-Assertion"]; p != nil {
				t.Errorf("the origin sees the proof %q", p)
			}
			if v := w.door.seen(); len(v) != 1 || !v[0].NoHold {
				t.Errorf("the room saw %+v", v)
			}
			s, total := w.gw.Stats(), w.recorded()
			if total.Bypassed != [3]int64{analytics.InShadow: 1} || s.Gate.Count != 1 {
				t.Errorf("counted: bypassed %v, decisions %d", total.Bypassed, s.Gate.Count)
			}
		})
	}
}

// A room whose sessions are in a header lets requests without one pass.
func TestShadowNeedsNoSession(t *testing.T) {
	w := newWorld(t, admit, knownSession(session()), withRoom(inShadow))
	if res, body := w.do("GET", "/cart", nil); res.StatusCode != 200 || body != "origin" || res.Header["Set-Cookie"] != nil {
		t.Errorf("%d %q", res.StatusCode, body)
	}
	if n := w.recorded().Bypassed[analytics.InShadow]; n != 1 || len(w.door.seen()) != 0 {
		t.Errorf("%d bypassed, the room saw %+v", n, w.door.seen())
	}
}

// A page from before the mode goes on to the shop.
func TestShadowEndsThePage(t *testing.T) {
	w := newWorld(t, line, withRoom(inShadow))
	with := header("Cookie", w.seal(waiting()))
	if res, body := w.do("GET", "/?__anteroom=status.41", with); res.StatusCode != 200 || !strings.Contains(body, `"admitted":true`) {
		t.Errorf("status: %d %s", res.StatusCode, body)
	}
	if res, _ := w.do("GET", "/?__anteroom=stream", with); res.StatusCode != 204 {
		t.Errorf("stream: %d", res.StatusCode)
	}
	if len(w.door.seen()) != 0 {
		t.Error("the room was asked")
	}
}

// A stream that is open when the mode begins says so within a heartbeat.
func TestShadowEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rm := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}}, Settings: anteroom.Settings{QueueAll: true, TotalActiveUsers: 1, NewUsersPerMinute: 600}}.WithDefaults()
		n, _ := bubbleGateway(t, rm, http.NotFoundHandler())
		g, err := New(Config{Rooms: []anteroom.Room{rm}, Node: n, Keys: ticket.NewKeyring(time.Now())})
		if err != nil {
			t.Fatal(err)
		}
		bob := &customer{t: t, shop: g.Middleware(http.NotFoundHandler())}
		bob.ask("/")
		over := make(chan string)
		go func() {
			body, _ := bob.ask("/?__anteroom=stream")
			over <- body
		}()
		synctest.Wait()
		rm.Shadow = true
		put, ok := g.PrepareRooms([]RoomChange{{Room: rm}})
		if !ok {
			t.Fatal("the change is refused")
		}
		put()
		if body := <-over; !strings.Contains(body, "event: go\n") {
			t.Errorf("the stream said %q", body)
		}
	})
}

// A proxy that keeps the traffic hears that the request may go on; the visitor joins, although no page follows.
func TestShadowVerdicts(t *testing.T) {
	everyDialect(t, func(t *testing.T, name string) {
		w := newWorld(t, line, withRoom(inShadow))
		res := w.asks(question(name, "GET", testHost, "/cart"))
		says(t, res, "pass")
		if res.Header.Get(ticketHeader) == "" {
			t.Error("there is no ticket")
		}
		if v := w.door.seen(); len(v) != 1 || v[0].NoJoin {
			t.Errorf("the room saw %+v", v)
		}
	})
}

// The room counts as always: one seat is one session, and the other visitor waits for it, who is in the shop all the same.
func TestShadowCountsAsAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rm := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}}, Shadow: true,
			Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 600, SessionDuration: time.Minute}}.WithDefaults()
		n, shop := bubbleGateway(t, rm, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the shop") }))
		ann, bob := &customer{t: t, shop: shop}, &customer{t: t, shop: shop}
		figures := func(active, waiting int) {
			t.Helper()
			if s := n.Room(rm.ID).Status(); s.ActiveUsers != active || s.Waiting+s.Dormant != waiting {
				t.Errorf("%d active, %d waiting and %d away; want %d and %d", s.ActiveUsers, s.Waiting, s.Dormant, active, waiting)
			}
		}
		visit := func(c *customer) {
			t.Helper()
			if body, _ := c.ask("/"); body != "the shop" {
				t.Fatalf("not in the shop: %s", body)
			}
		}
		visit(ann)
		for range 4 { // both browse; only one has a seat
			visit(bob)
			visit(ann)
			figures(1, 1)
			time.Sleep(30 * time.Second)
		}
		for range 4 { // ann has left: the seat is bob's when her session is over
			time.Sleep(30 * time.Second)
			visit(bob)
		}
		figures(1, 0)
		visit(ann)
		figures(1, 1)
	})
}
