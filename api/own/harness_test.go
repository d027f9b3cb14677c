package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/page"
)

const adminToken = "an-admin-token-of-the-environment-0123456789"

// documented is an operation of the document.
type documented struct {
	Method, Path string
	ID           string `json:"operationId"`
	Security     *[]any
	Parameters   []struct {
		Name, In string
		Required bool
	}
	RequestBody *struct {
		Content map[string]media
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]media
	}
}

type media struct{ Example json.RawMessage }

func operations(t testing.TB) []documented {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]documented
	}
	if err := json.Unmarshal(document(), &doc); err != nil {
		t.Fatal(err)
	}
	var all []documented
	for path, methods := range doc.Paths {
		for method, op := range methods {
			op.Method, op.Path = strings.ToUpper(method), path
			all = append(all, op)
		}
	}
	return all
}

// schemas compiles what the document says.
type schemas struct {
	compiler *jsonschema.Compiler
	all      []documented
}

func documentSchemas(t testing.TB) *schemas {
	t.Helper()
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(document()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", tree); err != nil {
		t.Fatal(err)
	}
	return &schemas{c, operations(t)}
}

// check holds a value against the schema at a pointer into the document.
func (s *schemas) check(t testing.TB, pointer string, text []byte) {
	t.Helper()
	schema, err := s.compiler.Compile("openapi.json#" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s\nis not as %s says: %v", text, pointer, err)
	}
}

func escape(path string) string { return strings.ReplaceAll(path, "/", "~1") }

func (o documented) pointer() string {
	return "/paths/" + escape(o.Path) + "/" + strings.ToLower(o.Method)
}

// of returns the operation that a request is for: a literal segment goes before a parameter.
func (s *schemas) of(method, path string) (found documented, ok bool) {
	best := -1
	for _, o := range s.all {
		want, got := strings.Split(o.Path, "/"), strings.Split(path, "/")
		if o.Method != method || len(want) != len(got) {
			continue
		}
		literals := 0
		for i := range want {
			if strings.HasPrefix(want[i], "{") {
				continue
			}
			if want[i] != got[i] {
				literals = -1
				break
			}
			literals++
		}
		if literals > best {
			found, ok, best = o, true, literals
		}
	}
	return found, ok
}

