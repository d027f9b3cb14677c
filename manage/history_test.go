package manage

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func TestRoomHistory(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	m, ctx := open(t, Config{Now: func() time.Time { return now }}), t.Context()
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("sale"))).ID
	other := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("other"))).ID
	pause := func(id anteroom.RoomID, on bool) {
		now = now.Add(time.Minute)
		must[anteroom.Controls](t)(m.ChangeControls(ctx, root, zone, id, func(c *anteroom.Controls) error { c.Paused = on; return nil }))
	}
	pause(room, true)  // 9:01
	pause(other, true) // 9:02
	pause(room, false) // 9:03
	pause(room, true)  // 9:04

	at := func(minute int) time.Time { return time.Date(2026, 11, 27, 9, minute, 0, 0, time.UTC) }
	h, err := m.RoomHistory(ctx, root, zone, room, at(1), at(4))
	if err != nil || len(h.Records) != 2 || h.Nameless || h.Omitted || !h.Since.IsZero() {
		t.Fatalf("%v %+v", err, h)
	}
	if r := h.Records[0]; !r.At.Equal(at(1)) || r.Actor != "root" || r.Operation != "room.controls" || len(r.Changes) != 1 || r.Changes[0].After != "true" {
		t.Errorf("%+v", r)
	}

	reader := Caller{Grants: []Grant{{Permission: Edit, Room: room}}}
	h, err = m.RoomHistory(ctx, reader, zone, room, at(0), at(9))
	if err != nil || len(h.Records) != 4 || !h.Nameless {
		t.Fatalf("%v %+v", err, h)
	}
	for _, r := range h.Records {
		if r.Actor != "" || r.Address != "" || r.Request != "" || r.Token != "" || r.Hash != "" || r.Prev != "" {
			t.Errorf("a reader is told who it was: %+v", r)
		}
	}
	if _, err := m.RoomHistory(ctx, reader, zone, other, at(0), at(9)); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("another's room: %v", err)
	}
	if _, err := m.RoomHistory(ctx, Caller{Grants: []Grant{{Permission: Read, Zone: "elsewhere"}}}, zone, room, at(0), at(9)); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("another zone: %v", err)
	}
}

// TestHistoryOfAReaderHasNoWebhooks: whoever may not see the webhooks of a room is not told of them by
// its history either.
func TestHistoryOfAReaderHasNoWebhooks(t *testing.T) {
	t.Parallel()
	m, ctx := open(t, Config{Webhooks: &sender{}}), t.Context()
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("sale"))).ID
	if _, _, err := m.CreateWebhook(ctx, root, anteroom.Webhook{Name: "on call", URL: slackURL, Zone: zone, Room: room}); err != nil {
		t.Fatal(err)
	}
	for permission, want := range map[Permission]int{Read: 1, Edit: 2, Admin: 2} {
		h, err := m.RoomHistory(ctx, Caller{Grants: []Grant{{Permission: permission, Zone: zone, Room: room}}}, zone, room, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		if err != nil || len(h.Records) != want || h.Records[0].Operation != "room.create" {
			t.Errorf("%s: %v %+v", permission, err, h.Records)
		}
	}
}
