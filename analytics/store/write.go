package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

func newID() int64 { return rand.Int64() }

// writer is a transaction that writes. After the first error it does nothing, and commit returns
// it.
type writer struct {
	ctx   context.Context
	tx    *sql.Tx
	done  map[string]*sql.Stmt
	rooms map[anteroom.RoomID]int64
	err   error
	buf   []byte
}

func (f *file) begin(ctx context.Context) (*writer, error) {
	tx, err := f.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &writer{ctx: ctx, tx: tx, done: map[string]*sql.Stmt{}, rooms: map[anteroom.RoomID]int64{}}, nil
}

// end lets go of the transaction; what was not committed has not happened.
func (w *writer) end() { w.tx.Rollback() }

func (w *writer) commit() error {
	if w.err != nil {
		return w.err
	}
	return w.tx.Commit()
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// statement prepares a statement once in the transaction.
func (w *writer) statement(text string) *sql.Stmt {
	if w.err != nil {
		return nil
	}
	s := w.done[text]
	if s == nil {
		var err error
		if s, err = w.tx.PrepareContext(w.ctx, text); err != nil {
			w.fail(err)
			return nil
		}
		w.done[text] = s
	}
	return s
}

func (w *writer) exec(text string, args ...any) (changed int64) {
	s := w.statement(text)
	if s == nil {
		return 0
	}
	r, err := s.ExecContext(w.ctx, args...)
	if err != nil {
		w.fail(err)
		return 0
	}
	changed, _ = r.RowsAffected()
	return changed
}

// rowsOf calls fn with each row that a statement returns; fn scans.
func (w *writer) rowsOf(fn func(*sql.Rows) error, text string, args ...any) {
	s := w.statement(text)
	if s == nil {
		return
	}
	rows, err := s.QueryContext(w.ctx, args...)
	if err != nil {
		w.fail(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			w.fail(err)
			return
		}
	}
	w.fail(rows.Err())
}

func (w *writer) number(text string, args ...any) (n int64) {
	w.rowsOf(func(r *sql.Rows) error { return r.Scan(&n) }, text, args...)
	return n
}

func (w *writer) mark(name string) int64 {
	return w.number(`SELECT value FROM mark WHERE name = ?`, name)
}

func (w *writer) setMark(name string, value int64) {
	w.exec(`UPDATE mark SET value = ? WHERE name = ?`, value, name)
}

// room returns the number of a room, and gives it one.
func (w *writer) room(id anteroom.RoomID) int64 {
	no, ok := w.rooms[id]
	if !ok {
		if no = w.number(`SELECT no FROM room WHERE id = ?`, string(id)); no == 0 {
			w.exec(`INSERT INTO room (id) VALUES (?)`, string(id))
			no = w.number(`SELECT no FROM room WHERE id = ?`, string(id))
		}
		if no > mostRooms {
			w.fail(fmt.Errorf("analytics: more than %d rooms", mostRooms))
		}
		w.rooms[id] = no
	}
	return no
}

// parts returns the minutes of a query for room ids and bodies. A damaged one is left out.
func (w *writer) parts(text string, args ...any) (out []*analytics.Minute) {
	w.rowsOf(func(r *sql.Rows) error {
		var id string
		var body sql.RawBytes
		if err := r.Scan(&id, &body); err != nil {
			return err
		}
		if m, err := analytics.ParseMinute(anteroom.RoomID(id), body); err == nil {
			out = append(out, m)
		}
		return nil
	}, text, args...)
	return out
}

// putRow writes a row of a level.
func (w *writer) putRow(l int, no int64, r *analytics.Row) {
	key := keyOf(no, minuteOf(r.Start))
	w.buf = appendRow(w.buf[:0], r)
	w.exec(`INSERT OR REPLACE INTO row_`+levels[l].word+` (key, minutes, body) VALUES (?, ?, ?)`, key, r.Minutes, w.buf)
	w.buf = appendDetails(w.buf[:0], r)
	n := len(w.buf)
	w.buf = appendHistograms(w.buf, r)
	if len(w.buf) > 0 {
		w.exec(`INSERT OR REPLACE INTO more_`+levels[l].word+` (key, details, histograms) VALUES (?, ?, ?)`, key, w.buf[:n:n], w.buf[n:])
	}
}

// roll makes the rows of a level anew, of a room between two minutes that are multiples of the
// level's length, from those of the level below.
func (w *writer) roll(l int, no, from, to int64) {
	var made []*analytics.Row // written when the query has ended
	every := levels[l].length()
	w.rowsOf(func(rows *sql.Rows) error {
		var key int64
		var body, details, histograms sql.RawBytes
		if err := rows.Scan(&key, &body, &details, &histograms); err != nil {
			return err
		}
		var r analytics.Row
		if parseRow(&r, body, details, histograms) != nil {
			return nil // a query that meets it says so
		}
		start := timeOf(key & (1<<32 - 1)).Truncate(every)
		if len(made) == 0 || !made[len(made)-1].Start.Equal(start) {
			made = append(made, &analytics.Row{Start: start, Every: levels[l].every})
		}
		made[len(made)-1].Add(&r)
		return nil
	}, selectRows(l-1, true, true), keyOf(no, from), keyOf(no, to))
	for _, r := range made {
		r.Summarize()
		w.putRow(l, no, r)
	}
}

// selectRows is the query for rows of a level between two keys.
func selectRows(l int, details, histograms bool) string {
	word := levels[l].word
	columns, join := "r.key, r.body", ""
	if details || histograms {
		join = " LEFT JOIN more_" + word + " m ON m.key = r.key"
	}
	if details {
		columns += ", m.details"
	}
	if histograms {
		columns += ", m.histograms"
	}
	return "SELECT " + columns + " FROM row_" + word + " r" + join + " WHERE r.key >= ? AND r.key < ? ORDER BY r.key"
}

// span is a time in a room, in minutes.
type span struct{ no, from, to int64 }

// rollTouched makes anew what rows that were written change in the levels above l, as far as those are
// rolled up. at are the rooms and starts of the rows.
func (w *writer) rollTouched(l int, at []span) {
	for l++; l < len(levels); l++ {
		length := int64(levels[l].length() / time.Minute)
		rolled := w.mark(rolledMark(l))
		touched := map[span]bool{}
		for _, one := range at {
			start := one.from - one.from%length
			if start+length <= rolled {
				touched[span{one.no, start, start + length}] = true
			}
		}
		at = at[:0:0]
		for one := range touched {
			at = append(at, one)
		}
		slices.SortFunc(at, func(a, b span) int { return cmp.Or(cmp.Compare(a.no, b.no), cmp.Compare(a.from, b.from)) })
		for i := 0; i < len(at); { // spans that adjoin in one go
			j := i + 1
			for j < len(at) && at[j].no == at[i].no && at[j].from == at[j-1].to {
				j++
			}
			w.roll(l, at[i].no, at[i].from, at[j-1].to)
			i = j
		}
	}
}

// change is what is to be written of a minute.
type change struct {
	room  anteroom.RoomID
	at    int64
	whole bool
	parts []*analytics.Minute
	dirty map[uint64]bool
}

// changes takes up to batch minutes that are not in the file.
func (s *Store) changes() (out []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, room := range s.live {
		for at, e := range room {
			if len(e.dirty) > 0 {
				out = append(out, change{id, at, e.whole, slices.Collect(maps.Values(e.parts)), maps.Clone(e.dirty)})
			}
			if len(out) == batch {
				return out
			}
		}
	}
	return out
}

// written notes that changes are in the file, as far as nothing newer came meanwhile.
func (s *Store) written(done []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range done {
		e := s.live[c.room][c.at]
		if e == nil {
			continue
		}
		for _, m := range c.parts {
			if e.parts[m.Process] == m && e.dirty[m.Process] {
				delete(e.dirty, m.Process)
				s.health.Waiting--
			}
		}
	}
}

// writeAll writes what is only in memory.
func (s *Store) writeAll(ctx context.Context) error {
	for left := s.Health().Waiting; left > 0; left -= batch { // what comes meanwhile is for the next time
		todo := s.changes()
		if len(todo) == 0 {
			return nil
		}
		if err := s.writeSome(ctx, todo); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writeSome(ctx context.Context, todo []change) error {
	w, err := s.file.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	floor := w.mark(floorMark(minutes))
	var touched []span
	refused := 0
	for _, c := range todo {
		if c.at < floor {
			refused++
			continue
		}
		no := w.room(c.room)
		switch w.minute(no, c) {
		case wrote:
			touched = append(touched, span{no: no, from: c.at})
		case tooLate:
			refused++
		}
	}
	w.rollTouched(minutes, touched)
	if err := w.commit(); err != nil {
		return err
	}
	s.written(todo)
	if refused > 0 {
		s.mu.Lock()
		s.health.Refused += uint64(refused)
		s.mu.Unlock()
	}
	return nil
}

// What became of a change.
const (
	nothingNew = iota
	wrote
	tooLate
)

// minute writes the parts of a minute that are newer than those in the file, and the row that comes
// of all.
func (w *writer) minute(no int64, c change) int {
	parts := map[uint64]*analytics.Minute{}
	known := 0
	if !c.whole {
		for _, m := range w.parts(`SELECT room.id, part.body FROM part JOIN room ON room.no = part.room WHERE part.minute = ? AND part.room = ?`, c.at, no) {
			parts[m.Process] = m
			known++
		}
		if known == 0 && w.number(`SELECT count(*) FROM row_minute WHERE key = ?`, keyOf(no, c.at)) > 0 {
			return tooLate // what its parts were is not known any more
		}
	}
	result := nothingNew
	for _, m := range c.parts {
		if old := parts[m.Process]; old != nil && !m.Newer(old) {
			continue
		}
		parts[m.Process] = m
		if c.dirty[m.Process] {
			w.exec(`INSERT OR REPLACE INTO part (minute, room, process, seq, body) VALUES (?, ?, ?, ?, ?)`, c.at, no, int64(m.Process), m.Seq, m.AppendWire(nil))
			result = wrote
		}
	}
	if result == wrote {
		r := sum(slices.Collect(maps.Values(parts)))
		w.putRow(minutes, no, &r)
	}
	return result
}

// rollUp rolls spans up that are over.
func (s *Store) rollUp(ctx context.Context, now time.Time) error {
	for l := minutes + 1; l < len(levels); l++ {
		to := minuteOf(now.Add(-settle).Truncate(levels[l].length()))
		err := s.eachRoom(ctx, rolledMark(l), to, batch/5, func(w *writer, no, from int64) int64 {
			w.roll(l, no, from, to)
			return 1
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachRoom calls do with every room and what a mark was, and moves the mark to a time with the last room, unless it is there
// already. So many rooms share a transaction that they have most to do together, by what do returns.
func (s *Store) eachRoom(ctx context.Context, mark string, to, most int64, do func(w *writer, no, from int64) (done int64)) error {
	for no := int64(0); ; {
		w, err := s.file.begin(ctx)
		if err != nil {
			return err
		}
		from := w.mark(mark)
		if from >= to {
			w.end()
			return w.err
		}
		last := w.number(`SELECT coalesce(max(no), 0) FROM room`)
		for done := int64(0); done < most; {
			if no++; no > last {
				break
			}
			done += do(w, no, from)
		}
		if no >= last {
			w.setMark(mark, to)
		}
		err = w.commit()
		w.end()
		if err != nil {
			return err
		}
	}
}

// Import writes rows of the past as they are, replacing existing ones: history from elsewhere, or made up. They may be
// of any resolution; coarser rows are computed from them, so that rows of a minute include their quarter, hour and day.
// A row that is coarser than a minute must be over and stands by itself: no finer row is made from it. Histograms,
// Details and Weighted are kept; Summaries are computed from the histograms. An error of kind Invalid says which row is
// wrong; then nothing has changed.
func (s *Store) Import(ctx context.Context, rows []analytics.Row) error {
	for i := range rows {
		if err := s.checkImport(&rows[i]); err != nil {
			return anteroom.Errorf(anteroom.Invalid, "rows[%d]: %w", i, err)
		}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.file == nil {
		return anteroom.Errorf(anteroom.Unavailable, "the analytics file cannot be written: %s", s.Health().Failing)
	}
	if err := s.rollUp(ctx, s.cfg.Now()); err != nil {
		return err
	}
	if err := s.dropOld(ctx, s.cfg.Now()); err != nil {
		return err
	}
	w, err := s.file.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	for l := range levels {
		var touched []span
		floor := w.mark(floorMark(l))
		for i := range rows {
			if rows[i].Every != levels[l].every {
				continue
			}
			r := new(rows[i])
			r.Summarize()
			if minuteOf(r.Start) < floor {
				return anteroom.Errorf(anteroom.Invalid, "rows[%d]: Start is %v, older than what is kept at this resolution", i, r.Start)
			}
			no := w.room(r.Room)
			w.putRow(l, no, r)
			touched = append(touched, span{no: no, from: minuteOf(r.Start)})
		}
		w.rollTouched(l, touched)
	}
	return w.commit()
}

func (s *Store) checkImport(r *analytics.Row) error {
	l, ok := levelOf(r.Every)
	switch {
	case r.Room == "" || len(r.Room) > mostText:
		return fmt.Errorf("a room's id has 1 to %d bytes", mostText)
	case !ok:
		return fmt.Errorf("its Every is %v, which is none of the resolutions", time.Duration(r.Every))
	case r.Start.Unix() <= 0 || !r.Start.Equal(r.Start.Truncate(levels[l].length())):
		return fmt.Errorf("its Start is %v, which is no multiple of %v", r.Start, levels[l].length())
	case l > minutes && r.Start.Add(levels[l].length()+settle).After(s.cfg.Now()):
		return fmt.Errorf("its Start is %v: of a time that is not over, only minutes can be written", r.Start)
	case l == minutes && r.Start.After(s.cfg.Now().Add(-window*time.Minute)):
		return fmt.Errorf("its Start is %v: the last %d minutes come from Put", r.Start, window)
	}
	return nil
}
