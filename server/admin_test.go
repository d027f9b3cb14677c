package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

func TestReadyBeforeWhileAndAfter(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := prepareServer(t, listenAnywhere+oneRoom+"timeouts: {drain_delay: 1s}\n")
	s, err := New(t.Context(), r.options())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string) int {
		w := httptest.NewRecorder()
		req := httptest.NewRequest("GET", path, nil)
		req.Host = "localhost"
		s.adminServer().Handler.ServeHTTP(w, req)
		return w.Code
	}
	if got := ask("/-/ready"); got != 503 {
		t.Errorf("before: %d, want 503", got)
	}
	if got := ask("/-/live"); got != 200 {
		t.Errorf("live before: %d", got)
	}
	early := httptest.NewRecorder()
	s.visitorServer(s.Config()).Handler.ServeHTTP(early, httptest.NewRequest("GET", healthPath, nil))
	if early.Code != 503 || early.Body.String() != "unavailable\n" {
		t.Errorf("a load balancer asks before: %d %q", early.Code, early.Body)
	}
	r.serve(s)
	if a := r.admin("GET", "/-/ready"); a.StatusCode != 200 || a.body != "ready\n" {
		t.Errorf("while: %d %q", a.StatusCode, a.body)
	}
	if a := r.visit(healthPath); a.StatusCode != 200 || a.body != "ok\n" {
		t.Errorf("a load balancer asks while: %d %q", a.StatusCode, a.body)
	}
	mark := r.log.mark()
	done := make(chan error, 1)
	go func() { done <- r.end() }()
	r.log.await(t, mark, "waiting for the load balancer")
	if a := r.admin("GET", "/-/ready"); a.StatusCode != 503 || a.body != "stopping\n" {
		t.Errorf("after: %d %q", a.StatusCode, a.body)
	}
	if a := r.visit(healthPath); a.StatusCode != 503 || a.body != "unavailable\n" {
		t.Errorf("a load balancer asks after: %d %q", a.StatusCode, a.body)
	}
	if a := r.visit("/"); !a.isIn() {
		t.Errorf("a visitor during the delay got %d %q", a.StatusCode, a.body)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Load balancers ask by address, often, and say nothing about who they are.
func TestHealthIsNoVisit(t *testing.T) {
	r := startServer(t, strings.Replace(oneRoom, `"*"`, "shop.example.com", 1)+"sites: [{hosts: shop.example.com, origins: ORIGIN}]\nlog: {level: debug}\n")
	mark := r.log.mark()
	ask := func(method, host string) answer {
		req, err := http.NewRequest(method, "http://"+r.s.Addresses().Visitors[0]+healthPath, nil)
		req.Host = host
		return r.do(req, err)
	}
	for _, host := range []string{"shop.example.com", "elsewhere.example", "127.0.0.1"} {
		a := ask("GET", host)
		if a.StatusCode != 200 || a.body != "ok\n" || a.Header.Get("Set-Cookie") != "" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %q %v", host, a.StatusCode, a.body, a.Header)
		}
	}
	if a := ask("HEAD", "elsewhere.example"); a.StatusCode != 200 || a.body != "" {
		t.Errorf("HEAD: %d %q", a.StatusCode, a.body)
	}
	if a := ask("POST", "shop.example.com"); a.StatusCode != 405 || a.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", a.StatusCode, a.Header)
	}
	if a := r.visit(healthPath + "/more"); a.StatusCode != 421 {
		t.Errorf("another path: %d, want what every path of an unknown host gets", a.StatusCode)
	}
	if got := r.s.gateway.Stats(); got.Requests != 1 {
		t.Errorf("%d requests are counted, want the one for another path", got.Requests)
	}
	if lines, _ := r.log.from(mark); strings.Contains(strings.Join(lines, "\n"), healthPath+" ") {
		t.Errorf("logged: %q", lines)
	}
	if room := r.room("shop"); room.ActiveUsers != 0 || room.Waiting != 0 {
		t.Errorf("the room has %+v", room)
	}
}

