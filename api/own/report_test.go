package own

import (
	"encoding/csv"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics/report"
)

func TestReports(t *testing.T) {
	w := newWorld(t)
	room, event := w.shop()
	w.ok("POST", room+"/pause", "", nil)
	w.ok("POST", room+"/admit", `{"count":20}`, nil)
	w.doors.shuffle = &anteroom.Shuffle{Commitment: [32]byte{1}}
	w.refused(adminToken, "GET", event+"/report", "", 400, "in the future")
	w.now = w.now.Add(2 * time.Hour) // 11:00; the event goes on until 12:00

	var got report.Report
	w.ok("GET", room+"/report?from=2026-11-27T08:00:00Z", "", &got)
	if got.Event != nil || len(got.Changes) != 4 || got.Changes[2].By != "ANTEROOM_API_TOKEN" || len(got.Order.Manual) != 1 || got.Order.Manual[0].Count != 20 || len(got.Draws) != 1 || len(got.Timeline) != 2 {
		t.Errorf("%+v", got)
	}
	w.ok("GET", event+"/report", "", &got)
	if got.Event == nil || got.Event.Name != "drop" || !got.From.Equal(time.Date(2026, 11, 27, 9, 30, 0, 0, time.UTC)) || got.Draws[0].Done || !strings.HasPrefix(got.Draws[0].Command, "anteroom verify https://shop.example.com/.well-known/anteroom/draw/") {
		t.Errorf("%+v", got.Event)
	}

	var reader struct{ Secret string }
	w.ok("POST", "/tokens", `{"name":"reader","grants":[{"permission":"read","room":"`+room[len(room)-32:]+`"}]}`, &reader)
	a := w.do(reader.Secret, "GET", room+"/report?from=2026-11-27T08:00:00Z", "")
	if err := json.Unmarshal(a.Result, &got); err != nil || len(got.Changes) != 4 || strings.Contains(a.Text, "ANTEROOM_API_TOKEN") || !strings.Contains(a.Text, "may not read the audit log") {
		t.Errorf("a reader: %v %s", err, a.Text)
	}

	for query, want := range map[string]string{"?format=pdf": "format", "?from=2020-01-01T00:00:00Z": "at most 400 days", "?from=2026-11-28T00:00:00Z&to=2026-11-29T00:00:00Z": "in the future", "?from=soon": "from", "?format=html&time_zone=Moon/Base": "is not a time zone"} {
		w.refused(adminToken, "GET", room+"/report"+query, "", 400, want)
	}
	for query, want := range map[string]string{"?number=1": "is not the number", "?number=-1": "number: is out of range", "?number=99999999999": "number: is out of range"} {
		w.refused(adminToken, "GET", event+"/report"+query, "", 400, want)
	}
	w.refused(adminToken, "GET", room+"/events/0123456789abcdef0123456789abcdef/report", "", 404, "")
	w.refused("", "GET", room+"/report?format=html", "", 401, "")
	w.rows.failed = anteroom.Errorf(anteroom.Unavailable, "nothing is kept")
	w.refused(adminToken, "GET", room+"/report?format=html", "", 503, "nothing is kept")
}

// TestReportsAsFiles: what the other formats are sent as.
func TestReportsAsFiles(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	get := func(format string) *httptest.ResponseRecorder {
		rec := w.raw("GET", room+"/report?format="+format, nil)
		if rec.Code != 200 || rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Fatalf("%s: %d %v", format, rec.Code, rec.Header())
		}
		return rec
	}
	rec := get("html")
	policy := rec.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(rec.Body.String(), "<!doctype html>") || !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || !strings.HasSuffix(policy, "; sandbox") ||
		rec.Header().Get("Content-Disposition") != `inline; filename="report-checkout-20261126T0900Z.html"` {
		t.Errorf("%v", rec.Header())
	}
	r := httptest.NewRequest("GET", Prefix+room+"/report?format=html", nil)
	r.Header.Set("Authorization", "Bearer "+adminToken)
	r.Header.Set("Sec-Fetch-Dest", "iframe")
	framed := httptest.NewRecorder()
	w.handler.ServeHTTP(framed, r)
	if in := framed.Header().Get("Content-Security-Policy"); in != policy+" allow-same-origin" {
		t.Errorf("in the dashboard's frame: %s", in)
	}
	if local := get("html&time_zone=Asia/Kolkata").Body.String(); !strings.Contains(local, "All times are Asia/Kolkata.") {
		t.Errorf("the report in a time zone: %.1000s", local)
	}
	rec = get("csv")
	cells, err := csv.NewReader(rec.Body).ReadAll()
	if err != nil || len(cells) < 20 || strings.Join(cells[0], ",") != "section,at,name,value,before,by" || !strings.HasPrefix(rec.Header().Get("Content-Disposition"), "attachment") {
		t.Errorf("%v %v %v", err, rec.Header(), cells)
	}
}
