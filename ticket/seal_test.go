package ticket

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom"
)

var morning = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

const shop = anteroom.RoomID("0123456789abcdef0123456789abcdef")

func sampleTicket() anteroom.Ticket {
	return anteroom.Ticket{
		ID: NewID(), Arrival: anteroom.TimeOf(morning), Lane: 3, LastCheckIn: anteroom.TimeOf(morning) + 7,
		Next: anteroom.TimeOf(morning.Add(20 * time.Second)), Refresh: 20 * time.Second, Bind: 0xbeef, Told: 1234,
	}
}

func seal(s *Sealer, t anteroom.Ticket) string { return string(s.Seal(nil, t)) }

func mustOpen(t *testing.T, s *Sealer, value string, want anteroom.Ticket) {
	t.Helper()
	got, res := s.Open(value)
	if res != OK || got != want {
		t.Fatalf("Open = %+v, %v; want %+v, ok", got, res, want)
	}
}

func mustRefuse(t *testing.T, s *Sealer, value string, want ...Result) {
	t.Helper()
	got, res := s.Open(value)
	if got != (anteroom.Ticket{}) {
		t.Fatalf("Open(%q) gave a ticket with result %v", value, res)
	}
	for _, w := range want {
		if res == w {
			return
		}
	}
	t.Fatalf("Open(%q) = %v, want one of %v", value, res, want)
}

// T24: whatever the members hold, the value comes back and stays within the bound.
func TestRoundTripOfAnyTicket(t *testing.T) {
	s := NewKeyring(morning).Sealer("example.com", shop, "__cfwaitingroom")
	rapid.Check(t, func(r *rapid.T) {
		moment := rapid.Custom(func(r *rapid.T) anteroom.Time {
			return anteroom.Time(rapid.OneOf(rapid.Int64(), rapid.Just[int64](math.MaxInt64), rapid.Just[int64](math.MinInt64), rapid.Just[int64](0)).Draw(r, "t"))
		})
		want := anteroom.Ticket{
			ID:          anteroom.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "id")),
			Arrival:     moment.Draw(r, "arrival"),
			Lane:        rapid.Uint8().Draw(r, "lane"),
			LastCheckIn: moment.Draw(r, "last"),
			Next:        moment.Draw(r, "next"),
			Refresh:     time.Duration(rapid.Uint32Range(0, 1<<refreshBits-1).Draw(r, "refresh")) * time.Millisecond,
			AcceptedAt:  moment.Draw(r, "accepted"),
			Bind:        rapid.Uint16().Draw(r, "bind"),
			Moved:       rapid.Uint8().Draw(r, "moved"),
		}
		if last := rapid.Uint32().Draw(r, "told or home"); want.Accepted() {
			want.Home = last
		} else {
			want.Told, want.Solved = last>>1, last&1 != 0
		}
		value := seal(s, want)
		if len(value) != encodedBytes || len(value) > anteroom.MaxTicketBytes {
			r.Fatalf("sealed to %d bytes", len(value))
		}
		got, res := s.Open(value)
		if res != OK || got != want {
			r.Fatalf("Open = %+v, %v; want %+v", got, res, want)
		}
	})
}

func TestRefreshIsHeldInRange(t *testing.T) {
	s := NewKeyring(morning).Sealer("", shop, "")
	for _, c := range []struct{ in, want time.Duration }{
		{0, 0},
		{-time.Second, 0},
		{1500*time.Millisecond + 999*time.Microsecond, 1500 * time.Millisecond},
		{anteroom.MaxRefresh, anteroom.MaxRefresh},
		{math.MaxInt64, (1<<refreshBits - 1) * time.Millisecond},
	} {
		got, res := s.Open(seal(s, anteroom.Ticket{ID: NewID(), Refresh: c.in}))
		if res != OK || got.Refresh != c.want {
			t.Errorf("refresh %v came back as %v, %v; want %v", c.in, got.Refresh, res, c.want)
		}
	}
}

