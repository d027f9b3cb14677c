package manage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/rules"
)

var root = Caller{Name: "root", Grants: []Grant{{Permission: Admin}}, Address: netip.MustParseAddr("192.0.2.7"), RequestID: "r1"}

const envToken = "0123456789abcdef0123456789abcdef0123456789abcdef"

func open(t testing.TB, cfg Config) *Manager {
	t.Helper()
	if cfg.Link == nil {
		cfg.Link = memlink.New()
	}
	m, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// must fails the test on an error, and returns the value.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func shop(name string) anteroom.Room {
	return anteroom.Room{Name: name, Routes: []anteroom.Route{{Host: "shop.example.com", Path: "/" + name}},
		Settings: anteroom.Settings{TotalActiveUsers: 300, NewUsersPerMinute: 200}}
}

func TestLifeOfARoom(t *testing.T) {
	t.Parallel()
	ctx, link := t.Context(), memlink.New()
	m := open(t, Config{Link: link})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "Example.COM"))
	if zone.Name != "example.com" || !isID(string(zone.ID)) {
		t.Fatalf("zone %+v", zone)
	}
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, shop("sale")))
	room = must[anteroom.Room](t)(m.ChangeRoom(ctx, root, zone.ID, room.ID, func(r *anteroom.Room) error {
		r.TotalActiveUsers, r.CustomPageHTML, r.Name = 500, "<p>{{waitTime}}</p>", "bigger"
		return nil
	}))
	event := must[anteroom.Event](t)(m.CreateEvent(ctx, root, zone.ID, room.ID, anteroom.Event{Name: "launch",
		Start: "2027-01-01T10:00:00.000Z", End: "2027-01-01T12:00:00Z", Overrides: anteroom.Overrides{CustomPageHTML: ptr("<b>{{eventStartTime}}</b>")}}))
	if event.Seed == [32]byte{} || !isID(string(event.ID)) {
		t.Errorf("event %+v", event)
	}
	must[[]anteroom.Rule](t)(m.ChangeRules(ctx, root, zone.ID, room.ID, func(rules []anteroom.Rule) ([]anteroom.Rule, error) {
		return append(rules, anteroom.Rule{Action: anteroom.ActionBypass, Expression: "ip.src eq 192.0.2.1"}), nil
	}))
	rules := must[[]anteroom.Rule](t)(m.ChangeRules(ctx, root, zone.ID, room.ID, func(rules []anteroom.Rule) ([]anteroom.Rule, error) {
		rules[0].Disabled = true
		return rules, nil
	}))
	if rules[0].Version != 2 || !isID(string(rules[0].ID)) {
		t.Errorf("rule %+v", rules[0])
	}
	must[anteroom.Controls](t)(m.ChangeControls(ctx, root, zone.ID, room.ID, func(c *anteroom.Controls) error { c.Paused = true; return nil }))

	again := open(t, Config{Link: link})
	got := must[anteroom.Room](t)(again.Room(root, zone.ID, room.ID))
	if got.Name != "bigger" || got.TotalActiveUsers != 500 || got.CustomPageHTML != "<p>{{waitTime}}</p>" || len(got.Rules) != 1 || !got.Controls.Paused ||
		got.Events[0].Start != "2027-01-01T10:00:00.000Z" || *got.Events[0].CustomPageHTML != "<b>{{eventStartTime}}</b>" || got.Events[0].Seed != event.Seed {
		t.Errorf("after a restart: %+v", got)
	}
	if s := again.State().Room(room.ID); s.Template == nil || s.EventTemplates[event.ID] == nil {
		t.Error("the custom pages are not compiled")
	}
	if err := again.DeleteZone(ctx, root, zone.ID); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("a zone with rooms is deleted: %v", err)
	}
	if err := errors.Join(again.DeleteRoom(ctx, root, zone.ID, room.ID), again.DeleteZone(ctx, root, zone.ID)); err != nil {
		t.Error(err)
	}
	keys := must[[]string](t)(link.Keys(ctx, pagePrefix))
	if len(keys) != 0 {
		t.Errorf("pages that nobody names stay: %q", keys)
	}
	if n, _, err := again.VerifyAudit(ctx, root); err != nil || n != 11 {
		t.Errorf("%d audit records, %v", n, err)
	}
}

