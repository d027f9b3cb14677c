package outcome

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; go test ./sim/outcome -update rewrites it:\n%s", name, diff)
	}
}

// made is a result that nobody has run, with numbers that are easy to recognise.
func made(algorithm string, seed uint64) *sim.Result {
	later := time.Duration(seed-1) * time.Minute
	return &sim.Result{
		Scenario: sim.Scenario{
			Name: "Made", About: "numbers to look at", Length: time.Hour, Drain: true,
			Settings: anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: 400, QueueAll: true},
			Changes: []sim.Change{
				{At: 10 * time.Minute, Settings: anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: 400}},
				{At: 20 * time.Minute, Settings: anteroom.Settings{TotalActiveUsers: 1500, NewUsersPerMinute: 400, SessionDuration: time.Minute}},
			},
		},
		Algorithm: algorithm, Seed: seed, Ran: 90*time.Minute + later, Took: 1234567 * time.Microsecond, Trace: "abc",
		Checks: []sim.Check{{Name: "cap", Looked: 123456}, {Name: "rate", Looked: 1000}},
		Numbers: sim.Numbers{
			Arrived: 54321, Admitted: 40000, Left: 10000, Refused: 4321, Queued: 50000,
			PeakActive: 1500, PeakPerMinute: 400, PeakWaiting: 30123 + int(seed), LineEmpty: 80*time.Minute + later,
			WaitP50: 95 * time.Second, WaitP80: 9*time.Minute + 58*time.Second, WaitP95: 25 * time.Minute, WaitMax: 61 * time.Minute,
			OverActive: 0.123, Premature: 0.0004, Idle: 0.015, EtaError: 0.04, EtaWithin: 0.9, EtaTold: 20000, Requests: 12.34, VisitorHours: 1.5,
			IdleP50: 1500 * time.Microsecond,
		},
		Points: []sim.Point{
			{At: 0, Limit: 1000, Rate: 400, Sites: []int32{0, 0}},
			{At: 30 * time.Second, Arrived: 600, Active: 5, Limit: 1000, Rate: 400, Sites: []int32{2, 3}},
			{At: 60 * time.Second, Arrived: 1000, Active: 7, Waiting: 3, Admitted: 9, LastMinute: 9, Limit: 1000, Rate: 400, Idle: 0.25, Sites: []int32{3, 4}},
			{At: 90 * time.Second, Arrived: 2000, Sites: []int32{0}},
		},
		Visits: []sim.Visit{
			{Arrived: time.Second, Admitted: time.Second + time.Microsecond},
			{Arrived: 2 * time.Second, Shown: true, TellAt: 2 * time.Second, Told: 90 * time.Second, Admitted: 95 * time.Second, Site: 1},
			{Arrived: 3 * time.Second, Shown: true, Left: time.Minute, Told25: time.Second, Told75: time.Minute},
		},
		Places: []string{"fra", "-iad"},
	}
}

func TestText(t *testing.T) {
	calm := made(sim.Anteroom, 1)
	calm.Scenario.About, calm.Scenario.Changes, calm.Scenario.QueueAll, calm.Scenario.Drain = "", nil, false, false
	calm.Numbers = sim.Numbers{Arrived: 10, Admitted: 10, PeakActive: 5, PeakPerMinute: 3, Requests: 1}
	calm.Points = nil

	broken := made(sim.Anteroom, 1)
	broken.Checks[0].Broken, broken.Checks[0].First = 12, "at 3m5s: 1001 of 1000 are inside"
	broken.Numbers.Waiting, broken.Numbers.LineEmpty = 5, 0

	variations := Variations(made(sim.Anteroom, 1).Scenario)
	for i := range variations {
		variations[i].Result = made(sim.Anteroom, uint64(i+2))
	}
	for _, c := range []struct {
		name   string
		report Report
	}{
		{"nothing", Report{}},
		{"calm", Report{Results: []*sim.Result{calm}}},
		{"broken", Report{Results: []*sim.Result{broken}}},
		{"seeds", Report{Results: []*sim.Result{made(sim.Anteroom, 1), made(sim.Anteroom, 2), made(sim.Anteroom, 3)}}},
		{"everything", Report{
			Results: []*sim.Result{made(sim.Anteroom, 1), made(sim.Even, 1), made(sim.Ideal, 1)},
			WhatIf:  variations, Files: []string{"figures/load.svg", "points.csv"},
		}},
	} {
		var b bytes.Buffer
		if err := Text(&b, c.report); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/"+c.name+".txt", b.String())
		if n := strings.Count(b.String(), "\n"); n > 40 {
			t.Errorf("%s has %d lines, more than a screen", c.name, n)
		}
	}
}

func TestJSON(t *testing.T) {
	variations := Variations(made(sim.Anteroom, 1).Scenario)[:1]
	variations[0].Result = made("", 1)
	var b bytes.Buffer
	if err := JSON(&b, Report{Results: []*sim.Result{made("", 7)}, WhatIf: variations, Files: []string{"a.csv"}}); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/report.json", b.String())
}

