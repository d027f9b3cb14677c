package store

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// began is when the clocks of tests begin: in the middle of an hour.
var began = time.Date(2026, 11, 20, 22, 38, 20, 0, time.UTC)

// clock is a wall clock that tests move.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// openAt opens a store in a new directory.
func openAt(t testing.TB, c *clock, more ...func(*Config)) *Store {
	t.Helper()
	cfg := Config{Path: filepath.Join(t.TempDir(), "analytics.db"), Now: c.Now}
	for _, set := range more {
		set(&cfg)
	}
	s := Open(cfg)
	t.Cleanup(func() { s.Close() })
	if h := s.Health(); h.Failing != "" {
		t.Fatal(h.Failing)
	}
	return s
}

func ask(t testing.TB, s *Store, q analytics.Query) analytics.Answer {
	t.Helper()
	a, err := s.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func room(i int) anteroom.RoomID { return anteroom.RoomID(fmt.Sprintf("%032x", i)) }

// minuteOfVisitors makes up what a process saw. More n, more of everything.
func minuteOfVisitors(r *rand.Rand, id anteroom.RoomID, at time.Time, process uint64, n int) *analytics.Minute {
	m := &analytics.Minute{Room: id, Start: at, Process: process, Seq: int64(n)}
	for range min(n, 60) {
		for g := range m.Gauges {
			m.Gauges[g].Record(r.Int64N(int64(10*n + 1)))
		}
	}
	for c := range m.Counts {
		m.Counts[c] = r.Int64N(int64(n + 1))
	}
	for s := range analytics.Spans {
		if n > 0 && r.IntN(3) > 0 {
			h := &analytics.Histogram{}
			for range n {
				h.Record(time.Duration(r.ExpFloat64() * float64(time.Minute)))
			}
			m.Histograms[s] = h
		}
	}
	m.Reasons = map[string]int64{"admitted": 1 + r.Int64N(9), "queued": 1 + r.Int64N(9)}
	if r.IntN(2) == 0 {
		m.BypassReasons = map[string]int64{"rule": 1 + r.Int64N(3)}
	}
	if n > 0 {
		m.InForce = analytics.InForce{At: anteroom.TimeOf(at.Add(time.Duration(r.IntN(60)) * time.Second)), Method: anteroom.QueueingMethods[r.IntN(4)], QueueAll: r.IntN(2) == 0}
	}
	return m
}

// told is what all processes told, the newest of each: against it, a store is judged.
type told map[analytics.Key]*analytics.Minute

func (all told) put(m *analytics.Minute) {
	if old, ok := all[m.Key()]; !ok || m.Newer(old) {
		all[m.Key()] = m
	}
}

// rows adds the minutes of a room up, from one to before another; every 0 is all of it.
func (all told) rows(id anteroom.RoomID, from, to time.Time, every time.Duration) (out []analytics.Row) {
	byMinute := map[time.Time]*analytics.Minute{}
	for _, m := range all {
		if m.Room != id {
			continue
		}
		if sum := byMinute[m.Start]; sum == nil {
			byMinute[m.Start] = m.Clone()
		} else {
			sum.Add(m)
		}
	}
	var starts []time.Time
	for at := range byMinute {
		starts = append(starts, at)
	}
	slices.SortFunc(starts, time.Time.Compare)
	if every == 0 {
		out = []analytics.Row{{Room: id, Start: from, Every: analytics.Resolution(to.Sub(from))}}
	}
	for _, at := range starts {
		begin := at
		if every > 0 {
			begin = at.Truncate(every)
		}
		if begin.Before(from) || !begin.Before(to) {
			continue
		}
		if every > 0 && (len(out) == 0 || !out[len(out)-1].Start.Equal(begin)) {
			out = append(out, analytics.Row{Room: id, Start: begin, Every: analytics.Resolution(every)})
		}
		row := byMinute[at].Row()
		out[len(out)-1].Add(&row)
	}
	for i := range out {
		out[i].Summarize()
	}
	return out
}

// same compares rows: everything exactly, but for sums of quantiles, which are added up in another
// order.
var same = cmp.Options{
	cmp.Comparer(func(a, b *analytics.Histogram) bool {
		return a.Count() == b.Count() && (a.Count() == 0 || bytes.Equal(a.AppendWire(nil), b.AppendWire(nil)))
	}),
	cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }),
}

// plain drops what a query without summaries, histograms and details need not get.
func plain(rows []analytics.Row, q analytics.Query) []analytics.Row {
	for i := range rows {
		if !q.Summaries && !q.Histograms {
			rows[i].Summaries = [analytics.Spans]analytics.Summary{}
		}
		if !q.Histograms {
			rows[i].Histograms = [analytics.Spans]*analytics.Histogram{}
		}
		if !q.Details {
			rows[i].Reasons, rows[i].TicketRefusals, rows[i].BypassReasons = nil, nil, nil
		}
	}
	return rows
}

