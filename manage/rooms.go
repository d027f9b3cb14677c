package manage

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/route"
)

func notFound(what, id string) error {
	return anteroom.Errorf(anteroom.NotFound, "there is no %s %.64q", what, id)
}

// zone returns a zone for a caller with a permission in it, or in its rooms.
func (s *State) zone(by Caller, p Permission, id anteroom.ZoneID) (*storedZone, error) {
	err := by.need(p, id, "")
	i := slices.IndexFunc(s.zones, func(z *storedZone) bool { return z.ID == id })
	if err != nil && (p != Read || i < 0 || !s.sees(by, s.zones[i].Zone)) {
		return nil, err
	}
	if i < 0 {
		return nil, notFound("zone", string(id))
	}
	return s.zones[i], nil
}

// room returns a room of a zone for a caller with a permission in it.
func (s *State) room(by Caller, p Permission, zone anteroom.ZoneID, id anteroom.RoomID) (*Served, error) {
	if err := by.need(p, zone, id); err != nil {
		return nil, err
	}
	z, err := s.zone(Caller{Grants: ourselves.Grants}, Read, zone)
	if err != nil {
		return nil, err
	}
	r := s.byID[id]
	if r == nil || r.Zone != z.Name {
		return nil, notFound("waiting room", string(id))
	}
	return r, nil
}

// Zones returns the zones that the caller may see, those of the file's rooms first, then in
// the order of their creation.
func (m *Manager) Zones(by Caller) []anteroom.Zone {
	s := m.State()
	return slices.DeleteFunc(s.Zones(), func(z anteroom.Zone) bool { return !s.sees(by, z) })
}

// Zone returns a zone.
func (m *Manager) Zone(by Caller, id anteroom.ZoneID) (anteroom.Zone, error) {
	z, err := m.State().zone(by, Read, id)
	if err != nil {
		return anteroom.Zone{}, err
	}
	return z.Zone, nil
}

// CreateZone makes a zone for a host name, or for "*".
func (m *Manager) CreateZone(ctx context.Context, by Caller, name string) (made anteroom.Zone, err error) {
	err = m.changeAll(ctx, by, Edit, func(t *tx) error {
		host, err := zoneName(name)
		if err != nil {
			return err
		}
		if _, taken := t.old.ZoneNamed(host); taken {
			return anteroom.Faults{{Path: "name", Problem: fmt.Sprintf("the zone %.80q exists already", host)}}.Err()
		}
		if len(t.old.zones) >= maxZones {
			return anteroom.Errorf(anteroom.Invalid, "there are already %d zones, the maximum", len(t.old.zones))
		}
		made = anteroom.Zone{ID: anteroom.ZoneID(newID()), Name: host, CreatedOn: t.now, ModifiedOn: t.now}
		return t.setZone("zone.create", nil, &storedZone{Zone: made, made: t.seq()})
	})
	return made, err
}

// zoneName returns a zone's name in its one spelling.
func zoneName(name string) (host string, err error) {
	if name == "*" {
		return name, nil
	}
	if host, err = route.Host(name); err != nil || host != "" && name[len(name)-1] == '.' || hasPort(name) {
		return "", anteroom.Faults{{Path: "name", Problem: fmt.Sprintf("%.80q is not a host name", name), Fix: "like example.com, or \"*\" for rooms of every host"}}.Err()
	}
	return host, nil
}

func hasPort(name string) bool { return slices.Contains([]byte(name), ':') && name[0] != '[' }

func (t *tx) setZone(operation string, before, after *storedZone) error {
	after.stored = true
	t.next.setZone(after)
	if operation != "" {
		t.entry.Zone = after.ID
		t.note(operation, string(after.ID), after.Name, before, after)
	}
	return t.put(zonePrefix+string(after.ID), zoneDocument{t.header(), after.made, after.Zone})
}

// ChangeZone changes the settings of a zone; its id, name and times do not change.
func (m *Manager) ChangeZone(ctx context.Context, by Caller, id anteroom.ZoneID, fn func(*anteroom.Zone) error) (changed anteroom.Zone, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		old, err := t.old.zone(by, Edit, id)
		if err != nil {
			return err
		}
		changed = old.Zone
		if err := fn(&changed); err != nil {
			return err
		}
		changed.ID, changed.Name, changed.CreatedOn, changed.ModifiedOn = old.ID, old.Name, old.CreatedOn, old.ModifiedOn
		if changed == old.Zone {
			return nil
		}
		made := old.made
		if !old.stored {
			changed.CreatedOn, made = t.now, t.seq()
		}
		changed.ModifiedOn = t.now
		return t.setZone("zone.change", old, &storedZone{Zone: changed, made: made})
	})
	return changed, err
}

