package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// fill imports a room's rows of a resolution, one for each span between two times.
func fill(t testing.TB, s *Store, id anteroom.RoomID, every analytics.Resolution, from, to time.Time, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(every), 3))
	var kinds, rows []analytics.Row // to make up each row would take long
	for range 40 {
		kinds = append(kinds, minuteOfVisitors(r, id, from, 0, n).Row())
	}
	for at := from; at.Before(to); at = at.Add(time.Duration(every)) {
		row := kinds[r.IntN(len(kinds))]
		row.Start, row.Every = at, every
		rows = append(rows, row)
	}
	if err := s.Import(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
}

func countRows(t testing.TB, s *Store, every analytics.Resolution) int {
	t.Helper()
	return len(ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: firstTime, To: lastTime, Every: every}).Rows)
}

func TestWhatIsTooOldGoes(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	c := &clock{now: began}
	s := openAt(t, c, func(cfg *Config) { cfg.Minutes, cfg.Retention = 2*day, 12*day })
	today := began.Truncate(day)
	fill(t, s, room(1), analytics.EveryHour, today.Add(-9*day), today.Add(-day), 3)
	fill(t, s, room(1), analytics.EveryMinute, today.Add(-day), began.Truncate(time.Hour), 3)
	c.now = c.now.Add(time.Hour)
	s.Step(t.Context())
	total := analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: today.Add(-9 * day), To: c.now, Total: true, Histograms: true}
	before := ask(t, s, total)
	if n := countRows(t, s, analytics.EveryMinute); n != 46*60 {
		t.Errorf("%d minutes", n)
	}
	c.now = c.now.Add(36 * time.Hour)
	s.Step(t.Context())
	// Of the minutes, those of the last two days are left; of everything coarser, all.
	if n := countRows(t, s, analytics.EveryMinute); n != 11*60 {
		t.Errorf("%d minutes", n)
	}
	if diff := cmp.Diff(before.Rows, ask(t, s, total).Rows, same); diff != "" {
		t.Errorf("the total has changed:\n%s", diff)
	}
	c.now = c.now.Add(3 * day)
	s.Step(t.Context())
	hours := ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: firstTime, To: lastTime, Every: analytics.EveryHour})
	if want := c.now.Add(-12 * day).Truncate(day); !hours.Rows[0].Start.Equal(want) {
		t.Errorf("hours begin at %v, want %v", hours.Rows[0].Start, want)
	}
	if !strings.Contains(hours.Incomplete, "is not kept at this resolution any more") {
		t.Errorf("incomplete: %q", hours.Incomplete)
	}
	if n := countRows(t, s, analytics.EveryMinute); n != 0 {
		t.Errorf("%d minutes", n)
	}
	var parts int
	if err := s.file.read.QueryRow(`SELECT count(*) FROM part`).Scan(&parts); err != nil || parts != 0 {
		t.Errorf("%d parts, %v", parts, err)
	}
}

