package graph

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/manage"
)

const adminToken = "an-admin-token-of-the-environment-0123456789"

// kept are recorded minutes in memory, added up as they are asked for.
type kept struct {
	mu      sync.Mutex
	minutes []analytics.Row // in the order of time
	failed  error
	asked   []analytics.Query
	rows    int // answered
}

func (k *kept) Query(ctx context.Context, q analytics.Query) (analytics.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, q)
	if k.failed != nil {
		return analytics.Answer{}, k.failed
	}
	a := analytics.Answer{Every: q.Every, AsOf: q.To}
	for _, id := range q.Rooms {
		first, _ := slices.BinarySearchFunc(k.minutes, q.From, func(m analytics.Row, t time.Time) int { return m.Start.Compare(t) })
		for i := first; i < len(k.minutes); i++ {
			m := &k.minutes[i]
			start := m.Start.Truncate(time.Duration(q.Every))
			if !start.Before(q.To) {
				break
			}
			if m.Room != id {
				continue
			}
			if n := len(a.Rows) - 1; n >= 0 && a.Rows[n].Room == id && a.Rows[n].Start.Equal(start) {
				a.Rows[n].Add(m)
				continue
			}
			one := analytics.Row{Room: id, Start: start, Every: q.Every}
			one.Add(m)
			a.Rows = append(a.Rows, one)
		}
	}
	k.rows += len(a.Rows)
	return a, nil
}

// minute records one: active users, those in line, and how many were let in.
func (k *kept) minute(room anteroom.RoomID, at time.Time, active, queued, admitted int64) *analytics.Row {
	m := analytics.Minute{Room: room, Start: at, InForce: analytics.InForce{At: anteroom.TimeOf(at), Method: anteroom.FIFO}}
	for range 60 {
		m.Gauges[analytics.ActiveUsers].Record(active)
		m.Gauges[analytics.QueuedUsers].Record(queued)
		m.Gauges[analytics.ActiveLimit].Record(300)
		m.Gauges[analytics.NewLimit].Record(200)
		m.Gauges[analytics.SessionDuration].Record(300)
	}
	row := m.Row()
	row.Stats[analytics.NewUsers] = analytics.Stat{N: 1, Sum: admitted, Min: admitted, Max: admitted}
	k.minutes = append(k.minutes, row)
	return &k.minutes[len(k.minutes)-1]
}

// world is the API over a manager with one zone and two rooms.
type world struct {
	testing.TB
	handler http.Handler
	manage  *manage.Manager
	kept    *kept
	now     time.Time
	zone    anteroom.ZoneID
	room    anteroom.RoomID // "checkout"
	other   anteroom.RoomID // "tickets"
}

var admin = manage.Caller{Name: "test", Grants: []manage.Grant{{Permission: manage.Admin}}}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, kept: &kept{}, now: at("2026-11-27T12:00:30Z")}
	clock := func() time.Time { return w.now }
	var err error
	w.manage, err = manage.Open(t.Context(), manage.Config{Link: memlink.New(), FirstToken: adminToken, Now: clock, Analytics: w.kept})
	if err != nil {
		t.Fatal(err)
	}
	z, err := w.manage.CreateZone(t.Context(), admin, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	w.zone, w.room, w.other = z.ID, w.makeRoom(z.ID, "checkout"), w.makeRoom(z.ID, "tickets")
	w.handler = New(Config{Manager: w.manage, Now: clock, Log: slog.New(slog.DiscardHandler)})
	return w
}

func (w *world) makeRoom(zone anteroom.ZoneID, name string) anteroom.RoomID {
	w.Helper()
	z, err := w.manage.Zone(admin, zone)
	if err != nil {
		w.Fatal(err)
	}
	r, err := w.manage.CreateRoom(w.Context(), admin, zone, anteroom.Room{Name: name, Routes: []anteroom.Route{{Host: z.Name, Path: "/" + name}},
		Settings: anteroom.Settings{TotalActiveUsers: 300, NewUsersPerMinute: 200}})
	if err != nil {
		w.Fatal(err)
	}
	return r.ID
}

// answered is an answer of the API.
type answered struct {
	Status int
	Header http.Header
	Text   string
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Path       []any
		Locations  []struct{ Line, Column int }
		Extensions struct{ Code, Timestamp string }
	}
}

// post sends a body.
func (w *world) post(token, target, body string, header ...string) answered {
	w.Helper()
	r := httptest.NewRequest("POST", target, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	a := answered{Status: rec.Code, Header: rec.Header(), Text: rec.Body.String()}
	if strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
			w.Fatalf("%v: %s", err, a.Text)
		}
	}
	return a
}

// ids puts the ids of the world into a text.
func (w *world) ids(text string) string {
	return strings.NewReplacer("<zone>", string(w.zone), "<room>", string(w.room), "<other>", string(w.other)).Replace(text)
}

func (w *world) request(query string, variables any) string {
	w.Helper()
	b := map[string]any{"query": w.ids(query)}
	if variables != nil {
		b["variables"] = variables
	}
	text, err := json.Marshal(b)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// ask sends a query as the administrator.
func (w *world) ask(query string, variables any) answered {
	w.Helper()
	return w.post(adminToken, Path, w.request(query, variables))
}

// ok is ask for a query that must succeed, whose data it compares.
func (w *world) ok(query string, variables any, want string) {
	w.Helper()
	a := w.ask(query, variables)
	if a.Status != 200 || a.Errors != nil {
		w.Errorf("%s\n%d %s", query, a.Status, a.Text)
		return
	}
	if got := string(a.Data); got != w.ids(want) {
		w.Errorf("%s\ngot  %s\nwant %s", query, got, w.ids(want))
	}
}

// refused is ask for a query that must fail so.
func (w *world) refused(query string, variables any, code, message string) {
	w.Helper()
	a := w.ask(query, variables)
	if a.Errors == nil || string(a.Data) != "null" || a.Errors[0].Extensions.Code != code || !strings.Contains(a.Errors[0].Message, message) {
		w.Errorf("%.300s\n%d %.1000s\nwant %s with %q", query, a.Status, a.Text, code, message)
	}
}

// node wraps what is asked of a zone.
func node(text string) string { return `{viewer{zones(filter:{zoneTag:"<zone>"}){` + text + `}}}` }

// found wraps what a zone answers.
func found(text string) string { return `{"viewer":{"zones":[{` + text + `}]}}` }

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}