func ptr[T any](v T) *T { return &v }

// failing ends the process, as far as the manager can see, at the write with a number: that
// write is done or not, and none after it.
type failing struct {
	cluster.Link
	left int
	done bool // the last write is still done, but not acknowledged
}

var errGone = errors.New("the process ended here")

func (f *failing) write(do func() error) error {
	f.left--
	if f.left > 0 || f.left == 0 && f.done {
		if err := do(); err != nil {
			return err
		}
	}
	if f.left <= 0 {
		return errGone
	}
	return nil
}

func (f *failing) Put(ctx context.Context, key string, value []byte) (rev uint64, err error) {
	return rev, f.write(func() error { rev, err = f.Link.Put(ctx, key, value); return err })
}

func (f *failing) Update(ctx context.Context, key string, value []byte, revision uint64) (rev uint64, err error) {
	return rev, f.write(func() error { rev, err = f.Link.Update(ctx, key, value, revision); return err })
}

func (f *failing) Delete(ctx context.Context, key string) error {
	return f.write(func() error { return f.Link.Delete(ctx, key) })
}

func (f *failing) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if f.left <= 0 {
		return cluster.Entry{}, errGone
	}
	return f.Link.Get(ctx, key)
}

// TestEndBetweenAnyTwoWrites stops each kind of change at each of its writes. What a new
// process finds is the state before or the state after, whole, with the change in the audit
// log exactly when it happened; and what was acknowledged has happened.
func TestEndBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	type world struct {
		zone anteroom.ZoneID
		room anteroom.Room
		ev   anteroom.EventID
		list anteroom.ListID
		tok  TokenID
		hook anteroom.WebhookID
	}
	elsewhere := backupOf(t, furnished(t, memlink.New()), false)
	fixed := fileRoom()
	big := strings.Repeat("<p>long enough to be staged</p>", 400)
	changes := map[string]func(m *Manager, w world) error{
		"zone": func(m *Manager, w world) error { _, err := m.CreateZone(t.Context(), root, "other.test"); return err },
		"zone settings": func(m *Manager, w world) error {
			_, err := m.ChangeZone(t.Context(), root, w.zone, func(z *anteroom.Zone) error { z.SearchEngineCrawlerBypass = true; return nil })
			return err
		},
		"room": func(m *Manager, w world) error {
			_, err := m.CreateRoom(t.Context(), root, w.zone, shop("new"))
			return err
		},
		"room with a page": func(m *Manager, w world) error {
			r := shop("new")
			r.CustomPageHTML = big
			_, err := m.CreateRoom(t.Context(), root, w.zone, r)
			return err
		},
		"settings and page": func(m *Manager, w world) error {
			_, err := m.ChangeRoom(t.Context(), root, w.zone, w.room.ID, func(r *anteroom.Room) error { r.TotalActiveUsers, r.CustomPageHTML = 999, "new"; return nil })
			return err
		},
		"room away": func(m *Manager, w world) error { return m.DeleteRoom(t.Context(), root, w.zone, w.room.ID) },
		"event": func(m *Manager, w world) error {
			_, err := m.CreateEvent(t.Context(), root, w.zone, w.room.ID, anteroom.Event{Name: "b", Start: "2028-01-01T10:00:00Z", End: "2028-01-01T12:00:00Z"})
			return err
		},
		"event changed": func(m *Manager, w world) error {
			_, err := m.ChangeEvent(t.Context(), root, w.zone, w.room.ID, w.ev, func(e *anteroom.Event) error { e.Description = "x"; return nil })
			return err
		},
		"event away": func(m *Manager, w world) error { return m.DeleteEvent(t.Context(), root, w.zone, w.room.ID, w.ev) },
		"many rules, staged": func(m *Manager, w world) error {
			_, err := m.ChangeRules(t.Context(), root, w.zone, w.room.ID, func(rules []anteroom.Rule) ([]anteroom.Rule, error) {
				for range 90 {
					rules = append(rules, anteroom.Rule{Action: anteroom.ActionBypass, Expression: `http.host eq "` + strings.Repeat("x", 900) + `"`})
				}
				return rules, nil
			})
			return err
		},
		"pause": func(m *Manager, w world) error {
			_, err := m.ChangeControls(t.Context(), root, w.zone, w.room.ID, func(c *anteroom.Controls) error { c.Paused = true; return nil })
			return err
		},
		"pause of a room of the file": func(m *Manager, w world) error {
			_, err := m.ChangeControls(t.Context(), root, anteroom.ZoneIDOf("file.test"), fixed.ID, func(c *anteroom.Controls) error { c.Paused = true; return nil })
			return err
		},
		"list": func(m *Manager, w world) error {
			_, err := m.CreateList(t.Context(), root, anteroom.List{Name: "new", Kind: anteroom.ListOfIPs})
			return err
		},
		"list changed": func(m *Manager, w world) error {
			_, err := m.ChangeList(t.Context(), root, w.list, func(l *anteroom.List) error {
				l.Items = append(l.Items, anteroom.ListItem{Value: "192.0.2.1"})
				return nil
			})
			return err
		},
		"list away": func(m *Manager, w world) error { return m.DeleteList(t.Context(), root, w.list) },
		"restore": func(m *Manager, w world) error {
			_, err := m.Restore(t.Context(), root, bytes.NewReader(elsewhere))
			return err
		},
		"token": func(m *Manager, w world) error {
			_, _, err := m.CreateToken(t.Context(), root, TokenSpec{Name: "new", Grants: root.Grants})
			return err
		},
		"token rotated": func(m *Manager, w world) error {
			_, _, err := m.RotateToken(t.Context(), root, w.tok, time.Hour)
			return err
		},
		"webhook": func(m *Manager, w world) error {
			_, _, err := m.CreateWebhook(t.Context(), root, anteroom.Webhook{Name: "new", URL: "https://hooks.example.com/"})
			return err
		},
		"webhook changed": func(m *Manager, w world) error {
			_, err := m.ChangeWebhook(t.Context(), root, w.hook, func(h *anteroom.Webhook) error { h.Name = "other"; return nil })
			return err
		},
		"webhook away": func(m *Manager, w world) error { return m.DeleteWebhook(t.Context(), root, w.hook) },
		"token away":   func(m *Manager, w world) error { return m.DeleteToken(t.Context(), root, w.tok) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finished := false
			for k := 1; !finished; k++ {
				for _, done := range []bool{false, true} {
					link := memlink.New()
					m := open(t, Config{Link: link, FirstToken: envToken, FileRooms: []anteroom.Room{fixed}, Webhooks: &sender{}})
					ctx := t.Context()
					w := world{zone: must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID}
					r := shop("old")
					r.CustomPageHTML = "old page"
					w.room = must[anteroom.Room](t)(m.CreateRoom(ctx, root, w.zone, r))
					w.ev = must[anteroom.Event](t)(m.CreateEvent(ctx, root, w.zone, w.room.ID, anteroom.Event{Name: "a", Start: "2027-01-01T10:00:00Z", End: "2027-01-01T12:00:00Z"})).ID
					w.list = must[anteroom.List](t)(m.CreateList(ctx, root, anteroom.List{Name: "old", Kind: anteroom.ListOfIPs})).ID
					tok, _, err := m.CreateToken(ctx, root, TokenSpec{Name: "old", Grants: root.Grants})
					if err != nil {
						t.Fatal(err)
					}
					w.tok = tok.ID
					hook, _, err := m.CreateWebhook(ctx, root, anteroom.Webhook{Name: "old", URL: "https://hooks.example.com/"})
					if err != nil {
						t.Fatal(err)
					}
					w.hook = hook.ID
					before := m.State()

					f := &failing{Link: link, left: k, done: done}
					m.cfg.Link = f
					err = change(m, w)
					finished = f.left > 0 && err == nil

					after := open(t, Config{Link: link, FirstToken: envToken, FileRooms: []anteroom.Room{fixed}})
					records, _, verr := after.VerifyAudit(ctx, root)
					if verr != nil {
						t.Fatalf("write %d, done %v: %v", k, done, verr)
					}
					s := after.State()
					if uint64(records) != s.seq {
						t.Fatalf("%d records, state %d", records, s.seq)
					}
					switch s.seq {
					case before.seq:
						if err == nil {
							t.Fatalf("write %d, done %v: acknowledged and lost", k, done)
						}
						same(t, before, s)
					case before.seq + 1:
						// The process that made the change has the same state, once it looks.
						m.cfg.Link = link
						if err := m.settleDoubt(ctx); err != nil {
							t.Fatal(err)
						}
						same(t, m.State(), s)
					default:
						t.Fatalf("state %d after %d", s.seq, before.seq)
					}
					left := must[[]string](t)(link.Keys(ctx, stagePrefix))
					if len(left) > 0 {
						t.Errorf("write %d, done %v: staged keys stay: %q", k, done, left)
					}
				}
			}
		})
	}
}

