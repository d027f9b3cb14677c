package api

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type part struct {
	Name string `json:"name"`
}

type sample struct {
	Name    string              `json:"name" doc:"What it is called."`
	Kind    string              `json:"kind" optional:"true" enum:"red,blue"`
	Count   int                 `json:"count,omitzero" optional:"true" min:"1" max:"5"`
	On      bool                `json:"on" optional:"true"`
	Until   *time.Time          `json:"until" optional:"true"`
	From    []netip.Prefix      `json:"from" optional:"true" max:"2"`
	Parts   []part              `json:"parts" optional:"true"`
	Headers map[string][]string `json:"headers" optional:"true" single:"true"`
}

func readSample(t *testing.T, text string, to *sample, null sample) error {
	t.Helper()
	v, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o, err := v.Object()
	if err != nil {
		t.Fatal(err)
	}
	return Read(o, to, null)
}

func TestABodyIsReadIntoAStruct(t *testing.T) {
	var got sample
	err := readSample(t, `{"name":"a","kind":"red","count":5,"on":true,"until":"2026-11-27T10:00:00+01:00","from":["192.0.2.1","10.1.2.3/8"],
		"parts":[{"name":"b"}],"headers":{"x":"1","y":["2","3"]}}`, &got, sample{})
	until := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	if err != nil || !got.Until.Equal(until) {
		t.Fatalf("%v: %+v", err, got)
	}
	got.Until = nil
	want := sample{Name: "a", Kind: "red", Count: 5, On: true, From: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("10.0.0.0/8")},
		Parts: []part{{"b"}}, Headers: map[string][]string{"x": {"1"}, "y": {"2", "3"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWhatIsLeftOutStaysAndNullIsTheDefault(t *testing.T) {
	got := sample{Name: "was", Kind: "red", Count: 3, On: true}
	if err := readSample(t, `{"name":"new","count":null,"on":null}`, &got, sample{Count: 4}); err != nil {
		t.Fatal(err)
	}
	if want := (sample{Name: "new", Kind: "red", Count: 4}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestABodySaysEveryFault(t *testing.T) {
	for text, want := range map[string][]string{
		`{"name":"a","nam":"b"}`:                   {"nam: is not known here"},
		`{}`:                                       {"name: is missing (What it is called.)"},
		`{"name":null}`:                            {"name: is missing"},
		`{"name":5,"count":0,"kind":"green"}`:      {"name: is a number", "count: 0 is out of range (1 to 5)", `kind: "green" is not known (one of red, blue)`},
		`{"name":"a","count":6}`:                   {"count: 6 is out of range"},
		`{"name":"a","count":1.5}`:                 {"count: is not whole"},
		`{"name":"a","on":"yes"}`:                  {"on: is a text"},
		`{"name":"a","until":"soon"}`:              {"until:"},
		`{"name":"a","from":["x","10.0.0.0/8"]}`:   {"from[0]: is not a network"},
		`{"name":"a","from":["::","::1","::2"]}`:   {"from: has too many values (at most 2)"},
		`{"name":"a","from":"10.0.0.0/8"}`:         {"from: is a text"},
		`{"name":"a","parts":[{"name":"b"},{}]}`:   {"parts[1].name: is missing"},
		`{"name":"a","parts":[{"nam":"b"}]}`:       {"nam: is not known here"},
		`{"name":"a","headers":{"x":["1",2]}}`:     {"headers.x[1]: is a number"},
		`{"name":"a","headers":{"x":{"y":"z"}}}`:   {"headers.x: is an object"},
		`{"name":"a","parts":{"name":"b"},"on":1}`: {"parts: is an object", "on: is a number"},
	} {
		var got sample
		err := readSample(t, text, &got, sample{})
		for _, one := range want {
			if err == nil || !strings.Contains(err.Error(), one) {
				t.Errorf("%s: %v, want %s", text, err, one)
			}
		}
	}
}

// FuzzRead: whatever a body is, reading it gives faults, or something whose JSON form reads as the same.
func FuzzRead(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		read := func(text []byte) (got sample, err error) {
			v, err := Parse(text)
			if err != nil {
				return got, err
			}
			o, err := v.Object()
			if err != nil {
				return got, err
			}
			return got, Read(o, &got, sample{})
		}
		once, err := read([]byte(text))
		if err != nil {
			if _, ok := FaultsOf(err); !ok {
				t.Fatalf("no fault: %v", err)
			}
			return
		}
		form := marshal(t, once)
		twice, err := read(form)
		if again := marshal(t, twice); err != nil || string(again) != string(form) {
			t.Fatalf("%s became %s: %v", form, again, err)
		}
	})
}