// TestAClockThatIsAheadDeletesLittle: for a minute it is three years ahead. What was recorded before, and what is recorded afterwards, is there.
func TestAClockThatIsAheadDeletesLittle(t *testing.T) {
	t.Parallel()
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	c := &clock{now: began}
	s := openAt(t, c, func(cfg *Config) { cfg.Minutes, cfg.Retention = 10*day, 100*day })
	today := began.Truncate(day)
	fill(t, s, room(1), analytics.EveryDay, today.Add(-90*day), today.Add(-10*day), 3)
	fill(t, s, room(1), analytics.EveryMinute, today.Add(-3*day), began.Truncate(time.Hour), 3)
	r := rand.New(rand.NewPCG(1, 2))
	visit := func() {
		s.Put([]*analytics.Minute{minuteOfVisitors(r, room(1), c.now.Truncate(time.Minute), 7, 3)})
		s.Step(t.Context())
		c.now = c.now.Add(time.Minute)
	}
	visit()
	days, minutes := countRows(t, s, analytics.EveryDay), countRows(t, s, analytics.EveryMinute)
	c.now = c.now.Add(3 * year)
	visit()
	c.now = c.now.Add(-3 * year)
	for range 5 {
		visit()
	}
	if n := countRows(t, s, analytics.EveryDay); n < days-2 {
		t.Errorf("%d days of %d are left", n, days)
	}
	if n := countRows(t, s, analytics.EveryMinute); n < minutes-2*24*60 {
		t.Errorf("%d minutes of %d are left", n, minutes)
	}
	joined := func(every analytics.Resolution, from time.Time) (sum float64, rows int) {
		a := ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: from, To: today.Add(day), Every: every})
		for i := range a.Rows {
			sum += float64(a.Rows[i].Stats[analytics.Joined].Sum)
		}
		return sum, len(a.Rows)
	}
	if _, n := joined(analytics.EveryMinute, began.Truncate(time.Minute)); n != 6 {
		t.Errorf("%d minutes are there of 6 with the right clock", n)
	}
	want, _ := joined(analytics.EveryMinute, today)
	for _, every := range []analytics.Resolution{analytics.EveryHour, analytics.EveryDay} {
		if got, _ := joined(every, today); got != want || want == 0 {
			t.Errorf("%v: %v visitors today, want %v", time.Duration(every), got, want)
		}
	}
	// A file that begins with such a clock, and one that is opened again once it is right.
	for _, again := range []bool{false, true} {
		c := &clock{now: began.Add(3 * year)}
		path := filepath.Join(t.TempDir(), "analytics.db")
		set := func(cfg *Config) { cfg.Path = path }
		s = openAt(t, c, set)
		for range 3 {
			s.Put([]*analytics.Minute{minuteOfVisitors(r, room(1), c.now.Truncate(time.Minute), 7, 3)})
			s.Step(t.Context())
			c.now = c.now.Add(40 * day)
		}
		if c.now = began; again {
			s.Close()
			s = openAt(t, c, set)
		}
		for range 3 {
			s.Step(t.Context())
			c.now = c.now.Add(time.Minute)
			s.Put([]*analytics.Minute{minuteOfVisitors(r, room(1), c.now.Truncate(time.Minute), 7, 3)})
		}
		s.Step(t.Context())
		if _, n := joined(analytics.EveryMinute, began.Truncate(time.Minute)); n != 3 || s.Health().Refused > 0 {
			t.Errorf("opened again %v: %d minutes are there of 3 with the right clock, and %d were refused", again, n, s.Health().Refused)
		}
	}
}

// The file is small, and filled on and on: the oldest minutes go, and what is rolled up stays.
func TestTheFileStaysSmallEnough(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	c := &clock{now: began}
	var said bytes.Buffer
	s := openAt(t, c, func(cfg *Config) {
		cfg.MaxSize, cfg.Log = minSize, slog.New(slog.NewTextHandler(&said, nil))
	})
	r := rand.New(rand.NewPCG(4, 4))
	var templates []*analytics.Minute
	for range 20 {
		templates = append(templates, minuteOfVisitors(r, room(1), began, 1, 1000))
	}
	sum, largest := int64(0), int64(0)
	for n := range 800 {
		c.now = tick(n)
		var some []*analytics.Minute
		for i := range 3 {
			m := *templates[r.IntN(len(templates))]
			m.Room, m.Start = room(1+i), c.now.Truncate(time.Minute)
			some = append(some, &m)
			if i == 0 {
				sum += m.Count(analytics.NewUsers)
			}
		}
		s.Put(some)
		s.Step(t.Context())
		h := s.Health()
		largest = max(largest, h.Bytes)
		if h.Failing != "" {

			t.Fatalf("minute %d: %s", n, h.Failing)
		}
	}
	h := s.Health()
	if largest > minSize+walLimit+2<<20 || !h.Shortened || h.Lost > 0 {
		t.Errorf("%d bytes at most, %+v", largest, h)
	}
	if n := countRows(t, s, analytics.EveryMinute); n < 120 || n >= 800 {
		t.Errorf("%d minutes are left", n)
	}
	days := ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: began.Add(-24 * time.Hour), To: c.now.Add(24 * time.Hour), Every: analytics.EveryDay})
	got := int64(0)
	for _, r := range days.Rows {
		got += r.Stats[analytics.NewUsers].Sum
	}
	if got != sum {
		t.Errorf("days have %d new users, and there were %d", got, sum)
	}
	if !strings.Contains(said.String(), "deleted early") {
		t.Error("nothing was said")
	}
	t.Logf("at most %d bytes with the log", largest)
}

