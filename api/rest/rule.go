package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
)

// ruleFields are a rule's members.
var ruleFields = slices.Concat(
	api.Fields[anteroom.Rule]{
		{Name: "id", Get: func(r *anteroom.Rule) any { return r.ID }},
		{Name: "version", Get: func(r *anteroom.Rule) any { return strconv.Itoa(max(1, r.Version)) }},
	},
	required(members[anteroom.Rule](anteroom.RuleFields()), "action"),
	api.Fields[anteroom.Rule]{
		{Name: "enabled",
			Get:   func(r *anteroom.Rule) any { return !r.Disabled },
			Reset: func(r *anteroom.Rule) { r.Disabled = false },
			Set: func(r *anteroom.Rule, v api.Value) error {
				on, err := v.Bool()
				r.Disabled = !on
				return err
			}},
		{Name: "last_updated", Get: func(r *anteroom.Rule) any { return stamp(r.LastUpdated) }},
	},
)

// required makes members required that are not in the file.
func required(fields api.Fields[anteroom.Rule], names ...string) api.Fields[anteroom.Rule] {
	for i := range fields {
		if f := &fields[i]; slices.Contains(names, f.Name) {
			f.Required, f.Reset = true, nil
		}
	}
	return fields
}

// allRules is the answer of every operation on rules: all of them, in their order.
func allRules(rules []anteroom.Rule, err error) (api.Answer, error) {
	if err != nil {
		return api.Answer{}, err
	}
	out := shownRules(rules)
	return api.Answer{Result: out, ETag: tagOf(out)}, nil
}

func shownRules(rules []anteroom.Rule) []api.Members {
	out := make([]api.Members, len(rules))
	for i := range rules {
		out[i] = ruleFields.Of(&rules[i])
	}
	return out
}

// changeRules changes the rules of the room that the path names.
func (a *API) changeRules(r *api.Request, change func([]anteroom.Rule) ([]anteroom.Rule, error)) (api.Answer, error) {
	z, err := a.zoneOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	rules, err := a.manage.ChangeRules(r.Context(), r.By, z.ID, roomID(r), func(rules []anteroom.Rule) ([]anteroom.Rule, error) {
		if err := r.Match(tagOf(shownRules(rules))); err != nil {
			return nil, err
		}
		return change(slices.Clone(rules))
	})
	return allRules(rules, api.Rename(err, func(path string) string {
		if r.Method == http.MethodPut {
			return strings.TrimPrefix(path, "rules")
		}
		return below("rules", path)
	}))
}

// below takes the name of a list and an index in it from the beginning of a path: the body
// holds one member of the list.
func below(list, path string) string {
	if _, field, ok := indexed(list, path); ok {
		return field
	}
	return path
}

func (a *API) listRules(r *api.Request) (api.Answer, error) {
	room, err := a.roomOf(r)
	return allRules(room.Rules, err)
}

// createRule adds a rule at the end, or where its position says.
func (a *API) createRule(r *api.Request, o api.Object) (api.Answer, error) {
	var rule anteroom.Rule
	if err := ruleFields.Replace(&rule, o); err != nil {
		return api.Answer{}, err
	}
	return a.changeRules(r, func(rules []anteroom.Rule) ([]anteroom.Rule, error) {
		return place(append(rules, rule), len(rules), o.Get("position"))
	})
}

// replaceRules writes all rules anew. One that names the id of a rule, or else has the
// expression of one, stays that rule.
func (a *API) replaceRules(r *api.Request) (api.Answer, error) {
	v, err := r.JSON()
	if err != nil {
		return api.Answer{}, err
	}
	values, err := v.Array(anteroom.MaxRulesPerRoom)
	if err != nil {
		return api.Answer{}, err
	}
	rules := make([]anteroom.Rule, len(values))
	ids := make([]anteroom.RuleID, len(values))
	for i, one := range values {
		o, err := one.Object()
		if err != nil {
			return api.Answer{}, err
		}
		if err := ruleFields.Replace(&rules[i], o); err != nil {
			return api.Answer{}, err
		}
		if id, err := o.Get("id").Text(); err == nil { // read-only: whatever else it is says nothing
			ids[i] = anteroom.RuleID(id)
		}
	}
	return a.changeRules(r, func(old []anteroom.Rule) ([]anteroom.Rule, error) {
		same := func(i int, is func(anteroom.Rule) bool) {
			if n := slices.IndexFunc(old, is); n >= 0 && rules[i].ID == "" {
				rules[i].ID, rules[i].Version, rules[i].LastUpdated = old[n].ID, old[n].Version, old[n].LastUpdated
				old = slices.Delete(old, n, n+1)
			}
		}
		for i := range rules {
			same(i, func(o anteroom.Rule) bool { return o.ID == ids[i] })
		}
		for i := range rules {
			same(i, func(o anteroom.Rule) bool { return o.Expression == rules[i].Expression })
		}
		return rules, nil
	})
}

func (a *API) changeRule(r *api.Request, o api.Object) (api.Answer, error) {
	return a.changeRules(r, func(rules []anteroom.Rule) ([]anteroom.Rule, error) {
		i := indexOf(rules, r.PathValue("rule"))
		if i < 0 {
			return nil, api.NotFound()
		}
		if err := ruleFields.Merge(&rules[i], o); err != nil {
			return nil, err
		}
		return place(rules, i, o.Get("position"))
	})
}

func (a *API) deleteRule(r *api.Request) (api.Answer, error) {
	return a.changeRules(r, func(rules []anteroom.Rule) ([]anteroom.Rule, error) {
		i := indexOf(rules, r.PathValue("rule"))
		if i < 0 {
			return nil, api.NotFound()
		}
		return slices.Delete(rules, i, i+1), nil
	})
}

func indexOf(rules []anteroom.Rule, id string) int {
	return slices.IndexFunc(rules, func(r anteroom.Rule) bool { return string(r.ID) == id })
}

// place moves a rule to where the position says: {"index": 1 …}, {"before": id} or
// {"after": id}, where "" is before all or after all.
func place(rules []anteroom.Rule, i int, position api.Value) ([]anteroom.Rule, error) {
	if position.Null() {
		return rules, nil
	}
	o, err := position.Object()
	if err != nil {
		return nil, err
	}
	index, before, after := o.Get("index"), o.Get("before"), o.Get("after")
	rule := rules[i]
	others := slices.Delete(slices.Clone(rules), i, i+1)
	to := 0
	switch {
	case !index.Null() && before.Null() && after.Null():
		n, err := index.Int()
		if err != nil {
			return nil, err
		}
		if n < 1 || n > len(rules) {
			return nil, index.Fault(fmt.Sprintf("%d is out of range", n), fmt.Sprintf("1 to %d", len(rules)))
		}
		to = n - 1
	case index.Null() && !before.Null() && after.Null():
		to, err = neighbour(others, before, 0)
	case index.Null() && before.Null() && !after.Null():
		to, err = neighbour(others, after, len(others)-1)
		to++
	default:
		err = position.Fault("names no place, or more than one", "one of index, before and after")
	}
	if err != nil {
		return nil, err
	}
	return slices.Insert(others, to, rule), nil
}

// neighbour returns the index of the rule that a position names; of the end for "".
func neighbour(others []anteroom.Rule, v api.Value, end int) (int, error) {
	id, err := v.Text()
	if err != nil || id == "" {
		return end, err
	}
	i := indexOf(others, id)
	if i < 0 {
		err = v.Fault("is not the id of another rule of this room", "")
	}
	return i, err
}