func TestSealAppends(t *testing.T) {
	s := NewKeyring(morning).Sealer("z", shop, "")
	want := sampleTicket()
	out := s.Seal([]byte("name="), want)
	value, ok := bytes.CutPrefix(out, []byte("name="))
	if !ok {
		t.Fatalf("Seal changed what was there: %q", out)
	}
	mustOpen(t, s, string(value), want)
}

// T1: random cookies of every length up to 4096 bytes.
func TestForging(t *testing.T) {
	s := NewKeyring(morning).Sealer("example.com", shop, "")
	mustRefuse(t, s, "", Absent)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	buf := make([]byte, 4096)
	seen := map[Result]int{}
	head := seal(s, sampleTicket())[:8] // version, key ID and a bit of the nonce
	for i := range 100_000 {
		n := 1 + i%4096
		switch i % 4 {
		case 0, 1: // random bytes of the alphabet; half of them of the right length
			if i%4 == 1 {
				n = encodedBytes
			}
			rand.Read(buf[:n])
			for j := range buf[:n] {
				buf[j] = alphabet[buf[j]&63]
			}
		case 2: // any bytes
			rand.Read(buf[:n])
		case 3: // the right head and length
			n = encodedBytes
			rand.Read(buf[:n])
			for j := range buf[:n] {
				buf[j] = alphabet[buf[j]&63]
			}
			copy(buf, head)
			buf[n-1] = 'A' // no bits behind the end
		}
		got, res := s.Open(string(buf[:n]))
		if res == OK || got != (anteroom.Ticket{}) {
			t.Fatalf("accepted %q", buf[:n])
		}
		seen[res]++
	}
	if seen[Malformed] == 0 || seen[WrongVersion] == 0 || seen[Forged] == 0 {
		t.Errorf("the samples did not reach every check: %v", seen)
	}
}

// T2: every bit of a ticket counts.
func TestTamperingWithAnyBit(t *testing.T) {
	s := NewKeyring(morning).Sealer("example.com", shop, "")
	value := seal(s, sampleTicket())
	raw, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range len(raw) * 8 {
		raw[bit/8] ^= 1 << (bit % 8)
		want := Forged
		switch {
		case bit < 8:
			want = WrongVersion
		case bit < 40:
			want = UnknownKey
		}
		mustRefuse(t, s, base64.RawURLEncoding.EncodeToString(raw), want)
		raw[bit/8] ^= 1 << (bit % 8)
	}
	for i := range len(value) {
		for bit := range 8 {
			b := []byte(value)
			b[i] ^= 1 << bit
			mustRefuse(t, s, string(b), Malformed, WrongVersion, UnknownKey, Forged)
		}
	}
}

// T3: one encoding only.
func TestOnlyTheCanonicalEncoding(t *testing.T) {
	ring := NewKeyring(morning)
	s := ring.Sealer("example.com", shop, "")
	// Look for a value with both characters that the two alphabets differ in.
	value := seal(s, sampleTicket())
	for !strings.ContainsRune(value, '-') || !strings.ContainsRune(value, '_') {
		value = seal(s, sampleTicket())
	}
	raw, _ := base64.RawURLEncoding.DecodeString(value)
	variants := map[string]string{
		"standard alphabet":    base64.RawStdEncoding.EncodeToString(raw),
		"padded":               base64.URLEncoding.EncodeToString(raw),
		"standard, padded":     base64.StdEncoding.EncodeToString(raw),
		"percent-encoded":      strings.ReplaceAll(value, "-", "%2D"),
		"percent padding":      value + "%3D",
		"quoted":               `"` + value + `"`,
		"space before":         " " + value,
		"space behind":         value + " ",
		"line break behind":    value + "\n",
		"line break inside":    value[:60] + "\r\n" + value[60:],
		"NUL behind":           value + "\x00",
		"twice":                value + value,
		"twice with a comma":   value + "," + value,
		"one character more":   value + "A",
		"four characters more": value + "AAAA",
		"as hex":               strings.ToUpper(value),
		"lower case":           strings.ToLower(value),
		"wide characters":      strings.ReplaceAll(value, "-", "‐"),
	}
	for name, v := range variants {
		if _, res := s.Open(v); res == OK {
			t.Errorf("%s was accepted: %q", name, v)
		}
	}
	for n := range len(value) {
		if _, res := s.Open(value[:n]); res == OK {
			t.Errorf("accepted cut at %d", n)
		}
	}
	// The last character holds bits behind the last byte: of the characters that decode
	// to the same bytes only one is right.
	same := 0
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		v := value[:len(value)-1] + string(c)
		if lax, err := base64.RawURLEncoding.DecodeString(v); err == nil && bytes.Equal(lax, raw) {
			same++
			if _, res := s.Open(v); (res == OK) != (v == value) {
				t.Errorf("last character %q: %v", c, res)
			}
		}
	}
	if same < 2 {
		t.Error("the layout has no spare bits any more: this test tests nothing")
	}
	mustOpen(t, s, value, mustTicket(t, s, value))
}

