package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// from returns how a store asks others: all of them hear it, and the first that it is for answers.
func from(others ...*Store) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, message []byte) ([]byte, error) {
		for _, one := range others {
			if answer, ok := one.ServeCopy(ctx, message); ok {
				if len(answer) > 1<<20 {
					return nil, errors.New("too large for a link")
				}
				return answer, nil
			}
		}
		return nil, errors.New("nobody answers")
	}
}

// A store that was away copies what it missed, of minutes, of days before, and of processes that it
// had heard in part; then both have the same, and copy nothing.
func TestCatchUp(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	c := &clock{now: began}
	a, b := openAt(t, c), openAt(t, c)
	r := rand.New(rand.NewPCG(9, 9))
	rooms := []anteroom.RoomID{room(1), room(2)}
	all := told{}
	for n := 0; n < 100*60; n += 13 * (1 + fewer/4) { // four days; b sleeps from the second hour to the ninetieth
		c.now = began.Add(time.Duration(n) * time.Minute)
		for process := range uint64(2) {
			m := minuteOfVisitors(r, rooms[n%2], c.now.Truncate(time.Minute), process, 5)
			all.put(m)
			a.Put([]*analytics.Minute{m})
			if away := n > 60 && n < 90*60; !away || n > 70*60 && process == 0 {
				b.Put([]*analytics.Minute{m})
			}
		}
		if n%5 == 0 {
			a.Step(t.Context())
			b.Step(t.Context())
		}
	}
	c.now = c.now.Add(time.Minute)
	a.Step(t.Context())
	b.Step(t.Context())
	// Two days later the day that had begun single and ended in rows is whole, too.
	for _, later := range []time.Duration{0, 25 * time.Hour} {
		c.now = c.now.Add(later)
		a.Step(t.Context())
		b.Step(t.Context())
		if n, err := b.CatchUp(t.Context(), from(b, a)); err != nil || n == 0 {
			t.Fatalf("%d copied, %v", n, err)
		}
	}
	for _, l := range levels {
		q := analytics.Query{Rooms: rooms, From: began.Add(-24 * time.Hour), To: c.now.Add(time.Hour), Every: l.every, Histograms: true, Details: true}
		var want []analytics.Row
		for _, id := range rooms {
			want = append(want, all.rows(id, q.From, q.To, l.length())...)
		}
		if diff := cmp.Diff(want, ask(t, b, q).Rows, same); diff != "" {
			t.Fatalf("every %s: (-seen, +copied)\n%.4000s", l.word, diff)
		}
	}
	for _, one := range []*Store{a, b} {
		if n, err := one.CatchUp(t.Context(), from(a, b)); err != nil || n != 0 {
			t.Errorf("%d copied once more, %v", n, err)
		}
	}
}

// A new store gets everything, of a page's size at a time.
func TestCatchUpOfANewStore(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	c := &clock{now: began}
	a, b := openAt(t, c), openAt(t, c)
	today, fine := began.Truncate(24*time.Hour), max(1, 2/fewer) // days of minutes
	fill(t, a, room(1), analytics.EveryHour, today.AddDate(0, 0, -20), today.AddDate(0, 0, -5), 100)
	fill(t, a, room(2), analytics.EveryMinute, today.AddDate(0, 0, -3-fine), today.AddDate(0, 0, -3), 30)
	if n, err := b.CatchUp(t.Context(), from(b, a)); err != nil || n < 15*24+fine*1440 {
		t.Fatalf("%d copied, %v", n, err)
	}
	for _, l := range levels {
		q := analytics.Query{Rooms: []anteroom.RoomID{room(1), room(2)}, From: today.AddDate(0, 0, map[bool]int{true: -6, false: -30}[l.every < analytics.EveryHour]), To: began, Every: l.every, Histograms: true, Details: true}
		if diff := cmp.Diff(ask(t, a, q).Rows, ask(t, b, q).Rows, same); diff != "" {
			t.Errorf("every %s:\n%.4000s", l.word, diff)
		}
	}
}

// An answer over a link is the store's own, in as many messages as it takes.
func TestRemoteAnswersAreTheStores(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	c := &clock{now: began}
	s := openAt(t, c)
	day := began.Truncate(24 * time.Hour)
	for i := range 3 {
		fill(t, s, room(i), analytics.EveryMinute, day.Add(-8*time.Hour), day, 40)
	}
	messages := 0
	remote := Remote{Ask: func(ctx context.Context, message []byte) ([]byte, error) {
		messages++
		answer := s.Serve(ctx, message)
		if len(answer) > 1<<20 {
			t.Errorf("a message of %d bytes", len(answer))
		}
		return answer, nil
	}}
	var rooms []anteroom.RoomID
	for i := range 130 {
		rooms = append(rooms, room(129-i)) // most of them unknown
	}
	for _, q := range []analytics.Query{
		{Rooms: rooms, From: day.Add(-8 * time.Hour), To: day, Every: analytics.EveryMinute},
		{Rooms: rooms[120:], From: day.Add(-8 * time.Hour), To: day, Every: analytics.EveryMinute, Histograms: true, Details: true},
		{Rooms: rooms, From: day.Add(-8 * time.Hour), To: day, Total: true, Histograms: true},
		{Rooms: rooms, From: day.Add(-8 * time.Hour), To: day},
	} {
		messages = 0
		got, err := remote.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ask(t, s, q), got, same); diff != "" {
			t.Errorf("%+v:\n%.3000s", q, diff)
		}
		t.Logf("%d rows in %d messages", len(got.Rows), messages)
	}
	if _, err := remote.Query(t.Context(), analytics.Query{}); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("%v", err)
	}
	for _, rubbish := range [][]byte{nil, {0}, {200}, []byte("\x02{}\x07"), []byte("\x02{}\x00\x00\x00\x03abc")} {
		broken := Remote{Ask: func(context.Context, []byte) ([]byte, error) { return rubbish, nil }}
		if _, err := broken.Query(t.Context(), analytics.Query{Rooms: rooms[:1], From: day, To: began}); err == nil && len(rubbish) != 3 {
			t.Errorf("%q was taken for an answer", rubbish)
		}
	}
}
