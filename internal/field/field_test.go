package field

import (
	"reflect"
	"testing"
	"time"
)

type inner struct {
	Rate int `key:"rate" default:"3" min:"1" max:"9" doc:"A number."`
}

type table struct {
	inner
	Name  string         `key:"name" required:"true" word:"true" max:"5" doc:"A name."`
	Wait  time.Duration  `key:"wait" default:"0s" min:"1s" max:"1h" doc:"0s is adaptive."`
	Mode  string         `key:"mode" default:"a" enum:"a,b" doc:"One of two."`
	Each  []string       `key:"each" enum:"x,y" doc:"Some."`
	Maybe *time.Duration `key:"maybe" min:"1s" max:"1h" doc:"Nothing, or a duration."`
	First bool           `key:"first" after:"name" doc:"Stands elsewhere."`
	Unset string         // no field
	Part  inner          `key:"part" doc:"A section."`
}

func TestFieldsOfAStruct(t *testing.T) {
	var keys []string
	for _, f := range Of(reflect.TypeFor[table]()) {
		keys = append(keys, f.Key)
	}
	if want := []string{"rate", "name", "first", "wait", "mode", "each", "maybe", "part"}; !reflect.DeepEqual(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}
}

func TestFillLeavesWhatIsGiven(t *testing.T) {
	got := table{Mode: "b"}
	Fill(reflect.ValueOf(&got).Elem())
	if want := (table{inner: inner{3}, Mode: "b", Part: inner{3}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCheckAndSetAgree(t *testing.T) {
	seconds := func(d time.Duration) *time.Duration { return &d }
	right := table{inner: inner{3}, Name: "ab_-9"}
	for _, c := range []struct {
		key, text string // what Set refuses with the same words; empty: it has no such text
		change    func(*table)
		want      string
	}{
		{"", "", func(*table) {}, ""},
		{"name", "", func(v *table) { v.Name = "" }, "name: is missing"},
		{"name", "a b", func(v *table) { v.Name = "a b" }, `name: "a b" has other characters than letters, digits, _ and -`},
		{"name", "sixsix", func(v *table) { v.Name = "sixsix" }, "name: has 6 bytes"},
		{"rate", "10", func(v *table) { v.Rate = 10 }, "rate: 10 is too large"},
		{"rate", "-1", func(v *table) { v.Rate = -1 }, "rate: -1 is too small"},
		{"wait", "10ms", func(v *table) { v.Wait = 10 * time.Millisecond }, "wait: 10ms is out of range"},
		{"mode", "c", func(v *table) { v.Mode = "c" }, `mode: "c" is not known`},
		{"each", "x,z", func(v *table) { v.Each = []string{"x", "z"} }, `each[1]: "z" is not known`},
		{"maybe", "", func(v *table) { v.Maybe = seconds(time.Minute) }, ""},
		{"maybe", "0s", func(v *table) { v.Maybe = seconds(0) }, "maybe: 0s is out of range"},
	} {
		v := right
		c.change(&v)
		got := ""
		for _, f := range Of(reflect.TypeFor[table]()) {
			at, w := f.Check(reflect.ValueOf(v))
			if w != nil {
				got = f.Key + at + ": " + w.Problem
			}
			if f.Key == c.key && c.text != "" {
				w := f.Set(reflect.New(f.Type).Elem(), c.text)
				if w == nil || c.key+": "+w.Problem != c.want && f.Key != "each" {
					t.Errorf("%s: Set says %v, want %s", c.text, w, c.want)
				}
			}
		}
		if got != c.want {
			t.Errorf("%q %q: %s, want %s", c.key, c.text, got, c.want)
		}
	}
	var wait table
	for _, f := range Of(reflect.TypeFor[table]()) {
		if f.Key == "wait" {
			if w := f.Set(f.Make(reflect.ValueOf(&wait).Elem()), "0s"); w != nil {
				t.Errorf("the default is refused: %v", w)
			}
		}
	}
}

func TestJSONDefaults(t *testing.T) {
	got := map[string]any{}
	for _, f := range Of(reflect.TypeFor[table]()) {
		got[f.Key] = f.JSONDefault()
	}
	want := map[string]any{"rate": int64(3), "name": nil, "first": false, "wait": "0s", "mode": "a", "each": []any{}, "maybe": nil, "part": map[string]any{"rate": int64(3)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, want %#v", got, want)
	}
}
