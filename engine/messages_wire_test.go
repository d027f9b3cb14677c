package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/anteroom/anteroom"
	"pgregory.net/rapid"
)

// wired is a message of any kind with both directions.
type wired struct {
	name   string
	empty  func() any // pointer to a zero message
	encode func(b []byte, m any) []byte
	parse  func(b []byte) (any, error) // pointer to a message
}

var wires = []wired{
	{"Report", func() any { return new(Report) },
		func(b []byte, m any) []byte { return m.(*Report).AppendWire(b) },
		func(b []byte) (any, error) { m, err := ParseReport(b); return &m, err }},
	{"ToSite", func() any { return new(ToSite) },
		func(b []byte, m any) []byte { return m.(*ToSite).AppendWire(b) },
		func(b []byte) (any, error) { m, err := parseToSite(b); return &m, err }},
	{"FromDoor", func() any { return new(FromDoor) },
		func(b []byte, m any) []byte { return m.(*FromDoor).AppendWire(b) },
		func(b []byte) (any, error) { m, err := ParseFromDoor(b); return &m, err }},
	{"ToDoor", func() any { return new(ToDoor) },
		func(b []byte, m any) []byte { return m.(*ToDoor).AppendWire(b) },
		func(b []byte) (any, error) { m, err := parseToDoor(b); return &m, err }},
}

// draw fills whatever v is with drawn values, so that a member which is added to a message
// and forgotten on the wire shows.
func draw(t *rapid.T, v reflect.Value) {
	switch v.Interface().(type) {
	case Mode:
		v.SetUint(uint64(rapid.SampledFrom([]Mode{Queue, Open, Cut}).Draw(t, "mode")))
		return
	case Why:
		v.SetUint(uint64(rapid.SampledFrom([]Why{Admitted, Left, NoShow, Declined}).Draw(t, "why")))
		return
	case Standing:
		v.SetUint(uint64(rapid.SampledFrom([]Standing{Unknown, Waiting, Seated, Used}).Draw(t, "standing")))
		return
	case anteroom.Verdict:
		v.SetUint(uint64(rapid.SampledFrom([]anteroom.Verdict{anteroom.Wait, anteroom.Admit, anteroom.Refuse, anteroom.Pass}).Draw(t, "verdict")))
		return
	case anteroom.Reason:
		v.SetUint(uint64(rapid.SampledFrom(append(anteroom.Reasons(), anteroom.ReasonNone)).Draw(t, "reason")))
		return
	case *anteroom.InForce: // each node knows it
		return
	case []LaneFigures: // the highest first, and without lanes of their own
		for n := uint8(rapid.IntRange(0, 3).Draw(t, "lanes")); n > 0; n-- {
			one := LaneFigures{Lane: n * 85}
			f := reflect.ValueOf(&one.Figures).Elem()
			for i := range f.NumField() {
				if f.Type().Field(i).Name != "Lanes" {
					draw(t, f.Field(i))
				}
			}
			v.Set(reflect.Append(v, reflect.ValueOf(one)))
		}
		return
	case anteroom.Ticket: // but for Moved, which gateways keep to themselves
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Moved" {
				draw(t, v.Field(i))
			}
		}
		return
	case anteroom.QueueingMethod:
		v.SetString(string(rapid.SampledFrom(append([]anteroom.QueueingMethod{""}, anteroom.QueueingMethods...)).Draw(t, "method")))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Max(math.MaxUint64>>(64-v.Type().Bits())).Draw(t, "uint"))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32().Draw(t, "float")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.String:
		v.SetString(string(rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "text")))
	case reflect.Array:
		for i := range v.Len() {
			draw(t, v.Index(i))
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 4).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				draw(t, v.Index(i))
			}
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			draw(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			draw(t, v.Field(i))
		}
	default:
		t.Fatalf("cannot draw a %v", v.Type())
	}
}

