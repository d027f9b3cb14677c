package load

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

// evenings are run in virtual time: minutes pass in moments, and every run is alike.
func spend(t *testing.T, g *toy, o Options) (judge.Report, string) {
	t.Helper()
	g.active, g.perMinute, g.stay = 30, 60, 10*time.Second
	o.Visitors, o.Active, o.PerMinute, o.SessionDuration = 250, g.active, g.perMinute, g.stay
	o.Duration, o.Dir, o.Seed = 150*time.Second, t.TempDir(), 7
	var out bytes.Buffer
	o.Out = &out
	var r judge.Report
	synctest.Test(t, func(t *testing.T) {
		var err error
		o.dial = g.dial
		if r, err = run(t.Context(), o.withDefaults(), g); err != nil {
			t.Fatal(err)
		}
	})
	return r, out.String()
}

func TestHonestGateIsAcquitted(t *testing.T) {
	for _, test := range []struct {
		name string
		o    Options
	}{
		{"quiet", Options{Streams: -1}},
		{"with streams", Options{}},
		{"killed twice", Options{Kills: 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, out := spend(t, &toy{}, test.o)
			if !r.OK() || !strings.Contains(out, "Every promise was kept.") {
				t.Errorf("an honest gate is found guilty:\n%s", out)
			}
			if n := strings.Count(out, "\n        kill -9\n"); n != test.o.Kills {
				t.Errorf("killed %d times, want %d", n, test.o.Kills)
			}
		})
	}
}

func TestFaultyGatesAreFoundOut(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, test := range []struct {
		name  string
		g     *toy
		kills int
		rules []string // at least these are violated
	}{
		{"one seat too many", &toy{tooMany: 1}, 0, []string{"active sessions"}},
		{"one a minute too many", &toy{tooFast: 1}, 0, []string{"new sessions"}},
		{"last come, first served", &toy{unfair: true}, 0, []string{"order"}},
		{"forgets when killed", &toy{forgetful: true}, 1, []string{"new sessions", "order", "shown place", "tickets"}},
		{"throws people out", &toy{rude: true}, 0, []string{"sessions last"}},
		{"lets some past", &toy{leaky: true}, 0, []string{"gate"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, out := spend(t, test.g, Options{Kills: test.kills})
			for _, rule := range test.rules {
				if !strings.Contains(out, "VIOLATED: "+rule) {
					t.Errorf("%q was not found out", rule)
				}
			}
			if r.OK() || t.Failed() {
				t.Errorf("the report:\n%s", out)
			}
		})
	}
}

func TestEverythingIsKeptAndCanBeJudgedAgain(t *testing.T) {
	var dir string
	g := &toy{}
	g.active, g.perMinute, g.stay = 5, 60, 2*time.Second
	var first bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		dir = t.TempDir()
		o := Options{Visitors: 40, Active: 5, PerMinute: 60, SessionDuration: g.stay, Duration: time.Minute, Kills: 1, Dir: dir, Out: &first, dial: g.dial}
		if _, err := run(t.Context(), o.withDefaults(), g); err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		r, err := Rejudge(dir, &again)
		if err != nil || !r.OK() || !strings.HasSuffix(first.String(), again.String()) {
			t.Errorf("judged again: %v\n%s\nfirst:\n%s", err, again.String(), first.String())
		}
		for _, name := range []string{originFile, visitorsFile, runName, reportFile, figureFile} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, visitorsFile), []byte("{}\n{"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Rejudge(dir, &again); err == nil || !strings.Contains(err.Error(), "visitor 2") {
			t.Errorf("a damaged record: %v", err)
		}
	})
}

func TestOptions(t *testing.T) {
	if o := (Options{}).withDefaults(); o.Visitors != 20_000 || o.Active != 500 || o.PerMinute != 600 || o.Duration != 8*time.Minute {
		t.Errorf("defaults: %+v", o)
	}
	if o := (Options{Visitors: 2000, Active: 7}).withDefaults(); o.Active != 7 || o.PerMinute != 200 || o.Duration != 100*time.Second {
		t.Errorf("small defaults: %+v", o)
	}
	for _, test := range []struct {
		o     Options
		fault string
	}{
		{Options{Visitors: -1}, "visitors"},
		{Options{Active: -1}, "active"},
		{Options{PerMinute: -1}, "per-minute"},
		{Options{SessionDuration: 1}, "session"},
		{Options{Duration: 1}, "duration"},
		{Options{Kills: -1}, "kills"},
		{Options{Down: time.Hour}, "down"},
		{Options{Dir: t.TempDir()}, "-binary"},
	} {
		if _, err := Run(t.Context(), test.o); err == nil || !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%+v: %v, want %q", test.o, err, test.fault)
		}
	}
}

// Requests past the gateway belong to the session of their visitor while its pass may be valid, and to none before and after.
func TestRequestsWithPasses(t *testing.T) {
	at := func(s int64, visitor, session string) shop.Request {
		return shop.Request{Seen: s * 1_000_000, Visitor: visitor, Session: session}
	}
	requests := []shop.Request{at(0, "1", ""), at(1, "1", "a"), at(2, "2", ""), at(3, "1", ""), at(15, "1", ""), at(16, "1", ""), at(17, "1", ""), at(18, "1", "b"), at(19, "1", ""), at(20, "", "")}
	passed(requests, 10*time.Second)
	var got []string
	for _, q := range requests {
		got = append(got, q.Session)
	}
	if want := []string{"", "a", "", "a", "a", "a", "", "b", "b", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
