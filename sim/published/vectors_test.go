package published

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// vectors reads the exact examples that the engine's tests use too. Every published section,
// and what belongs to it, is run here; the others belong to the engine.
func vectors(t *testing.T, section string, into any) {
	t.Helper()
	b, err := os.ReadFile("../../engine/testdata/admission-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[section], into); err != nil {
		t.Fatalf("section %q: %v", section, err)
	}
}

// clock reads a time of day, with or without seconds.
func clock(t *testing.T, s string) anteroom.Time {
	t.Helper()
	if len(s) == len("15:04") {
		s += ":00"
	}
	at, err := time.Parse(time.TimeOnly, s)
	if err != nil {
		t.Fatal(err)
	}
	return anteroom.TimeOf(at.AddDate(2026, 10, 19))
}

func TestVectorBucket(t *testing.T) {
	var cases []struct{ At, Bucket string }
	vectors(t, "bucket", &cases)
	for _, c := range cases {
		r := New(Config{Settings: anteroom.Settings{NewUsersPerMinute: 1}})
		d, _ := r.Visit(clock(t, c.At), 0, 0, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{1}}})
		if got := anteroom.Time(d.Ticket.Bucket()); d.Verdict != anteroom.Wait || got != clock(t, c.Bucket) {
			t.Errorf("%s: %v in bucket %v, want %s", c.At, d.Verdict, got.Std(), c.Bucket)
		}
		if got := r.sites[0].workers[0].delta.line[0].a; got != minuteOf(clock(t, c.Bucket)) {
			t.Errorf("%s: counted in minute %d", c.At, got)
		}
	}
}

// TestVectorShare: among sites only, the whole is all visitors of the minute that decides.
func TestVectorShare(t *testing.T) {
	var c struct {
		History map[string]map[string]int
		Cases   []struct {
			Now        string
			MinuteUsed string `json:"minute_used"`
			Slots      int
			Share      map[string]int
		}
	}
	vectors(t, "share_two_minutes_back", &c)
	for _, one := range c.Cases {
		minute := Even.historyMinute(clock(t, one.Now))
		if anteroom.Time(minute) != clock(t, one.MinuteUsed) {
			t.Errorf("at %s %v decides, want %s", one.Now, anteroom.Time(minute).Std(), one.MinuteUsed)
		}
		seen, all := c.History[anteroom.Time(minute).Std().Format("15:04")], 0
		for _, n := range seen {
			all += n
		}
		for site, want := range one.Share {
			if got := Share(one.Slots, seen[site], all); got != want {
				t.Errorf("at %s %s gets %d, want %d", one.Now, site, got, want)
			}
		}
	}
}

func TestVectorAggregate(t *testing.T) {
	var c struct {
		Sites map[string]struct {
			Active  int
			Waiting map[string]int
		}
		Active  int
		Waiting map[string]int
	}
	vectors(t, "aggregate", &c)
	var world tally
	for _, s := range c.Sites {
		var site tally
		site.active.add(key{a: 1}, s.Active)
		for b, n := range s.Waiting {
			site.line.add(key{minuteOf(clock(t, b)), 7}, n)
		}
		world.merge(&site)
	}
	if got := world.active.sum(0, 1); got != c.Active {
		t.Errorf("%d active, want %d", got, c.Active)
	}
	buckets, sizes := world.waiting(nil, nil, 7)
	if len(buckets) != len(c.Waiting) || !slices.IsSorted(buckets) {
		t.Fatalf("buckets %v", buckets)
	}
	for b, want := range c.Waiting {
		if i := slices.Index(buckets, minuteOf(clock(t, b))); i < 0 || sizes[i] != want {
			t.Errorf("bucket %s: %v of %v, want %d", b, sizes, buckets, want)
		}
	}
}

func TestVectorReserve(t *testing.T) {
	var cases []struct {
		L, R, Active, Slots int
		Waiting, Reserved   []int
		LeftForNew          int `json:"left_for_new"`
	}
	vectors(t, "reserve", &cases)
	for i, c := range cases {
		slots := slots(c.L, c.R, c.Active, 0)
		reserved, left := reserve(nil, slots, c.Waiting)
		if slots != c.Slots || !slices.Equal(reserved, c.Reserved) || left != c.LeftForNew {
			t.Errorf("case %d: %d slots, reserved %v, %d left; want %d, %v, %d", i, slots, reserved, left, c.Slots, c.Reserved, c.LeftForNew)
		}

		// The same through a worker that has heard of these numbers.
		r := New(Config{Settings: anteroom.Settings{TotalActiveUsers: c.L, NewUsersPerMinute: c.R}})
		now, w := clock(t, "15:57"), r.sites[0].workers[0]
		w.view.active.add(key{a: r.cellOf(now)}, c.Active)
		for k, n := range c.Waiting {
			w.view.line.add(key{minuteOf(now) - int64(len(c.Waiting)-k), minuteOf(now)}, n)
		}
		p := r.refresh(now, w)
		if p.slots != c.Slots || !slices.Equal(p.reserved, c.Reserved) || p.left != c.LeftForNew {
			t.Errorf("case %d: the worker has %+v", i, p)
		}
	}
}