// DeleteZone deletes a zone that has no rooms.
func (m *Manager) DeleteZone(ctx context.Context, by Caller, id anteroom.ZoneID) error {
	return m.change(ctx, by, func(t *tx) error {
		old, err := t.old.zone(by, Edit, id)
		if err != nil {
			return err
		}
		if n := t.old.roomsIn(old.Name); n > 0 {
			return anteroom.Errorf(anteroom.Invalid, "the zone %s has %d waiting rooms: delete them first, and those of the file there", old.Name, n)
		}
		t.next.zones = without(t.next.zones, func(z *storedZone) bool { return z.ID == id })
		t.entry.Zone = id
		t.note("zone.delete", string(id), old.Name, old.Zone, nil)
		t.drop(zonePrefix + string(id))
		return nil
	})
}

// Rooms returns the rooms of a zone that the caller may see, or with an empty zone those of
// all: first the file's, then in the order of their creation. They are shared and must not be
// changed.
func (m *Manager) Rooms(by Caller, zone anteroom.ZoneID) ([]anteroom.Room, error) {
	s := m.State()
	if zone != "" {
		if _, err := s.zone(by, Read, zone); err != nil {
			return nil, err
		}
	}
	ids := map[string]anteroom.ZoneID{}
	for _, z := range s.zones {
		ids[z.Name] = z.ID
	}
	out := []anteroom.Room{}
	for _, r := range s.rooms {
		if id := ids[r.Zone]; (zone == "" || id == zone) && by.May(Read, id, r.ID) {
			out = append(out, r.Room)
		}
	}
	return out, nil
}

// Room returns a room. It is shared and must not be changed.
func (m *Manager) Room(by Caller, zone anteroom.ZoneID, id anteroom.RoomID) (anteroom.Room, error) {
	r, err := m.State().room(by, Read, zone, id)
	if err != nil {
		return anteroom.Room{}, err
	}
	return r.Room, nil
}

// tidy spells a room's hosts canonically and takes away what a caller cannot set.
func tidy(r *anteroom.Room) {
	for i, rt := range r.Routes {
		if host, err := route.Host(rt.Host); err == nil && !hasPort(rt.Host) {
			r.Routes[i].Host = host
		}
		if rt.Path == "" {
			r.Routes[i].Path = "/"
		}
	}
	r.Prequeueing, r.Draining, r.ResetAt, r.RenewalEnded, r.Redeem, r.Ahead = false, false, 0, 0, 0, nil
}

// CreateRoom makes a room in a zone. Its ID, zone, events, rules, controls and times are
// given by us, whatever the caller says.
func (m *Manager) CreateRoom(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.Room) (made anteroom.Room, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		z, err := t.old.zone(by, Edit, zone)
		if err != nil {
			return err
		}
		if len(t.old.rooms) >= anteroom.MaxRooms {
			return anteroom.Errorf(anteroom.Invalid, "there are already %d waiting rooms, the maximum", len(t.old.rooms))
		}
		r := copyRoom(room)
		r.ID, r.Zone = anteroom.RoomID(newID()), z.Name
		r.Events, r.Rules, r.Controls = nil, nil, anteroom.Controls{}
		r.CreatedOn = t.now
		if !z.stored { // it was there for the file's rooms only
			if err := t.setZone("", nil, &storedZone{Zone: anteroom.Zone{ID: z.ID, Name: z.Name, CreatedOn: t.now, ModifiedOn: t.now}, made: t.seq()}); err != nil {
				return err
			}
		}
		made, err = t.setRoom("room.create", string(r.ID), nil, r)
		return err
	})
	return made, err
}

// strangeHosts returns the faults of routes, new ones, whose host is of another zone than the
// room's: the one that names it most closely. Whoever may edit that zone, too, may have them.
func (t *tx) strangeHosts(before *Served, r *anteroom.Room) anteroom.Faults {
	var f anteroom.Faults
	for i, rt := range r.Routes {
		if before != nil && slices.ContainsFunc(before.Routes, func(old anteroom.Route) bool { return old.Host == rt.Host }) {
			continue
		}
		nearest := &storedZone{}
		for _, z := range t.old.zones {
			if within(rt.Host, z.Name) && len(z.Name) > len(nearest.Name) {
				nearest = z
			}
		}
		if nearest.ID != "" && nearest.Name != r.Zone && !t.by.May(Edit, nearest.ID, "") {
			f = append(f, anteroom.Fault{Path: fmt.Sprintf("routes[%d].host", i), Problem: fmt.Sprintf("%.80q belongs to another zone", rt.Host),
				Fix: "this token may not edit that zone: create the room there, with a token that may"})
		}
	}
	return f
}

