package aws

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
)

const issuer = "https://wait.example.com/aws/sample"

// rootToken is the token of the environment, with every permission.
const rootToken = "0123456789abcdef0123456789abcdef0123456789abcdef"

// sale is a room for two active users.
var sale = anteroom.Room{Name: "sale", Routes: []anteroom.Route{{Host: "shop.example.com"}},
	Settings: anteroom.Settings{TotalActiveUsers: 2, NewUsersPerMinute: 60, SessionDuration: 10 * time.Minute, PlaceHold: 5 * time.Minute}}.WithDefaults()

// world is a bridge over a room of a real node.
type world struct {
	*testing.T
	link    cluster.Link
	node    *node.Node
	manager *manage.Manager
	bridge  *Bridge
	end     func()
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, room anteroom.Room, change func(*Config), test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, link: memlink.New()}
		w.start(room, change)
		defer func() { w.end() }()
		test(w)
	})
}

// start starts what a process has, on what the one before it has stored.
func (w *world) start(room anteroom.Room, change func(*Config)) {
	w.Helper()
	var err error
	if w.node, err = node.New(w.Context(), node.Config{Link: w.link}); err != nil {
		w.Fatal(err)
	}
	if err := w.node.Apply(w.Context(), []anteroom.Room{room}); err != nil {
		w.Fatal(err)
	}
	if w.manager, err = manage.Open(w.Context(), manage.Config{Link: w.link, FileRooms: []anteroom.Room{room}, FirstToken: rootToken}); err != nil {
		w.Fatal(err)
	}
	at, _ := url.Parse(issuer)
	keys := ticket.NewKeyring(time.Now())
	cfg := Config{Event: "Sample", URL: at, Space: w.link, Secret: [32]byte{1}, Manager: w.manager,
		Networks: func(r *http.Request) anteroom.Networks {
			client, _ := netip.ParseAddrPort(r.RemoteAddr)
			return keys.Networks(client.Addr())
		},
		Room: func() (Room, anteroom.RoomID) { return w.node.Room(room.ID), room.ID }}
	if change != nil {
		change(&cfg)
	}
	if w.bridge, err = Open(w.Context(), cfg); err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.Context())
	nodeEnded, bridgeEnded := make(chan struct{}), make(chan struct{})
	n, b := w.node, w.bridge // a test may put others in their place
	go func() { defer close(nodeEnded); n.Run(ctx) }()
	go func() { defer close(bridgeEnded); b.Run(ctx) }()
	w.end = func() { stop(); <-nodeEnded; <-bridgeEnded }
}

// said is an answer.
type said struct {
	status int
	body   string
	header http.Header
}

// is reports an answer that is another one.
func (w *world) is(got said, status int, body string) {
	w.Helper()
	if got.status != status || got.body != body {
		w.Errorf("got %d %s\nwant %d %s", got.status, got.body, status, body)
	}
}

func (w *world) do(r *http.Request, serve func(http.ResponseWriter, *http.Request)) said {
	w.Helper()
	a := httptest.NewRecorder()
	serve(a, r)
	body, _ := io.ReadAll(a.Result().Body)
	return said{a.Code, string(body), a.Result().Header}
}

// ask sends a request to the public API; headers are pairs.
func (w *world) ask(method, target, body string, headers ...string) said {
	w.Helper()
	r := httptest.NewRequest(method, issuer+target, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.do(r, w.bridge.ServeHTTP)
}

// operate sends a request to the private API with the root's token.
func (w *world) operate(method, path, body string) said {
	w.Helper()
	return w.operateAs(rootToken, method, path, body)
}

func (w *world) operateAs(token, method, path, body string) said {
	w.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:8081"+Prefix+"/Sample"+path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return w.private(r)
}

func (w *world) private(r *http.Request) said {
	w.Helper()
	return w.do(r, func(a http.ResponseWriter, r *http.Request) {
		_, path := Event(r.URL.EscapedPath())
		w.bridge.ServePrivate(a, r, path)
	})
}

// read returns a member of an answer's JSON.
func (s said) read(name string) any {
	var all map[string]any
	if json.Unmarshal([]byte(s.body), &all) != nil {
		return nil
	}
	return all[name]
}

// join returns the request id of a new visitor.
func (w *world) join() string {
	w.Helper()
	a := w.ask("POST", "/assign_queue_num", `{"event_id": "Sample"}`)
	id, _ := a.read("api_request_id").(string)
	if a.status != 200 || len(id) != 36 {
		w.Fatalf("join: %d %s", a.status, a.body)
	}
	return id
}

func (w *world) claim(id string) said {
	w.Helper()
	return w.ask("POST", "/generate_token", claimOf(id))
}

func claimOf(id string) string { return `{"event_id": "Sample", "request_id": "` + id + `"}` }

// serving waits until the counter can have moved, and returns it.
func (w *world) serving() string {
	w.Helper()
	time.Sleep(2 * inviteEvery)
	s, _ := w.ask("GET", "/serving_num?event_id=Sample", "").read("serving_counter").(string)
	return s
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { time.Sleep(d) }

// joinFrom sends a join of a client's address; empty for one behind a proxy that names no client.
func (w *world) joinFrom(address string) said {
	w.Helper()
	r := httptest.NewRequest("POST", issuer+"/assign_queue_num", strings.NewReader(`{"event_id": "Sample"}`))
	r.RemoteAddr = address
	return w.do(r, w.bridge.ServeHTTP)
}
