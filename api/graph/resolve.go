package graph

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// query answers the fields of the type Query.
func (w *work) query(ctx context.Context) object {
	return func(s *selection) (any, error) {
		switch s.Name {
		case "cost":
			return int64(1), nil // the same for all: what a query may do is bounded otherwise
		case "viewer":
			return w.viewer(ctx), nil
		case "__schema":
			return object(w.graph.aboutSchema), nil
		}
		name, _ := s.arguments["name"].(string) // __type
		if d := w.graph.schema.Types[name]; d != nil {
			return w.graph.aboutType(d), nil
		}
		return nil, nil
	}
}

func (w *work) viewer(ctx context.Context) object {
	return func(s *selection) (any, error) {
		if s.Name == "budget" {
			return int64(w.left), nil
		}
		ids, err := w.zonesOf(s.arguments)
		if err != nil {
			return nil, err
		}
		all := []object{}
		for _, id := range ids {
			if err := w.visit(id); err != nil {
				return nil, err
			}
			all = append(all, w.zone(ctx, id))
		}
		return all, nil
	}
}

// zonesOf returns the zones that the caller may read, by their ids. One that was named and cannot be read is
// an error, so that nobody takes it for an idle one.
func (w *work) zonesOf(arguments map[string]any) ([]anteroom.ZoneID, error) {
	limit, err := limitOf(arguments, maxZones)
	if err != nil {
		return nil, err
	}
	filter, ok := arguments["filter"].(map[string]any)
	if !ok && arguments["filter"] != nil {
		return nil, fault{code: codeInvalid, message: fmt.Sprintf("filter: %s is not an object", printed(arguments["filter"]))}
	}
	all := w.graph.manage.Zones(w.by)
	slices.SortFunc(all, func(a, b anteroom.Zone) int { return strings.Compare(string(a.ID), string(b.ID)) })
	readable := slices.Clone(all)
	for _, name := range sorted(filter) {
		ids, err := tagsOf(name, filter[name])
		if err != nil {
			return nil, err
		}
		switch {
		case ids == nil: // a variable without a value
		case name == "zoneTag_gt":
			all = slices.DeleteFunc(all, func(z anteroom.Zone) bool { return string(z.ID) <= ids[0] })
		default:
			for _, id := range ids {
				if !slices.ContainsFunc(readable, func(z anteroom.Zone) bool { return string(z.ID) == id }) {
					return nil, fault{code: codeAuthz, message: fmt.Sprintf("zone %s does not exist, or the token may not read it", printed(id))}
				}
			}
			all = slices.DeleteFunc(all, func(z anteroom.Zone) bool { return !slices.Contains(ids, string(z.ID)) })
		}
	}
	var out []anteroom.ZoneID
	for _, z := range all[:min(len(all), limit)] {
		out = append(out, z.ID)
	}
	return out, nil
}

// tagsOf returns the ids in a condition of a filter for zones; nil when it has none.
func tagsOf(name string, input any) ([]string, error) {
	if input == nil {
		return nil, nil
	}
	inputs := []any{input}
	switch name {
	case "zoneTag", "zoneTag_gt":
	case "zoneTag_in":
		if inputs = listOf(input); len(inputs) > maxZones {
			return nil, fault{code: codeLimit, message: fmt.Sprintf("query covers more than %d zones", maxZones)}
		}
	default:
		return nil, fault{code: codeInvalid, message: fmt.Sprintf("filter.%s: there is no such field", name)}
	}
	ids := make([]string, len(inputs))
	for i, in := range inputs {
		var ok bool
		if ids[i], ok = in.(string); !ok {
			return nil, fault{code: codeInvalid, message: fmt.Sprintf("filter.%s: %s is not a string", name, printed(in))}
		}
	}
	return ids, nil
}

// limitOf reads a limit from 1 to most, which is also what is meant by none.
func limitOf(arguments map[string]any, most int) (int, error) {
	in := arguments["limit"]
	if in == nil {
		return most, nil
	}
	n, ok := whole(in)
	switch {
	case !ok || n < 0:
		return 0, fault{code: codeInvalid, message: fmt.Sprintf("limit: %s is not a whole number from 0 on", printed(in))}
	case n < 1 || n > int64(most):
		return 0, fault{code: codeLimit, message: fmt.Sprintf("limit must be positive number and not greater than %d", most)}
	}
	return int(n), nil
}