// A damaged file is moved aside, whether it is noticed when it is opened, by the check after that, by a write or by a query.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	put := func(s *Store, n int) {
		s.Put([]*analytics.Minute{seen(n)})
		s.Step(t.Context())
	}
	for name, damage := range map[string]func(b []byte) []byte{
		"no database":     func(b []byte) []byte { return bytes.Repeat([]byte("visitors "), 4000) },
		"the first page":  func(b []byte) []byte { clear(b[100:4096]); return b },
		"everything else": func(b []byte) []byte { copy(b[pageSize:], bytes.Repeat([]byte{0xa5}, len(b))); return b },
		"a page that nobody reads": func(b []byte) []byte {
			copy(b[len(b)/2&^(pageSize-1):][:pageSize], bytes.Repeat([]byte{0xa5}, pageSize))
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "analytics.db")
			c := &clock{now: began}
			s := Open(Config{Path: path, Now: c.Now})
			for n := range 100 {
				c.now = tick(n)
				put(s, n)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			s = Open(Config{Path: path, Now: c.Now, Log: slog.New(slog.NewTextHandler(&said, nil))})
			defer s.Close()
			s.inspect(t.Context())
			c.now = tick(200)
			put(s, 200)
			c.now = c.now.Add(time.Minute)
			s.Step(t.Context())
			h := s.Health()
			if h.Failing != "" || h.Damaged == "" || !strings.Contains(said.String(), "moved aside") {
				t.Fatalf("%+v\n%s", h, said.String())
			}
			if _, err := os.Stat(h.Damaged); err != nil {
				t.Error(err)
			}
			a := ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: began, To: c.now, Every: analytics.EveryMinute})
			// Where the file could be opened, its last minutes are in memory and are written anew.
			if n := len(a.Rows); n == 0 || n > 2+window || a.Incomplete != "" {
				t.Errorf("%d rows, incomplete %q; want the new one", n, a.Incomplete)
			}
		})
	}
}

func TestFileOfALaterRelease(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "analytics.db")
	s := Open(Config{Path: path})
	if _, err := s.file.write.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion+1)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = Open(Config{Path: path})
	defer s.Close()
	if h := s.Health(); !strings.Contains(h.Failing, "of a later release") || h.Damaged != "" {
		t.Errorf("%+v", h)
	}
	now := time.Now()
	m := seen(1)
	m.Start = now.UTC().Truncate(time.Minute)
	s.Put([]*analytics.Minute{m})
	a := ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: now.Add(-time.Hour), To: now.Add(time.Hour)})
	if len(a.Rows) != 1 || !strings.Contains(a.Incomplete, "of a later release") {
		t.Errorf("%d rows, incomplete %q", len(a.Rows), a.Incomplete)
	}
}

// Minutes that come late correct what was rolled up; those that come too late change nothing.
func TestLateMinutes(t *testing.T) {
	t.Parallel()
	c := &clock{now: began}
	s := openAt(t, c)
	put := func(process uint64, start time.Time, seq int64) {
		m := &analytics.Minute{Room: room(1), Start: start, Process: process, Seq: seq}
		m.Counts[0] = seq
		s.Put([]*analytics.Minute{m})
		s.Step(t.Context())
	}
	newUsers := func(every analytics.Resolution) (n int64) {
		for _, r := range ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: began.Add(-72 * time.Hour), To: began.Add(120 * time.Hour), Every: every}).Rows {
			n += r.Stats[analytics.NewUsers].Sum
		}
		return n
	}
	check := func(when string, want int64) {
		t.Helper()
		for _, l := range levels {
			if got := newUsers(l.every); got != want {
				t.Errorf("%s: every %s %d, want %d", when, l.word, got, want)
			}
		}
	}
	first := began.Truncate(time.Minute)
	put(1, first, 5)
	check("at once", 5)
	c.now = began.Add(26 * time.Hour) // everything of the first day is rolled up
	s.Step(t.Context())
	check("a day later", 5)
	put(1, first, 3)
	check("an older telling", 5)
	put(1, first, 5)
	check("a repeated one", 5)
	put(1, first, 8)
	check("a newer one", 8)
	put(2, first, 10)
	check("another process", 18)
	put(1, first.Add(-20*time.Hour), 100)
	check("a minute that nobody had told of", 118)
	if h := s.Health(); h.Refused != 0 {
		t.Errorf("%d refused", h.Refused)
	}
	c.now = began.Add(50 * time.Hour) // single processes are forgotten
	s.Step(t.Context())
	put(3, first, 1000)
	check("too late", 118)
	put(1, c.now.UTC().Add(2*time.Hour).Truncate(time.Minute), 1000)
	check("from the future", 118)
	put(1, c.now.UTC().Truncate(time.Minute).Add(time.Second), 1000)
	check("not a minute", 118)
	if h := s.Health(); h.Refused != 3 {
		t.Errorf("%d refused, want 3", h.Refused)
	}
}

