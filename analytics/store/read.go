package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// MaxHistogramRows bounds the rows of a query that asks for histograms, which take memory.
const MaxHistogramRows = 40_000

// Times of queries lie between these.
var (
	firstTime = time.Unix(0, 0)
	lastTime  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Query returns rows. Those that are not over, or not in the file yet, are put together of what
// is known now. What they share with the store, histograms and maps, nobody changes.
func (s *Store) Query(ctx context.Context, q analytics.Query) (analytics.Answer, error) {
	v, err := s.planned(ctx, q)
	if err != nil {
		return analytics.Answer{}, err
	}
	defer v.end()
	answer := analytics.Answer{Every: v.q.Every, AsOf: v.asOf}
	for _, id := range v.q.Rooms {
		if err := ctx.Err(); err != nil {
			return analytics.Answer{}, err
		}
		if q.Total {
			answer.Rows = append(answer.Rows, v.total(id))
			continue
		}
		l, _ := levelOf(v.q.Every)
		v.rows(id, l, v.q.From, v.q.To, func(r *analytics.Row) { answer.Rows = append(answer.Rows, *r) })
	}
	if err := ctx.Err(); err != nil {
		return analytics.Answer{}, err
	}
	if damaged(v.err) {
		s.mu.Lock()
		s.suspect = v.err
		s.mu.Unlock()
	}
	answer.Incomplete = v.incomplete()
	return answer, nil
}

// planned checks a query, chooses its resolution and takes a view for it.
func (s *Store) planned(ctx context.Context, q analytics.Query) (*view, error) {
	if err := s.check(&q); err != nil {
		return nil, err
	}
	v, err := s.look(ctx, q)
	if err != nil {
		return nil, err
	}
	if q.Every == 0 {
		v.q.Every = v.choose()
	}
	if most := v.most(); most > analytics.MaxRows || v.q.Histograms && most > MaxHistogramRows {
		v.end()
		return nil, anteroom.Errorf(anteroom.Invalid, "that may be %d rows, of at most %d (%d with histograms): ask for fewer rooms, a shorter time or a coarser resolution",
			most, analytics.MaxRows, MaxHistogramRows)
	}
	return v, nil
}

// plan checks a query and returns the resolution of its answer.
func (s *Store) plan(ctx context.Context, q analytics.Query) (analytics.Resolution, error) {
	v, err := s.planned(ctx, q)
	if err != nil {
		return 0, err
	}
	v.end()
	return v.q.Every, nil
}

func (s *Store) check(q *analytics.Query) error {
	bad := func(format string, args ...any) error { return anteroom.Errorf(anteroom.Invalid, format, args...) }
	switch {
	case len(q.Rooms) == 0 || len(q.Rooms) > analytics.MaxQueryRooms:
		return bad("a query has 1 to %d rooms, not %d", analytics.MaxQueryRooms, len(q.Rooms))
	case q.From.Before(firstTime) || q.To.After(lastTime):
		return bad("times lie between %d and %d", firstTime.UTC().Year(), lastTime.Year())
	case !q.From.Before(q.To):
		return bad("from (%s) must be before to (%s)", q.From.UTC().Format(time.RFC3339), q.To.UTC().Format(time.RFC3339))
	}
	seen := map[anteroom.RoomID]bool{}
	for _, id := range q.Rooms {
		if seen[id] {
			return bad("the room %.64q is in the query twice", id)
		}
		seen[id] = true
	}
	if _, ok := levelOf(q.Every); !ok && q.Every != 0 {
		return bad("rows are kept for every minute, 15 minutes, hour and day, not for every %v", time.Duration(q.Every))
	}
	q.From, q.To = q.From.UTC(), q.To.UTC()
	return nil
}

// view is the store at one moment, as far as a query needs it.
type view struct {
	ctx   context.Context
	s     *Store
	q     analytics.Query
	tx    *sql.Tx // nil: only what is in memory can be read
	marks map[string]int64
	asOf  time.Time
	now   time.Time
	live  map[anteroom.RoomID][]liveMinute
	done  map[string]*sql.Stmt
	err   error // why the file cannot be read
	bad   int   // rows that are damaged
	// sums take the histograms of stored rows in place of the rows; nil: the rows have them.
	sums *[analytics.Spans]analytics.Sum
	// inMemory are the minutes of a room that the file does not count for.
	inMemory map[int64]bool
	early    bool // rows before those kept were wanted
}

// liveMinute is one that is in memory, whole.
type liveMinute struct {
	at    int64
	parts []*analytics.Minute
	row   *analytics.Row // made when it is wanted
}

// look takes a view. What is in memory comes first: what leaves it afterwards is in the file.
func (s *Store) look(ctx context.Context, q analytics.Query) (*view, error) {
	v := &view{ctx: ctx, s: s, q: q, marks: map[string]int64{}, now: s.cfg.Now(), live: map[anteroom.RoomID][]liveMinute{}, done: map[string]*sql.Stmt{}}
	s.mu.Lock()
	f, closed := s.file, s.closed
	v.asOf = s.asOf
	s.mu.Unlock()
	if closed {
		return nil, anteroom.Errorf(anteroom.Unavailable, "analytics are closed: this process is stopping")
	}
	for _, id := range q.Rooms {
		// Spans that are not over reach beyond To.
		v.live[id] = s.liveOf(id, minuteOf(q.From.Truncate(24*time.Hour)), minuteOf(q.To.Add(24*time.Hour)))
	}
	if f == nil {
		v.err = fmt.Errorf("%s", s.Health().Failing)
		return v, nil
	}
	if v.tx, v.err = f.read.BeginTx(ctx, nil); v.err != nil {
		v.tx = nil
		return v, ctx.Err()
	}
	v.query(`SELECT name, value FROM mark`, func(r *sql.Rows) error {
		var name string
		var value int64
		err := r.Scan(&name, &value)
		v.marks[name] = value
		return err
	})
	return v, nil
}

func (v *view) end() {
	if v.tx != nil {
		v.tx.Rollback()
	}
}

// query calls fn with each row that a statement returns. After the first error it does nothing.
func (v *view) query(text string, fn func(*sql.Rows) error, args ...any) {
	if v.err != nil || v.tx == nil {
		return
	}
	st := v.done[text]
	if st == nil {
		if st, v.err = v.tx.PrepareContext(v.ctx, text); v.err != nil {
			return
		}
		v.done[text] = st
	}
	rows, err := st.QueryContext(v.ctx, args...)
	if err != nil {
		v.err = err
		return
	}
	defer rows.Close()
	for rows.Next() {
		if v.err = fn(rows); v.err != nil {
			return
		}
	}
	v.err = rows.Err()
}

// choose returns the finest resolution that has few enough rows and reaches back to From.
func (v *view) choose() analytics.Resolution {
	for l, one := range levels[:len(levels)-1] {
		if v.q.To.Sub(v.q.From) <= analytics.MaxPoints*one.length() && minuteOf(v.q.From) >= v.marks[floorMark(l)] {
			return one.every
		}
	}
	return analytics.EveryDay
}

// most is how many rows the query may return.
func (v *view) most() int64 {
	if v.q.Total {
		return int64(len(v.q.Rooms))
	}
	from, to := v.q.From, v.q.To
	l, _ := levelOf(v.q.Every)
	if kept := v.now.Add(-v.s.keptFor(l) - dropStep(l)); from.Before(kept) {
		from = kept
	}
	if soon := v.now.Add(ahead); to.After(soon) {
		to = soon
	}
	if !from.Before(to) {
		return 0
	}
	return int64(len(v.q.Rooms)) * (int64(to.Sub(from)/levels[l].length()) + 1)
}

func (v *view) incomplete() string {
	var why []string
	if v.early {
		why = append(why, "the time before "+v.earliest().Format(time.RFC3339)+" is not kept at this resolution any more")
	}
	if v.bad > 0 {
		why = append(why, fmt.Sprintf("%d rows are damaged", v.bad))
	}
	if v.err != nil {
		why = append(why, "what is older than some minutes cannot be read now: "+v.err.Error())
	}
	if lost := v.s.Health().Lost; lost > 0 {
		why = append(why, fmt.Sprintf("%d minutes were lost since the start because the file could not be written", lost))
	}
	return strings.Join(why, "; ")
}

func (v *view) earliest() time.Time {
	l, _ := levelOf(v.q.Every)
	return timeOf(v.marks[floorMark(l)])
}

// up returns the first multiple of a level's length that is not before a time.
func up(t time.Time, l int) time.Time {
	length := levels[l].length()
	down := t.Truncate(length)
	if down.Before(t) {
		return down.Add(length)
	}
	return down
}

// rows calls fn with the rows of a level that begin between two times, ascending.
func (v *view) rows(id anteroom.RoomID, l int, from, to time.Time, fn func(*analytics.Row)) {
	from, to = up(from, l), up(to, l)
	if minuteOf(from) < v.marks[floorMark(l)] {
		v.early = true
	}
	if l == minutes {
		v.minutes(id, from, to, fn)
		return
	}
	rolled := timeOf(v.marks[rolledMark(l)])
	if rolled.After(to) {
		rolled = to
	}
	if from.Before(rolled) {
		v.stored(id, l, from, rolled, fn)
		from = rolled
	}
	if !from.Before(to) {
		return
	}
	var sum *analytics.Row
	v.rows(id, l-1, from, to, func(r *analytics.Row) {
		start := r.Start.Truncate(levels[l].length())
		if sum != nil && !sum.Start.Equal(start) {
			fn(sum)
			sum = nil
		}
		if sum == nil {
			sum = &analytics.Row{Room: id, Start: start, Every: levels[l].every}
		}
		sum.Add(r)
	})
	if sum != nil {
		fn(sum)
	}
}

// minutes calls fn with minutes: those in memory in place of those in the file.
func (v *view) minutes(id anteroom.RoomID, from, to time.Time, fn func(*analytics.Row)) {
	live := v.live[id]
	for len(live) > 0 && live[0].at < minuteOf(from) {
		live = live[1:]
	}
	next := func() {
		fn(live[0].make(v.q))
		live = live[1:]
	}
	v.inMemory = map[int64]bool{}
	for _, m := range live {
		v.inMemory[m.at] = true
	}
	v.stored(id, minutes, from, to, func(r *analytics.Row) {
		for at := minuteOf(r.Start); len(live) > 0 && live[0].at < at; {
			next()
		}
		fn(r)
	})
	for len(live) > 0 && live[0].at < minuteOf(to) {
		next()
	}
}

// make returns the row of the minute, without what the query does not want.
func (m *liveMinute) make(q analytics.Query) *analytics.Row {
	if m.row == nil {
		row := sum(m.parts)
		if !q.Histograms {
			row.Histograms = [analytics.Spans]*analytics.Histogram{}
		}
		if !q.Details {
			row.Reasons, row.TicketRefusals, row.BypassReasons = nil, nil, nil
		}
		m.row = &row
	}
	copied := *m.row
	return &copied
}

// stored calls fn with the rows of the file. Each is fn's own.
func (v *view) stored(id anteroom.RoomID, l int, from, to time.Time, fn func(*analytics.Row)) {
	no := v.room(id)
	if no == 0 || !from.Before(to) {
		return
	}
	more := v.q.Histograms || v.q.Details
	v.query(selectRows(l, more), func(rows *sql.Rows) error {
		var key int64
		var body, details, histograms sql.RawBytes
		var err error
		if more {
			err = rows.Scan(&key, &body, &details, &histograms)
		} else {
			err = rows.Scan(&key, &body)
		}
		if err != nil {
			return err
		}
		if l == minutes && v.inMemory[key&(1<<32-1)] {
			return nil
		}
		if !v.q.Details {
			details = nil
		}
		if v.sums != nil && addHistograms(v.sums, histograms) != nil {
			v.bad++
		}
		if !v.q.Histograms || v.sums != nil {
			histograms = nil
		}
		r := &analytics.Row{Room: id, Start: timeOf(key & (1<<32 - 1)), Every: levels[l].every}
		if parseRow(r, body, details, histograms) != nil {
			v.bad++
			return nil
		}
		fn(r)
		return nil
	}, keyOf(no, minuteOf(from)), keyOf(no, minuteOf(to)))
}

// room returns a room's number; 0 when the file has none.
func (v *view) room(id anteroom.RoomID) (no int64) {
	v.query(`SELECT no FROM room WHERE id = ?`, func(r *sql.Rows) error { return r.Scan(&no) }, string(id))
	return no
}

// total returns one row of all minutes that begin between From and To: of days in the middle, and of what is
// shorter at both ends.
func (v *view) total(id anteroom.RoomID) analytics.Row {
	from, to := up(v.q.From, minutes), up(v.q.To, minutes)
	sum := analytics.Row{Room: id, Start: v.q.From, Every: analytics.Resolution(v.q.To.Sub(v.q.From))}
	if v.q.Histograms {
		v.sums = new([analytics.Spans]analytics.Sum)
	}
	v.pieces(id, len(levels)-1, from, to, func(r *analytics.Row) { sum.Add(r) })
	if v.sums == nil {
		return sum
	}
	for i := range v.sums {
		if h := v.sums[i].Histogram(); sum.Histograms[i] == nil {
			sum.Histograms[i] = h
		} else {
			sum.Histograms[i].Merge(h)
		}
	}
	return sum
}

// pieces calls fn with rows that make up a time, ascending, the longest of level l.
func (v *view) pieces(id anteroom.RoomID, l int, from, to time.Time, fn func(*analytics.Row)) {
	if l == minutes {
		v.rows(id, l, from, to, fn)
		return
	}
	first, last := up(from, l), to.Truncate(levels[l].length())
	if !first.Before(last) {
		v.pieces(id, l-1, from, to, fn)
		return
	}
	if from.Before(first) {
		v.pieces(id, l-1, from, first, fn)
	}
	v.rows(id, l, first, last, fn)
	if last.Before(to) {
		v.pieces(id, l-1, last, to, fn)
	}
}