// same compares two states by what a backup would hold of them.
func same(t testing.TB, a, b *State) {
	t.Helper()
	x, omitted := changesOf(picture(a), picture(b))
	if len(x)+omitted > 0 {
		t.Fatalf("states differ: %+v", x)
	}
}

func picture(s *State) any {
	p := map[string]any{"seq": s.seq, "head": s.head, "account": s.account, "zones": s.zones, "lists": s.lists, "tokens": s.tokens, "hooks": s.hooks}
	rooms := map[string]anteroom.Room{}
	for _, r := range s.rooms {
		rooms[string(r.ID)] = r.Room
	}
	p["rooms"] = rooms
	return p
}

func TestWhoIsInsideKeepsASessionWhenRenewalIsDisabled(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	m := open(t, Config{Now: func() time.Time { return now }})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com"))
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, shop("sale")))
	disable := func(on bool) anteroom.InForce {
		r := must[anteroom.Room](t)(m.ChangeRoom(ctx, root, zone.ID, room.ID, func(r *anteroom.Room) error { r.DisableSessionRenewal = on; return nil }))
		return *r.At(anteroom.TimeOf(now))
	}
	now = now.Add(time.Hour)
	if f := disable(true); f.Settings.RenewalEnded != anteroom.TimeOf(now) {
		t.Errorf("renewal ended at %v", f.Settings.RenewalEnded.Std())
	}
	then := now
	now = now.Add(time.Hour)
	if f := disable(true); f.Settings.RenewalEnded != anteroom.TimeOf(then) {
		t.Errorf("renewal ended again at %v", f.Settings.RenewalEnded.Std())
	}
}

