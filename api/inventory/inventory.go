// Package inventory holds zones with their rooms, events, rules and settings in the form of the published API: read
// from one installation, compared with another, written there, or exported to Terraform and to our own file.
//
// Objects keep the published names instead of ours, so that nothing gets lost between two installations with that API.
// Only writable members count (the fields of package anteroom); a published one that is missing or null has its
// default.
package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/internal/field"
)

// Inventory is what an API has.
type Inventory struct {
	Zones []*Zone
}

// Zone is a zone with its rooms.
type Zone struct {
	ID, Name string
	Settings Object
	Rooms    []*Room
}

// Room is a room with its events and rules.
type Room struct {
	ID string
	Object
	Events []*Event
	Rules  []Object
}

// Event is an event of a room.
type Event struct {
	ID string
	Object
}

// Object is the writable members of something, all of them, with whole numbers as int64.
type Object map[string]any

// Name is the member "name".
func (o Object) Name() string { return text(o["name"]) }

func text(v any) string {
	s, _ := v.(string)
	return s
}

// The writable members, in their published order.
var (
	roomFields    = anteroom.RoomFields()
	eventFields   = anteroom.EventFields()
	ruleFields    = append(anteroom.RuleFields(), field.Field{Key: "enabled", Default: "true", HasDefault: true, Type: reflect.TypeFor[bool]()})
	settingFields = field.Of(reflect.TypeFor[anteroom.Zone]())
)

// writable returns the object's writable members: all that are published, and those of ours that it
// has. An API that does not know one of ours says nothing about it.
func writable(fields []field.Field, raw json.RawMessage) (Object, error) {
	var all map[string]any
	if err := decode(raw, &all); err != nil {
		return nil, err
	}
	o := Object{}
	for _, f := range fields {
		given, has := all[f.Key]
		if f.Ours && !has {
			continue
		}
		v := plain(given)
		if v == nil {
			v = f.JSONDefault()
		}
		if list, ok := v.([]any); ok && f.IsSections() {
			for i := range list {
				list[i] = complete(f.Type.Elem(), list[i])
			}
		} else if f.IsSection() && v != nil {
			v = complete(f.Type, v)
		}
		o[f.Key] = v
	}
	return o, nil
}

// complete returns a section with its defaults in the place of what it lacks.
func complete(t reflect.Type, v any) any {
	given, _ := v.(map[string]any)
	out := map[string]any{}
	for _, f := range field.Of(t) {
		switch v := given[f.Key]; {
		case v != nil && v != "":
			out[f.Key] = v
		case f.Required:
			out[f.Key] = ""
		default:
			out[f.Key] = f.JSONDefault()
		}
	}
	return out
}

// plain returns a decoded value with whole numbers as int64.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64() // a number that JSON has
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

// Read asks an API, whose base is the client's, for everything in its zones, or in those
// with the names.
func Read(ctx context.Context, c *client.Client, zones ...string) (*Inventory, error) {
	var inv Inventory
	list, err := c.All(ctx, "/zones", nil)
	if err != nil {
		return nil, err
	}
	for _, raw := range list {
		var z struct{ ID, Name string }
		if err := decode(raw, &z); err != nil {
			return nil, err
		}
		if len(zones) > 0 && !slices.Contains(zones, z.Name) {
			continue
		}
		zone := &Zone{ID: z.ID, Name: z.Name}
		if err := zone.read(ctx, c); err != nil {
			return nil, fmt.Errorf("zone %q: %w", z.Name, err)
		}
		inv.Zones = append(inv.Zones, zone)
	}
	for _, name := range zones {
		if !slices.ContainsFunc(inv.Zones, func(z *Zone) bool { return z.Name == name }) {
			return nil, anteroom.Errorf(anteroom.NotFound, "there is no zone %q at %s, or the token may not read it", name, c.URL())
		}
	}
	return &inv, nil
}

func (z *Zone) read(ctx context.Context, c *client.Client) error {
	if err := checkID(z.ID); err != nil {
		return err
	}
	var raw json.RawMessage
	if err := c.Do(ctx, http.MethodGet, z.path()+"/settings", nil, nil, &raw); err != nil {
		return err
	}
	var err error
	if z.Settings, err = writable(settingFields, raw); err != nil {
		return err
	}
	rooms, err := c.All(ctx, z.path(), nil)
	if err != nil {
		return err
	}
	for _, raw := range rooms {
		room := &Room{}
		if room.ID, room.Object, err = identified(roomFields, raw); err != nil {
			return err
		}
		if err := room.read(ctx, c, z); err != nil {
			return fmt.Errorf("room %q: %w", room.Name(), err)
		}
		z.Rooms = append(z.Rooms, room)
	}
	return nil
}

func (r *Room) read(ctx context.Context, c *client.Client, z *Zone) error {
	events, err := c.All(ctx, r.path(z)+"/events", nil)
	if err != nil {
		return err
	}
	for _, raw := range events {
		e := &Event{}
		if e.ID, e.Object, err = identified(eventFields, raw); err != nil {
			return err
		}
		r.Events = append(r.Events, e)
	}
	var rules []json.RawMessage
	if err := c.Do(ctx, http.MethodGet, r.path(z)+"/rules", nil, nil, &rules); err != nil {
		return err
	}
	for _, raw := range rules {
		o, err := writable(ruleFields, raw)
		if err != nil {
			return err
		}
		r.Rules = append(r.Rules, o)
	}
	return nil
}

func identified(fields []field.Field, raw json.RawMessage) (string, Object, error) {
	var named struct{ ID string }
	if err := decode(raw, &named); err != nil {
		return "", nil, err
	}
	if err := checkID(named.ID); err != nil {
		return "", nil, err
	}
	o, err := writable(fields, raw)
	return named.ID, o, err
}

// checkID refuses what does not go into a path as it is: whoever answers is not trusted with
// our next request.
func checkID(id string) error {
	for _, c := range []byte(id) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_') {
			return anteroom.Errorf(anteroom.Unavailable, "the API returned the invalid id %q", id)
		}
	}
	if id == "" || len(id) > 64 {
		return anteroom.Errorf(anteroom.Unavailable, "the API returned an object without an id, or with one of more than 64 characters")
	}
	return nil
}

// ParseRoom returns a room from its JSON as the API has it.
func ParseRoom(raw json.RawMessage) (*Room, error) {
	o, err := writable(roomFields, raw)
	return &Room{Object: o}, err
}

func (z *Zone) path() string { return "/zones/" + url.PathEscape(z.ID) + "/waiting_rooms" }

func (r *Room) path(z *Zone) string { return z.path() + "/" + url.PathEscape(r.ID) }

func (inv *Inventory) zone(name string) *Zone {
	for _, z := range inv.Zones {
		if z.Name == name {
			return z
		}
	}
	return nil
}

// Counts returns the number of zones, rooms and events.
func (inv *Inventory) Counts() (zones, rooms, events int) {
	for _, z := range inv.Zones {
		rooms += len(z.Rooms)
		for _, r := range z.Rooms {
			events += len(r.Events)
		}
	}
	return len(inv.Zones), rooms, events
}
