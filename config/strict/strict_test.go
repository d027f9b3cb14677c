package strict

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/field"
)

type numbers struct {
	Rate  float64       `key:"rate" min:"0" max:"1000" doc:"A number."`
	Share float64       `key:"share" default:"2%" min:"0" max:"1" share:"true" doc:"A share."`
	Loads []float64     `key:"loads" min:"0" max:"10" doc:"Some numbers."`
	Step  time.Duration `key:"step" min:"-1h" max:"1h" doc:"Back or forth."`
}

func read(text string, into any) *Reader {
	r := New("f", func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil })
	field.Fill(reflect.ValueOf(into).Elem())
	r.Load(into)
	return r
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		text string
		want numbers // when there are no faults
		err  string  // else the first
	}{
		{"", numbers{Share: 0.02}, ""},
		{"{rate: 1.5, share: 0.25, loads: [1, 2.5], step: -30m}", numbers{1.5, 0.25, []float64{1, 2.5}, -30 * time.Minute}, ""},
		{"{rate: 1_000, share: 25%, loads: 3}", numbers{1000, 0.25, []float64{3}, 0}, ""},
		{"rate: 1e2", numbers{Rate: 100, Share: 0.02}, ""},
		{"rate: 1001", numbers{}, "f:1:7: rate: 1001 is too large (0 to 1000)"},
		{"rate: -1", numbers{}, "f:1:7: rate: -1 is too small (0 to 1000)"},
		{"rate: .nan", numbers{}, `f:1:7: rate: ".nan" is not a number (0 to 1000)`},
		{"rate: .inf", numbers{}, `f:1:7: rate: ".inf" is not a number (0 to 1000)`},
		{"rate: 0x10", numbers{}, `f:1:7: rate: "0x10" is not a number (0 to 1000)`},
		{"rate: 50%", numbers{}, `f:1:7: rate: "50%" is text and not a number (0 to 1000)`},
		{"rate: '5'", numbers{}, `f:1:7: rate: "5" is text and not a number (0 to 1000)`},
		{"share: 101%", numbers{}, "f:1:8: share: 101% is too large (0 to 1, or a percentage like 2%)"},
		{"share: '%'", numbers{}, `f:1:8: share: "%" is not a number (0 to 1, or a percentage like 2%)`},
		{"step: -2h", numbers{}, "f:1:7: step: -2h is out of range (-1h to 1h)"},
	} {
		var got numbers
		r := read(c.text, &got)
		if c.err == "" && (r.Err() != nil || !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%s: %+v, %v; want %+v", c.text, got, r.Err(), c.want)
		}
		if c.err != "" && (r.Err() == nil || r.Err().Error() != c.err) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.text, r.Err(), c.err)
		}
	}
}

// Faults in a file that the file names stand behind the file's own, with that file's name.
func TestFaultsInAnotherFile(t *testing.T) {
	var n numbers
	r := read("rate: 5\nstep: 1m", &n)
	r.In("other", 3, 7, "rate", "is odd", "")
	r.At("gone", "is missing", "add it")
	r.In("other", 2, 1, "rate", "is too", "")
	r.At("step", "is late", "")
	const want = "f:2:7: step: is late\nother:2:1: rate: is too\nother:3:7: rate: is odd\ngone: is missing (add it)"
	if r.OK() || r.Err().Error() != want {
		t.Errorf("got\n%v\nwant\n%s", r.Err(), want)
	}
}

func TestSchemaKnowsNumbers(t *testing.T) {
	schema := Schema(reflect.TypeFor[numbers](), "https://example.com/s.json", "Numbers")
	for _, part := range []string{`"maximum": 1000`, `"default": "2%"`, `"type": "number"`, "^[-+]?"} {
		if !bytes.Contains(schema, []byte(part)) {
			t.Errorf("the schema lacks %s:\n%s", part, schema)
		}
	}
	if m := Manual("Numbers", reflect.TypeFor[numbers]()); !strings.Contains(m, "| `rate` | number, 0 to 1000 | – | A number. |") {
		t.Errorf("manual:\n%s", m)
	}
}

func TestManualWithoutLeast(t *testing.T) {
	type waits struct {
		Wait time.Duration `key:"wait" max:"1h" doc:"Some time."`
	}
	if m := Manual("Waits", reflect.TypeFor[waits]()); !strings.Contains(m, "| `wait` | duration, up to 1h |") {
		t.Errorf("manual:\n%s", m)
	}
}
