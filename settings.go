package anteroom

import (
	"reflect"
	"slices"

	"github.com/anteroom/anteroom/internal/field"
)

// The fields of each part of a room, read from its tags once.
var (
	ofRoom     = field.Of(reflect.TypeFor[Room]())
	ofSettings = field.Of(reflect.TypeFor[Settings]())
	ofEvent    = field.Of(reflect.TypeFor[Event]())
	ofStep     = field.Of(reflect.TypeFor[Step]())
	ofLane     = field.Of(reflect.TypeFor[Lane]())
	ofRule     = field.Of(reflect.TypeFor[Rule]())
)

// overridable are the fields that an event may set: in its room, and in [Overrides].
var overridable = func() (out []struct{ room, override field.Field }) {
	_, overrides := Overrides{}.Fields()
	for _, f := range ofRoom {
		for _, o := range overrides {
			if f.Key == o.Key {
				out = append(out, struct{ room, override field.Field }{f, o})
			}
		}
	}
	return out
}()

// Coverage is how the published API and the file spell the routes of a room: the first one as a
// host and a path, the others as a list.
type Coverage struct {
	Host             string  `key:"host" label:"Host" group:"Room" required:"true" doc:"Host name that the room covers, without port and wildcard; \"*\" for every host."`
	Path             string  `key:"path" label:"Path" group:"Room" default:"/" doc:"Path that the room covers with everything below it. By default the whole host."`
	AdditionalRoutes []Route `key:"additional_routes" label:"Additional routes" group:"Room" doc:"More hosts and paths of the same room. They require a cookie_suffix."`
}

// Coverage returns the room's routes in the published spelling.
func (r Room) Coverage() Coverage {
	if len(r.Routes) == 0 {
		return Coverage{}
	}
	return Coverage{r.Routes[0].Host, r.Routes[0].Path, r.Routes[1:]}
}

// AsRoutes returns the routes in one new list.
func (c Coverage) AsRoutes() []Route {
	return append([]Route{{c.Host, c.Path}}, c.AdditionalRoutes...)
}

// RoomFields returns the settings of a room, as all faces of the product have them and in the
// published order. What the file has besides is not among them: zone, routes in one list, events,
// rules.
func RoomFields() []field.Field {
	var out []field.Field
	for _, f := range ofRoom {
		switch {
		case f.Key == "routes":
			out = append(out, field.Of(reflect.TypeFor[Coverage]())...)
		case f.Key != "zone" && f.Key != "events":
			out = append(out, f)
		}
	}
	return out
}

// EventFields returns the settings of an event: its own, then those that it may have in the place
// of its room's.
func EventFields() []field.Field { return slices.Clone(ofEvent) }

// RuleFields returns the settings of a rule.
func RuleFields() []field.Field { return slices.Clone(ofRule) }

// Fields lists the overrides: the fields of a room that an event may set, with nothing for what is
// not given.
func (Overrides) Fields() (of reflect.Type, out []field.Field) {
	of = reflect.TypeFor[Overrides]()
	for _, f := range field.Of(reflect.TypeFor[Room]()) {
		if !f.Event {
			continue
		}
		sf, ok := of.FieldByName(reflect.TypeFor[Room]().FieldByIndex(f.Index).Name)
		if !ok {
			panic("anteroom: Overrides lacks " + f.Key)
		}
		if f.Required {
			f.Doc += " An event sets both limits or neither."
		}
		f.Index, f.Pointer, f.Required, f.HasDefault = sf.Index, true, false, false
		out = append(out, f)
	}
	return of, out
}
