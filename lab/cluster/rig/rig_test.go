package rig

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim"
	"github.com/anteroom/anteroom/sim/demo/crowd"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

func TestEveryCaseCanBeSimulatedOrSaysWhyNot(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.Name] || c.About == "" || c.Length == 0 {
			t.Errorf("%q: there twice, or without a length or a line about it", c.Name)
		}
		seen[c.Name] = true
		if c.NoSimulation != "" {
			if c.Faults != nil {
				t.Errorf("%s: has faults for the simulator and says that it cannot be simulated", c.Name)
			}
			continue
		}
		for _, scale := range []float64{0.25, 1, 4} {
			if err := c.scenario(scale).Check(); err != nil {
				t.Errorf("%s at scale %g: %v", c.Name, scale, err)
			}
		}
	}
	if _, ok := Named("steady"); !ok || len(seen) < 20 {
		t.Errorf("%d cases", len(seen))
	}
}

func TestSimulatedCaseKeepsItsPromises(t *testing.T) {
	c, _ := Named("spike-world")
	r, err := c.simulate(t.Context(), 0.3, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range r.Checks {
		if k.Broken > 0 {
			t.Errorf("%s: %s", k.Name, k.First)
		}
	}
	if r.Numbers.Arrived < 600 || r.Numbers.PeakActive > c.Room.Active {
		t.Errorf("%+v", r.Numbers)
	}
}

const s = int64(1e6)

// tale: one seat, sessions of 10 s. Visitor 1 is inside from 1 s, his last request at 5 s, so
// that the seat is free at 15 s. Visitor 2 comes at 2 s, is told 10 s, and gets in at 20 s.
func tale() *story {
	asked := func(visitor, session string, sent int64) hit {
		return hit{Request: shop.Request{Visitor: visitor, Session: session, Sent: sent, Seen: sent + 1000}}
	}
	return &story{
		sites: []string{"a"}, nodeSite: []int{0}, homes: []int{0, 0, 0}, began: 1, end: 30 * s,
		hits: []hit{asked("1", "x", 1*s), asked("1", "x", 5*s)},
		kase: judge.Case{Active: 1, PerMinute: 60, SessionDuration: 10 * time.Second, Visitors: []crowd.Visitor{
			{Number: 1, Kind: crowd.Patient, Joined: 1 * s, Placed: 1*s + 2000, Admitted: 1*s + 2000, Asked: 1 * s},
			{Number: 2, Kind: crowd.Patient, Joined: 2 * s, Placed: 2*s + 1000, Told: 10, ToldAt: 2 * s, Polls: []crowd.Poll{{Sent: 2 * s, Answered: 2*s + 1000}}, Admitted: 20 * s, Asked: 20*s - 1000},
		}},
	}
}

func TestNumbersOfATale(t *testing.T) {
	st := tale()
	st.hits = append(st.hits, hit{Request: shop.Request{Visitor: "2", Session: "y", Sent: 20 * s, Seen: 20*s + 1000}})
	n := st.numbers(judge.Report{})
	if n.Arrived != 2 || n.Admitted != 2 || n.Queued != 1 || n.PeakActive != 1 || n.PeakWaiting != 1 {
		t.Errorf("counts: %+v", n)
	}
	// Free at 15.3 s (half of what may be late), taken at 20 s.
	if math.Abs(n.IdleP50.Seconds()-4.7) > 0.01 {
		t.Errorf("a slot was taken after %v, want 4.7 s", n.IdleP50)
	}
	if n.Premature != 0 {
		t.Errorf("the seat was taken when visitor 2 came, and %v were shown the page too early", n.Premature)
	}
	if n.Requests != 1.5 || n.WaitMax.Round(time.Second) != 18*time.Second {
		t.Errorf("requests %v, longest wait %v", n.Requests, n.WaitMax)
	}
	if got := st.silence(); got.Round(time.Second) != 15*time.Second {
		t.Errorf("silence of %v, want 15 s", got)
	}
	m := st.moments()
	if m[3].Active[0] != 1 || m[3].Waiting[0] != 1 || m[1].Admitted[0] != 1 || m[17].Active[0] != 0 {
		t.Errorf("moments: %+v", m)
	}
}

func TestPausesAreThoseThatTheRateAllows(t *testing.T) {
	st := tale() // a session begins at 1 s, and another one at 20 s
	st.hits = append(st.hits, hit{Request: shop.Request{Visitor: "2", Session: "y", Sent: 20 * s, Seen: 20 * s}})
	st.marks = []Mark{{From: 2 * s, Until: 25 * s}}
	for perMinute, want := range map[int]time.Duration{
		60: 18 * time.Second,
		2:  18 * time.Second, // the second of a minute may come at once, and the third not before the run ends
		1:  0,
	} {
		st.kase.PerMinute = perMinute
		if got, _ := st.pauses(); got[0] != want {
			t.Errorf("with %d a minute: a pause of %v, want %v", perMinute, got[0], want)
		}
	}
	st.kase.PerMinute, st.hits[2].Seen, st.end = 1, 63*s, 70*s
	st.marks[0].Until = 63 * s
	if got, _ := st.pauses(); got[0].Round(time.Millisecond) != 1739*time.Millisecond { // from 1.001 s and RateHold to 63 s
		t.Errorf("a pause of %v", got)
	}
}

func TestPausesWithNoFaultAreToldApart(t *testing.T) {
	st := tale()
	st.kase.PerMinute = 60
	st.hits = append(st.hits, hit{Request: shop.Request{Visitor: "2", Session: "y", Sent: 20 * s, Seen: 20 * s}})
	st.marks = []Mark{{From: 2 * s, Until: 4 * s}, {From: 22 * s, Until: 24 * s}}
	after, calm := st.pauses()
	if after[0] != 7*time.Second || calm != 11*time.Second { // 9 to 20 s
		t.Errorf("pauses of %v after faults, %v between them", after, calm)
	}
}

func TestPageAlthoughASeatIsFree(t *testing.T) {
	st := tale()
	v := &st.kase.Visitors[1]
	v.Joined, v.Placed = 25*s, 25*s+1000 // the seat is free since 15 s
	v.Admitted, v.Asked = 0, 0
	if got := st.premature(st.seats()); got != 0.5 {
		t.Errorf("%v of the arrivals were shown the page too early, want a half", got)
	}
}

func TestOutcomeIsWrittenAndDrawn(t *testing.T) {
	c, _ := Named("cut-queue")
	st := tale()
	o := &Outcome{Case: c, Network: "none", Report: st.kase.Judge(), Simulated: &sim.Numbers{}, Moments: st.moments(), Sites: st.sites,
		Marks: []Mark{{From: 2 * s, Until: 9 * s, What: "cut <off>"}}}
	o.Numbers = st.numbers(o.Report)
	var b bytes.Buffer
	if err := o.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"simulator", "≤ 5 %, by ≤ 60 s", "active sessions", "cut-queue: kept"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
	dir := t.TempDir()
	if err := WritePage(dir, []*Outcome{o}); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "cut-queue.svg"))
	if err != nil || !bytes.Contains(svg, []byte("cut &lt;off&gt;")) {
		t.Errorf("%v: %.300s", err, svg)
	}
	// Too many that were passed fail the run, although some may be.
	o.Report.Findings = []judge.Finding{{Rule: "order", Violations: 3}}
	if !o.OK() {
		t.Error("a few that were passed across a cut link fail the run")
	}
	if o.Numbers.Overtaken = 0.2; o.OK() {
		t.Error("a fifth of the line was passed and the run is good")
	}
	o.Numbers.Overtaken, o.Faults = 0, []string{"a1 ended by itself"}
	if o.OK() {
		t.Error("a process ended by itself and the run is good")
	}
}

func TestShardOfTheRoom(t *testing.T) {
	id := string(anteroom.RoomIDOf("shop.example", "shop"))
	got, err := shardOf([]byte(`{"rooms":[{"id":"` + id + `"}]}`))
	if err != nil || got != cluster.ShardOf(id) {
		t.Errorf("%d, %v; want %d", got, err, cluster.ShardOf(id))
	}
	if _, err := shardOf([]byte(`{"rooms":[]}`)); err == nil {
		t.Error("a page without rooms has a shard")
	}
}
