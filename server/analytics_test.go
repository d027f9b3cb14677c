package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/manage"
)

// everything may do everything.
var everything = manage.Caller{Name: "test", Grants: []manage.Grant{{Permission: manage.Admin}}}

// joined asks how many visitors joined the line of a room in the last hour, and whether that can be
// answered.
func (r *running) joined(room anteroom.RoomID) (int64, error) {
	now := time.Now()
	a, err := r.s.Manager().Analytics(r.t.Context(), everything, analytics.Query{Rooms: []anteroom.RoomID{room}, From: now.Add(-time.Hour), To: now.Add(time.Minute), Total: true})
	if err != nil {
		return 0, err
	}
	return a.Rows[0].Stats[analytics.Joined].Sum, nil
}

// fiveJoined is what a process saw in this minute.
func fiveJoined(room anteroom.RoomID) *analytics.Minute {
	m := &analytics.Minute{Room: room, Start: time.Now().UTC().Truncate(time.Minute), Process: 7, Seq: 1}
	m.Counts[analytics.Joined-analytics.NewUsers] = 5
	return m
}

func (r *running) status() (p statusPage) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.admin("GET", "/-/status").body), &p); err != nil {
		r.t.Fatal(err)
	}
	return p
}

// What was recorded is there at once, and after a restart.
func TestAnalyticsOfAProcessAlone(t *testing.T) {
	r := startServer(t, oneRoom)
	const id = anteroom.RoomID("0123456789abcdef0123456789abcdef")
	r.s.Analytics().Put([]*analytics.Minute{fiveJoined(id)})
	for range 2 {
		if n, err := r.joined(id); n != 5 || err != nil {
			t.Fatalf("%d joined, %v; want 5", n, err)
		}
		if st := r.status().Analytics; !st.Kept || st.Failing != "" || st.MaxBytes != 2<<30 || st.Bytes == 0 {
			t.Errorf("status %+v", st)
		}
		if a := r.admin("GET", "/metrics"); !strings.Contains(a.body, "anteroom_analytics_failing 0") || !strings.Contains(a.body, "anteroom_analytics_bytes") {
			t.Error("no metrics of the store")
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		r.start()
	}
	if info, err := os.Stat(analyticsFile(filepath.Join(r.dir, "data"))); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
}

func TestWithoutAnalytics(t *testing.T) {
	r := startServer(t, oneRoom+"analytics: {store: false}\n")
	if _, err := r.joined("0123456789abcdef0123456789abcdef"); anteroom.KindOf(err) != anteroom.Unavailable {
		t.Errorf("%v, want an error of kind Unavailable", err)
	}
	if st := r.status().Analytics; st.Kept {
		t.Errorf("status %+v", st)
	}
	if _, err := os.Stat(analyticsFile(filepath.Join(r.dir, "data"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}

// A file that cannot be opened costs analytics and nothing else.
func TestAnalyticsThatCannotBeOpened(t *testing.T) {
	r := prepareServer(t, listenAnywhere+oneRoom)
	if err := os.MkdirAll(analyticsFile(filepath.Join(r.dir, "data")), 0o700); err != nil { // where the file is to be
		t.Fatal(err)
	}
	r.start()
	if a := r.visit("/"); !a.isIn() {
		t.Errorf("got %d", a.StatusCode)
	}
	if st := r.status().Analytics; st.Failing == "" || st.Since.IsZero() {
		t.Errorf("status %+v", st)
	}
	if a := r.admin("GET", "/metrics"); !strings.Contains(a.body, "anteroom_analytics_failing 1") {
		t.Error("metrics do not say so")
	}
	r.log.await(t, 0, "analytics cannot be written")
}

func TestAnalyticsSettingsReachTheStore(t *testing.T) {
	const day = 24 * time.Hour
	r := startServer(t, oneRoom+"analytics: {retention_days: 50, minute_days: 20, max_size_mib: 16}\n")
	h := r.s.Analytics().Health()
	if want := [...]time.Duration{20 * day, 50 * day, 50 * day, 50 * day}; h.Kept != want || h.MaxBytes != 16<<20 {
		t.Errorf("kept %v, at most %d bytes", h.Kept, h.MaxBytes)
	}
	mark := r.log.mark()
	r.mustReload(oneRoom + "analytics: {retention_days: 51}\n")
	r.log.await(t, mark, "key=analytics")
}

// The published sample, with nothing changed but the ids and the times: quarters of an hour of minutes
// that two rooms put into the store.
func TestThePublishedSampleReadsTheStore(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	zone, first := r.makeRoom("127.0.0.1", localRoom("/first"))
	_, second := r.makeRoom("127.0.0.1", localRoom("/second"))
	from := time.Now().UTC().Truncate(15 * time.Minute).Add(-45 * time.Minute)
	put := func(room anteroom.RoomID, minute int, active, fresh int64) {
		m := &analytics.Minute{Room: room, Start: from.Add(time.Duration(minute) * time.Minute), Process: 7, Seq: 1}
		m.Gauges[analytics.ActiveUsers] = analytics.Stat{N: 60, Sum: 60 * active, Min: active, Max: active}
		m.Counts[0] = fresh // NewUsers
		r.s.Analytics().Put([]*analytics.Minute{m})
	}
	for minute := range 45 {
		put(first.ID, minute, int64(100+minute), int64(minute))
		put(second.ID, minute, 999, 999)
	}
	r.s.Analytics().Step(t.Context()) // what follows is of the file, and the last of what is in memory
	sample := strings.NewReplacer("<zone>", string(zone), "<room>", string(first.ID), "<from>", from.Format(time.RFC3339),
		"<to>", from.Add(45*time.Minute-time.Second).Format(time.RFC3339)).Replace(`{viewer{zones(filter:{zoneTag:"<zone>"}){waitingRoomAnalyticsAdaptiveGroups(limit:10,
 filter:{datetime_geq:"<from>",datetime_leq:"<to>",waitingRoomId:"<room>"},
 orderBy:[datetimeFifteenMinutes_ASC]){avg{totalActiveUsers newUsersPerMinute}
 dimensions{datetimeFifteenMinutes}}}}}`)
	want := `{"data":{"viewer":{"zones":[{"waitingRoomAnalyticsAdaptiveGroups":[`
	for i, avg := range []string{`"totalActiveUsers":107,"newUsersPerMinute":7`, `"totalActiveUsers":122,"newUsersPerMinute":22`, `"totalActiveUsers":137,"newUsersPerMinute":37`} {
		if i > 0 {
			want += ","
		}
		want += fmt.Sprintf(`{"avg":{%s},"dimensions":{"datetimeFifteenMinutes":"%s"}}`, avg, from.Add(time.Duration(15*i)*time.Minute).Format(time.RFC3339))
	}
	want += `]}]}},"errors":null}`
	body, err := json.Marshal(map[string]string{"query": sample})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(token string) answer {
		req, err := http.NewRequest("POST", "http://"+r.s.Addresses().Admin+"/client/v4/graphql", bytes.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+token)
		return r.do(req, err)
	}
	if a := ask(r.s.FirstToken()); a.StatusCode != 200 || strings.TrimSpace(a.body) != want {
		t.Errorf("got %d:\n%s\nwant\n%s", a.StatusCode, a.body, want)
	}
	if a := ask("nobody"); a.StatusCode != 403 {
		t.Errorf("without a token: %d", a.StatusCode)
	}
}

// What visitors do is known in a moment, and nothing of it is lost by stopping.
func TestVisitorsAreRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := startServer(t, oneRoom)
	id := r.room("shop").Room
	r.visit("/") // is let in
	for n := range int64(2) {
		r.visit("/") // waits
		if n == 0 {
			eventually(t, "who waits is not recorded", func() bool { got, err := r.joined(id); return err == nil && got == 1 })
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.start()
	if got, err := r.joined(id); got != 2 || err != nil {
		t.Errorf("%d joined, %v; want 2", got, err)
	}
}

// Every core keeps what all processes saw; an edge keeps nothing and asks.
func TestAnalyticsOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r, core := prepareCore(t, oneRoom)
	r.start()
	edge := prepareEdge(t, core, clusterSecret, "")
	edge.start()
	if edge.s.Analytics() != nil {
		t.Fatal("the edge has a store")
	}
	var shop *anteroom.Status
	eventually(t, "the edge has no room", func() bool { shop = edge.room("shop"); return shop != nil })
	id := shop.Room
	edge.s.node.Room(id).Recorder().Count(edge.s.node.Now(), analytics.Joined, 5)
	for _, one := range []*running{r, edge} {
		eventually(t, "what the edge saw is not known", func() bool {
			n, err := one.joined(id)
			return err == nil && n == 5
		})
	}
	began := time.Now()
	_, err := edge.s.Manager().Analytics(t.Context(), everything, analytics.Query{Rooms: []anteroom.RoomID{id}, From: began, To: began})
	if anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "must be before") {
		t.Errorf("a question that is wrong: %v", err)
	}
}