// asked drops the summaries that come unasked, with rows as they are stored.
func asked(rows []analytics.Row, q analytics.Query) []analytics.Row {
	for i := range rows {
		if !q.Summaries && !q.Histograms {
			rows[i].Summaries = [analytics.Spans]analytics.Summary{}
		}
	}
	return rows
}

// judge asks the store and compares.
func judge(t *rapid.T, s *Store, all told, q analytics.Query) {
	a, err := s.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if a.Incomplete != "" {
		t.Fatalf("incomplete: %s", a.Incomplete)
	}
	var want []analytics.Row
	for _, id := range q.Rooms {
		every := time.Duration(a.Every)
		if q.Total {
			every = 0
		}
		want = append(want, all.rows(id, q.From, q.To, every)...)
	}
	if diff := cmp.Diff(plain(want, q), asked(a.Rows, q), same); diff != "" {
		t.Fatalf("%v of %v to %v, total %v: (-added up, +stored)\n%s", time.Duration(a.Every), q.From, q.To, q.Total, diff)
	}
}

// Whatever is put, in whatever order, however often, over restarts: an answer is what adding all
// minutes up gives.
func TestAnswersAreWhatAddingUpGives(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	dir, attempts := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		attempts++
		c := &clock{now: began}
		cfg := Config{Path: filepath.Join(dir, strconv.Itoa(attempts), "analytics.db"), Now: c.Now}
		s := Open(cfg)
		defer func() { s.Close() }()
		all := told{}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		pick := func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(t, name) }
		late := false
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			switch pick("what", 10) {
			case 0, 1, 2, 3, 4: // minutes, new and old, grown and repeated
				var some []*analytics.Minute
				for range 1 + pick("minutes", 12) {
					back := time.Duration(pick("minutes ago", []int{3, 20, 300, 1500}[pick("how late", 4)])) * time.Minute
					late = late || back > window*time.Minute // shown when it is in the file
					m := minuteOfVisitors(r, room(pick("room", 2)), c.now.Truncate(time.Minute).Add(-back), uint64(1+pick("process", 3)), pick("visitors", 20))
					all.put(m)
					some = append(some, m)
				}
				s.Put(some)
			case 5, 6:
				s.Step(t.Context())
				late = false
			case 7, 8:
				c.now = c.now.Add(time.Duration(1+pick("seconds", []int{30, 600, 20000}[pick("how long", 3)])) * time.Second)
			case 9:
				s.Step(t.Context())
				s.Close()
				s = Open(cfg)
			}
			if h := s.Health(); h.Failing != "" || h.Refused+h.Lost > 0 {
				t.Fatalf("%+v", h)
			}
		}
		if late {
			s.Step(t.Context())
		}
		for range 6 {
			from := c.now.Add(-time.Duration(pick("from", 3000)) * time.Minute).Add(-time.Duration(pick("second", 60)) * time.Second)
			judge(t, s, all, analytics.Query{Rooms: []anteroom.RoomID{room(pick("first", 2)), room(2)}, From: from, To: from.Add(time.Duration(1+pick("long", 5000)) * time.Minute),
				Every: levels[pick("every", len(levels))].every, Total: pick("total", 2) == 0, Summaries: pick("summaries", 2) == 0, Histograms: pick("histograms", 2) == 0, Details: pick("details", 2) == 0})
		}
	})
}

func TestFiguresAreThereAtOnce(t *testing.T) {
	t.Parallel()
	c := &clock{now: began}
	s := openAt(t, c)
	m := analytics.Minute{Room: room(1), Start: began.Truncate(time.Minute), Process: 1}
	for n := range int64(5) {
		c.now = c.now.Add(time.Second)
		m.Seq, m.Counts[0] = n+1, n+1
		s.Put([]*analytics.Minute{m.Clone()})
		for _, l := range levels {
			a := ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: began.Truncate(24 * time.Hour), To: c.now.Add(time.Minute), Every: l.every})
			if len(a.Rows) != 1 || a.Rows[0].Stats[analytics.NewUsers].Sum != n+1 || !a.AsOf.Equal(c.now) {
				t.Fatalf("every %v after %d s: %+v, as of %v", time.Duration(l.every), n+1, a.Rows, a.AsOf)
			}
		}
	}
}