func mustTicket(t *testing.T, s *Sealer, value string) anteroom.Ticket {
	t.Helper()
	got, res := s.Open(value)
	if res != OK {
		t.Fatalf("Open = %v", res)
	}
	return got
}

// T4: unused, retired and odd key IDs.
func TestKeyIDs(t *testing.T) {
	ring := NewKeyring(morning)
	s := ring.Sealer("example.com", shop, "")
	raw, _ := base64.RawURLEncoding.DecodeString(seal(s, sampleTicket()))
	for _, id := range []uint32{0, 1, 255, math.MaxUint32, ring.current.id + 1, ring.fixed.id} {
		raw[1], raw[2], raw[3], raw[4] = byte(id>>24), byte(id>>16), byte(id>>8), byte(id)
		mustRefuse(t, s, base64.RawURLEncoding.EncodeToString(raw), UnknownKey)
	}
	// Another key of the ring is known, but did not seal this.
	two, err := ring.Rotate(morning, 0)
	if err != nil {
		t.Fatal(err)
	}
	id := two.current.id
	raw[1], raw[2], raw[3], raw[4] = byte(id>>24), byte(id>>16), byte(id>>8), byte(id)
	mustRefuse(t, two.Sealer("example.com", shop, ""), base64.RawURLEncoding.EncodeToString(raw), Forged)
}

// T12, T13: one room's, zone's or scope's ticket is nothing in another.
func TestTicketsDoNotCross(t *testing.T) {
	ring := NewKeyring(morning)
	type place struct {
		zone  string
		room  anteroom.RoomID
		scope string
	}
	places := []place{
		{"example.com", shop, "a"},
		{"example.com", shop, "b"},
		{"example.com", shop, ""},
		{"example.com", "1" + shop[1:], "a"},
		{"example.org", shop, "a"},
		{"", shop, "a"},
		{"example.com" + string(shop), "", "a"}, // the same letters with other borders
		{"example.com", shop + "a", ""},
		{"example.co", "m" + shop, "a"},
	}
	for i, from := range places {
		want := sampleTicket()
		value := seal(ring.Sealer(from.zone, from.room, from.scope), want)
		for j, to := range places {
			s := ring.Sealer(to.zone, to.room, to.scope)
			if i == j {
				mustOpen(t, s, value, want)
			} else {
				mustRefuse(t, s, value, Forged)
			}
		}
	}
	mustRefuse(t, NewKeyring(morning).Sealer("example.com", shop, "a"), seal(ring.Sealer("example.com", shop, "a"), sampleTicket()), UnknownKey)
}

// T23: 192 random bits of nonce, never the same twice.
func TestNonces(t *testing.T) {
	if nonceBytes != 24 {
		t.Fatalf("the nonce has %d bytes; random ones need 24", nonceBytes)
	}
	s := NewKeyring(morning).Sealer("example.com", shop, "")
	tk := sampleTicket()
	seen := map[string]bool{}
	for range 10_000 {
		raw, _ := base64.RawURLEncoding.DecodeString(seal(s, tk))
		nonce := string(raw[headBytes : headBytes+nonceBytes])
		if seen[nonce] {
			t.Fatal("a nonce was used twice")
		}
		seen[nonce] = true
	}
}