// drawMessage obeys what the messages promise: one part, a mode that is sent.
func drawMessage(t *rapid.T, w wired) any {
	m := w.empty()
	s, ok := m.(*ToSite)
	if !ok {
		draw(t, reflect.ValueOf(m).Elem())
		return m
	}
	draw(t, reflect.ValueOf(&s.Site).Elem())
	part := reflect.ValueOf(s).Elem().Field(rapid.IntRange(1, 4).Draw(t, "part"))
	part.Set(reflect.New(part.Type().Elem()))
	draw(t, part.Elem())
	if s.State != nil && s.State.Mode == Cut {
		s.State.Mode = Open
	}
	if s.State != nil && s.State.Figures != nil && rapid.Bool().Draw(t, "sums") {
		var sum uint32
		for i := range s.State.Figures.Seconds {
			s.State.Figures.Seconds[i].Before = sum
			sum += s.State.Figures.Seconds[i].Count
		}
	}
	return m
}

// TestWireRoundTrip: what is parsed equals what was encoded and encodes to the same bytes;
// no shorter and no longer message is one.
func TestWireRoundTrip(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				m := drawMessage(t, w)
				b := w.encode([]byte("before"), m)
				if string(b[:6]) != "before" {
					t.Fatalf("what was in the buffer became %q", b[:6])
				}
				b = b[6:]
				given := bytes.Clone(b)
				got, err := w.parse(b)
				if err != nil {
					t.Fatalf("%v\nof %+v", err, m)
				}
				if !reflect.DeepEqual(got, m) {
					t.Fatalf("parsed %+v\nof     %+v", got, m)
				}
				if !bytes.Equal(b, given) {
					t.Fatal("parsing changed the bytes")
				}
				clear(b) // what was parsed shares nothing with the bytes
				if again := w.encode(nil, got); !bytes.Equal(again, given) {
					t.Fatalf("encoded again: %x\nwant           %x", again, given)
				}
				cut := rapid.IntRange(0, len(given)-1).Draw(t, "cut")
				if _, err := w.parse(given[:cut]); err == nil {
					t.Fatalf("the first %d of %d bytes are a message", cut, len(given))
				}
				if got, err := w.parse(append(given, 0)); err == nil || !reflect.DeepEqual(got, w.empty()) {
					t.Fatalf("with a byte more: %+v, %v; want an empty message and an error", got, err)
				}
			})
		})
	}
}

// TestWireZeroElements: lists of elements that take the fewest bytes are not taken for ones
// that cannot be.
func TestWireZeroElements(t *testing.T) {
	t.Parallel()
	const many = 100 // so that what follows the list does not make up for a byte each
	departures := make([]Departure, many)
	for i := range departures {
		departures[i].Why = Admitted
	}
	seconds := make([]SecondCount, many)
	for i := range seconds {
		seconds[i].Last = 999_999
	}
	for _, m := range []*Report{
		{Departures: departures}, {Arrivals: make([]Arrival, many)}, {Asks: make([]Ask, many)},
		{Found: make([]Finding, many)}, {Ends: make([]AgeCount, many)}, {Ages: make([]AgeCount, many)},
	} {
		roundTrip(t, wires[0], m)
	}
	for _, m := range []*ToSite{
		{Findings: &Findings{Found: make([]Finding, many)}}, {Offers: &Offers{IDs: make([]anteroom.ID, many)}},
		{Inquiry: &Inquiry{Asks: make([]Ask, many)}}, {State: &State{Figures: &Figures{}}},
		{State: &State{Figures: &Figures{Curve: make([]float32, many)}}}, {State: &State{Figures: &Figures{Seconds: seconds}}},
	} {
		roundTrip(t, wires[1], m)
	}
	for _, m := range []*FromDoor{
		{Visits: make([]Asked, many)}, {Abandoned: make([]uint64, many)}, {Closed: make([]anteroom.ID, many)},
		{Touches: make([]anteroom.ID, many)}, {Polls: make([]Poll, many)},
	} {
		roundTrip(t, wires[2], m)
	}
	for _, m := range []*ToDoor{
		{Answers: make([]Answer, many)}, {Pushes: make([]anteroom.ID, many)}, {Ended: make([]anteroom.ID, many)},
	} {
		roundTrip(t, wires[3], m)
	}
}

func roundTrip(t *testing.T, w wired, m any) {
	t.Helper()
	got, err := w.parse(w.encode(nil, m))
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%s: parsed %+v, %v; want %+v", w.name, got, err, m)
	}
}