func TestVectorSplit(t *testing.T) {
	var cases []struct {
		Slots   int
		Ratio   []float64
		PerSite []int `json:"per_site"`
		Workers int   `json:"workers_at_first"`
		Each    int   `json:"per_worker_at_first"`
	}
	vectors(t, "split", &cases)
	const of = 100 // visitors
	for i, c := range cases {
		for s, ratio := range c.Ratio {
			if got := Share(c.Slots, int(math.Round(of*ratio)), of); got != c.PerSite[s] {
				t.Errorf("case %d: site %d gets %d, want %d", i, s, got, c.PerSite[s])
			}
		}
		if c.Workers == 0 {
			continue
		}
		if got := perWorker(c.PerSite[0], float64(c.Workers)); got != c.Each {
			t.Errorf("case %d: a worker gets %d, want %d", i, got, c.Each)
		}
	}
}

// TestVectorAnywhere runs the published example as arithmetic and then lets visitors come
// to rooms that have heard of it.
func TestVectorAnywhere(t *testing.T) {
	var c struct {
		L, R, Active, Slots int
		HistoryMinute       string `json:"history_minute"`
		Now                 string
		Users               map[string]int
		Of                  int
		SiteSlots           map[string]int `json:"site_slots"`
		Anywhere            int            `json:"anywhere_slots"`
		Even                struct {
			WorkersHere int `json:"workers_san_jose"`
			EachHere    int `json:"per_worker_site"`
			Workers     int `json:"workers_global"`
			Each        int `json:"per_worker_anywhere"`
			Both        int `json:"per_worker_san_jose"`
		}
		Adapted []struct {
			Curve, Utilisation, Multiplier, Workers float64
			Each                                    int `json:"per_worker_anywhere"`
		}
		Counters struct {
			Total int `json:"san_jose_total"`
		}
	}
	vectors(t, "anywhere", &c)
	now := clock(t, c.Now)
	for _, m := range []Method{Adapted, Counters} {
		if got := m.historyMinute(now); anteroom.Time(got) != clock(t, c.HistoryMinute) {
			t.Errorf("%v: %v decides", m, anteroom.Time(got).Std())
		}
	}
	all := c.Users["San Jose"] + c.Users["London"]
	if got := slots(c.L, c.R, c.Active, 0); got != c.Slots || c.Of != c.L {
		t.Errorf("%d slots of %d", got, c.Of)
	}
	for site, want := range c.SiteSlots {
		if got := Share(c.Slots, c.Users[site], c.Of); got != want {
			t.Errorf("%s gets %d, want %d", site, got, want)
		}
	}
	if got := Share(c.Slots, c.Of-all, c.Of); got != c.Anywhere {
		t.Errorf("%d Anywhere, want %d", got, c.Anywhere)
	}
	if got := perWorker(c.SiteSlots["San Jose"], float64(c.Even.WorkersHere)); got != c.Even.EachHere {
		t.Errorf("a worker gets %d of San Jose's, want %d", got, c.Even.EachHere)
	}
	if got := perWorker(c.Anywhere, float64(c.Even.Workers)); got != c.Even.Each || got+c.Even.EachHere != c.Even.Both {
		t.Errorf("a worker gets %d Anywhere, want %d", got, c.Even.Each)
	}
	for _, a := range c.Adapted {
		w := workers(c.Even.Workers, a.Utilisation, a.Curve)
		if w != a.Workers || w != float64(c.Even.Workers)*a.Multiplier || a.Utilisation != float64(c.Active)/float64(c.L) {
			t.Errorf("curve %v: %v workers, want %v", a.Curve, w, a.Workers)
		}
		if got := perWorker(c.Anywhere, w); got != a.Each {
			t.Errorf("curve %v: a worker gets %d, want %d", a.Curve, got, a.Each)
		}
	}

	// San Jose 3 workers, London 3, Delhi 4.
	const sanJose, delhi = 0, 2
	for _, m := range []Method{Even, Adapted, Counters} {
		r := New(Config{Method: m, Sites: []int{3, 3, 4}, Settings: anteroom.Settings{TotalActiveUsers: c.L, NewUsersPerMinute: c.R}})
		history := minuteOf(anteroom.Time(m.historyMinute(now)))
		through := func(site int) int { // how many enter through one worker
			for _, s := range r.sites {
				for _, w := range s.workers {
					w.view.clear()
					w.view.active.add(key{a: r.cellOf(now)}, c.Active)
					w.view.visitors.add(key{history, 0}, c.Users["San Jose"])
					w.view.visitors.add(key{history, 1}, c.Users["London"])
				}
			}
			in := 0
			for i := range c.Slots {
				d, _ := r.Visit(now, site, 0, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{byte(site + 1), byte(i)}}})
				if d.Verdict == anteroom.Admit {
					in++
				}
			}
			return in
		}
		switch m {
		case Even:
			if in := through(sanJose); in != c.Even.Both {
				t.Errorf("even: a worker of San Jose lets in %d, want %d", in, c.Even.Both)
			}
			if in := through(delhi); in != c.Even.Each {
				t.Errorf("even: a worker of Delhi lets in %d, want %d", in, c.Even.Each)
			}
		case Adapted: // utilisation grows with each, and the share shrinks; it begins at 45
			if in := through(delhi); in >= c.Adapted[0].Each || in <= c.Even.Each {
				t.Errorf("adapted: a worker of Delhi lets in %d, want between %d and %d", in, c.Even.Each, c.Adapted[0].Each)
			}
		case Counters:
			if in := through(sanJose); in != c.Counters.Total {
				t.Errorf("counters: San Jose lets in %d, want %d", in, c.Counters.Total)
			}
		}
	}
}