// Where other machines reach the admin address, metrics, status and reload need a token that may have them; health checks
// need none. A token that may only scrape sees nothing of the APIs.
func TestMetricsNeedATokenOffLoopback(t *testing.T) {
	const scrape, admin = "scrape-0123456789abcdefghijklmnopqrstuvwxyz", "admin-0123456789abcdefghijklmnopqrstuvwxyz_"
	t.Setenv(firstTokenEnv, admin)
	t.Setenv(scrapeTokenEnv, scrape)
	r := prepareServer(t, strings.Replace(listenAnywhere, "localhost:0", "\":0\"\nadmin_plain: true", 1)+oneRoom).start()
	made := func(may manage.Permission) string {
		t.Helper()
		_, secret, err := r.s.Manager().CreateToken(t.Context(), operator, manage.TokenSpec{Name: string(may), Grants: []manage.Grant{{Permission: may}}})
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	tokens := map[string]string{"none": "", "unknown": "nobodys-0123456789abcdefghijklmnopqrstuvwx", "scrape of the environment": scrape, "admin of the environment": admin,
		"scrape": made(manage.Scrape), "read": made(manage.Read), "admin": made(manage.Admin)}
	for path, want := range map[string]map[string]int{
		"GET /metrics":              {"none": 401, "unknown": 403, "scrape of the environment": 200, "scrape": 200, "read": 200, "admin": 200},
		"GET /-/status":             {"none": 401, "unknown": 403, "scrape of the environment": 200, "scrape": 200, "read": 200, "admin": 200},
		"POST /-/reload":            {"none": 401, "unknown": 403, "scrape": 403, "read": 403, "admin": 200, "admin of the environment": 200},
		"GET /-/live":               {"none": 200},
		"GET /-/ready":              {"none": 200},
		"GET /anteroom/v1/cluster":  {"scrape": 403, "scrape of the environment": 403, "read": 200},
		"GET /anteroom/v1/webhooks": {"scrape": 403},
	} {
		method, path, _ := strings.Cut(path, " ")
		for who, status := range want {
			var header []string
			if tokens[who] != "" {
				header = []string{"Authorization", "Bearer " + tokens[who]}
			}
			if a := r.admin(method, path, header...); a.StatusCode != status {
				t.Errorf("%s %s with the token %q: %d, want %d: %.200s", method, path, who, a.StatusCode, status, a.body)
			}
		}
	}
	for _, list := range []string{"rooms", "analytics"} {
		var all struct{ Result []any }
		a := r.admin("GET", "/anteroom/v1/"+list, "Authorization", "Bearer "+scrape)
		if err := json.Unmarshal([]byte(a.body), &all); err != nil || len(all.Result) != 0 {
			t.Errorf("a token that may scrape sees %s: %s", list, a.body)
		}
	}
	if _, _, err := r.s.Manager().CreateToken(t.Context(), operator, manage.TokenSpec{Name: "x", Grants: []manage.Grant{{Permission: manage.Scrape, Zone: anteroom.ZoneID(strings.Repeat("a", 32))}}}); err == nil {
		t.Error("a token may scrape one zone")
	}
}

func TestStatusTellsWhatIsInForce(t *testing.T) {
	r := startServer(t, oneRoom)
	r.visit("/")
	r.visit("/")
	var p statusPage
	a := r.admin("GET", "/-/status")
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	if len(p.Rooms) != 1 || p.Rooms[0].ActiveUsers != 1 || p.Rooms[0].Waiting != 1 || p.Rooms[0].TotalActiveUsers != 1 {
		t.Errorf("rooms: %+v, want one inside and one waiting", p.Rooms)
	}
	if !p.Ready || p.Version != "test" || p.Journal.Records == 0 || p.Config.Files[0] != r.file || p.Config.ReloadedAt != nil {
		t.Errorf("got %s", a.body)
	}
	r.write("listen: nowhere\n")
	r.reload()
	if a := r.admin("GET", "/-/status"); !strings.Contains(a.body, "anteroom.yaml:1:9") {
		t.Errorf("after a bad reload: %s", a.body)
	}
}

// TestStatusTellsWhatHoldsTheLine: a pause and an event are seen without the API.
func TestStatusTellsWhatHoldsTheLine(t *testing.T) {
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	r := startServer(t, fmt.Sprintf(`
rooms:
  - name: shop
    host: "*"
    total_active_users: 9
    new_users_per_minute: 9
    events:
      - {name: drop, prequeue_start_time: %q, event_start_time: %q, event_end_time: %q, queueing_method: random}
`, at(-time.Minute), at(time.Hour), at(2*time.Hour)))
	room := func() roomStatus {
		t.Helper()
		var p statusPage
		if err := json.Unmarshal([]byte(r.admin("GET", "/-/status").body), &p); err != nil || len(p.Rooms) != 1 {
			t.Fatalf("%v %+v", err, p)
		}
		return p.Rooms[0]
	}
	if got := room(); got.Event != "drop" || got.Phase != "prequeueing" || got.Method != anteroom.Random || got.Paused || got.QueueAll || got.WaitSeconds != nil {
		t.Errorf("in the prequeue: %+v", got)
	}
	id := anteroom.RoomIDOf("*", "shop")
	if _, err := r.s.Manager().ChangeControls(t.Context(), operator, anteroom.ZoneIDOf("*"), id, func(c *anteroom.Controls) error { c.Paused = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := room(); !got.Paused || !got.QueueAll || got.Draining {
		t.Errorf("paused: %+v", got)
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	r := startServer(t, oneRoom)
	r.visit("/")
	r.visit("/")
	a := r.admin("GET", "/metrics")
	problems, err := promlint.New(strings.NewReader(a.body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "anteroom_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	id := string(anteroom.RoomIDOf("*", "shop"))
	for _, want := range []string{
		`anteroom_active_sessions{room="` + id + `"} 1`, `anteroom_waiting{room="` + id + `",state="present"} 0`, `anteroom_waiting{room="` + id + `",state="unproven"} 1`,
		`anteroom_limit_active{room="` + id + `"} 1`, `anteroom_room_info{name="shop",room="` + id + `",zone="*"} 1`, "anteroom_ready 1", "anteroom_config_reload_success 1", "anteroom_journal_failing 0",
		"anteroom_requests_total 2", `anteroom_build_info{go=`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestMetricsDoNotGrowWithRequests: labels never come from a request.
func TestMetricsDoNotGrowWithRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := startServer(t, oneRoom)
	series := func() int { return strings.Count(r.admin("GET", "/metrics").body, "\nanteroom_") }
	for _, path := range []string{"/", "/a", "/b"} {
		r.visit(path)
	}
	before := series()
	for range 50 {
		r.visit("/" + strings.Repeat("x", series()%7)) // an address that was not there before
	}
	if after := series(); after != before {
		t.Errorf("%d series after 50 more requests, %d before", after, before)
	}
}

func TestAdminAnswersOnlyToItsOwnNames(t *testing.T) {
	r := startServer(t, oneRoom)
	for _, c := range []struct {
		method, path string
		header       []string
		want         int
	}{
		{"GET", "/-/live", nil, 200},
		{"GET", "/-/live", []string{"Host", "127.0.0.1"}, 200},
		{"GET", "/-/live", []string{"Host", "[::1]:8081"}, 200},
		{"GET", "/-/live", []string{"Host", "LOCALHOST:1"}, 200},
		{"GET", "/-/live", []string{"Host", "LocalHost"}, 200},
		{"GET", "/-/live", []string{"Host", "[::1]"}, 200},
		{"GET", "/-/live", []string{"Host", "[attacker.example]"}, 421},
		{"GET", "/-/live", []string{"Host", "[::1].attacker.example"}, 421},
		{"GET", "/-/status", []string{"Host", "attacker.example"}, 421}, // DNS rebinding
		{"GET", "/metrics", []string{"Host", "attacker.example:8081"}, 421},
		{"GET", "/-/status", []string{"Host", "localhost.attacker.example"}, 421},
		{"POST", "/-/reload", []string{"Origin", "https://attacker.example"}, 403},
		{"POST", "/-/reload", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", "/-/reload", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"POST", "/-/reload", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"POST", "/-/reload", nil, 200},
		{"GET", "/-/reload", nil, 405},
		{"GET", "/", nil, 200}, // the dashboard
		{"GET", "/", []string{"Host", "attacker.example"}, 421},
		{"GET", "/dash/session", []string{"Host", "attacker.example"}, 421},
		{"POST", "/dash/login", []string{"Origin", "https://attacker.example"}, 403},
		{"GET", "/nothing", nil, 404},
		{"GET", "/-/nothing", []string{"Accept", "text/html"}, 404},
	} {
		if a := r.admin(c.method, c.path, c.header...); a.StatusCode != c.want {
			t.Errorf("%s %s %q: %d %q, want %d", c.method, c.path, c.header, a.StatusCode, a.body, c.want)
		}
	}
}

func TestAdminAnswersToTheNameItIsConfiguredWith(t *testing.T) {
	h := new(Server).onlyOurHost("Ops.internal:8081", "https://Anteroom.example.com", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{"ops.internal:9": 200, "ops.internal": 200, "anteroom.example.com": 200, "other.internal": 421} {
		w, req := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		req.Host = host
		if h.ServeHTTP(w, req); w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}

func TestVisitorsReachNothingForOperators(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	for _, path := range []string{"/-/status", "/metrics", "/-/ready"} {
		if a := r.visit(path); !a.isIn() {
			t.Errorf("%s: %d %q, want the origin's answer", path, a.StatusCode, a.body)
		}
	}
}