func (w *work) zone(ctx context.Context, id anteroom.ZoneID) object {
	return func(s *selection) (any, error) {
		switch {
		case s.Name == "zoneTag":
			return string(id), nil
		case s.Name == "settings":
			return object(w.settings), nil
		case fieldsOf(s) > maxNodeFields:
			return nil, fault{code: codeLimit, message: fmt.Sprintf("number of fields can't be more than %d", maxNodeFields)}
		}
		q := *s.question
		q.zone = id
		if s.Name == "waitingRoomAnalyticsAdaptive" {
			return w.rawRows(ctx, &q)
		}
		return w.groupRows(ctx, &q, s)
	}
}

// fieldsOf counts the fields of a row.
func fieldsOf(s *selection) (n int) {
	for _, of := range s.below {
		n += max(1, len(of.below))
	}
	return n
}

// rawRows are the minutes of the zone's rooms.
func (w *work) rawRows(ctx context.Context, q *question) (any, error) {
	found, err := w.raw(ctx, q)
	if err == nil {
		err = w.give(len(found))
	}
	return rowsOf(found, func(r *result) object {
		return func(s *selection) (any, error) { return rawFilterKeys[s.Name].value(r), nil }
	}), err
}

// groupRows adds minutes up: to one row for each value of the dimensions that are asked for.
func (w *work) groupRows(ctx context.Context, q *question, s *selection) (any, error) {
	var unit time.Duration
	byRoom := false
	for _, of := range s.below {
		if of.Name != "dimensions" {
			continue
		}
		for _, d := range of.below {
			k := groupsFilterKeys[d.Name]
			byRoom = byRoom || k.text != nil
			if k.unit > 0 && (unit == 0 || k.unit < unit) {
				unit = k.unit
			}
		}
	}
	found, err := w.groups(ctx, q, unit, byRoom)
	if err == nil {
		err = w.give(len(found))
	}
	return rowsOf(found, func(r *result) object {
		return func(of *selection) (any, error) {
			return object(func(s *selection) (any, error) {
				if of.Name == "dimensions" {
					return groupsFilterKeys[s.Name].value(r), nil
				}
				return groupsOrders[of.Name+"_"+s.Name].value(r), nil
			}), nil
		}
	}), err
}

func rowsOf(found []*result, row func(*result) object) []object {
	all := make([]object, len(found))
	for i, r := range found {
		all[i] = row(r)
	}
	return all
}

// value is what an answer has for a field.
func (k key) value(r *result) any {
	switch k.kind {
	case "Time":
		return r.at.Truncate(k.unit).UTC().Format(time.RFC3339)
	case "Date":
		return r.at.Truncate(k.unit).UTC().Format(time.DateOnly)
	case "string":
		return k.text(r.room)
	case "float64":
		return k.number(&r.cell)
	}
	return int64(k.number(&r.cell))
}

// settings answers with the limits of the nodes.
func (w *work) settings(node *selection) (any, error) {
	kept, fields := w.graph.Minutes, sorted(rawFilterKeys)
	if node.Name == "waitingRoomAnalyticsAdaptiveGroups" {
		kept, fields = w.graph.Retention, nil
		for _, d := range dimensions {
			fields = append(fields, "dimensions."+d.name)
		}
		for name := range groupsOrders {
			if strings.Contains(name, "_") && !strings.HasSuffix(name, abandoning.name) {
				fields = append(fields, strings.Replace(name, "_", ".", 1))
			}
		}
		slices.Sort(fields)
	}
	return object(func(s *selection) (any, error) {
		switch s.Name {
		case "availableFields":
			return fields, nil
		case "enabled":
			return true, nil
		case "maxNumberOfFields":
			return int64(maxNodeFields), nil
		case "maxPageSize":
			return int64(maxPageSize), nil
		}
		return int64(kept / time.Second), nil // maxDuration and notOlderThan
	}), nil
}