func TestResolutionIsChosen(t *testing.T) {
	t.Parallel()
	c := &clock{now: began}
	s := openAt(t, c)
	for _, step := range []struct {
		back, long time.Duration
		want       analytics.Resolution
	}{
		{30 * time.Minute, 30 * time.Minute, analytics.EveryMinute},
		{12 * time.Hour, 12 * time.Hour, analytics.EveryMinute},
		{24 * time.Hour, 24 * time.Hour, analytics.EveryQuarter},
		{7 * 24 * time.Hour, 7 * 24 * time.Hour, analytics.EveryQuarter},
		{30 * 24 * time.Hour, 30 * 24 * time.Hour, analytics.EveryHour},
		{300 * 24 * time.Hour, 300 * 24 * time.Hour, analytics.EveryDay},
	} {
		from := began.Add(-step.back)
		if a := ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: from, To: from.Add(step.long)}); a.Every != step.want {
			t.Errorf("%v: every %v, want %v", step.long, time.Duration(a.Every), time.Duration(step.want))
		}
	}
	var fifty []anteroom.RoomID
	for i := range 50 {
		fifty = append(fifty, room(i))
	}
	for long, want := range map[time.Duration]analytics.Resolution{30 * time.Minute: analytics.EveryMinute, 24 * time.Hour: analytics.EveryQuarter,
		7 * 24 * time.Hour: analytics.EveryHour, 30 * 24 * time.Hour: analytics.EveryDay} {
		if a := ask(t, s, analytics.Query{Rooms: fifty, From: began.Add(-long), To: began}); a.Every != want {
			t.Errorf("%v of 50 rooms: every %v, want %v", long, time.Duration(a.Every), time.Duration(want))
		}
	}
	s.Step(t.Context()) // from here on minutes of 32 days are kept, and quarters of 96
	for back, want := range map[int]analytics.Resolution{33: analytics.EveryQuarter, 97: analytics.EveryHour, 401: analytics.EveryDay} {
		from := began.Add(-time.Duration(back) * 24 * time.Hour)
		a := ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: from, To: from.Add(30 * time.Minute)})
		if a.Every != want {
			t.Errorf("half an hour %d days ago: every %v, want %v", back, time.Duration(a.Every), time.Duration(want))
		}
	}
}

func TestBoundsOfAQuery(t *testing.T) {
	t.Parallel()
	c := &clock{now: began}
	s := openAt(t, c)
	var many []anteroom.RoomID
	for i := range analytics.MaxQueryRooms + 1 {
		many = append(many, room(i))
	}
	one := many[:1]
	for name, test := range map[string]struct {
		q    analytics.Query
		want string
	}{
		"no room":        {analytics.Query{From: began, To: began.Add(time.Hour)}, "1 to 10000 rooms, not 0"},
		"too many rooms": {analytics.Query{Rooms: many, From: began, To: began.Add(time.Hour)}, "1 to 10000 rooms, not 10001"},
		"a room twice":   {analytics.Query{Rooms: []anteroom.RoomID{"a", "a"}, From: began, To: began.Add(time.Hour)}, "twice"},
		"no time":        {analytics.Query{Rooms: one, From: began, To: began}, "must be before"},
		"backwards":      {analytics.Query{Rooms: one, From: began, To: began.Add(-1)}, "must be before"},
		"before time":    {analytics.Query{Rooms: one, From: time.Unix(-1, 0), To: began}, "times lie between 1970 and 2200"},
		"after time":     {analytics.Query{Rooms: one, From: began, To: began.AddDate(200, 0, 0)}, "times lie between"},
		"seven minutes":  {analytics.Query{Rooms: one, From: began, To: began.Add(time.Hour), Every: analytics.Resolution(7 * time.Minute)}, "kept for every minute"},
		"too many rows":  {analytics.Query{Rooms: many[:1000], From: began.Add(-24 * time.Hour), To: began, Every: analytics.EveryMinute}, "1441000 rows, of at most 200000"},
		"too many histograms": {analytics.Query{Rooms: many[:100], From: began.Add(-24 * time.Hour), To: began, Every: analytics.EveryMinute, Histograms: true},
			"144100 rows, of at most 200000 (40000 with histograms)"},
	} {
		if _, err := s.Query(t.Context(), test.q); anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	all := ask(t, s, analytics.Query{Rooms: many[1:], From: firstTime, To: lastTime, Total: true})
	if len(all.Rows) != analytics.MaxQueryRooms {
		t.Errorf("%d totals", len(all.Rows))
	}
	// Centuries without end cost nothing: only what can be there counts.
	if a := ask(t, s, analytics.Query{Rooms: one, From: firstTime, To: lastTime, Every: analytics.EveryMinute}); len(a.Rows) != 0 || a.Incomplete != "" {
		t.Errorf("%+v", a)
	}
}