// world is the API over a manager on a store in memory. Every exchange is held against the
// document.
type world struct {
	*testing.T
	handler http.Handler
	manage  *manage.Manager
	doors   *doors
	rows    *rows
	schemas *schemas
	seen    map[string]bool // operations that were answered well
	now     time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, doors: &doors{}, rows: &rows{}, schemas: documentSchemas(t), seen: map[string]bool{}, now: time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	var err error
	w.manage, err = manage.Open(t.Context(), manage.Config{Link: memlink.New(), Doors: w.doors, Crowds: &crowds{}, Webhooks: sender{}, FirstToken: adminToken, Now: clock, Analytics: w.rows,
		Sites: clusterSites{},
		Configuration: func() manage.Configuration {
			return manage.Configuration{File: "anteroom.yaml", YAML: "listen: [\":8080\"]\n", NeedsRestart: []string{"listen"}}
		},
		Origins: func() []manage.ProxiedSite {
			return []manage.ProxiedSite{{Hosts: []string{"shop.example.com"}, Origins: []manage.Origin{
				{URL: "http://127.0.0.1:3000", Healthy: true, Requests: 10, ErrorShare: 0.1, P50: new(0.1), P95: new(0.5), InFlight: 1}, {URL: "http://127.0.0.1:3001"}}}}
		},
		Cluster: func(context.Context) (manage.ClusterStatus, error) {
			return manage.ClusterStatus{Site: "local", Nodes: []manage.ClusterNode{{Node: "n", Started: w.now}}, Roles: []manage.ClusterRole{},
				Edges: []manage.EdgeSeen{
					{Kind: "envoy", Peer: "10.0.0.7", LastSeen: w.now, Requests: 1200, ClockOffset: new(-0.004)},
					{Kind: "pass", Zone: "shop.example.com", Name: "cdn", LastSeen: w.now, Requests: 100, FreshShare: 0.02, LateShare: 0.9, OverShare: 0.08}},
				Sites: []manage.ClusterSite{{Site: "local"}}, Findings: []manage.ClusterFinding{{Severity: "note"}}}, nil
		},
		Machine:  func() manage.Machine { return manage.Machine{Clock: manage.ClockSynced} },
		FileName: "anteroom.yaml", FileRooms: []anteroom.Room{{Name: "fixed", Routes: []anteroom.Route{{Host: "fixed.example.org"}}, Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	w.handler = New(Config{Manager: w.manage, Now: clock, Log: slog.New(slog.DiscardHandler),
		Preview: func(*page.Template, int) string { return "/preview/made" }})
	return w
}

// answer is an envelope.
type answer struct {
	Status  int
	Header  http.Header
	Text    string
	Success bool
	Errors  []api.Message
	Result  json.RawMessage
	Info    api.PageInfo `json:"result_info"`
}

// do sends a request as the holder of a token and checks it and its answer.
func (w *world) do(token, method, target, body string) answer {
	w.Helper()
	r := httptest.NewRequest(method, Prefix+target, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	a := answer{Status: rec.Code, Header: rec.Header(), Text: rec.Body.String()}
	if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
		w.Fatalf("%s %s: %v: %s", method, target, err, a.Text)
	}
	o, ok := w.schemas.of(method, r.URL.Path)
	switch {
	case !ok || a.Status != http.StatusOK:
		w.schemas.check(w, "/components/responses/Problem/content/application~1json/schema", rec.Body.Bytes())
	default:
		w.seen[o.ID] = true
		w.schemas.check(w, o.pointer()+"/responses/200/content/application~1json/schema", rec.Body.Bytes())
		if o.RequestBody != nil && o.RequestBody.Content["application/json"].Example != nil {
			w.schemas.check(w, o.pointer()+"/requestBody/content/application~1json/schema", []byte(body))
		}
	}
	return a
}

// raw is do for an answer that is not in the envelope.
func (w *world) raw(method, target string, body io.Reader) *httptest.ResponseRecorder {
	w.Helper()
	r := httptest.NewRequest(method, Prefix+target, body)
	r.Header.Set("Authorization", "Bearer "+adminToken)
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

// ok is do for a request that must succeed, as the administrator; the result goes into v.
func (w *world) ok(method, target, body string, v any) answer {
	w.Helper()
	a := w.do(adminToken, method, target, body)
	if a.Status != http.StatusOK || !a.Success {
		w.Fatalf("%s %s %s: %d %s", method, target, body, a.Status, a.Text)
	}
	if v != nil {
		if err := json.Unmarshal(a.Result, v); err != nil {
			w.Fatalf("%s %s: %v: %s", method, target, err, a.Result)
		}
	}
	return a
}

// refused is do for a request that must fail so.
func (w *world) refused(token, method, target, body string, status int, text string) {
	w.Helper()
	if a := w.do(token, method, target, body); a.Status != status || a.Success || !strings.Contains(a.Text, text) {
		w.Errorf("%s %s %s: %d %s; want %d with %q", method, target, body, a.Status, a.Text, status, text)
	}
}

// shop makes a zone with a room and an event, and returns the paths of the latter two.
func (w *world) shop() (room, event string) {
	w.Helper()
	var z struct{ ID anteroom.ZoneID }
	w.ok("POST", "/zones", `{"name":"example.com"}`, &z)
	by := manage.Caller{Name: "test", Grants: []manage.Grant{{Permission: manage.Admin}}}
	r, err := w.manage.CreateRoom(w.Context(), by, z.ID, anteroom.Room{Name: "checkout", Routes: []anteroom.Route{{Host: "shop.example.com", Path: "/checkout"}},
		Settings: anteroom.Settings{TotalActiveUsers: 500, NewUsersPerMinute: 500}})
	if err != nil {
		w.Fatal(err)
	}
	e, err := w.manage.CreateEvent(w.Context(), by, z.ID, r.ID, anteroom.Event{Name: "drop", Prequeue: "2026-11-27T09:30:00Z", Start: "2026-11-27T10:00:00Z", End: "2026-11-27T12:00:00Z", ShuffleAtStart: true})
	if err != nil {
		w.Fatal(err)
	}
	room = "/zones/" + string(z.ID) + "/rooms/" + string(r.ID)
	return room, room + "/events/" + string(e.ID)
}

// doors are the live side of rooms with two visitors, one inside and one in line.
type doors struct {
	asked   []string
	shuffle *anteroom.Shuffle
	event   *anteroom.Event
	quiet   bool // nobody waits
	lanes   []anteroom.LaneStatus
}

// crowds notes the last crowd and sends nobody.
type crowds struct{ last manage.CrowdStatus }

func (c *crowds) Send(_ anteroom.Room, what manage.Crowd) error {
	c.last = manage.CrowdStatus{Crowd: what, Began: doorTime.Std()}
	return nil
}

func (c *crowds) Running() bool                             { return !c.last.Began.IsZero() && c.last.Ended.IsZero() }
func (c *crowds) Status(anteroom.RoomID) manage.CrowdStatus { return c.last }
func (c *crowds) Stop(anteroom.RoomID)                      { c.last.Ended = doorTime.Std() }

var (
	inside = anteroom.ID{0x3f, 0x9a, 0x1c, 0x07, 0xbe, 1}
	inLine = anteroom.ID{0x3f, 0x9a, 0x1c, 0x07, 0xbe, 2}
)

const doorTime = anteroom.Time(1_795_770_000_000_000)

func (d *doors) Status(id anteroom.RoomID) (anteroom.Status, bool) {
	st := anteroom.Status{Room: id, At: doorTime, Mode: "queue", ActiveUsers: 1, Waiting: 1, TotalActiveUsers: 500, NewPerMinute: 600,
		OldestWaiting: doorTime - 1, WaitKnown: true, WaitOfNewcomer: 90 * time.Second}
	if d.quiet {
		st.Waiting = 0
	}
	if d.event != nil {
		r := anteroom.Room{Events: []anteroom.Event{*d.event}, Lanes: []anteroom.Lane{{Name: "everyone"}, {Name: "gold", Priority: 80, Share: 5, Reserved: 7}}}
		start, _ := d.event.Start.Time()
		st.InForce = r.WithDefaults().At(anteroom.TimeOf(start))
	}
	st.Lanes = d.lanes
	return st, true
}

func (d *doors) AdmitNow(_ context.Context, _ anteroom.RoomID, n int) (int, error) {
	return min(n, 1), nil
}

func (d *doors) Find(_ context.Context, _ anteroom.RoomID, reference string) ([]manage.Visitor, error) {
	d.asked = append(d.asked, reference)
	if reference != inside.Reference() {
		return nil, nil
	}
	return []manage.Visitor{
		{ID: inside, Reference: inside.Reference(), Standing: manage.Active, Arrival: doorTime - 9, AcceptedAt: doorTime - 5, LastSeen: doorTime},
		{ID: inLine, Reference: inLine.Reference(), Standing: manage.Waiting, Arrival: doorTime - 3, LastSeen: doorTime - 2, Ahead: 0, AheadKnown: true},
	}, nil
}

func (d *doors) Revoke(_ context.Context, _ anteroom.RoomID, visitor anteroom.ID) (bool, error) {
	return visitor == inside, nil
}

func (d *doors) Touch(_ anteroom.RoomID, touches []manage.Touch) (results []string, err error) {
	for _, one := range touches {
		switch {
		case one.Ago > anteroom.MaxTouchAge:
			results = append(results, "age")
		case one.Ticket != "good":
			results = append(results, "ticket")
		default:
			results = append(results, manage.TouchTaken)
		}
	}
	return results, nil
}

func (d *doors) Shuffle(_ anteroom.RoomID, _ anteroom.EventID, number int) (*anteroom.Shuffle, bool, error) {
	if d.shuffle == nil || number != 0 {
		return nil, false, nil
	}
	return d.shuffle, true, nil
}

// sender is where webhooks are sent from, with one delivery that waits for its next attempt.
type sender struct{}

func (sender) Key() [32]byte { return [32]byte{1} }

func (sender) CheckURL(url string) error {
	if strings.HasPrefix(url, "http:") {
		return errors.New("does not begin with https://")
	}
	return nil
}

func (sender) Test(_ context.Context, w manage.SignedWebhook, by string) (anteroom.Delivery, error) {
	at := doorTime.Std()
	return anteroom.Delivery{ID: strings.Repeat("a", 32), Type: anteroom.WebhookTest, Text: w.Name + " " + by, CreatedOn: at, State: anteroom.DeliveryDelivered,
		Attempts: 1, Status: 200, LastOn: at}, nil
}

func (sender) Deliveries(context.Context, anteroom.WebhookID) ([]anteroom.Delivery, error) {
	at := doorTime.Std()
	return []anteroom.Delivery{{ID: strings.Repeat("b", 32), Type: anteroom.RoomQueueing, Text: "checkout", CreatedOn: at, State: anteroom.DeliveryPending,
		Attempts: 1, Error: "it does not answer", LastOn: at, NextOn: at.Add(10 * time.Second)}}, nil
}

func readAll(t testing.TB, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// clusterSites is a cluster in which node-3 is gone, node-4 runs, and so does node-1; and in which tokyo is lost.
type clusterSites struct{}

// RemoveNode implements manage.Sites.
func (clusterSites) RemoveNode(_ context.Context, node string, force bool, sure func() error) error {
	if node != "node-3" && !force {
		return anteroom.Errorf(anteroom.Conflict, "%s runs", node)
	}
	return sure()
}

// ReplaceNode implements manage.Sites.
func (clusterSites) ReplaceNode(_ context.Context, node, by string, force bool, sure func() error) (bool, error) {
	if node != "node-3" && !force {
		return false, anteroom.Errorf(anteroom.Conflict, "%s runs", node)
	}
	return by == "node-4", sure()
}

// AddCores implements manage.Sites.
func (clusterSites) AddCores(_ context.Context, sure func() error) (manage.AddedCores, error) {
	return manage.AddedCores{Cores: 3, Complete: true}, sure()
}

// ShrinkCores implements manage.Sites.
func (clusterSites) ShrinkCores(_ context.Context, sure func() error) error { return sure() }

// ForgetSite implements manage.Sites.
func (clusterSites) ForgetSite(_ context.Context, site string, sure func() error) (manage.ForgottenSite, error) {
	if site != "tokyo" {
		return manage.ForgottenSite{}, anteroom.Errorf(anteroom.Invalid, "the cluster has no site %s", site)
	}
	return manage.ForgottenSite{Site: site, Rooms: 2, Seats: 180}, sure()
}