// arrivals counts who enters when so many come to each worker, each worker with a counter of
// its own or all with one.
func arrivals(arrive []int, slots int, shared bool) (admitted, queued int) {
	values := make([]int, len(arrive))
	for w, n := range arrive {
		v := &values[w]
		if shared {
			v = &values[0]
		}
		for range n {
			if admits(*v, slots) {
				*v++
				admitted++
			} else {
				queued++
			}
		}
	}
	return admitted, queued
}

func TestVectorWorkers(t *testing.T) {
	type outcome struct{ Admitted, Queued int }
	for _, section := range []string{"workers_7_1", "workers_8_7"} {
		var c struct {
			Slots   int
			Arrive  []int
			Even    *outcome
			Adapted outcome `json:"adapted_8_each"`
			Counter outcome
		}
		vectors(t, section, &c)
		check := func(what string, want outcome, slots int, shared bool) {
			t.Helper()
			if in, out := arrivals(c.Arrive, slots, shared); in != want.Admitted || out != want.Queued {
				t.Errorf("%s, %s: %d admitted and %d queued, want %+v", section, what, in, out, want)
			}
		}
		if c.Even != nil {
			check("even", *c.Even, perWorker(c.Slots, float64(len(c.Arrive))), false)
		}
		check("adapted", c.Adapted, 8, false)
		check("counter", c.Counter, c.Slots, true)

		// The same visitors through rooms of two workers.
		for _, m := range []Method{Even, Counters} {
			want := c.Counter
			if m == Even {
				if c.Even == nil {
					continue
				}
				want = *c.Even
			}
			r := New(Config{Method: m, Sites: []int{2}, Settings: anteroom.Settings{TotalActiveUsers: c.Slots, NewUsersPerMinute: c.Slots}})
			var got outcome
			for w, n := range c.Arrive {
				for i := range n {
					if d, _ := r.Visit(morning, 0, w, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{byte(w + 1), byte(i)}}}); d.Verdict == anteroom.Admit {
						got.Admitted++
					} else {
						got.Queued++
					}
				}
			}
			if got != want {
				t.Errorf("%s through a room of %v: %+v, want %+v", section, m, got, want)
			}
		}
	}
}

func TestVectorCounterValue(t *testing.T) {
	var cases []struct {
		Value, Slots int
		Admit        bool
	}
	vectors(t, "counter_value", &cases)
	for _, c := range cases {
		if got := admits(c.Value, c.Slots); got != c.Admit {
			t.Errorf("%d of %d: %v", c.Value, c.Slots, got)
		}
	}
}

// TestVectorWaitFIFO: the published estimate knows nobody who leaves. The companions of the
// vector that do belong to the product; here they show how much too long this one is.
func TestVectorWaitFIFO(t *testing.T) {
	var cases []struct {
		Waiting, Reserved []int
		Own, Ahead        int
		PerMinute         float64 `json:"per_minute"`
		Leave             float64 `json:"leave_per_minute"`
		Minutes           float64
	}
	vectors(t, "eta_fifo", &cases)
	for i, c := range cases {
		if c.Waiting != nil {
			if got := ahead(c.Waiting, c.Reserved, c.Own); got != c.Ahead {
				t.Errorf("case %d: %d ahead, want %d", i, got, c.Ahead)
			}
		}
		got := waitFIFO(c.Ahead, c.PerMinute)
		if c.Leave == 0 && got != c.Minutes || c.Leave > 0 && got <= c.Minutes {
			t.Errorf("case %d: %v minutes, the vector says %v with %v leaving", i, got, c.Minutes, c.Leave)
		}
	}
}