// TestRulesAndLists: rules are compiled when they are written, by the lists that are there; a
// list that rules use can neither go nor change so that they do not work.
func TestRulesAndLists(t *testing.T) {
	t.Parallel()
	m, ctx := open(t, Config{FirstToken: envToken}), t.Context()
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("sale"))).ID
	set := func(expressions ...string) error {
		_, err := m.ChangeRules(ctx, root, zone, room, func([]anteroom.Rule) (all []anteroom.Rule, _ error) {
			for _, e := range expressions {
				all = append(all, anteroom.Rule{Action: anteroom.ActionBypass, Expression: e})
			}
			return all, nil
		})
		return err
	}
	faults, _ := errors.AsType[anteroom.Faults](set("ssl", "ip.src eq 5"))
	if len(faults) != 1 || faults[0].Path != "rules[1].expression" || faults[0].Column == 0 {
		t.Errorf("a wrong expression: %+v", faults)
	}
	if err := set("ip.src in $office"); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("a list that is not there: %v", err)
	}
	list := must[anteroom.List](t)(m.CreateList(ctx, root, anteroom.List{Name: "office", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "192.0.2.9/24"}}}))
	if list.Items[0].Value != "192.0.2.0/24" {
		t.Errorf("item %q", list.Items[0].Value)
	}
	if err := set("ip.src in $office"); err != nil {
		t.Fatal(err)
	}
	passes := func(address string) bool {
		return m.State().Room(room).Bypass.Bypass(&rules.Request{Client: netip.MustParseAddr(address)})
	}
	if !passes("192.0.2.1") || passes("198.51.100.1") {
		t.Error("the rule does not follow the list")
	}
	must[anteroom.List](t)(m.ChangeList(ctx, root, list.ID, func(l *anteroom.List) error {
		l.Items = append(l.Items, anteroom.ListItem{Value: "198.51.100.1"})
		return nil
	}))
	if !passes("198.51.100.1") {
		t.Error("the rule does not follow the list's change")
	}
	if m.DeleteList(ctx, root, list.ID) == nil {
		t.Error("a list in use was deleted")
	}
	if _, err := m.ChangeList(ctx, root, list.ID, func(l *anteroom.List) error { l.Name = "other"; return nil }); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("a list in use was renamed: %v", err)
	}
	for _, bad := range []anteroom.List{
		{Name: "Office", Kind: anteroom.ListOfIPs},
		{Name: "office", Kind: anteroom.ListOfIPs},
		{Name: "kind", Kind: "colours"},
		{Name: "item", Kind: anteroom.ListOfASNs, Items: []anteroom.ListItem{{Value: "x"}}},
		{Name: "twice", Kind: anteroom.ListOfASNs, Items: []anteroom.ListItem{{Value: "AS64496"}, {Value: "64496"}}},
		{Name: "host", Kind: anteroom.ListOfHostnames, Items: []anteroom.ListItem{{Value: "a b"}}},
	} {
		if _, err := m.CreateList(ctx, root, bad); anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := errors.Join(set(), m.DeleteList(ctx, root, list.ID)); err != nil {
		t.Error(err)
	}
}

