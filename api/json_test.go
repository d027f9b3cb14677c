package api

import (
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// thing has a field of every kind.
type thing struct {
	Text  string
	On    bool
	Count int
	Long  time.Duration
	Name  string
	Ours  string
	List  []string
}

var thingFields = Fields[thing]{
	{Name: "id", Get: func(*thing) any { return "1" }},
	{Name: "name", Required: true, Get: func(t *thing) any { return t.Name }, Set: func(t *thing, v Value) (err error) { t.Name, err = v.Text(); return err }},
	{Name: "text", Get: func(t *thing) any { return t.Text }, Reset: func(t *thing) { t.Text = "" },
		Set: func(t *thing, v Value) (err error) { t.Text, err = v.Text(); return err }},
	{Name: "on", Get: func(t *thing) any { return t.On }, Reset: func(t *thing) { t.On = true },
		Set: func(t *thing, v Value) (err error) { t.On, err = v.Bool(); return err }},
	{Name: "count", Get: func(t *thing) any { return t.Count }, Reset: func(t *thing) { t.Count = 7 },
		Set: func(t *thing, v Value) (err error) { t.Count, err = v.Int(); return err }},
	{Name: "long", Get: func(t *thing) any { return t.Long.String() }, Reset: func(t *thing) { t.Long = 0 },
		Set: func(t *thing, v Value) (err error) { t.Long, err = v.Duration(); return err }},
	{Name: "list", Get: func(t *thing) any { return t.List }, Reset: func(t *thing) { t.List = nil },
		Set: func(t *thing, v Value) error {
			all, err := v.Array(3)
			for _, one := range all {
				o, err := one.Object()
				if err != nil {
					return err
				}
				s, err := o.Get("of").Text()
				if err != nil {
					return err
				}
				t.List = append(t.List, s)
			}
			return err
		}},
	{Name: "ours", Get: func(t *thing) any { return t.Ours }, Set: func(t *thing, v Value) (err error) { t.Ours, err = v.Text(); return err }},
}

func decode(t *thing, text string, write func(*thing, Object) error) error {
	v, err := Parse([]byte(text))
	if err != nil {
		return err
	}
	o, err := v.Object()
	if err != nil {
		return err
	}
	return write(t, o)
}

// TestFieldsAreReplacedOrMerged: a replacement resets what it does not name, all but what is
// ours; a merge changes what it names; null is the default in both.
func TestFieldsAreReplacedOrMerged(t *testing.T) {
	t.Parallel()
	was := thing{Text: "a", Count: 3, Long: time.Minute, Name: "n", Ours: "o", List: []string{"x"}}
	for _, c := range []struct {
		text           string
		replace, merge string // the JSON form afterwards
	}{
		{`{"name":"m"}`,
			`{"id":"1","name":"m","text":"","on":true,"count":7,"long":"0s","list":[],"ours":"o"}`,
			`{"id":"1","name":"m","text":"a","on":false,"count":3,"long":"1m0s","list":["x"],"ours":"o"}`},
		{`{"name":"m","text":null,"on":null,"count":null,"long":null,"list":null,"ours":null}`,
			`{"id":"1","name":"m","text":"","on":true,"count":7,"long":"0s","list":[],"ours":""}`,
			`{"id":"1","name":"m","text":"","on":true,"count":7,"long":"0s","list":[],"ours":""}`},
		{`{"id":{"read":"only"},"unknown":[1],"name":"","text":"b","on":true,"count":1e2,"long":"90s","ours":"p"}`,
			`{"id":"1","name":"","text":"b","on":true,"count":100,"long":"1m30s","list":[],"ours":"p"}`,
			`{"id":"1","name":"","text":"b","on":true,"count":100,"long":"1m30s","list":["x"],"ours":"p"}`},
	} {
		for how, write := range map[string]func(*thing, Object) error{c.replace: thingFields.Replace, c.merge: thingFields.Merge} {
			got := was
			if err := decode(&got, c.text, write); err != nil {
				t.Errorf("%s: %v", c.text, err)
			} else if form := string(marshal(t, thingFields.Of(&got))); form != how {
				t.Errorf("%s: got %s, want %s", c.text, form, how)
			}
		}
	}
}

// TestBadBodiesNameTheField: what is wrong, and where, for everything that a body can be.
func TestBadBodiesNameTheField(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, maxBodyDepth) + "1" + strings.Repeat("}", maxBodyDepth)
	members := "{"
	for i := range maxBodyMembers + 1 {
		members += `"` + strings.Repeat("a", i+1) + `":1,`
	}
	members = strings.TrimSuffix(members, ",") + "}"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", ": body is empty (send a JSON document)"},
		{"blank", " \n\t", ": body is empty (send a JSON document)"},
		{"cut off", `{"name":`, "name: body is not JSON at byte 8 (send a JSON document)"},
		{"not JSON", `name=x`, ": body is not JSON at byte 1 (send a JSON document)"},
		{"single quotes", `{'name':'x'}`, ": body is not JSON at byte 1 (send a JSON document)"},
		{"trailing comma", `{"name":"x",}`, ": body is not JSON at byte 11 (send a JSON document)"},
		{"comment", `{/*x*/}`, ": body is not JSON at byte 1 (send a JSON document)"},
		{"two documents", `{"name":"x"}{}`, ": body continues after its end at byte 12 (send one JSON document)"},
		{"byte order mark", "\ufeff{}", ": body is not JSON at byte 0 (send a JSON document)"},
		{"not UTF-8", "{\"name\":\"\xff\"}", "name: body is not UTF-8 at byte 9 (send a JSON document)"},
		{"lone surrogate", `{"name":"\ud800"}`, "name: body is not JSON at byte 9 (send a JSON document)"},
		{"name twice", `{"name":"x","name":"y"}`, "name: is there twice (send it once)"},
		{"name twice inside", `{"name":"x","list":[{"of":"1","of":"2"}]}`, "list[0].of: is there twice (send it once)"},
		{"name twice, escaped", `{"name":"x","n\u0061me":"y"}`, "name: is there twice (send it once)"},
		{"nested as deep as may be", deep, "name: is missing"},
		{"nested deeper", `[` + deep + `]`, strings.TrimSuffix("[0]"+strings.Repeat(".a", maxBodyDepth-1), "") + ": is nested too deeply (at most 32 objects and arrays in each other)"},
		{"very deep", strings.Repeat("[", 100_000), strings.TrimSuffix(strings.Repeat("[0]", maxBodyDepth), "") + ": is nested too deeply (at most 32 objects and arrays in each other)"},
		{"many members", members, ": body has too many members (at most 1000)"},
		{"list for an object", `[]`, ": body is a list (send an object)"},
		{"null for an object", `null`, ": body is null (send an object)"},
		{"text for an object", `"x"`, ": body is a text (send an object)"},
		{"required is missing", `{}`, "name: is missing"},
		{"required is null", `{"name":null}`, "name: is null (send a value)"},
		{"number for a text", `{"name":1}`, "name: is a number (send a text)"},
		{"text for a number", `{"name":"x","count":"1"}`, "count: is a text (send a whole number)"},
		{"fraction", `{"name":"x","count":1.5}`, "count: is not whole (send a whole number)"},
		{"huge number", `{"name":"x","count":1e999}`, "count: is out of range (send a whole number of a sensible size)"},
		{"long number", `{"name":"x","count":` + strings.Repeat("9", 5000) + `}`, "count: is out of range (send a whole number of a sensible size)"},
		{"tiny number", `{"name":"x","count":1e-999}`, ""},
		{"number for a boolean", `{"name":"x","on":1}`, "on: is a number (send true or false)"},
		{"object for a list", `{"name":"x","list":{}}`, "list: is an object (send a list)"},
		{"too many values", `{"name":"x","list":[{},{},{},{}]}`, "list: has too many values (at most 3)"},
		{"wrong type inside", `{"name":"x","list":[{},{"of":true}]}`, "list[1].of: is a boolean (send a text)"},
		{"null inside", `{"name":"x","list":[null]}`, ""},
		{"no duration", `{"name":"x","long":"5"}`, "long: is not a duration (write a number with a unit: 500ms, 30s, 5m, 2h)"},
		{"several", `{"count":true,"on":"x"}`, "name: is missing\non: is a text (send true or false)\ncount: is a boolean (send a whole number)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := decode(&thing{}, c.text, thingFields.Replace)
			got := ""
			if err != nil {
				got = err.Error()
				if anteroom.KindOf(err) != anteroom.Invalid {
					t.Errorf("kind %v", anteroom.KindOf(err))
				}
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// FuzzBody: whatever is sent, there is a value or a fault, never a panic; what was taken is
// what is given back, and taking that again changes nothing.
func FuzzBody(f *testing.F) {
	f.Add(`{"name":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var a thing
		if err := decode(&a, text, thingFields.Replace); err != nil {
			if _, ok := FaultsOf(err); !ok {
				t.Fatalf("no fault: %v", err)
			}
			p := problemOf(err)
			if p.Status != 400 || len(p.Errors) == 0 || len(p.Errors) > maxFaults {
				t.Fatalf("%+v", p)
			}
			marshal(t, p.Errors)
			return
		}
		form := marshal(t, thingFields.Of(&a))
		var b thing
		b.Ours = a.Ours
		// The form of a list's values is not what they are read from.
		if err := decode(&b, strings.Replace(string(form), `"list":`, `"was":`, 1), thingFields.Replace); err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		b.List = a.List
		if again := marshal(t, thingFields.Of(&b)); string(again) != string(form) {
			t.Fatalf("%s became %s", form, again)
		}
	})
}