// TestWireFormat holds the bytes: a message is encoded to those of its file, and the file is
// understood. The files stay for ever; their names begin with the version of the format. Who has
// to change one here changes the version, too, and adds files. -update writes those that are
// missing.
func TestWireFormat(t *testing.T) {
	t.Parallel()
	for _, c := range wireExamples() {
		w := wires[c.wire]
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			got := hex.EncodeToString(w.encode(nil, c.message))
			file := filepath.Join("testdata", "wire", c.file+".hex")
			want, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) && *update {
				want, err = []byte(got+"\n"), os.WriteFile(file, []byte(got+"\n"), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != strings.TrimSpace(string(want)) {
				t.Errorf("it is\n%s, want\n%s", got, want)
			}
			b, err := hex.DecodeString(strings.TrimSpace(string(want)))
			if err != nil {
				t.Fatal(err)
			}
			if m, err := w.parse(b); err != nil || !reflect.DeepEqual(m, c.message) {
				t.Errorf("parsed %+v, %v; want %+v", m, err, c.message)
			}
		})
	}
}

var update = flag.Bool("update", false, "write files of messages that are missing in testdata/wire")

// TestWireExtensions: what a later release adds is skipped, what this one adds may be missing,
// and there is one way to write them.
func TestWireExtensions(t *testing.T) {
	t.Parallel()
	for _, c := range wireExamples() {
		w := wires[c.wire]
		b := w.encode(nil, c.message)
		known := strings.Count(c.file, "-") > 1 // 7-report-weight
		if !known && b[len(b)-1] != 0 {
			t.Errorf("%s: it ends with %d, want no extensions", c.file, b[len(b)-1])
		}
		if known {
			continue
		}
		later := append(bytes.Clone(b[:len(b)-1]), 2, 62, 3, 1, 2, 3, 63, 0)
		if m, err := w.parse(later); err != nil || !reflect.DeepEqual(m, c.message) {
			t.Errorf("%s with unknown extensions: %+v, %v; want %+v", c.file, m, err, c.message)
		}
	}
	plain := (&Report{}).AppendWire(nil)
	plain = plain[:len(plain)-1]
	for _, c := range []struct {
		name string
		b    []byte
		want string // "": no error
	}{
		{"known", []byte{1, 1, 1, 5}, ""},
		{"known and unknown", []byte{2, 1, 1, 5, 9, 1, 7}, ""},
		{"none", nil, "ends too early"},
		{"too many", []byte{65}, "65 extensions, at most 64"},
		{"without a tag", []byte{1, 0, 0}, "extension 0 follows 0"},
		{"in disorder", []byte{2, 9, 0, 9, 0}, "extension 9 follows 9"},
		{"longer than the message", []byte{1, 9, 2, 0}, "ends too early"},
		{"missing", []byte{1}, "ends too early"},
		{"zero", []byte{1, 1, 1, 0}, "says nothing"},
		{"with more in it", []byte{1, 1, 2, 5, 0}, "1 bytes too many"},
		{"with less in it", []byte{1, 1, 0}, "ends too early"},
	} {
		m, err := ParseReport(append(bytes.Clone(plain), c.b...))
		if c.want == "" {
			if err != nil || m.Weight != 5 {
				t.Errorf("%s: %v and weight %d, want 5", c.name, err, m.Weight)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// The visits that leave are a list of numbers, which only fits the visits.
func TestWireLeaving(t *testing.T) {
	t.Parallel()
	plain := (&FromDoor{Door: 1, Batch: 1, Visits: []Asked{{Token: 1}, {Token: 2}}}).AppendWire(nil)
	plain = plain[:len(plain)-1]
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"the second", []byte{1, 8, 2, 1, 2}, ""},
		{"both", []byte{1, 8, 3, 2, 1, 1}, ""},
		{"a third", []byte{1, 8, 2, 1, 3}, "visit 3 after 0 leaves, of 2"},
		{"one twice", []byte{1, 8, 3, 2, 1, 0}, "visit 0 after 1 leaves"},
		{"none", []byte{1, 8, 1, 0}, "says nothing"},
		{"one that overflows", []byte{1, 8, 12, 2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, "after 1 leaves"},
	} {
		message := append(bytes.Clone(plain), c.b...)
		m, err := ParseFromDoor(message)
		if c.want == "" {
			if err != nil || !m.Visits[1].Visit.Leave || !bytes.Equal(m.AppendWire(nil), message) {
				t.Errorf("%s: %v, %+v", c.name, err, m.Visits)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

type wireExample struct {
	file    string // in testdata/wire
	wire    int    // index of wires
	message any
}

func wireExamples() []wireExample {
	const now = anteroom.Time(1_800_000_000_000_000)
	a, b := anteroom.ID{0xa0, 15: 0xa1}, anteroom.ID{0xb0, 15: 0xb1}
	site := SiteKey{Name: "ams", Incarnation: 2}
	figures := &Figures{At: now, Waiting: 3, Hot: -1, Front: now - 9e6, Oldest: now - 8e6, Shuffled: now - 7e6, Released: 70, CurveAt: now - 1e6, CurveFrom: 60,
		Known: true, Step: 5 * time.Second, Curve: []float32{1, 2.5}, Leave: 0.5, Draw: [3]time.Duration{time.Second, 2 * time.Second, 3 * time.Second},
		Seconds: []SecondCount{{Second: 1_799_999_992, Before: 0, Count: 2, First: 10, Last: 999_990}, {Second: 1_799_999_993, Before: 2, Count: 1, First: 5, Last: 5}}}
	waiting := anteroom.Ticket{ID: a, Arrival: now - 60e6, LastCheckIn: now, Next: now + 20e6, Refresh: 20 * time.Second, Bind: 7, Told: 12, Solved: true}
	session := anteroom.Ticket{ID: b, Arrival: now - 60e6, LastCheckIn: now - 1, AcceptedAt: now - 50e6, Home: 1 << 31}
	return []wireExample{
		{"7-report", 0, &Report{From: site, Epoch: 1, Seq: 300, Sent: now, Returned: Units{5, 6}, Used: Units{7, 8}, Adopted: 9, Idle: 10, Newcomers: 11, Want: 12, Ask: true,
			Trip: time.Millisecond, Departures: []Departure{{a, NoShow}}, Arrivals: []Arrival{{ID: b, Key: now - 100, Lane: 1, Shown: true, Due: now + 2e6}, {ID: a, Key: now - 50, Stream: true}},
			Asks: []Ask{{ID: a, Seen: now - 10}, {ID: b, Home: 1 << 31, Seen: now - 9, Accepted: now - 60e6}}, Found: []Finding{{ID: b, Standing: Waiting, Key: now - 9, Lane: 1}, {ID: a, Standing: Seated, Accepted: now - 8, Last: now - 7}},
			Admitted: 13,
			Ends:     []AgeCount{{1, 2}}, Ages: []AgeCount{{3, 400}}, Term: 14, Part: 15, Last: true}},
		{"7-state", 1, &ToSite{Site: site, State: &State{Epoch: 1, Now: now, Echo: now - 5, Granted: Units{1, 2}, Heard: Units{3, 4}, Adopted: 5, Silent: true, Resync: true, Mode: Open,
			Target: 6, Figures: figures, Sites: 3}}},
		{"7-offers", 1, &ToSite{Site: site, Term: 5, Offers: &Offers{Epoch: 1, Granted: Units{1, 2}, Adopted: 3, At: now, ByHand: true, IDs: []anteroom.ID{a, b}}}},
		{"7-inquiry", 1, &ToSite{Site: site, Inquiry: &Inquiry{Epoch: 1, Asks: []Ask{{ID: a, Seen: now}, {ID: b, Home: 7, Seen: now - 1, Accepted: now - 5e6, Over: true}}}}},
		{"7-findings", 1, &ToSite{Site: site, Findings: &Findings{Epoch: 1, Found: []Finding{{ID: a, Standing: Waiting, Key: now, Lane: 1}, {ID: b, Standing: Used}, {ID: a, Standing: Seated, Accepted: now, Last: now + 1, Home: 7}}}}},
		{"7-keys", 1, &ToSite{Site: site, Keys: &Keys{Epoch: 1, Shuffled: now, Places: []Placed{{ID: b, Key: now - 2e6}, {ID: a, Key: now - 1e6}}}}},
		{"7-fromdoor", 2, &FromDoor{Door: 77, Visits: []Asked{{Token: 5, Visit: anteroom.Visit{Ticket: waiting, NewID: b, Bind: 7, NoHold: true}}, {Token: 6, Visit: anteroom.Visit{Ticket: anteroom.Ticket{ID: b}, Fresh: true, Unsolved: true, NewID: a, Networks: anteroom.Networks{1, 2}}}, {Token: 7, Visit: anteroom.Visit{Ticket: session}}},
			Abandoned: []uint64{4}, Closed: []anteroom.ID{a}, Batch: 9, Touches: []anteroom.ID{b}, Polls: []Poll{{ID: a, Key: now - 60e6, Lane: 1, Due: now + 20e6, Last: now}}, Sent: now + 5, Figures: now - 3}},
		{"7-todoor", 3, &ToDoor{Site: site, Answers: []Answer{{Token: 5, Decision: anteroom.Decision{Reason: anteroom.ReasonWaiting, Ticket: waiting, SetCookie: true, At: now, Method: anteroom.Random,
			Ahead: 11, AheadKnown: true, Waiting: 20, WaitTime: time.Minute, WaitKnown: true, Wait25: time.Second, Wait75: time.Hour, Refresh: 20 * time.Second, KeptUntil: now + 300e6, Stream: true}}},
			Pushes: []anteroom.ID{a}, Ended: []anteroom.ID{b}, Confirmed: 9, Mode: Cut, Now: now + 8, Echo: now + 5, Since: 2}},
		{"7-fromdoor-leaving", 2, &FromDoor{Door: 77, Sent: now, Batch: 9, Visits: []Asked{{Token: 5, Visit: anteroom.Visit{Ticket: waiting, NewID: b}},
			{Token: 6, Visit: anteroom.Visit{Ticket: waiting, NewID: a, NoJoin: true, NoClaim: true, Leave: true}}, {Token: 7, Visit: anteroom.Visit{Ticket: session, Leave: true}}}}},
		{"7-report-weight", 0, &Report{From: site, Sent: now, Term: 3, Weight: 200}},
		{"7-report-lostfor", 0, &Report{From: site, Sent: now, LostFor: 50 * time.Second}},
		{"7-report-timed", 0, &Report{From: site, Sent: now, Timed: true}},
		{"7-report-gathered", 0, &Report{From: site, Sent: now, Term: 3, Gathered: true}},
		{"7-report-coming", 0, &Report{From: site, Sent: now, Coming: Units{3, 300}}},
		{"7-offers-ahead", 1, &ToSite{Site: site, Term: 5, Offers: &Offers{Epoch: 1, Granted: Units{1, 2}, At: now, IDs: []anteroom.ID{a}, Ahead: []anteroom.ID{b}}}},
		{"7-offers-expected", 1, &ToSite{Site: site, Term: 5, Offers: &Offers{Epoch: 1, Granted: Units{1, 2}, At: now, Expected: now + 20e6, IDs: []anteroom.ID{a}}}},
		{"7-report-origin", 0, &Report{From: site, Sent: now, Origin: OriginFacts{Known: true, Requests: 900, Failed: 12, P95: 340 * time.Millisecond}}},
		{"7-state-lostfor", 1, &ToSite{Site: site, State: &State{Epoch: 1, Now: now, Lost: true, LostFor: 50 * time.Second}}},
		{"7-state-rates", 1, &ToSite{Site: site, State: &State{Epoch: 1, Now: now, Target: 3, Rates: 12}}},
		{"7-todoor-parted", 3, &ToDoor{Site: site, Now: now, Parted: []anteroom.ID{a, b}}},
		{"7-todoor-term", 3, &ToDoor{Site: site, Now: now, Term: 513}},
		{"7-fromdoor-revokes", 2, &FromDoor{Door: 77, Sent: now, Batch: 1, Revokes: []anteroom.ID{a, b}}},
		{"7-fromdoor-ages", 2, &FromDoor{Door: 77, Sent: now, Batch: 1, Touches: []anteroom.ID{a, b}, Ages: []time.Duration{0, 29 * time.Second}}},
		{"7-fromdoor-origin", 2, &FromDoor{Door: 77, Sent: now, Batch: 1, Origin: OriginFacts{Known: true, Down: true}}},
		{"7-fromdoor-told", 2, &FromDoor{Door: 77, Sent: now, Batch: 1, Told: 513}},
		{"7-fromdoor-late", 2, &FromDoor{Door: 77, Sent: now, Batch: 1, Late: []anteroom.ID{a, b}}},
		{"7-fromdoor-node", 2, &FromDoor{Door: 77, Sent: now, Batch: 1, Node: 9, Empty: true}},
	}
}

func TestWireErrors(t *testing.T) {
	t.Parallel()
	zero := func(w int) []byte { return wires[w].encode(nil, wires[w].empty()) }
	with := func(b []byte, at int, v ...byte) []byte {
		return append(append(bytes.Clone(b[:at]), v...), b[at+1:]...)
	}
	site := (&ToSite{Inquiry: &Inquiry{}}).AppendWire(nil)
	state := (&ToSite{State: &State{}}).AppendWire(nil)
	figures := (&ToDoor{Figures: &Figures{}}).AppendWire(nil)
	endless := bytes.Repeat([]byte{0xff}, 11)
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	report, ages := zero(0), len(zero(0))-9
	for _, c := range []struct {
		name string
		wire int
		b    []byte
		want string
	}{
		{"empty", 0, nil, "is empty"},
		{"too long", 0, make([]byte, wireLimit+1), "at most 16777216 are allowed"},
		{"version", 0, with(report, 0, 0x11), "format version 1, this program speaks 7"},
		{"kind", 0, with(report, 0, 0x74), "kind 4 (ToDoor), not 1"},
		{"kind without a name", 3, with(report, 0, 0x7f), "kind 15 (message), not 4"},
		{"long form", 0, with(report, 2, 0x80, 0), "Report at byte 2: a number is not in its shortest form"},
		{"endless number", 0, with(report, 2, endless...), "shortest form"},
		{"too large", 0, with(report, 12, 0xff, 0xff, 0xff, 0xff, 0x7f), "is too large"},
		{"flags", 0, with(report, 14, 4), "flags without a meaning"},
		{"lane", 0, with((&Report{Arrivals: make([]Arrival, 1)}).AppendWire(nil), 34, 0x80, 32), "Report at byte 36: 256 is not a lane"},
		{"count of two bytes each", 0, with(report, ages, huge...), "elements in 8 bytes"},
		{"count of ids", 0, with(report, 18, huge...), "elements in 8 bytes"},
		{"name", 0, with(report, 1, huge...), "ends too early"},
		{"too many bytes", 0, append(bytes.Clone(report), 0, 0), "Report at byte 27: 2 bytes too many"},
		{"no part", 1, with(site, 3, 0), "0 has no name, 1 to 5 have"},
		{"part without a name", 1, with(site, 3, 6), "6 has no name"},
		{"mode that is not sent", 1, with(state, 13, byte(Cut)), "2 has no name, 0 to 1"},
		{"verdict", 3, zeroAnswer(0, 4), "4 has no name, 0 to 3"},
		{"reason", 3, zeroAnswer(1, byte(anteroom.ReasonLeft)+1), "24 has no name, 0 to 23"},
		{"method", 3, zeroAnswer(2, 5), "5 has no name, 0 to 4"},
		{"figures longer than the message", 3, with(figures, 8, 200), "ends too early"},
		{"figures shorter than they are", 3, append(with(figures, 8, figures[8]-1), 0), "ends too early"},
		{"figures with more in them", 3, append(with(figures, 8, figures[8]+1), 0), "1 bytes too many"},
		{"microsecond below 0", 3, lastMicrosecond(1_000_000), "-1 is not a microsecond"},
		{"microsecond beyond 32 bits", 3, lastMicrosecond(999_999 - 1<<32), "4294967296 is not a microsecond"},
		{"sums that need not be", 3, with(figures, 22, 0), "sums are written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := wires[c.wire]
			m, err := w.parse(c.b)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if !reflect.DeepEqual(m, w.empty()) {
				t.Errorf("beside the error: %+v", m)
			}
		})
	}
}

// zeroAnswer is a ToDoor of one empty answer with a byte of its decision changed.
func zeroAnswer(at int, v byte) []byte {
	b := (&ToDoor{Answers: make([]Answer, 1)}).AppendWire(nil)
	b[7+at] = v
	return b
}

// lastMicrosecond is a ToDoor with one second that ends so many microseconds before its last.
func lastMicrosecond(left int64) []byte {
	b := (&ToDoor{Figures: &Figures{Seconds: []SecondCount{{Last: 999_999}}}}).AppendWire(nil)
	const after = 4 // Now, Echo, Since and no extensions
	b = binary.AppendVarint(b[:len(b)-after-1], left)
	b[8] = byte(len(b) - 12)
	return append(b, make([]byte, after)...)
}

// TestFiguresCache: with and without it the bytes are the same; figures that were heard
// already are not made again; damaged ones are not remembered.
func TestFiguresCache(t *testing.T) {
	t.Parallel()
	var out, in FiguresCache
	state := func(now anteroom.Time, f *Figures) *ToSite { return &ToSite{State: &State{Now: now, Figures: f}} }
	first, second := longLine(100), longLine(100)
	second.At++
	var heard *Figures
	for i, f := range []*Figures{first, first, second, second, nil, first} {
		m := state(anteroom.Time(1000*i), f)
		b := out.AppendToSite([]byte{1}, m)[1:]
		if plain := m.AppendWire(nil); !bytes.Equal(b, plain) {
			t.Fatalf("message %d differs from the one without a cache", i)
		}
		if i == 1 { // the figures' last byte, before the extensions
			damaged := bytes.Clone(b)
			damaged[len(damaged)-2] |= 0x80
			if m, err := in.ParseToSite(damaged); err == nil {
				t.Errorf("damaged figures were taken: %+v", m)
			}
		}
		got, err := in.ParseToSite(b)
		if err != nil || !reflect.DeepEqual(&got, m) {
			t.Fatalf("message %d: %+v, %v", i, got, err)
		}
		if same := got.State.Figures == heard; same != (i == 1 || i == 3) {
			t.Errorf("message %d: the figures are the same ones: %v", i, same)
		}
		heard = got.State.Figures
		clear(b) // the caller may use the bytes again; what is remembered must not change
	}
	door := &ToDoor{Figures: first}
	b := out.AppendToDoor(nil, door)
	if !bytes.Equal(b, door.AppendWire(nil)) {
		t.Error("the cache of the site's message is not that of the door's")
	}
	if got, err := out.ParseToDoor(b); err != nil || got.Figures != first {
		t.Errorf("sender and receiver with one cache do not share: %v", err)
	}
}

// TestWireSharesFigures: encoding only looks, so that whoever has the figures may encode
// them at the same time (the race detector watches).
func TestWireSharesFigures(t *testing.T) {
	t.Parallel()
	f := longLine(50)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var cache FiguresCache
			cache.AppendToDoor(nil, &ToDoor{Figures: f})
			(&ToSite{State: &State{Figures: f}}).AppendWire(nil)
		})
	}
	all.Wait()
}

// TestWireFiguresOfLine: the figures that a line makes leave out the sums.
func TestWireFiguresOfLine(t *testing.T) {
	t.Parallel()
	var r secondRing
	for i := range 1000 {
		r.add(anteroom.Time(i*i*1000), 1)
	}
	f := &Figures{Seconds: r.list()}
	if len(f.Seconds) < 100 || !f.sums() {
		t.Fatalf("%d seconds, sums: %v", len(f.Seconds), f.sums())
	}
	roundTrip(t, wires[3], &ToDoor{Figures: f})
}

// TestWireMemory: a parsed message takes at most eight times its bytes.
func TestWireMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		least, size uintptr
	}{
		{"Arrival", 19, unsafe.Sizeof(Arrival{})},
		{"Departure", 17, unsafe.Sizeof(Departure{})},
		{"Finding", 22, unsafe.Sizeof(Finding{})},
		{"AgeCount", 2, unsafe.Sizeof(AgeCount{})},
		{"Asked", 43, unsafe.Sizeof(Asked{})},
		{"Poll", 20, unsafe.Sizeof(Poll{})},
		{"token", 1, 8},
		{"Answer", 37, unsafe.Sizeof(Answer{})},
		{"SecondCount", 4, unsafe.Sizeof(SecondCount{})},
	} {
		if c.size > 8*c.least {
			t.Errorf("%s takes %d bytes of memory for %d of the message", c.name, c.size, c.least)
		}
	}
}
