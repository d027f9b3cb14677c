//go:build !race

package sim

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAdmissionsAreEven: where the rate holds the queue up, whoever is next enters when a rate slot comes free, and not by the
// heartbeats of the site: also where so many come that there is always something to report.
func TestAdmissionsAreEven(t *testing.T) {
	const perMinute, most = 2400, 0.2 // seconds
	sc := Scenario{Name: "even", Length: 90 * time.Second, Sites: []Site{{Name: "a", Share: 1, Nodes: 4, Delay: time.Millisecond}},
		Visitors: Visitors{Streams: 1, Browsing: Spread{Mean: 15 * time.Second}, Think: Spread{Mean: 5 * time.Second}}}
	sc.TotalActiveUsers, sc.NewUsersPerMinute, sc.SessionDuration = 10*perMinute, perMinute, time.Minute
	// Evenly, until the slots of the first minute come free; from then on there is a queue.
	sc.Arrivals = []Flow{{To: sc.Length, PerMinute: perMinute * 59 / 60, ToPerMinute: perMinute * 59 / 60}, {From: time.Minute, To: 65 * time.Second, Visitors: perMinute / 4}}
	var trace bytes.Buffer
	if _, err := Run(t.Context(), sc, 1, Options{Trace: &trace}); err != nil {
		t.Fatal(err)
	}
	var admitted []float64
	for line := range strings.Lines(trace.String()) {
		f := strings.Fields(line)
		if len(f) < 5 || f[1] != "admit" || f[4] == "session" {
			continue
		}
		at, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		admitted = append(admitted, at)
	}
	if len(admitted) < perMinute*4/3 {
		t.Fatalf("%d were admitted", len(admitted))
	}
	for i, at := range admitted {
		if at < 66 {
			continue
		}
		if since := max(admitted[i-1], admitted[i-perMinute]+60.25); at-since > most {
			t.Errorf("nobody was admitted for %.3f s until %.3f, though the rate allowed it", at-since, at)
		}
	}
}
