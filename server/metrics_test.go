package server

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/internal/exposition"
	"github.com/anteroom/anteroom/ticket"
)

// scraped reads /metrics as Prometheus does when it takes native histograms.
func (r *running) scraped() map[string]*dto.MetricFamily {
	r.t.Helper()
	a := r.admin("GET", "/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	decoder := expfmt.NewDecoder(strings.NewReader(a.body), expfmt.ResponseFormat(a.Header))
	out := map[string]*dto.MetricFamily{}
	for {
		var f dto.MetricFamily
		if decoder.Decode(&f) != nil {
			break
		}
		out[f.GetName()] = &f
	}
	if len(out) < 40 {
		r.t.Fatalf("%d families: %s", len(out), a.Header)
	}
	return out
}

func labelsOf(m *dto.Metric) map[string]string {
	out := map[string]string{}
	for _, l := range m.Label {
		out[l.GetName()] = l.GetValue()
	}
	return out
}

// recordAll has a room see everything that can be recorded of one.
func recordAll(r *analytics.Recorder, now anteroom.Time) {
	for _, reason := range anteroom.Reasons() {
		r.Decided(&anteroom.Decision{Verdict: reason.Verdict(), Reason: reason, At: now}, &anteroom.Ticket{})
	}
	for _, result := range ticket.Results() {
		r.RefusedTicket(result.String())
	}
	r.Bypassed(analytics.ByRule)
	r.Bypassed(analytics.ByCrawler)
	for m := range analytics.Metrics {
		r.Count(now, m, 1)
	}
	for s := range analytics.Spans {
		for d := time.Microsecond; d < 400*time.Hour; d = d * 17 / 16 {
			r.Spans(now, s, d)
		}
	}
}

func TestMetricsTellWhatWasRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := startServer(t, oneRoom)
	id := anteroom.RoomIDOf("*", "shop")
	recorder := r.s.node.Room(id).Recorder()
	now := r.s.node.Now()
	for _, d := range []time.Duration{time.Second, 3 * time.Second, time.Hour} {
		recorder.Spans(now, analytics.Waited, d)
	}
	recorder.Spans(now, analytics.Late, 10*time.Second)
	recorder.Spans(now, analytics.Early, time.Minute, 3*time.Minute)
	recorder.Count(now, analytics.NoShows, 7)
	for range 3 { // in, full, in line
		r.visit("/")
	}
	r.visit("/", foreign(r))

	text := r.admin("GET", "/metrics").body
	for _, want := range []string{
		`anteroom_wait_seconds_count{room="ID"} 3`, `anteroom_wait_seconds_sum{room="ID"} 3604`, `anteroom_wait_seconds_bucket{room="ID",le="1"} 1`, `anteroom_wait_seconds_bucket{room="ID",le="5"} 2`,
		`anteroom_wait_seconds_bucket{room="ID",le="1800"} 2`, `anteroom_wait_seconds_bucket{room="ID",le="3600"} 2`, `anteroom_wait_seconds_bucket{room="ID",le="7200"} 3`,
		`anteroom_estimate_error_seconds_sum{room="ID"} -230`, `anteroom_estimate_error_seconds_bucket{room="ID",le="-120"} 1`, `anteroom_estimate_error_seconds_bucket{room="ID",le="-1"} 2`,
		`anteroom_estimate_error_seconds_bucket{room="ID",le="5"} 2`, `anteroom_estimate_error_seconds_bucket{room="ID",le="30"} 3`,
		`anteroom_no_shows_total{room="ID"} 7`, `anteroom_decisions_total{reason="free_slot",room="ID",verdict="admit"} 1`, `anteroom_admitted_total{room="ID",via="direct"} 1`,
		`anteroom_admitted_total{room="ID",via="queue"} 0`, `anteroom_tickets_rejected_total{reason="wrong_version",room="ID"} 1`,
		`anteroom_held{room="ID"} 0`, `anteroom_event_phase{room="ID"} 0`, `anteroom_queueing_method{method="fifo",room="ID"} 1`, `anteroom_origin_seconds_count 1`, `anteroom_gate_seconds_count 4`,
	} {
		if want = strings.ReplaceAll(want, "ID", string(id)); !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, "anteroom_session_seconds") {
		t.Error("a distribution of nothing is shown")
	}

	h := r.scraped()["anteroom_estimate_error_seconds"].Metric[0].Histogram
	if h.GetSchema() != analytics.BucketSchema || h.GetSampleCount() != 3 || len(h.PositiveSpan) != 1 || len(h.NegativeSpan) != 2 || len(h.Bucket) != 34 {
		t.Error(h)
	}
	// 10 s is in the bucket that ends at 2^(27/8) = 10.4 s.
	if h.PositiveSpan[0].GetOffset() != 27 || math.Exp2(27./8) < 10 || math.Exp2(26./8) > 10 {
		t.Error(h.PositiveSpan)
	}
	if key := r.scraped()["anteroom_key_age_seconds"].Metric[0].Gauge.GetValue(); key < 0 || key > 3600 {
		t.Errorf("the key is %v s old", key)
	}
}

