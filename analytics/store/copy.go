package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/internal/wire"
)

// Stores that were away copy what they missed from another: minutes of single processes where two
// stores differ in an hour of the last two days, and of the time before, whole days of which the
// other has more minutes.

// What is asked of another store.
const (
	askDigest = "digest"
	askParts  = "parts" // between From and To
	askRows   = "rows"  // of Level, between From and To
)

// copyRequest asks a store for what it has. Times are minutes since 1970.
type copyRequest struct {
	Asker int64  `json:"asker"`
	Of    int64  `json:"of,omitempty"` // which store is to answer; 0: any other
	What  string `json:"what"`
	From  int64  `json:"from,omitempty"`
	To    int64  `json:"to,omitempty"`
	Level int    `json:"level,omitempty"`
	After int64  `json:"after,omitempty"` // go on after this number of the answer before
}

// copyAnswer has a digest, or a page of parts or rows.
type copyAnswer struct {
	Store int64 `json:"store"`
	// Hours are the parts of an hour: how many, and how much was recorded. Days are the minutes with a record of a day.
	Hours map[int64][2]int64 `json:"hours,omitempty"`
	Days  map[int64]int64    `json:"days,omitempty"`
	Body  []byte             `json:"body,omitempty"`
	More  bool               `json:"more,omitempty"`
	After int64              `json:"after,omitempty"`
}

const (
	// copyPage bounds the body of an answer before its encoding, in bytes.
	copyPage = 512 << 10
	// fresh is the time in which parts still travel by themselves.
	fresh = 70 * time.Minute
)

// ServeCopy answers what CatchUp of another store asks; false when that is not for this store.
func (s *Store) ServeCopy(ctx context.Context, asked []byte) (answer []byte, ok bool) {
	var q copyRequest
	if json.Unmarshal(asked, &q) != nil || q.Level < 0 || q.Level >= len(levels) || q.From < 0 || q.To < 0 || q.To >= 1<<32 {
		return nil, false
	}
	v, err := s.look(ctx, analytics.Query{})
	if err != nil {
		return nil, false
	}
	defer v.end()
	own := v.marks[idMark]
	if v.tx == nil || v.err != nil || q.Asker == own || q.Of != 0 && q.Of != own {
		return nil, false
	}
	a := copyAnswer{Store: own}
	switch q.What {
	case askDigest:
		a.Hours, a.Days = v.digest()
	case askParts:
		v.copyParts(&q, &a)
	case askRows:
		v.copyRows(&q, &a)
	}
	if v.err != nil {
		return nil, false
	}
	answer, err = json.Marshal(&a)
	return answer, err == nil
}

// digest sums up what the file has, of the times in which nothing travels any more.
func (v *view) digest() (hours map[int64][2]int64, days map[int64]int64) {
	hours, days = map[int64][2]int64{}, map[int64]int64{}
	oldest := v.now.Add(time.Hour - partsKept)
	v.query(`SELECT minute / 60, count(*), sum(seq) FROM part WHERE minute >= ? AND minute < ? GROUP BY 1`, func(r *sql.Rows) error {
		var hour, n, sum int64
		err := r.Scan(&hour, &n, &sum)
		hours[hour] = [2]int64{n, sum}
		return err
	}, minuteOf(up(oldest, 2)), minuteOf(v.now.Add(-fresh).Truncate(time.Hour)))
	v.query(`SELECT (key & 4294967295) / 1440 AS day, sum(minutes) FROM row_hour GROUP BY 1 HAVING day < ?`, func(r *sql.Rows) error {
		var day, n int64
		err := r.Scan(&day, &n)
		days[day] = n
		return err
	}, minuteOf(oldest.Truncate(24*time.Hour))/1440)
	return hours, days
}

func (v *view) copyParts(q *copyRequest, a *copyAnswer) {
	v.query(`SELECT part.rowid, room.id, part.body FROM part JOIN room ON room.no = part.room WHERE part.minute >= ? AND part.minute < ? AND part.rowid > ? ORDER BY part.rowid LIMIT 2000`,
		func(r *sql.Rows) error {
			var number int64
			var id string
			var body sql.RawBytes
			if err := r.Scan(&number, &id, &body); err != nil {
				return err
			}
			if len(a.Body) >= copyPage {
				a.More = true
				return nil
			}
			a.Body = wire.AppendSized(a.Body, id)
			a.Body = wire.AppendSized(a.Body, body)
			a.After = number
			return nil
		}, q.From, q.To, q.After)
	a.More = a.More || a.After > 0 // ask until nothing comes
}

