package manage

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// asked answers with a row for each room of the query.
type asked struct{ queries []analytics.Query }

func (a *asked) Query(_ context.Context, q analytics.Query) (answer analytics.Answer, err error) {
	a.queries = append(a.queries, q)
	for _, id := range q.Rooms {
		answer.Rows = append(answer.Rows, analytics.Row{Room: id})
	}
	return answer, nil
}

func TestAnalyticsOfWhatTheCallerMayRead(t *testing.T) {
	t.Parallel()
	ctx, reader := t.Context(), &asked{}
	m := open(t, Config{Analytics: reader})
	var rooms []anteroom.Room
	var zones []anteroom.Zone
	for _, name := range []string{"example.com", "example.org"} {
		zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, name))
		zones = append(zones, zone)
		for _, path := range []string{"one", "two"} {
			r := shop(path)
			r.Routes[0].Host = name
			rooms = append(rooms, must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, r)))
		}
	}
	ids := func(of ...int) (out []anteroom.RoomID) {
		for _, i := range of {
			out = append(out, rooms[i].ID)
		}
		return out
	}
	gone := []anteroom.RoomID{"0123456789abcdef0123456789abcdef"}
	for _, c := range []struct {
		name   string
		grants []Grant
		ask    []anteroom.RoomID
		want   []anteroom.RoomID
		denied bool
	}{
		{name: "everything", grants: []Grant{{Permission: Read}}, want: ids(0, 1, 2, 3)},
		{name: "a zone", grants: []Grant{{Zone: zones[1].ID, Permission: Read}}, want: ids(2, 3)},
		{name: "a room", grants: []Grant{{Zone: zones[0].ID, Room: rooms[1].ID, Permission: Edit}}, want: ids(1)},
		{name: "a room by its id alone", grants: []Grant{{Room: rooms[3].ID, Permission: Read}}, want: ids(3)},
		{name: "nothing"},
		{name: "two of a zone", grants: []Grant{{Zone: zones[0].ID, Permission: Read}}, ask: ids(1, 0), want: ids(1, 0)},
		{name: "one of two", grants: []Grant{{Zone: zones[0].ID, Permission: Read}}, ask: ids(1, 2), denied: true},
		{name: "another room of the zone", grants: []Grant{{Zone: zones[0].ID, Room: rooms[1].ID, Permission: Read}}, ask: ids(0), denied: true},
		{name: "a deleted room", grants: []Grant{{Permission: Read}}, ask: gone, want: gone},
		{name: "a deleted room of who knows which zone", grants: []Grant{{Zone: zones[0].ID, Permission: Admin}}, ask: gone, denied: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			reader.queries = nil
			got, err := m.Analytics(ctx, Caller{Grants: c.grants}, analytics.Query{Rooms: c.ask, From: from, To: from.Add(time.Hour), Total: true})
			if c.denied {
				if anteroom.KindOf(err) != anteroom.Denied || len(reader.queries) != 0 {
					t.Fatalf("answered %v, asked %v; want a denial and no question", err, reader.queries)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var rooms []anteroom.RoomID
			for _, r := range got.Rows {
				rooms = append(rooms, r.Room)
			}
			if !slices.Equal(rooms, c.want) {
				t.Errorf("rooms %v, want %v", rooms, c.want)
			}
			if len(c.want) > 0 && (!reader.queries[0].Total || !reader.queries[0].From.Equal(from)) {
				t.Errorf("asked %+v", reader.queries[0])
			}
		})
	}
}

func TestAnalyticsWithoutAStore(t *testing.T) {
	t.Parallel()
	m := open(t, Config{})
	if _, err := m.Analytics(t.Context(), root, analytics.Query{}); anteroom.KindOf(err) != anteroom.Unavailable {
		t.Errorf("%v, want an error of kind Unavailable", err)
	}
}
