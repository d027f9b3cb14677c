package rest

import (
	"context"
	"encoding/json/v2"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/manage"
)

const adminToken = "the-first-token-of-the-tests-0123456789-abc"

// installation is a manager with the API before it, a clock, and doors whose numbers a test
// sets.
type installation struct {
	*API
	manage *manage.Manager
	mu     sync.Mutex
	now    time.Time
	live   map[anteroom.RoomID]anteroom.Status // nil: every room is open and empty
	tokens map[string]string                   // secrets by name
	names  map[string]string                   // of ids
	tag    string                              // the last entity tag
	hit    map[string]bool                     // operations that succeeded, "GET /zones/{zone}"
}

// liveDoors answers with the numbers of the test. The other questions to doors are not the
// published API's.
type liveDoors struct {
	manage.Doors
	at *installation
}

func (d liveDoors) Status(id anteroom.RoomID) (anteroom.Status, bool) {
	d.at.mu.Lock()
	defer d.at.mu.Unlock()
	if d.at.live == nil {
		return anteroom.Status{Mode: "open"}, true
	}
	s, ok := d.at.live[id]
	return s, ok
}

func fileRoom() anteroom.Room {
	return anteroom.Room{Zone: "file.example", Name: "from_file", Routes: []anteroom.Route{{Host: "file.example"}},
		Settings: anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 50, SessionDuration: 90 * time.Second}}.WithDefaults()
}

func open(tb testing.TB, change ...func(*manage.Config)) *installation {
	tb.Helper()
	in := &installation{now: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), live: map[anteroom.RoomID]anteroom.Status{},
		tokens: map[string]string{"admin": adminToken}, names: map[string]string{}, hit: map[string]bool{}}
	link := memlink.New()
	tb.Cleanup(func() { link.Close() })
	c := manage.Config{Link: link, Doors: liveDoors{at: in}, FirstToken: adminToken, Now: in.clock, FileName: "anteroom.yaml", FileRooms: []anteroom.Room{fileRoom()}}
	for _, f := range change {
		f(&c)
	}
	m, err := manage.Open(context.Background(), c)
	if err != nil {
		tb.Fatal(err)
	}
	in.manage = m
	account, _ := m.Account()
	in.names[account] = "account"
	in.names[string(fileRoom().ID)] = "file_room"
	for _, z := range m.State().Zones() {
		in.names[string(z.ID)] = "file_zone"
	}
	in.API = New(Config{Manager: m, Now: in.clock, Log: slog.New(slog.DiscardHandler)})
	return in
}

func (in *installation) address() netip.Addr { return netip.MustParseAddr("192.0.2.7") }

func (in *installation) clock() time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.now
}

func (in *installation) advance(d time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.now = in.now.Add(d)
}

// answer is what came back, read.
type answer struct {
	Status     int              `json:"-"`
	Header     http.Header      `json:"-"`
	Text       string           `json:"-"`
	Success    *bool            `json:"success"`
	Errors     []map[string]any `json:"errors"`
	Messages   []map[string]any `json:"messages"`
	Result     any              `json:"result"`
	ResultInfo map[string]any   `json:"result_info"`
}

// ask sends a request below Prefix; headers are pairs. It fails the test when the answer is
// not the envelope.
func (in *installation) ask(tb testing.TB, method, target, body string, headers ...string) answer {
	tb.Helper()
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	u, err := url.ParseRequestURI(Prefix + target)
	if err != nil {
		tb.Fatalf("%s: %v", target, err)
	}
	r.URL, r.Host = u, "admin.example:8081"
	r.RemoteAddr = in.address().String() + ":4711"
	r.Header.Set("Authorization", "Bearer "+adminToken)
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	in.ServeHTTP(w, r)
	a := answer{Status: w.Code, Header: w.Header(), Text: w.Body.String()}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		tb.Fatalf("%s %s: not JSON: %v\n%s", method, target, err, w.Body)
	}
	if a.Success == nil || a.Errors == nil || a.Messages == nil || *a.Success != (w.Code == 200) || *a.Success != (len(a.Errors) == 0) ||
		!strings.Contains(a.Text, `"result":`) || w.Header().Get("Content-Type") != "application/json" {
		tb.Errorf("%s %s: not the envelope: %d %s", method, target, w.Code, w.Body)
	}
	for _, e := range a.Errors {
		if code, ok := e["code"].(float64); !ok || code < 900 {
			tb.Errorf("%s %s: code %v", method, target, e["code"])
		}
	}
	if tag := w.Header().Get("ETag"); tag != "" {
		in.tag = tag
	}
	if w.Code == 200 {
		in.hit[in.operation(method, u.Path)] = true
	}
	return a
}

// operation returns the route that a path has.
func (in *installation) operation(method, path string) string {
	best := ""
	for _, r := range in.routes() {
		pattern := "^" + regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(r.Path), "[^/]+") + "$"
		if r.Method == method && regexp.MustCompile(pattern).MatchString(path) && (best == "" || !strings.HasSuffix(r.Path, "}")) {
			best = method + " " + r.Path
		}
	}
	return best
}

// created sends a POST that must succeed and returns the result's id.
func (in *installation) created(tb testing.TB, target, body string) string {
	tb.Helper()
	a := in.ask(tb, "POST", target, body)
	result, _ := a.Result.(map[string]any)
	id, _ := result["id"].(string)
	if id == "" {
		tb.Fatalf("POST %s: %d %s", target, a.Status, a.Text)
	}
	return id
}

// room makes a zone with a room, and returns the room's path.
func (in *installation) room(tb testing.TB) string {
	tb.Helper()
	zone := in.created(tb, "/zones", `{"name":"example.com"}`)
	rooms := "/zones/" + zone + "/waiting_rooms"
	return rooms + "/" + in.created(tb, rooms, minimalRoom)
}

// list makes a list of addresses.
func (in *installation) list(tb testing.TB, name string) {
	tb.Helper()
	account := in.ask(tb, "GET", "/accounts", "").Result.([]any)[0].(map[string]any)["id"].(string)
	in.created(tb, "/accounts/"+account+"/rules/lists", `{"name":"`+name+`","kind":"ip"}`)
}

const minimalRoom = `{"name":"shop","host":"example.com","total_active_users":300,"new_users_per_minute":200}`

var (
	ids   = regexp.MustCompile(`[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	stand = regexp.MustCompile(`\$[a-z_]+`)
)

// call gives the first ids of a text that have no name the names.
func (in *installation) call(text string, names []string) {
	for _, id := range ids.FindAllString(text, -1) {
		if _, known := in.names[id]; !known && len(names) > 0 {
			in.names[id], names = names[0], names[1:]
		}
	}
}

// named writes every id as its name.
func (in *installation) named(text string) string {
	return ids.ReplaceAllStringFunc(text, func(id string) string {
		if name, ok := in.names[id]; ok {
			return "$" + name
		}
		return "$"
	})
}

// unnamed writes names as the ids that they stand for, and $etag as the last entity tag.
func (in *installation) unnamed(text string) string {
	return stand.ReplaceAllStringFunc(text, func(s string) string {
		if s == "$etag" {
			return in.tag
		}
		for id, name := range in.names {
			if name == s[1:] {
				return id
			}
		}
		return s
	})
}