func (v *view) copyRows(q *copyRequest, a *copyAnswer) {
	type room struct {
		no int64
		id string
	}
	var rooms []room
	v.query(`SELECT no, id FROM room WHERE no >= ? ORDER BY no`, func(r *sql.Rows) error {
		var one room
		err := r.Scan(&one.no, &one.id)
		rooms = append(rooms, one)
		return err
	}, q.After>>32)
	for _, one := range rooms {
		if a.More {
			return
		}
		v.query(selectRows(q.Level, true, true), func(r *sql.Rows) error {
			var key int64
			var parts [3]sql.RawBytes
			if err := r.Scan(&key, &parts[0], &parts[1], &parts[2]); err != nil || a.More {
				return err
			}
			if a.More = len(a.Body) >= copyPage; a.More {
				return nil
			}
			a.Body = wire.AppendSized(a.Body, one.id)
			a.Body = binary.AppendUvarint(a.Body, uint64(key&(1<<32-1)))
			for _, part := range parts {
				a.Body = wire.AppendSized(a.Body, part)
			}
			a.After = key
			return nil
		}, max(keyOf(one.no, q.From), q.After+1), keyOf(one.no, q.To))
	}
}

// CatchUp copies what another store has and this one lacks, and returns how much it was: minutes of
// processes, and rows. Ask carries a message to the stores of others and the first answer back,
// as [Store.ServeCopy] gives it.
func (s *Store) CatchUp(ctx context.Context, ask func(ctx context.Context, message []byte) ([]byte, error)) (copied int, err error) {
	v, err := s.look(ctx, analytics.Query{})
	if err != nil {
		return 0, err
	}
	own := v.marks[idMark]
	hours, days := v.digest()
	v.end()
	if v.tx == nil || v.err != nil {
		return 0, anteroom.Errorf(anteroom.Unavailable, "the analytics file cannot be read: %w", v.err)
	}
	fetch := func(q copyRequest) (a copyAnswer, err error) {
		q.Asker = own
		message, err := json.Marshal(&q)
		if err != nil {
			return a, err
		}
		b, err := ask(ctx, message)
		if err == nil {
			err = json.Unmarshal(b, &a)
		}
		return a, err
	}
	theirs, err := fetch(copyRequest{What: askDigest})
	if err != nil {
		return 0, err
	}
	pages := func(q copyRequest, take func(body []byte) (int, error)) error {
		for q.Of = theirs.Store; ; {
			a, err := fetch(q)
			if err != nil {
				return err
			}
			n, err := take(a.Body)
			if copied += n; err != nil || !a.More || a.After <= q.After {
				return err
			}
			q.After = a.After
		}
	}
	for hour, what := range theirs.Hours {
		if what == hours[hour] {
			continue
		}
		err := pages(copyRequest{What: askParts, From: 60 * hour, To: 60 * (hour + 1)}, func(body []byte) (int, error) {
			minutes, err := parseParts(body)
			s.Put(minutes)
			s.Step(ctx)
			return len(minutes), err
		})
		if err != nil {
			return copied, err
		}
	}
	for day, n := range theirs.Days {
		if n <= days[day] {
			continue
		}
		for l := range levels {
			err := pages(copyRequest{What: askRows, Level: l, From: 1440 * day, To: 1440 * (day + 1)}, func(body []byte) (int, error) { return s.takeRows(ctx, l, body) })
			if err != nil {
				return copied, err
			}
		}
	}
	return copied, nil
}

// takeRows writes rows of another store of which this one has none, or one with fewer minutes.
func (s *Store) takeRows(ctx context.Context, l int, body []byte) (taken int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.file == nil {
		return 0, anteroom.Errorf(anteroom.Unavailable, "the analytics file cannot be written: %s", s.Health().Failing)
	}
	w, err := s.file.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer w.end()
	floor := w.mark(floorMark(l))
	var touched []span
	for d := wire.Read(body); d.Left() > 0; {
		id, minute := anteroom.RoomID(text(&d)), d.Number(1<<32-1)
		parts := parts(&d, maxMessage)
		r := analytics.Row{Room: id, Start: timeOf(minute), Every: levels[l].every}
		if d.Err() != nil || id == "" || !r.Start.Equal(r.Start.Truncate(levels[l].length())) {
			return 0, errAnswer
		}
		if err := parseRow(&r, parts[0], parts[1], parts[2]); err != nil {
			return 0, err
		}
		if minute < floor {
			continue
		}
		no := w.room(id)
		if have := w.number(`SELECT minutes FROM row_`+levels[l].word+` WHERE key = ?`, keyOf(no, minute)); have >= r.Minutes {
			continue
		}
		w.putRow(l, no, &r)
		touched = append(touched, span{no: no, from: minute})
	}
	w.rollTouched(l, touched)
	return len(touched), w.commit()
}

// parseParts reads what copyParts wrote: of each minute its room, and its body with its length.
func parseParts(b []byte) (parts []*analytics.Minute, err error) {
	for d := wire.Read(b); d.Left() > 0; {
		room := anteroom.RoomID(text(&d))
		body := d.Sized(maxMessage)
		if err := d.Err(); err != nil {
			return parts, asDamage(err)
		}
		m, err := analytics.ParseMinute(room, body)
		if err != nil {
			return parts, err
		}
		parts = append(parts, m)
	}
	return parts, nil
}