func TestFirstRequestsOfAListHaveNoBound(t *testing.T) {
	t.Parallel()
	m, ctx := open(t, Config{FirstToken: envToken}), t.Context()
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("sale"))).ID
	set := func(list string) error {
		_, err := m.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error { r.FirstRequestList = list; return nil })
		return err
	}
	faults, _ := errors.AsType[anteroom.Faults](set("schools"))
	if len(faults) != 1 || faults[0].Path != "first_request_list" {
		t.Errorf("a list that is not there: %+v", faults)
	}
	list := must[anteroom.List](t)(m.CreateList(ctx, root, anteroom.List{Name: "schools", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "192.0.2.0/24"}}}))
	if err := set("schools"); err != nil {
		t.Fatal(err)
	}
	unbounded := func(address string) bool {
		return m.State().Room(room).Unbounded.Has(netip.MustParseAddr(address), nil)
	}
	if !unbounded("192.0.2.1") || unbounded("198.51.100.1") {
		t.Error("not those of the list")
	}
	must[anteroom.List](t)(m.ChangeList(ctx, root, list.ID, func(l *anteroom.List) error {
		l.Items = append(l.Items, anteroom.ListItem{Value: "198.51.100.1"})
		return nil
	}))
	if !unbounded("198.51.100.1") {
		t.Error("the list's change has no effect")
	}
	if m.DeleteList(ctx, root, list.ID) == nil {
		t.Error("a list in use was deleted")
	}
	if err := errors.Join(set(""), m.DeleteList(ctx, root, list.ID)); err != nil || unbounded("192.0.2.1") {
		t.Errorf("without the list: %v", err)
	}
}

