package rest

import (
	"encoding/json/v2"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
)

// FuzzBodies: whatever is sent for a room, an event and a rule, it is a fault or it is taken;
// and the JSON form of what was taken, sent again, is taken and changes nothing.
func FuzzBodies(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		v, err := api.Parse([]byte(text))
		if err != nil {
			return
		}
		o, err := v.Object()
		if err != nil {
			return
		}
		again(t, roomFields, o, func(r *anteroom.Room) bool { return len(r.Routes) > 0 })
		again(t, eventFields, o, func(*anteroom.Event) bool { return true })
		again(t, ruleFields, o, func(*anteroom.Rule) bool { return true })
		again(t, listFields, o, func(*anteroom.List) bool { return true })
		again(t, settingFields, o, func(*anteroom.Zone) bool { return true })
		rules := []anteroom.Rule{{ID: "a"}, {ID: "b"}, {ID: "c"}}
		if moved, err := place(rules, 1, o.Get("position")); err == nil && len(moved) != len(rules) {
			t.Fatalf("%d rules of %d", len(moved), len(rules))
		}
		for _, kind := range []string{anteroom.ListOfIPs, anteroom.ListOfASNs, anteroom.ListOfHostnames} {
			if item, err := itemOf(kind, v); err == nil {
				form(t, shownItem(kind, &item))
			}
		}
	})
}

func form(t *testing.T, m api.Members) string {
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func again[T any](t *testing.T, fields api.Fields[T], o api.Object, whole func(*T) bool) {
	var a T
	if fields.Merge(&a, o) != nil || !whole(&a) {
		return
	}
	first := form(t, fields.Of(&a))
	var sent api.Members
	for i, m := range fields.Of(&a) {
		if m.Value != nil || !fields[i].Required { // what has no value yet cannot be set to none
			sent = append(sent, m)
		}
	}
	v, err := api.Parse([]byte(form(t, sent)))
	if err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	same, err := v.Object()
	if err != nil {
		t.Fatal(err)
	}
	b := a
	if err := fields.Merge(&b, same); err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	if second := form(t, fields.Of(&b)); second != first {
		t.Fatalf("%s became %s", first, second)
	}
}
