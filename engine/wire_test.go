package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
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
		func(b []byte) (any, error) { m, err := ParseToSite(b); return &m, err }},
	{"FromDoor", func() any { return new(FromDoor) },
		func(b []byte, m any) []byte { return m.(*FromDoor).AppendWire(b) },
		func(b []byte) (any, error) { m, err := ParseFromDoor(b); return &m, err }},
	{"ToDoor", func() any { return new(ToDoor) },
		func(b []byte, m any) []byte { return m.(*ToDoor).AppendWire(b) },
		func(b []byte) (any, error) { m, err := ParseToDoor(b); return &m, err }},
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
		{Departures: departures}, {Arrivals: make([]Arrival, many)}, {Asks: make([]anteroom.ID, many)},
		{Found: make([]Finding, many)}, {Ends: make([]AgeCount, many)}, {Ages: make([]AgeCount, many)},
	} {
		roundTrip(t, wires[0], m)
	}
	for _, m := range []*ToSite{
		{Findings: &Findings{Found: make([]Finding, many)}}, {Offers: &Offers{IDs: make([]anteroom.ID, many)}},
		{Inquiry: &Inquiry{IDs: make([]anteroom.ID, many)}}, {State: &State{Figures: &Figures{}}},
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

// TestWireFormat holds the bytes. Who has to change them here changes the version, too.
func TestWireFormat(t *testing.T) {
	t.Parallel()
	for i, c := range wireExamples() {
		w := wires[c.wire]
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			if got := hex.EncodeToString(w.encode(nil, c.message)); got != c.want {
				t.Errorf("example %d is\n%s, want\n%s", i, got, c.want)
			}
			roundTrip(t, w, c.message)
		})
	}
}

type wireExample struct {
	wire    int // index of wires
	message any
	want    string
}

