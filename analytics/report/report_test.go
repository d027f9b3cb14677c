package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"flag"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/internal/markup"
	"github.com/anteroom/anteroom/manage"
)

var update = flag.Bool("update", false, "rewrite testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it with go test ./report -update and git diff", file)
	}
}

var start = time.Date(2026, 11, 27, 9, 30, 0, 0, time.UTC)

// sale is a made-up sale with a prequeue of half an hour, a shuffle, and three hours of selling. The
// words are those that an operator can choose; they are anything here.
func sale(word string) facts {
	event := anteroom.Event{ID: "25756b2dfe6e378a06b033b670413757", Name: "drop" + word, Prequeue: "2026-11-27T09:30:00Z", Start: "2026-11-27T10:00:00Z", End: "2026-11-27T13:00:00Z", ShuffleAtStart: true}
	room := anteroom.Room{ID: "67077ff8c0282d39f3cb179110bec0ee", Zone: "example.com" + word, Name: "checkout" + word, Events: []anteroom.Event{event},
		Routes: []anteroom.Route{{Host: "shop.example.com" + word, Path: "/checkout"}}}
	o, _ := event.Occurrence(0)
	one := occurrence{&room.Events[0], o}
	f := facts{Made: start.Add(4 * time.Hour), Room: room, Event: &room.Events[0], From: o.From, To: o.End, Occurrences: []occurrence{one},
		Rows:  analytics.Answer{Every: analytics.EveryMinute, AsOf: start.Add(4 * time.Hour)},
		Draws: []drawFact{{one, &anteroom.Shuffle{At: anteroom.TimeOf(o.Start), Commitment: [32]byte{1, 2}, Seed: [32]byte{3}, Done: true, Entries: [32]byte{4}, IDs: make([]anteroom.ID, 8123)}}},
	}
	total := analytics.Row{Room: room.ID, Start: o.From}
	for minute := range 210 {
		if minute == 100 || minute == 101 {
			continue // nothing is known of these
		}
		m := madeUp(minute)
		m.Room, m.Start, m.InForce.Event = room.ID, o.From.Add(time.Duration(minute)*time.Minute), event.ID
		row := m.Row()
		f.Rows.Rows = append(f.Rows.Rows, row)
		total.Add(&row)
	}
	f.Total = &total
	f.History = manage.History{Records: []manage.AuditRecord{
		{At: start.Add(45 * time.Minute), Actor: "ada" + word, Operation: "room.change", Room: room.ID, Name: room.Name, Changes: []manage.FieldChange{
			{Field: "room.settings.new_users_per_minute", Before: "200", After: "300"}, {Field: "room.description", Before: `"` + word + `"`, After: `"=1+1` + word + `"`}}, Omitted: 2},
		{At: start.Add(50 * time.Minute), Actor: "bob", Operation: "room.admit_now", Room: room.ID, Name: room.Name, Changes: []manage.FieldChange{{Field: "count", After: "20"}}},
		{At: start.Add(55 * time.Minute), Actor: "bob", Operation: "session.revoke", Room: room.ID, Name: room.Name},
	}}
	return f
}