// unreachableHosts returns the faults of new hosts that no proxied site names, so that nobody would reach the room there. A
// room keeps a host that it had when its site went.
func (t *tx) unreachableHosts(before *Served, r *anteroom.Room) anteroom.Faults {
	var f anteroom.Faults
	for i, rt := range r.Routes {
		if t.next.reaches(rt.Host) || before != nil && slices.ContainsFunc(before.Routes, func(old anteroom.Route) bool { return old.Host == rt.Host }) {
			continue
		}
		f = append(f, anteroom.Fault{Path: fmt.Sprintf("routes[%d].host", i), Problem: fmt.Sprintf("%.80q belongs to no proxied site", rt.Host),
			Fix: "add it to the hosts of a proxied site in the configuration first"})
	}
	return f
}

// reaches reports whether requests for a host can arrive.
func (s *State) reaches(host string) bool {
	return len(s.hosts) == 0 || host == "*" || slices.ContainsFunc(s.hosts, func(h string) bool { return h == "*" || strings.EqualFold(h, host) })
}

// Unreachable returns the hosts of a room that no proxied site names: visitors who ask for one get an error, and never the
// room.
func (s *State) Unreachable(r *anteroom.Room) []string {
	var hosts []string
	for _, rt := range r.Routes {
		if !s.reaches(rt.Host) && !slices.Contains(hosts, rt.Host) {
			hosts = append(hosts, rt.Host)
		}
	}
	return hosts
}

// within reports whether a host is a zone's name or below it.
func within(host, zone string) bool {
	below, ok := strings.CutSuffix(host, zone)
	return ok && (below == "" || strings.HasSuffix(below, "."))
}

// setRoom checks a room and puts it into the change. The record names the object that the
// operation is about.
func (t *tx) setRoom(operation, object string, before *Served, r anteroom.Room) (anteroom.Room, error) {
	tidy(&r)
	faults := slices.Concat(t.next.checkRoom(&r), t.strangeHosts(before, &r), t.unreachableHosts(before, &r))
	if u := r.AccountKeysURL(); u != "" && t.m.cfg.Webhooks != nil && (before == nil || before.AccountKeys != u) {
		if err := t.m.cfg.Webhooks.CheckURL(u); err != nil {
			faults = append(faults, anteroom.Fault{Path: "account_keys", Problem: err.Error()})
		}
	}
	if len(faults) == 0 {
		r = r.WithDefaults()
		faults = t.m.checkAmong(t.next, &r, t.by)
	}
	if err := faults.Err(); err != nil {
		return r, err
	}
	r.ModifiedOn, r.Revision = t.now, t.seq()
	var then anteroom.Room
	if then.DisableSessionRenewal = true; before != nil {
		then = before.Room
	}
	r.Controls.RenewalEnded = renewalEnded(&then, &r, t.now)
	one, err := compile(r, before, t.next.named, t.m.custom)
	if err != nil {
		return r, err
	}
	one.made = t.seq()
	var was any
	if before != nil {
		one.made = before.made
		was = diffable(documentOf(before, 0))
	}
	doc := documentOf(one, t.seq())
	t.next.setRoom(one)
	if before != nil && (len(one.Events) > len(before.Events) || len(one.Rules) > len(before.Rules)) {
		if err := t.next.checkTotals(); err != nil {
			return r, err
		}
	}
	for _, c := range one.pages {
		t.pages[c.key] = c.html
	}
	t.done = append(t.done, func() {
		if before != nil {
			t.m.index.remove(&before.Room)
			t.m.countPages(before, -1)
		}
		t.m.index.add(&one.Room)
		t.m.countPages(one, 1)
	})
	z, _ := t.next.ZoneNamed(r.Zone)
	t.entry.Zone, t.entry.Room = z.ID, r.ID
	t.note(operation, object, r.Name, was, diffable(doc))
	return r, t.put(roomPrefix+string(r.ID), doc)
}

// renewalEnded is since when a room's sessions are not renewed any more.
func renewalEnded(before, after *anteroom.Room, now time.Time) anteroom.Time {
	switch {
	case !after.DisableSessionRenewal:
		return 0
	case !before.DisableSessionRenewal:
		return anteroom.TimeOf(now)
	}
	return before.Controls.RenewalEnded
}

// diffable is a room's document without what changes every time.
func diffable(d roomDocument) roomDocument {
	d.Seq, d.Room.Revision = 0, 0
	d.Room.ModifiedOn = d.Room.CreatedOn
	return d
}

