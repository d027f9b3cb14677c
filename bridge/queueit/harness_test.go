package queueit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
)

// secret is that of the vectors.
const secret = "sample-secret-0123456789abcdef0123456789abcdef0123456789abcdef01234567"

const page = "https://shop.example.com/checkout"

// sale is a room for two active users.
var sale = anteroom.Room{Name: "sale", Routes: []anteroom.Route{{Host: "shop.example.com", Path: "/checkout"}},
	Settings: anteroom.Settings{TotalActiveUsers: 2, NewUsersPerMinute: 60, SessionDuration: 150 * time.Second, PlaceHold: 5 * time.Minute}}.WithDefaults()

// world is a bridge before a real node and a real gateway.
type world struct {
	*testing.T
	room    anteroom.Room // as operators see it
	link    cluster.Link
	node    *node.Node
	gateway *gateway.Gateway
	keys    *ticket.Keyring
	bridge  *Bridge
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, room anteroom.Room, change func(*Event), test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, room: room, link: memlink.New(), keys: ticket.NewKeyring(time.Now())}
		e := Event{Customer: "acme", ID: "launch1", URL: &url.URL{Scheme: "https", Host: "wait.example.com"}, Secret: secret, Redeem: time.Minute}
		if change != nil {
			change(&e)
		}
		e.Room = func() (*anteroom.Room, Live) {
			if n := w.node.Room(w.room.ID); n != nil {
				return &w.room, n
			}
			return &w.room, nil
		}
		w.bridge = New(Config{Events: []Event{e}, Gateway: func() *gateway.Gateway { return w.gateway }, Keys: func() *ticket.Keyring { return w.keys }, Space: w.link, Secret: [32]byte{1}})
		var err error
		if w.node, err = node.New(t.Context(), node.Config{Link: w.link}); err != nil {
			t.Fatal(err)
		}
		w.apply(room)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.node.Run(ctx) }()
		defer func() { stop(); <-ended }()
		test(w)
	})
}

// apply puts a room in force.
func (w *world) apply(room anteroom.Room) {
	w.Helper()
	w.room = room
	served := w.bridge.cfg.Events[0].Bridged(room)
	if err := w.node.Apply(w.Context(), []anteroom.Room{served}); err != nil {
		w.Fatal(err)
	}
	cfg := gateway.Config{Rooms: []anteroom.Room{served}, Node: w.node, Keys: w.keys}
	var err error
	if w.gateway == nil {
		w.gateway, err = gateway.New(cfg)
	} else {
		err = w.gateway.Swap(cfg)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// active is how many seats are taken.
func (w *world) active() int { return w.node.Room(w.room.ID).Status().ActiveUsers }

// browser is a visitor's, at the queue's host.
type browser struct {
	w       *world
	cookies map[string]string
	blocks  bool // all cookies
	from    string
}

func (w *world) browser() *browser {
	return &browser{w: w, cookies: map[string]string{}, from: "198.51.100.9:1"}
}

// get sends one request; headers are pairs.
func (b *browser) get(address string, headers ...string) *http.Response {
	return b.send("GET", address, headers...)
}

func (b *browser) send(method, address string, headers ...string) *http.Response {
	b.w.Helper()
	r := httptest.NewRequest(method, "/", nil)
	r.RemoteAddr = b.from
	u, err := url.Parse(address)
	if err != nil {
		b.w.Fatal(err)
	}
	r.Host, r.URL, r.RequestURI = "wait.example.com", u, address
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Header.Set("Accept", "text/html")
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	a := httptest.NewRecorder()
	b.w.bridge.ServeHTTP(a, r)
	res := a.Result()
	for _, c := range res.Cookies() {
		if !b.blocks {
			b.cookies[c.Name] = c.Value
		}
	}
	return res
}

// enqueue is where a connector sends a visitor of the page.
func enqueue(target string, more ...string) string {
	q := url.Values{"c": {"acme"}, "e": {"launch1"}, "ver": {"javascript-5.0.1"}, "cver": {"1"}, "man": {"sale"}, "t": {target}}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "/?" + q.Encode()
}

// follow goes on from an address for as long as the queue's host sends the browser to itself. It returns the last answer, and where it stands.
func (b *browser) follow(address string) (*http.Response, string) {
	b.w.Helper()
	for range 6 {
		res := b.get(address)
		to := res.Header.Get("Location")
		if res.StatusCode != http.StatusFound || !strings.HasPrefix(to, "/") {
			return res, address
		}
		address = to
	}
	b.w.Fatal("the queue's host goes on redirecting to itself")
	return nil, ""
}

// read returns the fields of the token in an answer; nil if there is none that is well signed.
func read(res *http.Response) map[string]string {
	_, signed, ok := strings.Cut(res.Header.Get("Location"), tokenParameter+"=")
	signed, _, _ = strings.Cut(signed, "#")
	text, hash, _ := strings.Cut(signed, "~h_")
	if !ok || mac(secret, text) != hash {
		return nil
	}
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, "~") {
		if parts := strings.Split(pair, "_"); len(parts) == 2 {
			out[parts[0]] = parts[1]
		}
	}
	return out
}

// enter is a visitor who is let in at once, or is a fault.
func (b *browser) enter(target string) map[string]string {
	b.w.Helper()
	res, _ := b.follow(enqueue(target))
	fields := read(res)
	if fields == nil {
		b.w.Fatalf("not let in: %d %v", res.StatusCode, res.Header)
	}
	return fields
}

// until is when nobody can be in by a token any more, by the clock of the connector.
func until(fields map[string]string) time.Time {
	ts, _ := strconv.ParseInt(fields["ts"], 10, 64)
	cv, _ := strconv.Atoi(fields["cv"])
	return time.Unix(ts, 0).Add(time.Duration(cv) * time.Minute)
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
