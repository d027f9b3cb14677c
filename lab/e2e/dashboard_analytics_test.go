package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// tile is the figure of a tile of the analytics.
func tile(title string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('.tile')].find(t => t.querySelector('dt').innerText == %q)?.querySelector('strong').innerText`, title)
}

// An operator sees a surge in the figures within seconds, looks closer with the pointer, and takes the figures away.
func TestDashboardAnalyticsOfASurge(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	busyRoom(t, o, 7)
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "analytics?range=30m"))
	d.becomes(15*time.Second, tile("Longest queue")+` == '5'`)
	d.becomes(15*time.Second, tile("Most active users")+` == '2'`)
	for range 3 {
		o.arrive("/")
	}
	// Whoever does not come again counts as joined, and after a while no more as waiting.
	d.becomes(15*time.Second, `[...document.querySelectorAll('.tile')].find(t => t.innerText.includes('Left the queue')).innerText.includes('of 8 who joined')`)

	// A range is drawn in one chart; the address and all charts follow.
	const chart = `[...document.querySelectorAll('figure.chart')].find(f => f.querySelector('h3').innerText == 'New users per minute').querySelector('.u-over')`
	eval[bool](d.tab, chart+`.scrollIntoView({block: 'center'}), true`)
	box := eval[struct{ X, Y, Width, Height float64 }](d.tab, `(r => ({X: r.x, Y: r.y, Width: r.width, Height: r.height}))(`+chart+`.getBoundingClientRect())`)
	before := time.Now()
	d.drag(box.X+box.Width*0.6, box.Y+box.Height/2, box.X+box.Width*0.998, box.Y+box.Height/2)
	d.becomes(10*time.Second, `new URLSearchParams(location.search).has('from')`)
	query, err := url.ParseQuery(strings.TrimPrefix(eval[string](d.tab, "location.search"), "?"))
	if err != nil {
		t.Fatal(err)
	}
	from, err := time.Parse(time.RFC3339, query.Get("from"))
	if err != nil {
		t.Fatal(err)
	}
	to, err := time.Parse(time.RFC3339, query.Get("to"))
	if err != nil {
		t.Fatal(err)
	}
	if length := to.Sub(from); length < 11*time.Minute || length > 15*time.Minute || to.Before(before.Add(-2*time.Minute)) || query.Has("range") {
		t.Errorf("two fifths of half an hour became %v", query)
	}
	charts := eval[[]string](d.tab, `[...document.querySelectorAll('figure.chart h3')].map(h => h.innerText)`)
	if len(charts) < 7 {
		t.Errorf("charts: %q", charts)
	}
	for _, title := range charts {
		d.presses(title + ": show as a table")
	}
	d.becomes(10*time.Second, fmt.Sprintf(`document.querySelectorAll('figure.chart table').length == %d`, len(charts)))
	minutes := int(to.Sub(from) / time.Minute)
	d.becomes(10*time.Second, fmt.Sprintf(`[...document.querySelectorAll('figure.chart table')].every(t => Math.abs(t.tBodies[0].rows.length - %d) <= 1)`, minutes))
	d.becomes(5*time.Second, `[...document.querySelectorAll('figure.chart td[data-title="joined"]')].reduce((n, c) => n + (Number(c.innerText) || 0), 0) == 8`)

	// What can be taken away is what is shown.
	status, kind, body := d.reads(d.href("CSV"))
	if lines := strings.Split(strings.TrimSpace(body), "\n"); status != http.StatusOK || !strings.HasPrefix(kind, "text/csv") || !strings.Contains(lines[0], "queued_users") || len(lines)-1 != minutes {
		t.Errorf("CSV: %d %s, %d lines of %d minutes: %.200s", status, kind, len(lines), minutes, body)
	}
	status, _, body = d.reads(d.href("JSON"))
	var e envelope
	var figures struct{ Total map[string]*float64 }
	if err := json.Unmarshal([]byte(body), &e); err != nil || json.Unmarshal(e.Result, &figures) != nil || status != http.StatusOK {
		t.Fatalf("JSON: %d %v %.200s", status, err, body)
	}
	if v := figures.Total["joined"]; v == nil || *v != 8 {
		t.Errorf("the JSON has not the 8 of the page: %v", figures.Total)
	}
	d.presses("GraphQL, curl")
	d.becomes(5*time.Second, `document.querySelector('dialog[open] pre').innerText.includes('waitingRoomAnalyticsAdaptiveGroups')`)
	d.presses("Close")

	// The way back leads out again.
	d.back()
	d.becomes(10*time.Second, `location.search == '?range=30m'`)
	d.becomes(10*time.Second, `[...document.querySelectorAll('figure.chart table')].every(t => Math.abs(t.tBodies[0].rows.length - 30) <= 1)`)
}