// fileRoom is a room as the configuration file gives it.
func fileRoom() anteroom.Room {
	r := shop("fixed")
	r.Zone, r.Routes[0].Host = "file.test", "www.file.test"
	return r.WithDefaults()
}

// TestRoomsOfTheFile: what the file says is changed there, and the operator's hand on such a
// room is as on any other: it survives a restart and a reload, and is in a backup.
func TestRoomsOfTheFile(t *testing.T) {
	t.Parallel()
	link, ctx, room := memlink.New(), t.Context(), fileRoom()
	zone := anteroom.ZoneIDOf("file.test")
	cfg := Config{Link: link, FirstToken: envToken, FileName: "/etc/shop.yaml", FileRooms: []anteroom.Room{room}}
	m := open(t, cfg)
	queueAll := func(r *anteroom.Room) error { r.QueueAll = true; return nil }
	if _, err := m.ChangeRoom(ctx, root, zone, room.ID, queueAll); anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "defined in the configuration file /etc/shop.yaml") {
		t.Errorf("a setting of the file's room: %v", err)
	}
	want := anteroom.Controls{Paused: true, ResetAt: 17}
	got := must[anteroom.Controls](t)(m.ChangeControls(ctx, root, zone, room.ID, func(c *anteroom.Controls) error { *c = want; return nil }))
	held := func(when string, m *Manager) {
		t.Helper()
		if r := m.State().Room(room.ID); got != want || r.Controls != want || !r.File || !r.At(0).Settings.QueueAll {
			t.Errorf("%s: %+v, %+v", when, got, r.Controls)
		}
	}
	held("now", m)
	record := must[[]AuditRecord](t)(m.Audit(ctx, root, m.State().Seq()-1, 1))[0]
	if record.Operation != "room.controls" || record.Room != room.ID || record.Zone != zone || len(record.Changes) != 2 || record.Changes[0].Field != "room.controls.paused" {
		t.Errorf("the record %+v", record)
	}

	m = open(t, cfg)
	held("after a restart", m)
	room.TotalActiveUsers++
	if err := m.SetFile(ctx, File{Rooms: []anteroom.Room{room}}, nil); err != nil {
		t.Fatal(err)
	}
	held("after a reload", m)
	if _, err := m.ChangeRoom(ctx, root, zone, room.ID, queueAll); err == nil || !strings.Contains(err.Error(), "defined by the flags") {
		t.Errorf("a setting of a room without a file: %v", err)
	}
	backup := backupOf(t, m, false)
	must[anteroom.Controls](t)(m.ChangeControls(ctx, root, zone, room.ID, func(c *anteroom.Controls) error { c.Paused = false; return nil }))
	must[Restored](t)(m.Restore(ctx, root, bytes.NewReader(backup)))
	held("after a restore", m)

	// A room that is not in the file any more is held until another one is touched.
	other := shop("another")
	other.Zone = "file.test"
	other = other.WithDefaults()
	if err := m.SetFile(ctx, File{Rooms: []anteroom.Room{other}}, nil); err != nil {
		t.Fatal(err)
	}
	must[anteroom.Controls](t)(m.ChangeControls(ctx, root, zone, other.ID, func(c *anteroom.Controls) error { c.Draining = true; return nil }))
	if keys := must[[]string](t)(link.Keys(ctx, heldPrefix)); len(keys) != 1 || keys[0] != heldPrefix+string(other.ID) {
		t.Errorf("documents %q", keys)
	}
}

func TestChangesAreInTheLogOfTheProcess(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := open(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	must[anteroom.Zone](t)(m.CreateZone(t.Context(), root, "example.com"))
	for _, part := range []string{"operation=zone.create", "name=example.com", "actor=root", "address=192.0.2.7", "request=r1"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("%s is not in the log: %s", part, log.String())
		}
	}
}

