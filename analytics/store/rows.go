package store

import (
	"database/sql"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// up returns the first multiple of a level's length that is not before a time.
func up(t time.Time, l int) time.Time {
	length := levels[l].length()
	down := t.Truncate(length)
	if down.Before(t) {
		return down.Add(length)
	}
	return down
}

// A found row is passed on with the histograms that are stored of it, which take long to read. Both are
// the next one's afterwards. A row that was in memory has its own histograms.
type found func(r *analytics.Row, histograms []byte)

// rows appends the rows of a level that begin between two times, ascending: as they are stored, and what
// is not rolled up yet as the sum of what is.
func (v *view) rows(out []analytics.Row, id anteroom.RoomID, l int, from, to time.Time) []analytics.Row {
	from, to = up(from, l), up(to, l)
	if l == minutes {
		v.pass(id, l, from, to, v.q.Histograms, func(r *analytics.Row, histograms []byte) { out = v.appendRow(out, r, histograms) })
		return out
	}
	from = v.over(id, l, from, to, v.q.Histograms, func(r *analytics.Row, histograms []byte) { out = v.appendRow(out, r, histograms) })
	first := len(out)
	v.pass(id, l-1, from, to, v.q.Histograms || v.q.Summaries, func(r *analytics.Row, histograms []byte) {
		start := r.Start.Truncate(levels[l].length())
		if last := len(out) - 1; last < first || !out[last].Start.Equal(start) {
			if last >= first {
				v.summed(&out[last])
			}
			out = append(out, analytics.Row{Room: id, Start: start, Every: levels[l].every})
		}
		v.sum(&out[len(out)-1], r, histograms)
	})
	if len(out) > first {
		v.summed(&out[len(out)-1])
	}
	return out
}

// appendRow appends a row as the query wants it.
func (v *view) appendRow(out []analytics.Row, r *analytics.Row, histograms []byte) []analytics.Row {
	if !v.q.Histograms {
		r.Histograms = [analytics.Spans]*analytics.Histogram{}
	} else if parseHistograms(r, histograms) != nil {
		v.bad++
		return out
	}
	return append(out, *r)
}

// sum adds a row up.
func (v *view) sum(to, r *analytics.Row, histograms []byte) {
	if addHistograms(&v.sums, histograms) != nil {
		v.bad++
	}
	for i, h := range r.Histograms {
		if v.q.Histograms || v.q.Summaries {
			v.sums[i].Add(h)
		}
		r.Histograms[i] = nil
	}
	to.Add(r)
}

// summed ends the adding up of a row.
func (v *view) summed(to *analytics.Row) {
	for i := range v.sums {
		to.Summaries[i] = v.sums[i].Summary()
		if v.q.Histograms {
			to.Histograms[i] = v.sums[i].Histogram()
		}
		v.sums[i].Reset()
	}
}

// pass calls fn with rows that make up a time, ascending: of a level, and of finer ones from where that is
// not rolled up.
func (v *view) pass(id anteroom.RoomID, l int, from, to time.Time, histograms bool, fn found) {
	for ; l > minutes; l-- {
		from = v.over(id, l, from, to, histograms, fn)
	}
	if from.Before(to) {
		v.reach(minutes, from)
		v.minutes(id, from, to, histograms, fn)
	}
}

// over calls fn with the rows of a level that are rolled up, and returns where they end.
func (v *view) over(id anteroom.RoomID, l int, from, to time.Time, histograms bool, fn found) time.Time {
	if !from.Before(to) {
		return from
	}
	v.reach(l, from)
	rolled := timeOf(v.marks[rolledMark(l)])
	if rolled.After(to) {
		rolled = to
	}
	if !from.Before(rolled) {
		return from
	}
	v.stored(id, l, from, rolled, histograms, fn)
	return rolled
}

// reach notes when a level does not reach back to a time.
func (v *view) reach(l int, from time.Time) {
	if minuteOf(from) < v.marks[floorMark(l)] {
		v.early = true
	}
}

// minutes calls fn with minutes: those in memory in place of those in the file.
func (v *view) minutes(id anteroom.RoomID, from, to time.Time, histograms bool, fn found) {
	live := v.live[id]
	for len(live) > 0 && live[0].at < minuteOf(from) {
		live = live[1:]
	}
	next := func() {
		fn(live[0].make(v.q), nil)
		live = live[1:]
	}
	v.inMemory = map[int64]bool{}
	for _, m := range live {
		v.inMemory[m.at] = true
	}
	v.stored(id, minutes, from, to, histograms, func(r *analytics.Row, histograms []byte) {
		for at := minuteOf(r.Start); len(live) > 0 && live[0].at < at; {
			next()
		}
		fn(r, histograms)
	})
	for len(live) > 0 && live[0].at < minuteOf(to) {
		next()
	}
}

// make returns the row of the minute, with its histograms.
func (m *liveMinute) make(q analytics.Query) *analytics.Row {
	if m.row == nil {
		row := sum(m.parts)
		if !q.Details {
			row.Reasons, row.TicketRefusals, row.BypassReasons = nil, nil, nil
		}
		m.row = &row
	}
	return new(*m.row)
}

// stored calls fn with the rows of the file.
func (v *view) stored(id anteroom.RoomID, l int, from, to time.Time, histograms bool, fn found) {
	no := v.room(id)
	if no == 0 || !from.Before(to) {
		return
	}
	var key int64
	var body, details, spans sql.RawBytes
	into := []any{&key, &body}
	if v.q.Details {
		into = append(into, &details)
	}
	if histograms {
		into = append(into, &spans)
	}
	v.query(selectRows(l, v.q.Details, histograms), func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if l == minutes && v.inMemory[key&(1<<32-1)] {
			return nil
		}
		v.row = analytics.Row{Room: id, Start: timeOf(key & (1<<32 - 1)), Every: levels[l].every}
		if parseRow(&v.row, body, details, nil) != nil {
			v.bad++
			return nil
		}
		fn(&v.row, spans)
		return nil
	}, keyOf(no, minuteOf(from)), keyOf(no, minuteOf(to)))
}

// room returns a room's number; 0 when the file has none.
func (v *view) room(id anteroom.RoomID) int64 {
	no, ok := v.rooms[id]
	if !ok {
		v.query(`SELECT no FROM room WHERE id = ?`, func(r *sql.Rows) error { return r.Scan(&no) }, string(id))
		v.rooms[id] = no
	}
	return no
}

// total returns one row of all minutes that begin between From and To: of days in the middle, and of what is
// shorter at both ends.
func (v *view) total(id anteroom.RoomID) analytics.Row {
	from, to := up(v.q.From, minutes), up(v.q.To, minutes)
	sum := analytics.Row{Room: id, Start: v.q.From, Every: analytics.Resolution(v.q.To.Sub(v.q.From))}
	v.pieces(id, len(levels)-1, from, to, func(r *analytics.Row, histograms []byte) { v.sum(&sum, r, histograms) })
	v.summed(&sum)
	return sum
}

// pieces calls fn with rows that make up a time, ascending, the longest of level l.
func (v *view) pieces(id anteroom.RoomID, l int, from, to time.Time, fn found) {
	first, last := up(from, l), to.Truncate(levels[l].length())
	switch {
	case l == minutes:
		v.pass(id, l, from, to, v.q.Histograms || v.q.Summaries, fn)
	case !first.Before(last):
		v.pieces(id, l-1, from, to, fn)
	default:
		v.pieces(id, l-1, from, first, fn)
		v.pass(id, l, first, last, v.q.Histograms || v.q.Summaries, fn)
		v.pieces(id, l-1, last, to, fn)
	}
}