// A visitor must not read the ticket: no member stands in the value.
func TestValueHidesTheTicket(t *testing.T) {
	s := NewKeyring(morning).Sealer("example.com", shop, "")
	tk := sampleTicket()
	raw, _ := base64.RawURLEncoding.DecodeString(seal(s, tk))
	if bytes.Contains(raw, tk.ID[:4]) || bytes.Contains(raw, putBody(nil, tk)[16:24]) {
		t.Error("the value shows members of the ticket")
	}
}

func TestNewID(t *testing.T) {
	seen := map[anteroom.ID]bool{}
	for range 10_000 {
		id := NewID()
		if id.IsZero() || seen[id] {
			t.Fatal("an ID is zero or was issued twice")
		}
		seen[id] = true
	}
}

func TestResultWords(t *testing.T) {
	want := []string{"absent", "ok", "malformed", "wrong_version", "unknown_key", "forged"}
	for i, r := range Results() {
		if r.String() != want[i] {
			t.Errorf("result %d is %q, want %q", i, r, want[i])
		}
	}
	if len(Results()) != len(want) || Result(200).String() != "invalid" {
		t.Error("results and words differ in number")
	}
	var zero Result
	if zero == OK {
		t.Error("the zero result is OK")
	}
}

func TestOpenAndSealAtOnce(t *testing.T) {
	s := NewKeyring(morning).Sealer("example.com", shop, "")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			want := sampleTicket()
			for range 200 {
				got, res := s.Open(seal(s, want))
				if res != OK || got != want {
					t.Errorf("Open = %+v, %v; want %+v", got, res, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestNoAllocation(t *testing.T) {
	s := NewKeyring(morning).Sealer("example.com", shop, "")
	tk := sampleTicket()
	dst := make([]byte, 0, anteroom.MaxTicketBytes)
	good := string(s.Seal(dst, tk))
	long := strings.Repeat("A", 4096)
	forged := good[:80] + "AAAA" + good[84:]
	for name, f := range map[string]func(){
		"Seal":           func() { s.Seal(dst, tk) },
		"Open":           func() { s.Open(good) },
		"Open malformed": func() { s.Open(good[1:]) },
		"Open long":      func() { s.Open(long) },
		"Open forged":    func() { s.Open(forged) },
		"Stale":          func() { s.Stale(good) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func FuzzOpen(f *testing.F) {
	ring := ringOf(keyOf(Secret{1}, Fixed, morning, time.Time{}), []key{keyOf(Secret{2}, Current, morning, time.Time{})})
	s := ring.Sealer("example.com", shop, "")
	f.Add("")
	f.Add(seal(s, sampleTicket()))
	f.Add(seal(s, anteroom.Ticket{}))
	f.Add(seal(s, sampleTicket())[:100])
	f.Add("AQ")
	f.Add(strings.Repeat("A", encodedBytes))
	f.Add(strings.Repeat("\n", 300))
	f.Fuzz(func(t *testing.T, value string) {
		got, res := s.Open(value)
		if res != OK {
			if got != (anteroom.Ticket{}) {
				t.Fatalf("result %v came with a ticket", res)
			}
			return
		}
		again, res := s.Open(seal(s, got))
		if res != OK || again != got {
			t.Fatalf("what opened as %+v seals to something that opens as %+v, %v", got, again, res)
		}
	})
}

func BenchmarkOpenSeal(b *testing.B) {
	s := NewKeyring(morning).Sealer("example.com", shop, "")
	tk := sampleTicket()
	dst := make([]byte, 0, anteroom.MaxTicketBytes)
	value := seal(s, tk)
	b.Run("both", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			got, _ := s.Open(value)
			dst = s.Seal(dst[:0], got)
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			s.Open(value)
		}
	})
	b.Run("seal", func(b *testing.B) {
		for b.Loop() {
			dst = s.Seal(dst[:0], tk)
		}
	})
	forged := value[:80] + "AAAA" + value[84:]
	b.Run("forged", func(b *testing.B) {
		for b.Loop() {
			s.Open(forged)
		}
	})
}