// madeUp is a minute of it: a line that grows until the start and shrinks from then on.
func madeUp(minute int) *analytics.Minute {
	m := &analytics.Minute{InForce: analytics.InForce{At: 1, Method: anteroom.FIFO, QueueAll: minute < 30}, Reasons: map[string]int64{"waiting": 500, "turn": 0}, BypassReasons: map[string]int64{"rule": 2}}
	queued, active, fresh := int64(270*min(minute, 30)), int64(0), int64(0)
	newLimit := int64(200)
	if minute >= 45 {
		newLimit = 300
	}
	if minute >= 30 {
		queued = max(0, 8100-270*int64(minute-30))
		active = min(500, 40*int64(minute-29))
		if fresh = newLimit - 3*int64(minute%7); queued == 0 {
			fresh = 60
		}
	}
	for i := range int64(60) {
		m.Gauges[analytics.ActiveUsers].Record(max(0, active-i%5))
		m.Gauges[analytics.QueuedUsers].Record(max(0, queued-i))
		m.Gauges[analytics.ActiveLimit].Record(500)
		m.Gauges[analytics.NewLimit].Record(newLimit)
		if minute >= 30 {
			m.Gauges[analytics.Estimate].Record(queued * 60 / newLimit)
		}
	}
	set := func(c analytics.Metric, n int64) { m.Counts[int(c)-int(analytics.NewUsers)] = n }
	set(analytics.NewUsers, fresh)
	if minute < 90 {
		set(analytics.Joined, 275)
		set(analytics.Abandoned, 5)
		set(analytics.NoShows, int64(minute%3))
	}
	set(analytics.Bypassed, 2)
	record := func(s analytics.Span, d time.Duration) {
		if m.Histograms[s] == nil {
			m.Histograms[s] = &analytics.Histogram{}
		}
		m.Histograms[s].Record(d)
	}
	for i := range fresh {
		if queued > 0 {
			record(analytics.Waited, time.Duration(minute-30)*20*time.Second+time.Duration(i)*time.Second)
			if i%10 == 0 {
				record(analytics.Late, time.Duration(i)*time.Second)
			} else {
				record(analytics.Early, time.Duration(i)*time.Second/2)
			}
		}
		record(analytics.OnOrigin, time.Duration(90+i)*time.Second)
	}
	return m
}

func written(t *testing.T, r *Report) (page, table string) {
	t.Helper()
	var h, c bytes.Buffer
	if err := r.WriteHTML(&h, time.UTC); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteCSV(&c); err != nil {
		t.Fatal(err)
	}
	return h.String(), c.String()
}

func TestReportOfASale(t *testing.T) {
	r := makeReport(sale(""))
	page, table := written(t, r)
	golden(t, "sale.html", page)
	golden(t, "sale.csv", table)
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sale.json", string(text)+"\n")

	if r.Figures.LetIn == 0 || r.Figures.AtOnce == 0 || r.Peaks.QueuedUsers.Value != 8100 || !r.Peaks.QueuedUsers.At.Equal(start.Add(30*time.Minute)) || *r.Limits.OverNew != 0 || r.Limits.OverActive != 0 {
		t.Errorf("%+v %+v %+v", r.Figures, r.Peaks.QueuedUsers, r.Limits)
	}
	if len(r.InForce) != 4 { // held, 200 a minute, 300 a minute, and on after the gap
		t.Errorf("in force: %+v", r.InForce)
	}
}

// TestReportInLocalTime: the page says every time by the clocks of a place, the figures stay in UTC.
func TestReportInLocalTime(t *testing.T) {
	kolkata, err := time.LoadLocation("Asia/Kolkata") // half an hour off, and another day in the evening
	if err != nil {
		t.Fatal(err)
	}
	r := makeReport(sale(""))
	var there bytes.Buffer
	if err := r.WriteHTML(&there, kolkata); err != nil {
		t.Fatal(err)
	}
	page := there.String()
	peak := r.Peaks.QueuedUsers.At
	for _, want := range []string{"All times are Asia/Kolkata.", peak.In(kolkata).Format("2 Jan 2006, 15:04 MST"), r.From.In(kolkata).Format("2006-01-02 15:04:05 MST")} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if unwanted := r.From.Format("2006-01-02 15:04:05 MST"); strings.Contains(page, unwanted) {
		t.Errorf("the page says %q", unwanted)
	}
	here, _ := written(t, r)
	golden(t, "sale.html", here)
}