func wireExamples() []wireExample {
	const now = anteroom.Time(1_800_000_000_000_000)
	a, b := anteroom.ID{0xa0, 15: 0xa1}, anteroom.ID{0xb0, 15: 0xb1}
	site := SiteKey{Name: "ams", Incarnation: 2}
	figures := &Figures{At: now, Waiting: 3, Hot: -1, Front: now - 9e6, Oldest: now - 8e6, Shuffled: now - 7e6, Released: 70, CurveAt: now - 1e6, CurveFrom: 60,
		Known: true, Step: 5 * time.Second, Curve: []float32{1, 2.5}, Leave: 0.5, Draw: [3]time.Duration{time.Second, 2 * time.Second, 3 * time.Second},
		Seconds: []SecondCount{{Second: 1_799_999_992, Before: 0, Count: 2, First: 10, Last: 999_990}, {Second: 1_799_999_993, Before: 2, Count: 1, First: 5, Last: 5}}}
	waiting := anteroom.Ticket{ID: a, Arrival: now - 60e6, LastCheckIn: now, Next: now + 20e6, Refresh: 20 * time.Second, Bind: 7, Told: 12}
	return []wireExample{
		{0, &Report{From: site, Epoch: 1, Seq: 300, Sent: now, Returned: Units{5, 6}, Used: Units{7, 8}, Adopted: 9, Idle: 10, Newcomers: 11, Want: 12, Ask: true,
			Trip: time.Millisecond, Departures: []Departure{{a, NoShow}}, Arrivals: []Arrival{{ID: b, Key: now - 100, Lane: 1, Shown: true, Due: now + 2e6}, {ID: a, Key: now - 50, Stream: true}},
			Asks: []anteroom.ID{a}, Found: []Finding{{ID: b, Standing: Seated, Key: now - 9, Accepted: now - 8, Last: now - 7}}, Admitted: 13,
			Ends: []AgeCount{{1, 2}}, Ages: []AgeCount{{3, 400}}},
			"3103616d730201ac028080c489e5c5b20605060708090a0b0c0180897a01a00000000000000000000000000000a10302b00000000000000000000000000000b105c8018192f401a00000000000000000000000000000a102640001a00000000000000000000000000000a101b00000000000000000000000000000b102001210030d01010201039003"},
		{1, &ToSite{Site: site, State: &State{Epoch: 1, Now: now, Echo: now - 5, Granted: Units{1, 2}, Heard: Units{3, 4}, Adopted: 5, Resync: true, Mode: Open,
			Target: 6, Figures: figures, Sites: 3}},
			"3203616d730201018080c489e5c5b2060a0102030405020106064b0000008080c489e5c5b20600060180d1ca0880c8d00780bfd6064680897a130380c8afa025000000000000e03f80a8d6b90780d0acf30e80f882ad16020000803f00002040020f020a1202010500"},
		{1, &ToSite{Site: site, Offers: &Offers{Epoch: 1, Granted: Units{1, 2}, At: now, ByHand: true, IDs: []anteroom.ID{a, b}}},
			"3203616d730202010102008080c489e5c5b2060102a00000000000000000000000000000a1b00000000000000000000000000000b1"},
		{1, &ToSite{Site: site, Inquiry: &Inquiry{Epoch: 1, IDs: []anteroom.ID{a}}},
			"3203616d7302030101a00000000000000000000000000000a1"},
		{1, &ToSite{Site: site, Findings: &Findings{Epoch: 1, Granted: Units{1, 2}, Found: []Finding{{ID: a, Standing: Waiting, Key: now, Lane: 1}, {ID: b, Standing: Used}}}},
			"3203616d7302040101020002a00000000000000000000000000000a101018080c489e5c5b2060000b00000000000000000000000000000b10300000000"},
		{1, &ToSite{Site: site, Keys: &Keys{Epoch: 1, Shuffled: now, Places: []Placed{{ID: b, Key: now - 2e6}, {ID: a, Key: now - 1e6}}}},
			"3203616d730205018080c489e5c5b20602b00000000000000000000000000000b18092f401a00000000000000000000000000000a181897a"},
		{2, &FromDoor{Door: 77, Visits: []Asked{{Token: 5, Visit: anteroom.Visit{Ticket: waiting, NewID: b, Bind: 7, NoHold: true}}, {Token: 6, Visit: anteroom.Visit{Ticket: anteroom.Ticket{ID: b}, Fresh: true, NewID: a}}},
			Abandoned: []uint64{4}, Closed: []anteroom.ID{a}, Batch: 9, Touches: []anteroom.ID{b}, Polls: []Poll{{ID: a, Key: now - 60e6, Lane: 1, Due: now + 20e6, Last: now}}},
			"334d09020a08a00000000000000000000000000000a10080e4a7d0e4c5b2068080c489e5c5b20681b489130080a0be819501070cb00000000000000000000000000000b1070201b00000000000000000000000000000b10000000000000000a00000000000000000000000000000a100010301a00000000000000000000000000000a101b00000000000000000000000000000b101a00000000000000000000000000000a10181b4891380b4891380d0a54c"},
		{3, &ToDoor{Site: site, Answers: []Answer{{Token: 5, Decision: anteroom.Decision{Reason: anteroom.ReasonWaiting, Ticket: waiting, SetCookie: true, At: now, Method: anteroom.Random,
			Ahead: 11, AheadKnown: true, Waiting: 20, WaitTime: time.Minute, WaitKnown: true, Wait25: time.Second, Wait75: time.Hour, Refresh: 20 * time.Second, KeptUntil: now + 300e6, Stream: true}}},
			Pushes: []anteroom.ID{a}, Ended: []anteroom.ID{b}, Confirmed: 9, Mode: Cut},
			"3403616d73020209010a000a022d8080c489e5c5b206a00000000000000000000000000000a100809c9c390181b489130080a0be819501070c162880e0ba84bf0380a8d6b9078080c58bc6d10180a0be819501818c8d9e0201a00000000000000000000000000000a101b00000000000000000000000000000b100000000"},
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
	report, last := zero(0), len(zero(0))-1
	for _, c := range []struct {
		name string
		wire int
		b    []byte
		want string
	}{
		{"empty", 0, nil, "is empty"},
		{"too long", 0, make([]byte, WireLimit+1), "at most 16777216 are allowed"},
		{"version", 0, with(report, 0, 0x11), "format version 1, this program speaks 3"},
		{"kind", 0, with(report, 0, 0x34), "kind 4 (ToDoor), not 1"},
		{"kind without a name", 3, with(report, 0, 0x3f), "kind 15 (message), not 4"},
		{"long form", 0, with(report, 2, 0x80, 0), "Report at byte 2: a number is not in its shortest form"},
		{"endless number", 0, with(report, 2, endless...), "shortest form"},
		{"too large", 0, with(report, 12, 0xff, 0xff, 0xff, 0xff, 0x7f), "is too large"},
		{"flags", 0, with(report, 14, 4), "flags without a meaning"},
		{"lane", 0, with((&Report{Arrivals: make([]Arrival, 1)}).AppendWire(nil), 34, 0x80, 8), "Report at byte 36: 256 is not a lane"},
		{"count of two bytes each", 0, with(report, last, huge...), "elements in 0 bytes"},
		{"count of ids", 0, with(report, 18, huge...), "elements in 4 bytes"},
		{"name", 0, with(report, 1, huge...), "ends too early"},
		{"too many bytes", 0, append(bytes.Clone(report), 0, 0), "Report at byte 23: 2 bytes too many"},
		{"no part", 1, with(site, 3, 0), "0 has no name, 1 to 5 have"},
		{"part without a name", 1, with(site, 3, 6), "6 has no name"},
		{"mode that is not sent", 1, with(state, 13, byte(Cut)), "2 has no name, 0 to 1"},
		{"verdict", 3, zeroAnswer(0, 4), "4 has no name, 0 to 3"},
		{"reason", 3, zeroAnswer(1, byte(anteroom.ReasonDraining)+1), "22 has no name, 0 to 21"},
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
	b = binary.AppendVarint(b[:len(b)-1], left)
	b[8] = byte(len(b) - 12)
	return b
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
		if i == 1 { // the figures' last byte
			damaged := bytes.Clone(b)
			damaged[len(damaged)-1] |= 0x80
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
		{"Finding", 21, unsafe.Sizeof(Finding{})},
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