func foreign(r *running) *http.Cookie {
	return &http.Cookie{Name: r.s.Config().CookieName, Value: "nonsense"}
}

// TestSeriesOfARoom: what a room costs at most, whatever happens in it.
func TestSeriesOfARoom(t *testing.T) {
	r := startServer(t, oneRoom)
	id := string(anteroom.RoomIDOf("*", "shop"))
	series := func() (n int) { return strings.Count(r.admin("GET", "/metrics?former=no").body, `room="`+id+`"`) }
	if n := series(); n > seriesIdle {
		t.Errorf("an idle room has %d series, docs/monitoring.md says %d", n, seriesIdle)
	}
	recordAll(r.s.node.Room(anteroom.RoomIDOf("*", "shop")).Recorder(), r.s.node.Now())
	n := series()
	if n != seriesMost {
		t.Errorf("a room has %d series at most, docs/monitoring.md says %d", n, seriesMost)
	}
	recordAll(r.s.node.Room(anteroom.RoomIDOf("*", "shop")).Recorder(), r.s.node.Now())
	if again := series(); again != n {
		t.Errorf("%d series after more of the same, %d before", again, n)
	}
	page := string(mustRead(t, "../docs/monitoring.md"))
	for _, want := range []string{fmt.Sprintf("%d series", seriesIdle), fmt.Sprintf("%d series", seriesMost)} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/monitoring.md does not say %q", want)
		}
	}
}

// What docs/monitoring.md says of the series of a room, in text; without the classic buckets a distribution is one.
const (
	seriesIdle = 30
	seriesMost = 141
)

// TestMetricsPage holds the page's table and the declared metrics together.
func TestMetricsPage(t *testing.T) {
	page := string(mustRead(t, "../docs/monitoring.md"))
	row := regexp.MustCompile("(?m)^\\| `(anteroom_[a-z_]+)` \\| (\\w+) \\| ([^|]*) \\| ([^|]*) \\|")
	documented := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		if documented[m[1]] != nil {
			t.Errorf("%s has two rows", m[1])
		}
		documented[m[1]] = m[2:]
	}
	for _, f := range families {
		got := documented[f.Name]
		if got == nil {
			t.Errorf("docs/monitoring.md: no row for %s; add:\n| `%s` | %s | %s | %s |", f.Name, f.Name, string(f.Kind), rowLabels(f), f.Help)
			continue
		}
		if got[0] != string(f.Kind) || got[1] != rowLabels(f) || got[2] != f.Help {
			t.Errorf("docs/monitoring.md says of %s %q; want:\n| `%s` | %s | %s | %s |", f.Name, got, f.Name, string(f.Kind), rowLabels(f), f.Help)
		}
		delete(documented, f.Name)
	}
	for name := range documented {
		t.Errorf("docs/monitoring.md: there is no metric %s", name)
	}
}