// While nothing can be written for very long, the oldest of what waits goes, and is counted.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	c := &clock{now: began}
	dir := t.TempDir()
	s := Open(Config{Path: dir, Now: c.Now}) // a directory: it cannot be opened
	defer s.Close()
	const rooms = 10_000
	for n := range 12 {
		c.now = tick(n)
		var some []*analytics.Minute
		for i := range rooms {
			some = append(some, &analytics.Minute{Room: room(i), Start: c.now.Truncate(time.Minute), Process: 1, Seq: 1})
		}
		s.Put(some)
	}
	h := s.Health()
	if h.Failing == "" || h.Waiting != mostHeld || h.Lost != 12*rooms-mostHeld {
		t.Errorf("%+v", h)
	}
	a := ask(t, s, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: began, To: c.now})
	if len(a.Rows) != 10 || !strings.Contains(a.Incomplete, "cannot be read now") || !strings.Contains(a.Incomplete, "20000 minutes were lost") {
		t.Errorf("%d rows, incomplete %q", len(a.Rows), a.Incomplete)
	}
}

func TestImportSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := &clock{now: began}
	s := openAt(t, c)
	good := analytics.Row{Room: room(1), Start: began.Add(-48 * time.Hour).Truncate(time.Hour), Every: analytics.EveryHour, Minutes: 60}
	for want, change := range map[string]func(r *analytics.Row){
		"a room's id has":                func(r *analytics.Row) { r.Room = "" },
		"which is none of the":           func(r *analytics.Row) { r.Every = analytics.Resolution(time.Second) },
		"no multiple of 1h0m0s":          func(r *analytics.Row) { r.Start = r.Start.Add(time.Minute) },
		"of a time that is not over":     func(r *analytics.Row) { r.Start = began.Truncate(time.Hour) },
		"the last 3 minutes come from":   func(r *analytics.Row) { r.Every, r.Start = analytics.EveryMinute, began.Truncate(time.Minute) },
		"older than what is kept":        func(r *analytics.Row) { r.Start = r.Start.AddDate(-2, 0, 0) },
		"no multiple of 1h0m0s, earlier": func(r *analytics.Row) { r.Start = time.Time{}.Add(time.Minute) },
	} {
		bad := good
		change(&bad)
		want, _, _ = strings.Cut(want, ",")
		if err := s.Import(t.Context(), []analytics.Row{good, bad}); anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(fmt.Sprint(err), want) || !strings.Contains(fmt.Sprint(err), "rows[1]") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if n := countRows(t, s, analytics.EveryHour); n != 0 {
		t.Errorf("%d rows of imports that failed", n)
	}
}

// History at mixed resolutions: days of quarters, then minutes, then what is put.
func TestImportAndPutMakeOneHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	c := &clock{now: began}
	s := openAt(t, c)
	month, yesterday := began.AddDate(0, 0, -max(5, 30/fewer)).Truncate(24*time.Hour), began.AddDate(0, 0, -1).Truncate(15*time.Minute)
	start := time.Now()
	fill(t, s, room(1), analytics.EveryQuarter, month, yesterday, 50)
	fill(t, s, room(1), analytics.EveryMinute, yesterday, began.Truncate(time.Minute).Add(-window*time.Minute), 50)
	took := time.Since(start)
	s.Put([]*analytics.Minute{minuteOfVisitors(rand.New(rand.NewPCG(1, 1)), room(1), began.Truncate(time.Minute), 1, 20)})
	q := analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: month, To: c.now, Histograms: true, Details: true}
	var sums []analytics.Row
	for _, every := range []analytics.Resolution{analytics.EveryQuarter, analytics.EveryHour, analytics.EveryDay} {
		q.Every = every
		sum := analytics.Row{Room: room(1)}
		for _, r := range ask(t, s, q).Rows {
			sum.Add(&r)
		}
		sums = append(sums, sum)
	}
	q.Total = true
	total := ask(t, s, q).Rows[0]
	total.Start, total.Every, total.Summaries = time.Time{}, 0, sums[0].Summaries
	for i, sum := range append(sums[1:], total) {
		if diff := cmp.Diff(sums[0], sum, same); diff != "" {
			t.Errorf("%d: (-by quarters, +)\n%s", i, diff)
		}
	}
	t.Logf("%v of a room took %v", began.Sub(month), took)
}
