package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// An operator with many rooms looks at the overview: a queue comes first, whatever the room is called; a filter and the
// search find others, stay in the address, and nothing has to be scrolled sideways on a tablet.
func TestDashboardOverviewShowsWhatNeedsEyes(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	for i, name := range []string{"books", "games", "music"} {
		o.newRoom(fields{"name": name, "path": fmt.Sprintf("/other%d", i), "suspended": name == "music"})
	}
	id := busyRoom(t, o, 7)
	now := time.Now().UTC()
	o.good("POST", o.under("/"+id+"/events"), fields{"name": "flash-sale-with-a-name-that-is-rather-long", "event_start_time": now.Add(2 * time.Hour).Format(time.RFC3339), "event_end_time": now.Add(3 * time.Hour).Format(time.RFC3339)}.String(), nil)
	d := sitDown(t, o, operatorToken)
	d.goes("/")
	shows := func(want ...string) {
		t.Helper()
		const names = `[...document.querySelectorAll('.rooms-table tbody th a')].map(a => a.innerText)`
		eventually(t, 15*time.Second, func() string {
			if got := eval[[]string](d.tab, names); !slices.Equal(got, want) {
				return fmt.Sprintf("the overview shows %q, want %q", got, want)
			}
			return ""
		})
	}
	shows("checkout", "books", "games", "music")
	o.arrive("/") // the first ones may count as away by now, for they ask once
	d.presses("Queueing 1")
	shows("checkout")
	d.presses("Off 1")
	shows("music")
	d.goes("/" + eval[string](d.tab, "location.search"))
	shows("music")
	d.presses("Event today 1")
	shows("checkout")
	d.presses("All 4")
	d.writes(labelled("Search"), "GAM")
	shows("games")
	d.writes(labelled("Search"), "")
	for _, width := range []int64{1280, 1024, 768, 360} {
		d.screen(width, 900, "light")
		d.becomes(5*time.Second, fmt.Sprintf("innerWidth == %d", width))
		if over := eval[int](d.tab, `(e => e.scrollWidth - e.clientWidth)(document.querySelector('.rooms-table .scroll'))`); over > 0 {
			t.Errorf("at %d pixels the rooms are %d pixels too wide", width, over)
		}
	}
}

// Names as long as they may be, without a space, widen no page; and on a phone the tab of the page that is shown is in sight.
func TestDashboardLongNamesFit(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	long := strings.Repeat("W", 64)
	id := o.newRoom(fields{"name": long})
	o.good(http.MethodPost, "/anteroom/v1/tokens", `{"name":"`+long+`","grants":[{"permission":"read"}]}`, nil)
	o.good(http.MethodPost, "/anteroom/v1/webhooks", `{"name":"`+long+`","url":"https://hooks.example.com/`+strings.Repeat("a", 200)+`"}`, nil)
	o.good(http.MethodPost, "/anteroom/v1/zones/"+o.zone+"/rooms/"+id+"/invites", `{"name":"`+long+`","count":1}`, nil)
	o.good(http.MethodPost, o.under("/"+id+"/events"), `{"name":"`+long+`","event_start_time":"2040-01-01T00:00:00Z","event_end_time":"2040-01-02T00:00:00Z"}`, nil)
	d := sitDown(t, o, operatorToken)
	for _, width := range []int64{768, 1024, 360} {
		d.screen(width, 800, "light")
		for _, page := range []string{"/", "/tokens", "/webhooks", toRoom(long, ""), toRoom(long, "events"), toRoom(long, "invites"), toRoom(long, "settings")} {
			d.goes(page)
			if got := eval[int64](d.tab, "document.documentElement.scrollWidth"); got > width {
				t.Errorf("%s on a screen of %d pixels is %d wide", page, width, got)
			}
			if !eval[bool](d.tab, `(a => !a || (r => r.left >= 0 && r.right <= innerWidth)(a.getBoundingClientRect()))(document.querySelector('nav.tabs [aria-current]'))`) {
				t.Errorf("%s on a screen of %d pixels: its tab is out of sight", page, width)
			}
		}
	}
}

// Labels are in words; whoever writes scripts asks for the names of the API, once for all pages.
func TestDashboardNamesOnDemand(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.newRoom(fields{"name": "checkout"})
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "settings"))
	const shown = `document.querySelector('main').innerText.includes('total_active_users')`
	if eval[bool](d.tab, shown) {
		t.Error("the settings show names of the API")
	}
	d.presses("API names")
	d.becomes(5*time.Second, shown)
	d.goes(toRoom("checkout", "events?event=new"))
	d.becomes(5*time.Second, `document.querySelector('main').innerText.includes('event_start_time')`)
	d.presses("API names")
	d.becomes(5*time.Second, `!document.querySelector('main').innerText.includes('event_start_time')`)

	// What does nothing is not asked for.
	d.goes(toRoom("checkout", "settings"))
	if eval[bool](d.tab, "!!"+field("protect_errors")) {
		t.Error("the bounds of a protection that is off are asked for")
	}
	d.switches("protect")
	d.becomes(5*time.Second, field("protect_errors"))
}
