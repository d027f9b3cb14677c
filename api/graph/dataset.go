package graph

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// question is what a node is asked.
type question struct {
	zone   anteroom.ZoneID
	filter *filter
	limit  int
	orders []order
}

type order struct {
	key        key
	descending bool
}

// newQuestion reads the arguments of a node.
func newQuestion(arguments map[string]any, filters, orders map[string]key) (*question, error) {
	const mostOrders = 10
	q := &question{}
	var err error
	if q.filter, err = readFilter(filters, arguments["filter"]); err != nil {
		return nil, err
	}
	if q.limit, err = limitOf(arguments, maxPageSize); err != nil {
		return nil, err
	}
	if by := arguments["orderBy"]; by != nil {
		all := listOf(by)
		if len(all) > mostOrders {
			return nil, fault{code: codeLimit, message: fmt.Sprintf("orderBy has too many values (at most %d)", mostOrders)}
		}
		for _, value := range all {
			name, _ := value.(string)
			k, descending, ok := orderOf(orders, name)
			if !ok {
				return nil, fault{code: codeInvalid, message: fmt.Sprintf("orderBy: there is no %s", printed(value))}
			}
			q.orders = append(q.orders, order{k, descending})
		}
	}
	return q, nil
}

func (o order) compare(a, b *result) int {
	c := 0
	switch {
	case o.key.unit > 0:
		c = a.at.Truncate(o.key.unit).Compare(b.at.Truncate(o.key.unit))
	case o.key.text != nil:
		c = cmp.Compare(o.key.text(a.room), o.key.text(b.room))
	default:
		c = cmp.Compare(o.key.number(&a.cell), o.key.number(&b.cell))
	}
	if o.descending {
		return -c
	}
	return c
}

// put brings results into the order that was asked for, those alike by time and room.
func (q *question) put(all []*result) {
	slices.SortFunc(all, func(a, b *result) int {
		for _, o := range q.orders {
			if c := o.compare(a, b); c != 0 {
				return c
			}
		}
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.room.id, b.room.id))
	})
}

// rooms returns the rooms of the zone of which rows can pass.
func (w *work) rooms(q *question) ([]*room, error) {
	all, err := w.graph.manage.Rooms(w.by, q.zone)
	if err != nil {
		return nil, err
	}
	var out []*room
	for i := range all {
		r := &room{id: string(all[i].ID), name: all[i].Name}
		if q.filter.match(facts{room: r}) {
			out = append(out, r)
		}
	}
	return out, nil
}

// fetch calls fn with the rows of rooms in a piece, some at a time; not in the order of time.
func (w *work) fetch(ctx context.Context, rooms []*room, p piece, fn func(*room, *analytics.Row)) error {
	const mostRooms = 1000
	for len(rooms) > 0 {
		some := rooms[:min(len(rooms), mostRooms)]
		rooms = rooms[len(some):]
		query := analytics.Query{Every: p.every}
		of := make(map[anteroom.RoomID]*room, len(some))
		for _, r := range some {
			query.Rooms = append(query.Rooms, anteroom.RoomID(r.id))
			of[anteroom.RoomID(r.id)] = r
		}
		const longest = 10 * 365 * 24 * time.Hour
		step := time.Duration(p.every) * min(time.Duration(max(1, analytics.MaxRows/len(some))), longest/time.Duration(p.every))
		for from := p.from; from.Before(p.to); from = query.To {
			query.From, query.To = from, from.Add(step)
			if query.To.After(p.to) {
				query.To = p.to
			}
			answer, err := w.graph.manage.Analytics(ctx, w.by, query)
			if err != nil {
				return err
			}
			if err := w.scan(len(answer.Rows)); err != nil {
				return err
			}
			for i := range answer.Rows {
				if r := of[answer.Rows[i].Room]; r != nil {
					fn(r, &answer.Rows[i])
				}
			}
		}
	}
	return nil
}

