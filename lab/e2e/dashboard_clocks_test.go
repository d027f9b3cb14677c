package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
)

// An operator in another time zone reads local times everywhere, and UTC after one press: in what is shown, in what
// is typed, and in the report.
func TestDashboardLocalTimeAndUTC(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := busyRoom(t, o, 3)
	start := time.Now().UTC().Add(48 * time.Hour).Truncate(time.Hour)
	o.good("POST", o.under("/"+id+"/events"), fields{"name": "flash-sale", "event_start_time": start.Format(time.RFC3339), "event_end_time": start.Add(time.Hour).Format(time.RFC3339)}.String(), nil)
	d := comeIn(t, shell, o)
	do(d.tab, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kabul"})
	d.visit(o.operators() + "/#token=" + operatorToken)
	d.becomes(20*time.Second, `document.querySelector('nav')`)
	d.goes(toRoom("checkout", "events"))
	d.presses("flash-sale")
	kabul := time.FixedZone("Kabul", 4*3600+1800)
	d.becomes(10*time.Second, field("event_start_time")+`.value == `+quoted(start.In(kabul).Format("2006-01-02T15:04")))
	d.says("Asia/Kabul")
	d.presses("Times: Asia/Kabul. Change to UTC")
	d.becomes(10*time.Second, field("event_start_time")+`.value == `+quoted(start.Format("2006-01-02T15:04")))

	// What is typed is UTC as well, and the choice stays.
	d.enters(field("event_start_time"), start.Add(time.Hour).Format("2006-01-02T15:04"))
	d.presses("Review and save")
	d.presses("Save")
	d.says("flash-sale saved")
	var events []struct {
		Start time.Time `json:"event_start_time"`
		End   time.Time `json:"event_end_time"`
	}
	o.good("GET", o.under("/"+id+"/events"), "", &events)
	if !events[0].Start.Equal(start.Add(time.Hour)) || !events[0].End.Equal(start.Add(2*time.Hour)) {
		t.Errorf("the event is from %v to %v, want an hour from %v", events[0].Start, events[0].End, start.Add(time.Hour))
	}
	d.goes(toRoom("checkout", "report?range=1h"))
	if page := d.href("Open the report"); !strings.HasSuffix(page, "&time_zone=UTC") {
		t.Errorf("the report is at %s", page)
	}
	d.presses("Times: UTC. Change to the time of this browser")
	d.becomes(10*time.Second, button("Open the report")+`?.href.endsWith('&time_zone=Asia%2FKabul')`)
}

// A change of the limits stands in the charts, and below them in words.
func TestDashboardChartsShowChanges(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := busyRoom(t, o, 3)
	o.change(id, fields{"session_duration": 6})
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", "analytics?range=1h"))
	eventually(t, 60*time.Second, func() string {
		if text := eval[string](d.tab, `document.querySelector('.changes')?.innerText ?? ''`); !strings.Contains(text, "session_duration") || !strings.Contains(text, "→") {
			return "the changes are: " + text
		}
		return ""
	})
	for _, v := range d.violations(axe(t)) {
		t.Errorf("%s (%s): %v", v.ID, v.Help, v.Nodes)
	}
}