// own returns a room that the API may change.
func (t *tx) own(zone anteroom.ZoneID, id anteroom.RoomID) (*Served, error) {
	r, err := t.old.room(t.by, Edit, zone, id)
	if err != nil {
		return nil, err
	}
	if r.File {
		if t.m.cfg.FileName == "" {
			return nil, anteroom.Errorf(anteroom.Invalid, "this room is defined by the flags or the environment of anteroom run; change it there, or define it in a configuration file")
		}
		return nil, anteroom.Errorf(anteroom.Invalid, "this room is defined in the configuration file %s; change it there", t.m.cfg.FileName)
	}
	return r, nil
}

// ChangeRoom changes routes and settings of a room. What fn does to its ID, zone, events,
// rules, controls and times is ignored. Fn may run more than once.
func (m *Manager) ChangeRoom(ctx context.Context, by Caller, zone anteroom.ZoneID, id anteroom.RoomID, fn func(*anteroom.Room) error) (changed anteroom.Room, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		old, err := t.own(zone, id)
		if err != nil {
			return err
		}
		r := copyRoom(old.Room)
		if err := fn(&r); err != nil {
			return err
		}
		r.ID, r.Zone, r.Events, r.Rules, r.Controls = old.ID, old.Zone, old.Events, old.Rules, old.Controls
		r.Revision, r.CreatedOn, r.ModifiedOn = old.Revision, old.CreatedOn, old.ModifiedOn
		tidy(&r)
		if !by.May(Edit, zone, "") && !slices.Equal(r.Routes, old.Routes) {
			return anteroom.Errorf(anteroom.Denied, "this token may not change what the room covers (it needs the permission %q in the zone: a route can take paths from other rooms)", Edit)
		}
		if r.DisableSessionRenewal && !old.DisableSessionRenewal {
			r.Controls.RenewalEnded = anteroom.TimeOf(t.now) // nobody who is inside is thrown out at once
		}
		if changed = r.WithDefaults(); reflect.DeepEqual(changed, old.Room) {
			return nil
		}
		changed, err = t.setRoom("room.change", string(id), old, r)
		return err
	})
	return changed, err
}

// DeleteRoom deletes a room with everything in it. Visitors who wait there reach the origin.
func (m *Manager) DeleteRoom(ctx context.Context, by Caller, zone anteroom.ZoneID, id anteroom.RoomID) error {
	return m.change(ctx, by, func(t *tx) error {
		old, err := t.own(zone, id)
		if err != nil {
			return err
		}
		t.next.dropRoom(id)
		t.done = append(t.done, func() {
			m.index.remove(&old.Room)
			m.countPages(old, -1)
		})
		t.entry.Zone, t.entry.Room = zone, id
		t.note("room.delete", string(id), old.Name, diffable(documentOf(old, 0)), nil)
		t.drop(roomPrefix + string(id))
		for _, b := range t.old.invites {
			if b.Invites.Room == id {
				t.dropInvites(b)
			}
		}
		return nil
	})
}

// ChangeControls changes a room's controls: pause, drain, reset, message. Controls are not settings, so this also works
// for rooms of the configuration file.
func (m *Manager) ChangeControls(ctx context.Context, by Caller, zone anteroom.ZoneID, id anteroom.RoomID, fn func(*anteroom.Controls) error) (changed anteroom.Controls, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		old, err := t.old.room(t.by, Edit, zone, id)
		if err != nil {
			return err
		}
		r := copyRoom(old.Room)
		if err := fn(&r.Controls); err != nil {
			return err
		}
		if changed = r.Controls; changed == old.Controls {
			return nil
		}
		if err := changed.Check().Err(); err != nil {
			return err
		}
		if old.File {
			return t.hold(old, r)
		}
		_, err = t.setRoom("room.controls", string(id), old, r)
		return err
	})
	return changed, err
}

// hold puts other controls of one of the file's rooms into the change.
func (t *tx) hold(old *Served, r anteroom.Room) error {
	one := *old
	one.Room = r
	t.next.setRoom(&one)
	t.next.held = maps.Clone(t.old.held)
	for id := range t.old.held {
		// It has left the file; where there are other nodes, it may stand in theirs.
		if kept := t.next.byID[id]; t.m.alone && (kept == nil || !kept.File) {
			delete(t.next.held, id)
			t.drop(heldPrefix + string(id))
		}
	}
	was, now := old.Controls, r.Controls
	was.RenewalEnded, now.RenewalEnded = 0, 0
	t.next.held[r.ID] = now
	z, _ := t.next.ZoneNamed(r.Zone)
	t.entry.Zone, t.entry.Room = z.ID, r.ID
	t.note("room.controls", string(r.ID), r.Name, map[string]any{"room": map[string]any{"Controls": was}}, map[string]any{"room": map[string]any{"Controls": now}})
	return t.put(heldPrefix+string(r.ID), heldDocument{t.header(), now})
}
