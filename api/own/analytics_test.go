package own

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// rows are recorded minutes in memory: two of the room that is asked for, unless there are others.
type rows struct {
	all    []analytics.Row
	failed error
	asked  []analytics.Query
	finest analytics.Resolution // that is kept; zero keeps all
}

func stat(n, sum, low, high int64) analytics.Stat {
	return analytics.Stat{N: n, Sum: sum, Min: low, Max: high}
}

func twoMinutes(id anteroom.RoomID) []analytics.Row {
	first := analytics.Row{Room: id, Start: time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC), Every: analytics.EveryMinute, Minutes: 1}
	first.Stats[analytics.ActiveUsers] = stat(60, 60*300, 100, 400)
	first.Stats[analytics.QueuedUsers] = stat(60, 0, 0, 0)
	first.Stats[analytics.NewUsers] = stat(1, 80, 80, 80)
	second := first
	second.Start = second.Start.Add(2 * time.Minute)
	second.Stats[analytics.ActiveUsers] = stat(60, 60*500, 500, 500)
	second.Stats[analytics.QueuedUsers] = stat(60, 60*1100, 1000, 1200)
	second.Stats[analytics.NewUsers] = stat(1, 90, 90, 90)
	second.Histograms[analytics.Waited] = &analytics.Histogram{}
	for seconds := range 100 {
		second.Histograms[analytics.Waited].Record(time.Duration(seconds+1) * time.Second)
	}
	second.Summarize()
	return []analytics.Row{first, second}
}

// Query gives minutes as they are, and adds them up for a total.
func (m *rows) Query(_ context.Context, q analytics.Query) (analytics.Answer, error) {
	m.asked = append(m.asked, q)
	if m.failed != nil {
		return analytics.Answer{}, m.failed
	}
	a := analytics.Answer{Every: q.Every, AsOf: q.To}
	if a.Every == 0 {
		a.Every = analytics.EveryMinute
	}
	for _, id := range q.Rooms {
		all := m.all
		if all == nil {
			all = twoMinutes(id)
		}
		if !q.Total && a.Every < m.finest {
			all = []analytics.Row{}
		}
		var total *analytics.Row
		for _, row := range all {
			if row.Room != id || row.Start.Before(q.From) || !row.Start.Before(q.To) {
				continue
			}
			if !q.Total {
				row.Start = row.Start.Truncate(time.Duration(a.Every))
				a.Rows = append(a.Rows, row)
				continue
			}
			if total == nil {
				total = &row
				continue
			}
			total.Add(&row)
		}
		if total != nil {
			total.Summarize()
			a.Rows = append(a.Rows, *total)
		}
	}
	return a, nil
}

type shownAnalytics struct {
	Resolution   string
	EverySeconds int `json:"every_seconds"`
	From, To     time.Time
	Time         []int64
	Series       map[string][]*float64
	Total        map[string]*float64
}

func TestAnalyticsAreAGridWithoutGaps(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	var a shownAnalytics
	w.ok("GET", room+"/analytics?from=2026-11-27T07:59:30Z&to=2026-11-27T08:02:01Z&resolution=minute", "", &a)
	if len(a.Time) != 4 || a.Time[0] != a.From.Unix() || a.To.Sub(a.From) != 4*time.Minute {
		t.Fatalf("%v from %v to %v", a.Time, a.From, a.To)
	}
	for name, series := range a.Series {
		if len(series) != len(a.Time) || series[0] != nil || series[2] != nil {
			t.Errorf("%s: %v", name, series)
		}
		if _, ok := a.Total[name]; !ok {
			t.Errorf("%s has no total", name)
		}
	}
	if got := *a.Series["waited_p90"][3]; got < 89.9 || got > 90.1 || got != *a.Total["waited_p90"] {
		t.Errorf("waited_p90 is %v", got)
	}
	if a.Series["waited_p90"][1] != nil || a.Series["estimate_seconds"][1] != nil {
		t.Error("a percentile or forecast without a value")
	}
	if *a.Series["active_users"][1] != 400 || *a.Series["active_users_avg"][1] != 300 || *a.Total["active_users"] != 500 || *a.Total["new_users"] != 85 {
		t.Errorf("%v %v", a.Series["active_users"], a.Total)
	}
}