// TestNothingWasRecorded: an empty report says so, and is a page all the same.
func TestNothingWasRecorded(t *testing.T) {
	f := sale("")
	f.Rows, f.Total, f.History, f.Draws, f.Event = analytics.Answer{}, nil, manage.History{}, nil, nil
	page, _ := written(t, makeReport(f))
	if !strings.Contains(page, "Nothing was recorded for the room in this time.") || strings.Contains(page, "<svg") {
		t.Error(page)
	}
	golden(t, "empty.html", page)
	f.Total, f.Rows.AsOf = &analytics.Row{}, f.To.Add(-time.Second)
	if notes := makeReport(f).Notes; len(notes) != 1 || !strings.HasPrefix(notes[0], "Nothing was recorded") {
		t.Errorf("a row of nothing, and figures that are a second old: %q", notes)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	f := sale("")
	f.Rows.AsOf, f.Rows.Incomplete, f.MoreEvents = start.Add(time.Hour), "minutes before 09:40 were dropped", true
	f.History.Nameless, f.History.Since, f.History.Omitted = true, start.Add(time.Minute), true
	for i := range f.History.Records {
		f.History.Records[i].Actor = ""
	}
	r := makeReport(f)
	all := strings.Join(r.Notes, "\n")
	for _, want := range []string{"made before the end of its time", "minutes before 09:40", "may not read the audit log", "begins at 2026-11-27 09:31:00 UTC", "last 1000 changes", "first 50 occurrences"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not said in\n%s", want, all)
		}
	}
	if page, table := written(t, r); strings.Contains(page, "ada") || strings.Contains(table, "ada") {
		t.Error("who it was is told")
	}
}

func TestOrderStatement(t *testing.T) {
	said := func(change func(*facts)) string {
		f := sale("")
		change(&f)
		return strings.Join(makeReport(f).Order.Statement, "\n")
	}
	overtake := func(f *facts) { f.Total.Stats[analytics.Overtakes].Record(7) }
	for _, c := range []struct {
		change func(*facts)
		want   string
		not    string
	}{
		{func(*facts) {}, "no overtaking among", "picked at random"},
		{func(*facts) {}, "by hand 1 time, 20 in all", "No operator"},
		{func(f *facts) { f.History.Records = nil }, "No operator admitted visitors by hand.", "Operators admitted"},
		{func(f *facts) { f.History.Records, f.History.Omitted = nil, true }, "fifo", "No operator"},
		{func(f *facts) { f.History, f.Notes = manage.History{}, []string{unreadChanges + "x."} }, "fifo", "No operator"},
		{overtake, "7 visitors were admitted without a turn", "no overtaking"},
		{func(f *facts) { f.Rows.Rows[50].Method = anteroom.Random }, "random: each next visitor", "no overtaking among"},
		{func(*facts) {}, "the order of 8,123 visitors was shuffled", ""},
		{func(f *facts) {
			f.History.Records = []manage.AuditRecord{{At: start, Operation: "room.controls", Changes: []manage.FieldChange{{Field: "room.controls.reset_at", After: "1"}}}}
		}, "reset the queue 1 time", ""},
	} {
		if got := said(c.change); !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("want %q and not %q in\n%s", c.want, c.not, got)
		}
	}
}

// hostile are words that somebody may have chosen to be run where a report is opened.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg onload=alert(1)>`, `</title><script>alert(1)</script>`, `</style><script>alert(1)</script>`,
	`</text></svg><script>alert(1)</script>`, `javascript:alert(1)`, `{{.Room}}`, "\"onmouseover=alert(1) x=\"", "`${alert(1)}`", `<!--`, `-->`, `]]>`, `&lt;script&gt;`,
	`<a href="javascript:alert(1)">x</a>`, `<meta http-equiv=refresh content=0>`, `<base href=//evil.example>`, "\u2028<script>", `=cmd|' /C calc'!A0`, `@SUM(1+1)`, "+1", "-1", "\t=1", " =1", `"=1"`, "＝1",
}