func rowLabels(f *exposition.Family) string {
	if len(f.Labels) == 0 {
		return "–"
	}
	return "`" + strings.Join(f.Labels, "`, `") + "`"
}

// TestOnlyDeclaredMetrics: what is sent was declared.
func TestOnlyDeclaredMetrics(t *testing.T) {
	r := startServer(t, oneRoom)
	recordAll(r.s.node.Room(anteroom.RoomIDOf("*", "shop")).Recorder(), r.s.node.Now())
	for name, f := range r.scraped() {
		if !strings.HasPrefix(name, "anteroom_") {
			continue
		}
		i := slices.IndexFunc(families, func(f *exposition.Family) bool { return f.Name == name })
		if i < 0 {
			t.Errorf("%s is not declared", name)
			continue
		}
		if f.GetHelp() != families[i].Help || !strings.EqualFold(f.GetType().String(), string(families[i].Kind)) {
			t.Errorf("%s: %s %q", name, f.GetType(), f.GetHelp())
		}
		for _, m := range f.Metric {
			if len(labelsOf(m)) != len(families[i].Labels) {
				t.Errorf("%s: %v", name, labelsOf(m))
			}
		}
	}
}

// manyRooms is the part of a configuration with so many rooms.
func manyRooms(n int) string {
	var yaml strings.Builder
	yaml.WriteString("rooms:\n")
	for i := range n {
		fmt.Fprintf(&yaml, "  - {name: room-%d, zone: shop.example.com, host: shop.example.com, path: /room-%d, total_active_users: 100, new_users_per_minute: 100}\n", i, i)
	}
	return yaml.String()
}

// BenchmarkScrape is what a scrape costs with many rooms, idle and with everything recorded, as text and as Prometheus
// asks for it with native histograms.
func BenchmarkScrape(b *testing.B) {
	r := startServer(b, manyRooms(10_000))
	for _, state := range []string{"idle", "busy"} {
		if state == "busy" {
			for _, room := range r.s.rooms() {
				recordAll(r.s.node.Room(room.ID).Recorder(), r.s.node.Now())
			}
		}
		for _, form := range []string{"text", "protobuf"} {
			b.Run(state+"/"+form, func(b *testing.B) {
				var header []string
				if form == "protobuf" {
					header = []string{"Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"}
				}
				size := 0
				for b.Loop() {
					size = len(r.admin("GET", "/metrics?former=no", header...).body)
				}
				b.ReportMetric(float64(size)/1e6, "MB")
			})
		}
	}
}

// TestFormerNames: what was scraped under another prefix is still there, and says its name of today.
func TestFormerNames(t *testing.T) {
	text := startServer(t, oneRoom).admin("GET", "/metrics").body
	for _, want := range []string{"\nanteroom_ready 1\n", "\nwr_ready 1\n", "\n# HELP wr_ready Deprecated: use anteroom_ready.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if text := startServer(t, oneRoom).admin("GET", "/metrics?former=no").body; strings.Contains(text, "wr_") || !strings.Contains(text, "\nanteroom_ready 1\n") {
		t.Error("former names are there although nobody wants them")
	}
}

// TestMetricsKeepTheirNames: the pages speak of metrics that there are.
func TestMetricsKeepTheirNames(t *testing.T) {
	pages, err := os.ReadDir("../docs")
	if err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile("`(anteroom_[a-z_]+)")
	for _, p := range pages {
		if !strings.HasSuffix(p.Name(), ".md") {
			continue
		}
		for _, m := range known.FindAllStringSubmatch(string(mustRead(t, "../docs/"+p.Name())), -1) {
			name := m[1]
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				name = strings.TrimSuffix(name, suffix)
			}
			if !slices.ContainsFunc(families, func(f *exposition.Family) bool { return f.Name == name }) {
				t.Errorf("docs/%s: there is no metric %s", p.Name(), m[1])
			}
		}
	}
}
