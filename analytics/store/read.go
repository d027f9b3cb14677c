package store

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// maxHistogramRows bounds the rows of a query that asks for histograms, which take memory.
const maxHistogramRows = 40_000

// Times of queries lie between these.
var (
	firstTime = time.Unix(0, 0)
	lastTime  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Query returns rows. Rows of spans that are not over, or not in the file yet, are composed from what is known now.
// Rows may share histograms and maps with the store, so callers must not change them.
func (s *Store) Query(ctx context.Context, q analytics.Query) (analytics.Answer, error) {
	v, err := s.planned(ctx, q)
	if err != nil {
		return analytics.Answer{}, err
	}
	defer v.end()
	answer := analytics.Answer{Every: v.q.Every, AsOf: v.asOf}
	if shares := s.shares(v.q.Rooms); len(shares) == 1 {
		answer.Rows = v.all()
	} else if answer.Rows, err = v.together(shares); err != nil {
		return analytics.Answer{}, err
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

// shares cuts the rooms of a query into those that are read at the same time.
func (s *Store) shares(rooms []anteroom.RoomID) [][]anteroom.RoomID {
	const least = 8 // rooms: fewer are done before others begin
	n := max(1, min(readers/2, runtime.GOMAXPROCS(0), len(rooms)/least))
	return slices.Collect(slices.Chunk(rooms, (len(rooms)+n-1)/n))
}

// together returns the rows of shares of the rooms, each read by a view of its own; v is told how they
// went, and reads nothing any more, for a query that holds one connection while it waits for another would
// hold up those that do the same.
func (v *view) together(shares [][]anteroom.RoomID) ([]analytics.Row, error) {
	v.end()
	views, errs, rows := make([]*view, len(shares)), make([]error, len(shares)), make([][]analytics.Row, len(shares))
	var wg sync.WaitGroup
	for i, rooms := range shares {
		wg.Go(func() {
			q := v.q
			q.Rooms = rooms
			if views[i], errs[i] = v.s.look(v.ctx, q); errs[i] == nil {
				rows[i] = views[i].all()
				views[i].end()
			}
		})
	}
	wg.Wait()
	for i, one := range views {
		if errs[i] != nil {
			return nil, errs[i]
		}
		v.bad += one.bad
		v.early = v.early || one.early
		if v.err == nil {
			v.err = one.err
		}
		v.marks = one.marks
	}
	return slices.Concat(rows...), nil
}

// all returns the rows of the query; fewer when its context ends.
func (v *view) all() (rows []analytics.Row) {
	l, _ := levelOf(v.q.Every)
	for _, id := range v.q.Rooms {
		if v.ctx.Err() != nil {
			return nil
		}
		if v.q.Total {
			rows = append(rows, v.total(id))
		} else {
			rows = v.rows(rows, id, l, v.q.From, v.q.To)
		}
	}
	return rows
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
	if most := v.most(); most > analytics.MaxRows || v.q.Histograms && most > maxHistogramRows {
		v.end()
		return nil, anteroom.Errorf(anteroom.Invalid, "that may be %d rows, of at most %d (%d with histograms): ask for fewer rooms, a shorter time or a coarser resolution",
			most, analytics.MaxRows, maxHistogramRows)
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
	// rooms are their numbers in the file, as far as they were looked up.
	rooms map[anteroom.RoomID]int64
	// inMemory are the minutes of a room that the file does not count for.
	inMemory map[int64]bool
	early    bool // rows before those kept were wanted
	// Used again for each row, and each sum.
	row  analytics.Row
	sums [analytics.Spans]analytics.Sum
}

// liveMinute is one that is in memory, whole.
type liveMinute struct {
	at    int64
	parts []*analytics.Minute
	row   *analytics.Row // made when it is wanted
}

// look takes a view. What is in memory comes first: what leaves it afterwards is in the file.
func (s *Store) look(ctx context.Context, q analytics.Query) (*view, error) {
	v := &view{ctx: ctx, s: s, q: q, marks: map[string]int64{}, now: s.cfg.Now(), live: map[anteroom.RoomID][]liveMinute{}, done: map[string]*sql.Stmt{},
		rooms: map[anteroom.RoomID]int64{}}
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
	points := time.Duration(analytics.MaxPoints)
	if !v.q.Total {
		points = min(points, analytics.MaxAutoRows/time.Duration(len(v.q.Rooms)))
	}
	for l, one := range levels[:len(levels)-1] {
		if v.q.To.Sub(v.q.From) <= points*one.length() && minuteOf(v.q.From) >= v.marks[floorMark(l)] {
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
		why = append(why, "figures older than some minutes cannot be read now: "+v.err.Error())
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