func TestAnalyticsWithoutParametersAreTheLastDay(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	var a shownAnalytics
	w.ok("GET", room+"/analytics", "", &a)
	if q := w.rows.asked[0]; q.Every != 0 || !q.To.Equal(w.now) || q.To.Sub(q.From) != 24*time.Hour {
		t.Errorf("asked %+v", q)
	}
}

// Minutes are not kept as long as quarters of an hour.
func TestAnalyticsWithoutAResolutionAreTheFinestThatIsKept(t *testing.T) {
	w := newWorld(t)
	w.rows.finest = analytics.EveryQuarter
	room, _ := w.shop()
	var a shownAnalytics
	w.ok("GET", room+"/analytics?from=2026-11-27T07:50:00Z&to=2026-11-27T08:20:00Z", "", &a)
	if a.Resolution != "quarter" || len(a.Time) != 3 || a.Series["active_users"][0] != nil || a.Series["active_users"][1] == nil {
		t.Errorf("%s, %v: %v", a.Resolution, a.Time, a.Series["active_users"])
	}
}

func TestAnalyticsAsATable(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	rec := w.raw("GET", room+"/analytics?from=2026-11-27T08:00:00Z&to=2026-11-27T08:03:00Z&format=csv", nil)
	if rec.Code != 200 || rec.Header().Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("%d %v", rec.Code, rec.Header())
	}
	lines, err := csv.NewReader(rec.Body).ReadAll()
	if err != nil || len(lines) != 4 {
		t.Fatalf("%v %v", lines, err)
	}
	at := slices.Index(lines[0], "queued_users")
	if lines[0][0] != "time" || lines[3][0] != "2026-11-27T08:02:00Z" || lines[3][at] != "1200" || lines[2][at] != "" {
		t.Errorf("%v", lines)
	}
}

func TestTotalsOfEveryRoom(t *testing.T) {
	w := newWorld(t)
	w.shop()
	var all []struct {
		Zone  struct{ ID, Name string }
		ID    string
		Name  string
		Total map[string]*float64
	}
	w.ok("GET", "/analytics", "", &all)
	if len(all) != 2 || all[1].Name != "checkout" || all[1].Zone.Name != "example.com" || *all[1].Total["new_users_max"] != 90 {
		t.Fatalf("%+v", all)
	}
	w.rows.all = []analytics.Row{}
	w.ok("GET", "/analytics", "", &all)
	if v, ok := all[1].Total["new_users"]; !ok || v != nil {
		t.Errorf("a room without a record: %v", all[1].Total)
	}
}

func TestAnalyticsAreForReadersOfTheRoom(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	var made struct{ Secret string }
	w.ok("POST", "/tokens", `{"name":"elsewhere","grants":[{"permission":"read","zone":"00000000000000000000000000000000"}]}`, &made)
	w.refused(made.Secret, "GET", room+"/analytics", "", 403, "Authentication error")
	a := w.do(made.Secret, "GET", "/analytics", "")
	var all []json.RawMessage
	if err := json.Unmarshal(a.Result, &all); err != nil || len(all) != 0 {
		t.Errorf("%s", a.Text)
	}
}

func TestAnalyticsRefuse(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	for query, want := range map[string]string{
		"from=yesterday":                              "from: is not a moment",
		"to=0001-01-01T00:00:00Z":                     "to: is not a moment",
		"from=2027-01-01T00:00:00Z":                   "from: is not before to",
		"resolution=second":                           "resolution: is not one",
		"format=xml":                                  "format: is not one",
		"from=2026-11-01T00:00:00Z&resolution=minute": "resolution: is too fine",
	} {
		w.refused(adminToken, "GET", room+"/analytics?"+query, "", 400, want)
	}
	w.refused(adminToken, "GET", "/analytics?from=now", "", 400, "from: is not a moment")
	w.refused(adminToken, "GET", strings.Replace(room, "/rooms/", "/rooms/0", 1)+"/analytics", "", 404, "not found")
	w.rows.failed = anteroom.Errorf(anteroom.Unavailable, "the disk is full")
	w.refused(adminToken, "GET", room+"/analytics", "", 503, "the disk is full")
	w.refused(adminToken, "GET", "/analytics", "", 503, "the disk is full")
	w.rows.failed = errors.New("secret detail")
	w.refused(adminToken, "GET", room+"/analytics", "", 500, "Internal error")
}