func TestRulesAndEventsOfAllRoomsTogetherAreBounded(t *testing.T) {
	t.Parallel()
	var file []anteroom.Room
	for i := range maxRules / anteroom.MaxRulesPerRoom {
		r := shop(fmt.Sprintf("room%d", i))
		for j := range anteroom.MaxRulesPerRoom {
			r.Rules = append(r.Rules, anteroom.Rule{Action: anteroom.ActionBypass, Expression: "ssl"})
			day := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, j)
			r.Events = append(r.Events, anteroom.Event{Name: fmt.Sprintf("e%d", j), Start: anteroom.StampOf(day), End: anteroom.StampOf(day.Add(time.Hour))})
		}
		file = append(file, r.WithDefaults())
	}
	ctx, m := t.Context(), open(t, Config{FileRooms: file})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.org"))
	room := shop("more")
	room.Routes[0].Host = "example.org"
	room = must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, room))
	_, err := m.ChangeRules(ctx, root, zone.ID, room.ID, func(r []anteroom.Rule) ([]anteroom.Rule, error) {
		return append(r, anteroom.Rule{Action: anteroom.ActionBypass, Expression: "ssl"}), nil
	})
	if anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "20001 rules") {
		t.Errorf("one rule too many: %v", err)
	}
	_, err = m.CreateEvent(ctx, root, zone.ID, room.ID, anteroom.Event{Name: "more", Start: "2030-01-01T00:00:00Z", End: "2030-01-01T01:00:00Z"})
	if anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "20001 events") {
		t.Errorf("one event too many: %v", err)
	}
}

// The expressions of lanes are compiled with the lists, which they keep from going, and again when a list or a lane changes; what is wrong
// with one is said of it.
func TestLanesUseLists(t *testing.T) {
	t.Parallel()
	m, ctx := open(t, Config{FirstToken: envToken}), t.Context()
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("sale"))).ID
	set := func(lanes ...anteroom.Lane) error {
		_, err := m.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error { r.Lanes = lanes; return nil })
		return err
	}
	lane := func(address string) uint8 {
		return m.State().Room(room).LaneConditions.Of(&rules.Request{Client: netip.MustParseAddr(address)}, []string{"/"})
	}
	staff := anteroom.Lane{Name: "staff", Priority: 50, Expression: "ip.src in $staff"}
	faults, _ := errors.AsType[anteroom.Faults](set(anteroom.Lane{Name: "codes", Priority: 60}, staff))
	if len(faults) != 1 || faults[0].Path != "lanes[1].expression" || faults[0].Column == 0 {
		t.Errorf("a list that is not there: %+v", faults)
	}
	list := must[anteroom.List](t)(m.CreateList(ctx, root, anteroom.List{Name: "staff", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "192.0.2.0/24"}}}))
	if err := set(staff); err != nil {
		t.Fatal(err)
	}
	if lane("192.0.2.1") != 50 || lane("198.51.100.1") != 0 {
		t.Error("not those of the list")
	}
	must[anteroom.List](t)(m.ChangeList(ctx, root, list.ID, func(l *anteroom.List) error {
		l.Items = append(l.Items, anteroom.ListItem{Value: "198.51.100.1"})
		return nil
	}))
	if lane("198.51.100.1") != 50 {
		t.Error("the list's change has no effect")
	}
	if m.DeleteList(ctx, root, list.ID) == nil {
		t.Error("a list in use was deleted")
	}
	if staff.Priority = 70; set(staff) != nil || lane("192.0.2.1") != 70 {
		t.Error("the lane's change has no effect")
	}
	if err := errors.Join(set(), m.DeleteList(ctx, root, list.ID)); err != nil || lane("192.0.2.1") != 0 {
		t.Errorf("without lanes: %v", err)
	}
}
