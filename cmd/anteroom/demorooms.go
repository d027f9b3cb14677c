package main

import (
	"context"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/server"
	"github.com/anteroom/anteroom/sim/demo/history"
)

// The demo's second room is in front of one product, which was sold at fixed hours before and is again soon.
const (
	dropName = "drop"
	dropPath = "/product/ember-teapot"
)

// closedFor is how long the shop holds everybody at first. What came by then is let in as evenly as the
// limit allows; without it all of the first minute's would enter at once, and nobody for a minute then.
const closedFor = 4 * time.Second

// demoRooms makes the demo's rooms, unless a data directory that was kept has them. Open opens the shop
// after a moment; past fills in what might have been before, and is nil when there is nothing to fill.
func demoRooms(ctx context.Context, m *manage.Manager, o demoOptions) (open func(context.Context) error, past func(context.Context, *server.Server) error, err error) {
	if _, there := m.State().ZoneNamed("*"); there {
		return func(context.Context) error { return nil }, nil, nil
	}
	by := manage.Caller{Name: "demo", Grants: []manage.Grant{{Permission: manage.Admin}}}
	zone, err := m.CreateZone(ctx, by, "*")
	if err != nil {
		return nil, nil, err
	}
	// Every few seconds the page shows how the line moves, also while it is long.
	const refresh = 5 * time.Second
	room := anteroom.Room{
		Name: "shop", Description: "The whole shop, as it is every day", Routes: []anteroom.Route{{Host: "*", Path: "/"}},
		DefaultTemplateLanguage: anteroom.Language(o.language), JSONResponse: true, EnabledOriginCommands: []string{anteroom.CommandRevoke},
		Settings: anteroom.Settings{TotalActiveUsers: o.active, NewUsersPerMinute: o.rate, SessionDuration: o.session, Refresh: refresh, QueueAll: true},
	}
	shop, err := m.CreateRoom(ctx, by, zone.ID, room)
	if err != nil {
		return nil, nil, err
	}
	room.QueueAll = false
	room.Name, room.Description, room.Routes, room.CookieSuffix = dropName, "The teapot, when the kiln is opened", []anteroom.Route{{Host: "*", Path: dropPath}}, dropName
	drop, err := m.CreateRoom(ctx, by, zone.ID, room)
	if err != nil {
		return nil, nil, err
	}
	const length = time.Hour
	now := time.Now().Truncate(time.Minute)
	next := now.Add(20 * time.Minute)
	var sales []history.Sale
	for week := 4; week >= 0; week-- {
		at := next.AddDate(0, 0, -7*week).UTC()
		event, err := m.CreateEvent(ctx, by, zone.ID, drop.ID, anteroom.Event{Name: "kiln-" + at.Format("2006-01-02"), Description: "One firing of ember teapots",
			Start: anteroom.StampOf(at), End: anteroom.StampOf(at.Add(length)), Prequeue: anteroom.StampOf(at.Add(-10 * time.Minute)), ShuffleAtStart: true})
		if err != nil {
			return nil, nil, err
		}
		if week > 0 {
			sales = append(sales, history.Sale{At: at, Visitors: 3000 + 500*week, Over: 10 * time.Minute, Event: event.ID, Length: length})
		}
	}
	open = func(ctx context.Context) error {
		if !walltime.Sleep(ctx, closedFor) {
			return ctx.Err()
		}
		_, err := m.ChangeRoom(ctx, by, zone.ID, shop.ID, func(r *anteroom.Room) error { r.QueueAll = false; return nil })
		return err
	}
	past = func(ctx context.Context, s *server.Server) error {
		set := anteroom.Settings{TotalActiveUsers: o.active, NewUsersPerMinute: o.rate, SessionDuration: o.session}
		before := set
		before.TotalActiveUsers = max(1, o.active*2/3)
		month := history.Config{From: now.AddDate(0, 0, -30), To: now.Add(-3 * time.Minute), Settings: set, Before: before, Raised: now.AddDate(0, 0, -12),
			Stay: 9 * time.Second, Patience: 2 * time.Minute, Fine: 24 * time.Hour}
		everyDay, atSales := month, month
		everyDay.Room, everyDay.Seed, everyDay.Visitors = shop.ID, 1, float64(o.rate)*0.85
		everyDay.Sales = []history.Sale{{At: now.AddDate(0, 0, -20).Add(-5 * time.Hour), Visitors: 60 * o.active, Over: 10 * time.Minute}}
		atSales.Room, atSales.Seed, atSales.Visitors, atSales.Sales = drop.ID, 2, 1, sales
		atSales.Fine = 30 * 24 * time.Hour // its sales last an hour: whoever jumps to one looks at minutes
		for _, cfg := range []history.Config{everyDay, atSales} {
			if err := s.Analytics().Import(ctx, history.Rows(cfg)); err != nil {
				return err
			}
		}
		return nil
	}
	return open, past, nil
}