func TestVectorWaitRandom(t *testing.T) {
	var cases []struct {
		Waiting   int
		PerMinute float64 `json:"per_minute"`
		P         float64
		Minutes   float64
	}
	vectors(t, "eta_random_published", &cases)
	for _, c := range cases {
		if got := waitRandom(c.Waiting, c.PerMinute, c.P); math.Abs(got-c.Minutes) > 6e-5 {
			t.Errorf("WaitRandom(%v, %v, %v) = %.4f, want %.4f", c.Waiting, c.PerMinute, c.P, got, c.Minutes)
		}
	}
}

func TestVectorLotteryWindow(t *testing.T) {
	var cases []struct {
		At         string
		Period     int    `json:"period_s"`
		EligibleAt string `json:"eligible_at"`
	}
	vectors(t, "lottery_window", &cases)
	for _, c := range cases {
		if got := lotteryEligible(clock(t, c.At), time.Duration(c.Period)*time.Second); got != clock(t, c.EligibleAt) {
			t.Errorf("%s is eligible at %v, want %s", c.At, got.Std(), c.EligibleAt)
		}
	}
	wins := 0
	for i := range 10_000 {
		token := anteroom.ID{byte(i), byte(i >> 8)}
		won := lotteryWins([]byte("k"), token, 0.3)
		if won != lotteryWins([]byte("k"), token, 0.3) {
			t.Fatal("a token has two outcomes")
		}
		if won {
			wins++
		}
	}
	if wins < 2800 || wins > 3200 {
		t.Errorf("%d of 10,000 tokens win with a chance of 0.3", wins)
	}
	if lotteryWins([]byte("k"), anteroom.ID{1}, 0) || !lotteryWins([]byte("k"), anteroom.ID{1}, 1) {
		t.Error("a chance of 0 or 1 is none")
	}
}

// TestVectorMethodSwitch lets the vector's visitors come in minutes of their own: inside a
// minute the published order is luck.
func TestVectorMethodSwitch(t *testing.T) {
	var c struct {
		Arrived      []int
		FIFONext     int   `json:"fifo_next"`
		RandomAdmits int   `json:"random_admits"`
		BackToFIFO   []int `json:"back_to_fifo"`
	}
	vectors(t, "method_switch", &c)
	s := anteroom.Settings{TotalActiveUsers: 0, NewUsersPerMinute: 100, SessionDuration: time.Hour}
	r, now := New(Config{Settings: s}), morning
	tickets := map[int]*anteroom.Ticket{}
	poll := func(n int) bool {
		d, _ := r.Visit(now, 0, 0, anteroom.Visit{Ticket: *tickets[n]})
		*tickets[n] = d.Ticket
		return d.Verdict == anteroom.Admit
	}
	pass := func() { // a minute in which everybody checks in, last comer first, to no avail
		now += minute
		r.Tick(now)
		for _, n := range slices.Backward(c.Arrived) {
			if k := tickets[n]; k != nil && !k.Accepted() && poll(n) {
				t.Fatalf("%d is let in", n)
			}
		}
	}
	for _, n := range c.Arrived {
		d, _ := r.Visit(now, 0, 0, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{byte(n)}}})
		tickets[n] = &d.Ticket
		pass()
	}
	next := func(order ...int) (in int) { // who enters when one slot is free
		now += minute
		for _, n := range order {
			if poll(n) {
				if in != 0 {
					t.Fatalf("%d and %d are let in by one slot", in, n)
				}
				in = n
			}
		}
		return in
	}
	configure := func(limit int, m anteroom.QueueingMethod) {
		s.TotalActiveUsers, s.QueueingMethod = limit, m
		r.Configure(now, s)
	}
	configure(1, anteroom.FIFO)
	if got := r.refresh(now, r.sites[0].workers[0]).buckets[0]; got != minuteOf(tickets[c.FIFONext].Arrival) {
		t.Errorf("under fifo the bucket %d is first", got)
	}
	configure(1, anteroom.Random)
	if got := next(c.RandomAdmits, 1, 2); got != c.RandomAdmits { // it is the first to ask
		t.Fatalf("random admits %d", got)
	}
	pass()
	for i, want := range c.BackToFIFO {
		configure(2+i, anteroom.FIFO)
		waiting := c.BackToFIFO[i:]
		backwards := slices.Clone(waiting)
		slices.Reverse(backwards)
		if got := next(backwards...); got != want {
			t.Errorf("back under fifo %d enters at place %d, want %d", got, i, want)
		}
	}
}