// raw answers with the rows of single minutes.
func (w *work) raw(ctx context.Context, q *question) ([]*result, error) {
	rooms, err := w.rooms(q)
	if err != nil || len(rooms) == 0 {
		return nil, err
	}
	within := span{w.now.Add(-w.graph.Minutes).Truncate(time.Minute), up(w.now, analytics.EveryMinute).Add(time.Minute)}
	spans, err := q.filter.spans(within, true)
	if err != nil {
		return nil, err
	}
	// What is ordered by time is read from that end, until there is enough.
	byTime := len(q.orders) == 0 || q.orders[0].key.unit == time.Minute
	backwards := byTime && len(q.orders) > 0 && q.orders[0].descending
	var all []*result
	for _, s := range windows(spans, len(rooms), backwards) {
		err := w.fetch(ctx, rooms, piece{s, analytics.EveryMinute}, func(r *room, row *analytics.Row) {
			one := &result{at: row.Start, room: r}
			one.cell.add(row)
			if q.filter.match(facts{row.Start, r, &one.cell}) {
				all = append(all, one)
			}
		})
		if err != nil {
			return nil, err
		}
		if byTime && len(all) >= q.limit {
			break
		}
	}
	q.put(all)
	return all[:min(len(all), q.limit)], nil
}

// windows cuts spans into such as are read at once: from either end the first are short, for often
// little is wanted.
func windows(spans []span, rooms int, backwards bool) (all []span) {
	const first, most = 5_000, analytics.MaxRows / 4 // rows
	size := first
	next := func() time.Duration {
		d := time.Duration(max(1, size/rooms)) * time.Minute
		size = min(2*size, most)
		return d
	}
	if backwards {
		for _, s := range slices.Backward(spans) {
			for s.from.Before(s.to) {
				one := span{s.to.Add(-next()), s.to}
				if one.from.Before(s.from) {
					one.from = s.from
				}
				all, s.to = append(all, one), one.from
			}
		}
		return all
	}
	for _, s := range spans {
		for s.from.Before(s.to) {
			one := span{s.from, s.from.Add(next())}
			if one.to.After(s.to) {
				one.to = s.to
			}
			all, s.from = append(all, one), one.to
		}
	}
	return all
}

// groups answers with rows added up. What tells them apart is a unit of time, 0 for none, and the
// room where byRoom is true.
func (w *work) groups(ctx context.Context, q *question, unit time.Duration, byRoom bool) ([]*result, error) {
	rooms, err := w.rooms(q)
	if err != nil || len(rooms) == 0 {
		return nil, err
	}
	every := coarsest(unit)
	within := span{w.now.Add(-w.graph.Retention).Truncate(24 * time.Hour), up(w.now, analytics.EveryMinute).Add(time.Minute)}
	spans, err := q.filter.spans(within, every == analytics.EveryMinute)
	if err != nil {
		return nil, err
	}
	if every != analytics.EveryMinute {
		spans = widened(spans, w.now, w.graph.Minutes)
	}
	type group struct {
		at   time.Time
		room *room
	}
	nowhere := &room{}
	found := map[group]*result{}
	for _, s := range spans {
		passing := rooms
		if every != analytics.EveryMinute {
			passing = slices.DeleteFunc(slices.Clone(rooms), func(r *room) bool { return !q.filter.match(facts{at: s.from, room: r}) })
		}
		for _, p := range cut(nil, s, slices.Index(resolutions, every)) {
			err := w.fetch(ctx, passing, p, func(r *room, row *analytics.Row) {
				if every == analytics.EveryMinute && !q.filter.match(facts{at: row.Start, room: r}) {
					return
				}
				g := group{room: nowhere}
				if unit > 0 {
					g.at = row.Start.Truncate(unit)
				}
				if byRoom {
					g.room = r
				}
				one := found[g]
				if one == nil {
					one = &result{at: g.at, room: g.room}
					found[g] = one
				}
				one.cell.add(row)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	all := slices.Collect(maps.Values(found))
	q.put(all)
	return all[:min(len(all), q.limit)], nil
}

// widened rounds what is older than the rows of minutes, or of quarters of an hour, to what is kept
// longer, without taking any row twice. Quarters are kept three times as long as minutes.
func widened(spans []span, now time.Time, minutes time.Duration) (all []span) {
	grid := func(t time.Time) analytics.Resolution {
		switch age := now.Sub(t) + time.Hour; { // rather too early than not there
		case age > 3*minutes:
			return analytics.EveryHour
		case age > minutes:
			return analytics.EveryQuarter
		}
		return analytics.EveryMinute
	}
	var end time.Time
	for _, s := range spans {
		s.from = s.from.Truncate(time.Duration(grid(s.from)))
		s.to = up(s.to, grid(s.to))
		if s.from.Before(end) {
			s.from = end
		}
		if s.from.Before(s.to) {
			all, end = append(all, s), s.to
		}
	}
	return all
}