// A number that a result gains must reach the JSON, and in its own member.
func TestEveryNumberIsInTheJSON(t *testing.T) {
	for _, pair := range []struct{ in, out reflect.Type }{
		{reflect.TypeFor[sim.Numbers](), reflect.TypeFor[jsonNumbers]()}, {reflect.TypeFor[sim.Point](), reflect.TypeFor[jsonPoint]()},
	} {
		for f := range pair.in.Fields() {
			v := reflect.New(pair.in).Elem()
			switch x := v.FieldByIndex(f.Index); x.Kind() {
			case reflect.Float64:
				x.SetFloat(5)
			case reflect.Slice:
				x.Set(reflect.MakeSlice(x.Type(), 1, 1))
			default:
				x.SetInt(int64(5 * time.Second))
			}
			var made any
			switch in := v.Interface().(type) {
			case sim.Numbers:
				in.EtaTold, in.LotteryTold, in.Draws = 5, 5, 5
				made = numbersOf(in)
			case sim.Point:
				made = pointOf(in)
			}
			out := reflect.ValueOf(made)
			if g := out.FieldByName(f.Name); !g.IsValid() || g.IsZero() {
				t.Errorf("%v.%s does not reach the JSON", pair.in, f.Name)
			}
			j, ok := pair.out.FieldByName(f.Name)
			if isDuration := f.Type == reflect.TypeFor[time.Duration](); ok && isDuration != strings.HasSuffix(j.Tag.Get("json"), "_seconds") {
				t.Errorf("%v.%s is called %s", pair.in, f.Name, j.Tag.Get("json"))
			}
		}
	}
	if b, err := json.Marshal(seconds(1500 * time.Millisecond)); err != nil || string(b) != "1.5" {
		t.Errorf("1.5s is %s, %v", b, err)
	}
}

func TestTables(t *testing.T) {
	results := []*sim.Result{made(sim.Anteroom, 1), made(sim.Even, 1)}
	var points, visits bytes.Buffer
	if err := Points(&points, results); err != nil {
		t.Fatal(err)
	}
	if err := Visits(&visits, results); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/points.csv", points.String())
	golden(t, "testdata/visits.csv", visits.String())
}

func TestVariations(t *testing.T) {
	sc := sim.Scenario{
		Settings: anteroom.Settings{TotalActiveUsers: 3, NewUsersPerMinute: anteroom.MaxUsers, QueueingMethod: anteroom.Random},
		Changes:  []sim.Change{{Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 10, QueueingMethod: anteroom.Reject}}},
	}
	var got []string
	for _, v := range Variations(sc) {
		s, c := v.Scenario.Settings, v.Scenario.Changes[0].Settings
		got = append(got, strings.Join([]string{v.Setting, v.value(), chart.Thousands(s.NewUsersPerMinute), chart.Thousands(c.TotalActiveUsers), chart.Thousands(c.NewUsersPerMinute), string(c.QueueingMethod)}, " "))
	}
	want := []string{
		"total_active_users 2 2,147,483,647 1 10 reject", "total_active_users 2 2,147,483,647 1 10 reject",
		"total_active_users 5 2,147,483,647 2 10 reject", "total_active_users 6 2,147,483,647 2 10 reject",
		"new_users_per_minute 1,073,741,824 1,073,741,824 1 5 reject", "new_users_per_minute 1,610,612,735 1,610,612,735 1 8 reject",
		"new_users_per_minute 2,147,483,647 2,147,483,647 1 15 reject", "new_users_per_minute 2,147,483,647 2,147,483,647 1 20 reject",
		"queueing_method fifo 2,147,483,647 1 10 reject",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if sc.Changes[0].Settings.TotalActiveUsers != 1 {
		t.Error("the plan's own changes were changed")
	}
	sc.QueueingMethod = anteroom.Passthrough
	if n := len(Variations(sc)); n != 8 {
		t.Errorf("%d variations of a passthrough, want 8: there is no other way", n)
	}
}

func TestOnlyTheProductPromises(t *testing.T) {
	bad := sim.Check{Name: "cap", Looked: 5, Broken: 2}
	r := Report{
		Results: []*sim.Result{{Algorithm: sim.Even, Checks: []sim.Check{bad}}, {Algorithm: "", Seed: 4, Checks: []sim.Check{bad, {Name: "rate"}}}},
		WhatIf:  []Variation{{}, {Result: &sim.Result{Algorithm: sim.Anteroom, Seed: 5, Checks: []sim.Check{bad}}}},
	}
	r.WhatIf[1].Setting = "queueing_method"
	r.WhatIf[1].Scenario.QueueingMethod = anteroom.Random
	if got := r.Broken(); len(got) != 2 || got[0].Run() != "seed 4" || got[1].Run() != "seed 5, with queueing_method random" {
		t.Errorf("%+v", got)
	}
}

// What was never told is null: a 0 would say that it was exactly right.
func TestWhatWasNeverToldIsNull(t *testing.T) {
	r := made("", 1)
	r.Numbers.EtaTold, r.Numbers.EtaError, r.Numbers.EtaWithin = 0, 0, 0
	numbers := func() (out map[string]any) {
		var b bytes.Buffer
		if err := JSON(&b, Report{Results: []*sim.Result{r}}); err != nil {
			t.Fatal(err)
		}
		var all struct {
			Runs []struct{ Numbers map[string]any }
		}
		if err := json.Unmarshal(b.Bytes(), &all); err != nil {
			t.Fatal(err)
		}
		return all.Runs[0].Numbers
	}
	names := []string{"eta_error", "eta_bias", "eta_within", "lottery_error", "lottery_rank"}
	for _, name := range names {
		if v, there := numbers()[name]; v != nil || !there {
			t.Errorf("%s is %v though nothing was told", name, v)
		}
	}
	r.Numbers.EtaTold, r.Numbers.LotteryTold, r.Numbers.Draws = 9, 9, 9
	for _, name := range names {
		if v := numbers()[name]; v != 0.0 {
			t.Errorf("%s is %v though it was exactly right", name, v)
		}
	}
}
