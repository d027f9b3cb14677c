package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/internal/field"
)

// Change is one request that brings a place closer to the wanted state.
type Change struct {
	What  string `json:"what"`  // zone, settings, room, event or rules
	Where string `json:"where"` // names, from the zone down, with slashes between
	New   bool   `json:"new"`   // it is created; else it is there and differs
	// Differences are the members that change, in their published order; for a new object
	// all that are not what they would be anyway.
	Differences []Difference `json:"differences"`

	apply func(ctx context.Context, c *client.Client) error
}

// Difference is a member that changes.
type Difference struct {
	Member string `json:"member"`
	Old    any    `json:"old"` // nil for a new object
	New    any    `json:"new"`
}

// errNotMade is why something is not changed whose owner could not be made.
var errNotMade = errors.New("the object it belongs to does not exist")

// Changes returns what has to be done at one place so that it has everything that another one has. Zones, rooms and
// events are matched by name. Nothing is deleted except rules, because a room's rules are one list.
func Changes(from, at *Inventory) []Change {
	var out []Change
	for _, z := range from.Zones {
		mine := at.zone(z.Name)
		if mine == nil {
			mine = &Zone{Name: z.Name, Settings: defaults(settingFields)}
			if len(z.Rooms) == 0 && reflect.DeepEqual(z.Settings, mine.Settings) {
				continue // nothing to move
			}
			out = append(out, Change{What: "zone", Where: z.Name, New: true, apply: func(ctx context.Context, c *client.Client) error {
				var err error
				mine.ID, err = create(ctx, c, "/zones", Object{"name": z.Name})
				return err
			}})
		}
		if d := differences(settingFields, mine.Settings, z.Settings); len(d) > 0 {
			out = append(out, Change{What: "settings", Where: z.Name, Differences: d, apply: func(ctx context.Context, c *client.Client) error {
				if mine.ID == "" {
					return errNotMade
				}
				return c.Do(ctx, http.MethodPatch, mine.path()+"/settings", nil, z.Settings, nil)
			}})
		}
		for _, r := range z.Rooms {
			out = append(out, roomChanges(r, mine)...)
		}
	}
	return out
}

func roomChanges(r *Room, zone *Zone) []Change {
	var out []Change
	where := zone.Name + "/" + r.Name()
	mine := &Room{Object: defaults(roomFields)}
	if i := slices.IndexFunc(zone.Rooms, func(o *Room) bool { return o.Name() == r.Name() }); i >= 0 {
		mine = zone.Rooms[i]
	}
	isNew := mine.ID == ""
	if d := differences(roomFields, mine.Object, r.Object); len(d) > 0 || isNew {
		out = append(out, Change{What: "room", Where: where, New: isNew, Differences: d, apply: func(ctx context.Context, c *client.Client) (err error) {
			switch {
			case zone.ID == "":
				return errNotMade
			case isNew:
				mine.ID, err = create(ctx, c, zone.path(), r.Object)
				return err
			}
			return c.Do(ctx, http.MethodPut, mine.path(zone), nil, r.Object, nil)
		}})
	}
	for _, e := range r.Events {
		known := &Event{Object: defaults(eventFields)}
		if i := slices.IndexFunc(mine.Events, func(o *Event) bool { return o.Name() == e.Name() }); i >= 0 {
			known = mine.Events[i]
		}
		isNew := known.ID == ""
		d := differences(eventFields, known.Object, e.Object)
		if len(d) == 0 && !isNew {
			continue
		}
		out = append(out, Change{What: "event", Where: where + "/" + e.Name(), New: isNew, Differences: d, apply: func(ctx context.Context, c *client.Client) error {
			switch {
			case mine.ID == "":
				return errNotMade
			case isNew:
				_, err := create(ctx, c, mine.path(zone)+"/events", e.Object)
				return err
			}
			return c.Do(ctx, http.MethodPut, mine.path(zone)+"/events/"+known.ID, nil, e.Object, nil)
		}})
	}
	if !slices.EqualFunc(mine.Rules, r.Rules, func(a, b Object) bool { return reflect.DeepEqual(a, b) }) {
		rules := r.Rules
		if rules == nil {
			rules = []Object{}
		}
		change := Change{What: "rules", Where: where, apply: func(ctx context.Context, c *client.Client) error {
			if mine.ID == "" {
				return errNotMade
			}
			return blameRule(c.Do(ctx, http.MethodPut, mine.path(zone)+"/rules", nil, rules, nil), rules)
		}}
		for i := range max(len(mine.Rules), len(rules)) {
			var was, is any
			if i < len(mine.Rules) {
				was = map[string]any(mine.Rules[i])
			}
			if i < len(rules) {
				is = map[string]any(rules[i])
			}
			if !reflect.DeepEqual(was, is) {
				change.Differences = append(change.Differences, Difference{Member: fmt.Sprintf("rules[%d]", i), Old: was, New: is})
			}
		}
		out = append(out, change)
	}
	return out
}

// blameRule puts before an answer that refuses a room's rules which of them it is about. They are one list, so none of them is written;
// written without the one that is refused, what it keeps out of the queue would wait, and nobody would be told.
func blameRule(err error, rules []Object) error {
	no, ok := errors.AsType[*client.Error](err)
	if !ok || len(no.Problems) == 0 {
		return err
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(no.Problems[0].Source.Pointer, "/"), "/")
	i, bad := strconv.Atoi(number)
	if bad != nil || i < 0 || i >= len(rules) {
		return err
	}
	return unusable(rules, i, strings.TrimPrefix(err.Error(), "["+number+"]."), err)
}

func unusable(rules []Object, i int, why string, err error) error {
	which := fmt.Sprintf("rule %d of %d", i+1, len(rules))
	if name, _ := rules[i]["description"].(string); name != "" {
		which += fmt.Sprintf(" (%q)", name)
	}
	return &anteroom.Error{Kind: anteroom.KindOf(err), Err: err, Msg: fmt.Sprintf("none of the room's rules can be written, because %s cannot be used here: %s; "+
		"change that rule where it comes from, or write the room's rules here yourself, in the dashboard or with the API", which, why)}
}

// create sends an object and returns its id.
func create(ctx context.Context, c *client.Client, path string, o Object) (string, error) {
	var raw json.RawMessage
	if err := c.Do(ctx, http.MethodPost, path, nil, o, &raw); err != nil {
		return "", err
	}
	id, _, err := identified(nil, raw)
	return id, err
}

// Apply carries a change out. Changes go in their order: some make what later ones need.
func (ch Change) Apply(ctx context.Context, c *client.Client) error {
	err := ch.apply(ctx, c)
	if errors.Is(err, errNotMade) {
		return anteroom.Errorf(anteroom.Conflict, "%s %s was skipped: %w", ch.What, ch.Where, err)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", ch.What, ch.Where, err)
	}
	return nil
}

func defaults(fields []field.Field) Object {
	o := Object{}
	for _, f := range fields {
		o[f.Key] = f.JSONDefault()
	}
	return o
}

// differences are the members that an object says otherwise.
func differences(fields []field.Field, was, is Object) []Difference {
	var out []Difference
	for _, f := range fields {
		if v, says := is[f.Key]; says && !reflect.DeepEqual(was[f.Key], v) {
			out = append(out, Difference{Member: f.Key, Old: was[f.Key], New: v})
		}
	}
	return out
}
