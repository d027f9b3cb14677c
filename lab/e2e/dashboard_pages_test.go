package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// pages are the paths that the dashboard's navigation leads to, with those of the first room.
func (d *desk) pages() []string {
	d.t.Helper()
	links := func(path, selector string) []string {
		d.goes(path)
		d.becomes(10*time.Second, fmt.Sprintf(`document.querySelector(%q)`, selector))
		return eval[[]string](d.tab, fmt.Sprintf(`[...document.querySelectorAll(%q)].map(a => new URL(a.href)).filter(u => u.origin == location.origin).map(u => u.pathname)`, selector))
	}
	room := links("/", `main a[href*="/rooms/"]`)[0]
	all := slices.Concat(links("/", "nav a[href]"), []string{"/new"}, links(room, `nav.tabs a[href^="`+room+`"]`))
	slices.Sort(all)
	return slices.Compact(all)
}

// Every page: no violation of the accessibility rules in light and in dark, on a desktop and on a phone, nothing wider
// than the phone, and nothing that the console has to say.
func TestDashboardPagesAreAccessibleAndQuiet(t *testing.T) {
	t.Parallel()
	script := axe(t)
	o := startOffice(t)
	id := busyRoom(t, o, 7)
	o.good("POST", o.under("/"+id+"/rules"), `{"action":"bypass_waiting_room","expression":"starts_with(http.request.uri.path, \"/health/\")","description":"monitoring","enabled":true}`, nil)
	start := time.Now().UTC().Add(24 * time.Hour)
	var event struct{ ID string }
	o.good("POST", o.under("/"+id+"/events"), fields{"name": "flash-sale", "event_start_time": start.Format(time.RFC3339), "event_end_time": start.Add(time.Hour).Format(time.RFC3339),
		"prequeue_start_time": start.Add(-30 * time.Minute).Format(time.RFC3339), "shuffle_at_event_start": true}.String(), &event)
	o.good("POST", "/anteroom/v1/tokens", `{"name":"colleague","grants":[{"permission":"read"}]}`, nil)
	d := sitDown(t, o, operatorToken)
	pages := d.pages()
	if len(pages) < 14 {
		t.Errorf("the navigation leads to %q only", pages)
	}
	pages = append(pages, toRoom("checkout", "events?event=new"), toRoom("checkout", "events?event="+event.ID), toRoom("checkout", "rules?rule=new"))
	for _, page := range pages {
		d.screen(1280, 900, "light")
		d.goes(page)
		for _, width := range []int64{1280, 360} {
			for _, scheme := range []string{"light", "dark"} {
				d.screen(width, 900, scheme)
				d.settles()
				d.becomes(5*time.Second, fmt.Sprintf(`innerWidth == %d && matchMedia('(prefers-color-scheme: %s)').matches`, width, scheme))
				for _, v := range d.violations(script) {
					t.Errorf("%s at %d pixels, %s: %s (%s): %v", page, width, scheme, v.ID, v.Help, v.Nodes)
				}
				if w := eval[int64](d.tab, "document.documentElement.scrollWidth"); w > width {
					t.Errorf("%s: %d pixels wide, want at most %d: %s", page, w, width, d.widest(width))
				}
			}
		}
	}
	d.presses("Log out")
	d.becomes(10*time.Second, asksForToken)
	for _, v := range d.violations(script) {
		t.Errorf("the login: %s (%s): %v", v.ID, v.Help, v.Nodes)
	}
	for _, c := range d.said("network", "other") {
		t.Errorf("the console says: %s: %s", c.source, c.text)
	}
	if foreign := d.foreign(); len(foreign) > 0 {
		t.Errorf("the dashboard asked elsewhere: %s", strings.Join(foreign, " "))
	}
}

// widest names what stands out of a screen.
func (d *desk) widest(width int64) string {
	return d.try(fmt.Sprintf(`[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > %d + 1 && !e.closest('.scroll, pre')).slice(0, 5).map(e => e.outerHTML.slice(0, 120)).join(' | ')`, width))
}