// TestStoredWordsAreText: the page has the same elements and attributes whatever the words are, and no
// cell of the CSV begins as a formula.
func TestStoredWordsAreText(t *testing.T) {
	want := skeleton(t, pageOf(t, sale("x")))
	for _, word := range hostile {
		page := pageOf(t, sale(word))
		if got := skeleton(t, page); got != want {
			t.Errorf("%q changes the page", word)
		}
		if strings.Contains(page, "<script") || strings.Contains(page, "<img") {
			t.Errorf("%q is markup", word)
		}
		_, table := written(t, makeReport(sale(word)))
		cells, err := csv.NewReader(strings.NewReader(table)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range cells {
			for _, cell := range row {
				if trimmed := strings.TrimLeft(cell, " \"\t\u00a0"); trimmed != "" && strings.ContainsAny(trimmed[:1], "=+-@|%") || strings.HasPrefix(trimmed, "＝") {
					t.Errorf("%q: a spreadsheet runs %q", word, cell)
				}
			}
		}
	}
}

func pageOf(t *testing.T, f facts) string {
	t.Helper()
	page, _ := written(t, makeReport(f))
	return page
}

// skeleton is the page without its text: every element with its attributes. Text has no < that is
// not written as a reference.
func skeleton(t *testing.T, page string) string {
	t.Helper()
	all := regexp.MustCompile(`<[^>]*>`).FindAllString(page, -1)
	if len(all) < 100 {
		t.Fatalf("only %d elements", len(all))
	}
	return strings.Join(all, "\n")
}

// TestThePageIsAlone: it asks for nothing, runs nothing, and its policy allows its style.
func TestThePageIsAlone(t *testing.T) {
	page := pageOf(t, sale(""))
	for _, no := range []string{"<script", "src=", "href=", "url(", "@import", "style=", " on", "http://", "ZgotmplZ"} {
		if strings.Contains(strings.ReplaceAll(skeleton(t, page), "\n", ""), no) {
			t.Errorf("the page has %s", no)
		}
	}
	got := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)
	if len(got) != 2 || got[1] != style || strings.Contains(page, "ZgotmplZ") || strings.Contains(page, "NaN") {
		t.Error("the style is not the one that the policy allows")
	}
	if !strings.Contains(page, `content="`+markup.Escape(Policy)+`"`) {
		t.Errorf("the page does not say its policy %s", Policy)
	}
	if len(page) > 200<<10 {
		t.Errorf("%d bytes", len(page))
	}
}

func TestFiguresAreInside(t *testing.T) {
	f := sale("")
	all := makeReport(f).figures()
	if len(all) != 3 {
		t.Fatalf("%d figures", len(all))
	}
	for _, one := range all {
		svg := string(one.SVG)
		if err := xml.Unmarshal([]byte(svg), &struct{}{}); err != nil || !strings.Contains(svg, "<title>"+one.Title+".") {
			t.Errorf("%s: %v", one.Title, err)
		}
		if strings.Contains(svg, "style=") {
			t.Errorf("%s: has a style, which the policy forbids", one.Title)
		}
		for _, number := range regexp.MustCompile(`[MHVL ]([-\d.]+)`).FindAllStringSubmatch(strings.Join(regexp.MustCompile(` d="[^"]*"`).FindAllString(svg, -1), ""), -1) {
			if v, err := strconv.ParseFloat(number[1], 64); err != nil || v < 0 || v > figureWidth {
				t.Fatalf("%s: %q", one.Title, number)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Count(svg, "<text") < 8 || strings.Count(svg, "<path") < 6 {
			t.Errorf("%s: something is missing: %s", one.Title, svg)
		}
	}
	active := regexp.MustCompile(`fill="#2B5F8A" d="([^"]*)"`).FindStringSubmatch(string(all[0].SVG))
	if active == nil || strings.Count(active[1], "M") != 2 {
		t.Errorf("the gap is drawn over: %q", active)
	}
	for i := range f.Rows.Rows {
		f.Rows.Rows[i].Stats[analytics.ActiveLimit] = analytics.Stat{N: 1, Sum: anteroom.MaxUsers, Min: anteroom.MaxUsers, Max: anteroom.MaxUsers}
	}
	if svg := string(makeReport(f).figures()[0].SVG); !strings.Contains(svg, "is above the picture") || !strings.Contains(svg, ">8,000<") || strings.Contains(svg, "00,000<") {
		t.Errorf("a limit that limits nothing: %s", svg)
	}
}

func TestWords(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 2.5: "2.5", 999: "999", 1000: "1,000", 1234567: "1,234,567", -4000: "-4,000", 12.6: "13"} {
		if got := grouped(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0 s", 1.25: "1.3 s", 59.6: "60 s", 90: "1 min 30 s", 120: "2 min", 900: "15 min", 3600: "60 min", 5400: "1 h 30 min", 7200: "2 h"} {
		if got := duration(v); got != want {
			t.Errorf("%v s is %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0 %", 0.0001: "less than 0.1 %", 0.0312: "3.1 %", 0.5: "50 %"} {
		if got := percent(&v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
