package ticket

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func sealerOf(k *Keyring) *Sealer { return k.Sealer("example.com", shop, "") }

func states(k *Keyring) string {
	var s []string
	for _, one := range k.Keys() {
		s = append(s, string(one.State))
	}
	return strings.Join(s, " ")
}

// Rotating all day long with visitors who come back within the keep: no place is lost.
func TestRotationKeepsTickets(t *testing.T) {
	ring := NewKeyring(morning)
	first := sampleTicket()
	type held struct {
		value string
		at    time.Time
		want  anteroom.Ticket
	}
	var all []held
	for now := morning; now.Before(morning.Add(60 * time.Hour)); now = now.Add(time.Hour) {
		all = append(all, held{seal(sealerOf(ring), first), now, first})
		next, err := ring.Rotate(now.Add(30*time.Minute), 0)
		if err != nil {
			t.Fatal(err)
		}
		ring = next
		s := sealerOf(ring)
		for _, h := range all {
			// Sealed at h.at with a key that was replaced half an hour later.
			replaced := h.at.Add(30 * time.Minute)
			if age := now.Add(30 * time.Minute).Sub(replaced); age <= DefaultKeep {
				mustOpen(t, s, h.value, h.want)
				if !s.Stale(h.value) {
					t.Fatal("a ticket of a replaced key is not stale")
				}
			} else {
				mustRefuse(t, s, h.value, UnknownKey)
			}
		}
		if fresh := seal(s, first); s.Stale(fresh) {
			t.Fatal("a fresh ticket is stale")
		}
	}
	if got := len(ring.Keys()); got != 27 { // 25 h of hourly keys, the one at the border, the current
		t.Errorf("after 60 hourly rotations the ring has %d keys", got)
	}
}

// The three phases for several nodes: whatever two neighbouring rings are in use at once,
// each opens what the other seals.
func TestPhasesOverlap(t *testing.T) {
	ring := NewKeyring(morning)
	rings := []*Keyring{ring}
	for i := range 4 {
		prepared, err := ring.Prepare(morning.Add(time.Duration(i) * time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if want := "next current"; !strings.HasPrefix(states(prepared), want) {
			t.Fatalf("prepared ring is %q", states(prepared))
		}
		if again, err := prepared.Prepare(morning); err != nil || again != prepared {
			t.Fatalf("preparing twice gave %v, %v", again, err)
		}
		if ring, err = prepared.Promote(morning.Add(time.Duration(i)*time.Hour+time.Minute), 0); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(states(ring), "current previous") {
			t.Fatalf("promoted ring is %q", states(ring))
		}
		rings = append(rings, prepared, ring)
	}
	want := sampleTicket()
	for i := 1; i < len(rings); i++ {
		mustOpen(t, sealerOf(rings[i]), seal(sealerOf(rings[i-1]), want), want)
		ahead := seal(sealerOf(rings[i]), want)
		mustOpen(t, sealerOf(rings[i-1]), ahead, want)
		if sealerOf(rings[i-1]).Stale(ahead) {
			t.Error("a ticket of a node that is a step ahead is called stale")
		}
	}
	// Skipping the first phase is what it is there for: the old ring knows nothing.
	mustRefuse(t, sealerOf(rings[0]), seal(sealerOf(rings[2]), want), UnknownKey)
}

func TestPromoteNeedsANextKey(t *testing.T) {
	if _, err := NewKeyring(morning).Promote(morning, 0); anteroom.KindOf(err) != anteroom.Conflict {
		t.Errorf("Promote = %v, want a conflict", err)
	}
}

func TestRotatePromotesWhatWasPrepared(t *testing.T) {
	prepared, err := NewKeyring(morning).Prepare(morning)
	if err != nil {
		t.Fatal(err)
	}
	next := prepared.Keys()[0].ID
	rotated, err := prepared.Rotate(morning, 0)
	if err != nil || rotated.Keys()[0].ID != next || rotated.Keys()[0].State != Current {
		t.Errorf("Rotate = %v, %v; want %s as current", rotated, err, next)
	}
}

func TestKeep(t *testing.T) {
	ring := NewKeyring(morning)
	old := seal(sealerOf(ring), sampleTicket())
	ring, err := ring.Rotate(morning.Add(time.Hour), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after, keep time.Duration
		opens       bool
	}{
		{0, 0, true},
		{DefaultKeep, 0, true},
		{DefaultKeep + time.Second, 0, false},
		{time.Minute, time.Minute, true},
		{time.Minute + time.Second, time.Minute, false},
		{0, -1, false},
		{-24 * time.Hour, 0, true}, // the clock was set back
	} {
		later, err := ring.Rotate(morning.Add(time.Hour+c.after), c.keep)
		if err != nil {
			t.Fatal(err)
		}
		if _, res := sealerOf(later).Open(old); (res == OK) != c.opens {
			t.Errorf("%v after its key was replaced, keep %v: %v", c.after, c.keep, res)
		}
	}
	// For a leaked key: nothing that ever sealed stays.
	clean, err := ring.Rotate(morning.Add(time.Hour), -1)
	if err != nil || states(clean) != "current" {
		t.Errorf("keep -1 left %q, %v", states(clean), err)
	}
}

func TestRingIsBounded(t *testing.T) {
	ring := NewKeyring(morning)
	now := morning
	var err error
	for len(ring.Keys()) < maxKeys {
		now = now.Add(5 * time.Second)
		if ring, err = ring.Rotate(now, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ring.Rotate(now, 0); anteroom.KindOf(err) != anteroom.Conflict {
		t.Errorf("one key too many: %v, want a conflict", err)
	}
	if err := sameRing(ring, ring.marshal()); err != nil {
		t.Errorf("the largest ring does not come back: %v", err)
	}
	if ring, err = ring.Rotate(now.Add(48*time.Hour), 0); err != nil || len(ring.Keys()) != 2 {
		t.Errorf("two days later: %v, %v; want room again", ring, err)
	}
}

// What a rotation must not change, does not; what it must, does.
func TestDerivedSecrets(t *testing.T) {
	one := NewKeyring(morning)
	two, err := one.Rotate(morning, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := NewKeyring(morning)
	if one.Fixed(PurposeSubject) != two.Fixed(PurposeSubject) {
		t.Error("a rotation changed a fixed secret")
	}
	if one.Fixed(PurposeSubject) == other.Fixed(PurposeSubject) || one.Fixed(PurposeSubject) == one.Fixed(PurposeWebhook) {
		t.Error("fixed secrets of two rings or purposes are the same")
	}
	a, b := one.Derive(PurposeProof), two.Derive(PurposeProof)
	if len(a) != 1 || len(b) != 2 || b[0].ID != two.Keys()[0].ID || b[0] == a[0] || b[1] != a[0] {
		t.Errorf("Derive does not give the current key first and the old behind it")
	}
	seen := map[Secret]bool{}
	for _, p := range []string{PurposeProof, PurposeSubject, PurposeWebhook, purposeTicket, purposeBind, purposeID} {
		s := one.Derive(p)[0].Secret
		if seen[s] || s == one.current.secret {
			t.Errorf("purpose %s shares a secret", p)
		}
		seen[s] = true
	}
	prepared, err := one.Prepare(morning)
	if err != nil {
		t.Fatal(err)
	}
	if d := prepared.Derive(PurposeProof); len(d) != 2 || d[0] != a[0] {
		t.Error("a next key is not published behind the current one")
	}
}

// The values of version 1 must not drift: an upgrade would make everybody new.
func TestDerivationIsStable(t *testing.T) {
	ring := ringOf(keyOf(Secret{1}, Fixed, morning, time.Time{}), []key{keyOf(Secret{2}, Current, morning, time.Time{})})
	if got, want := ring.Keys()[0].ID, "07059856"; got != want {
		t.Errorf("id %s, want %s", got, want)
	}
	if got, want := fmt.Sprintf("%x", [32]byte(ring.Derive(PurposeProof)[0].Secret)), "b594a735361903116711072846aac128f5ab3b4316ce050f2071b7b46f2a05c5"; got != want {
		t.Errorf("proof secret %s, want %s", got, want)
	}
	const sealed = "AQcFmFbAkbC01NoeGhut02ylrUGFlhAAq8h1N6n-H0lVvqzMpcoiGyyfUi01bBYKO_79AAYoh-4dzCqGKbukTxo61H6ys2P3jzJ0SQZbUGblIFEzVshVaw_pM7mN4o_WkWuwSazPPGA"
	want := anteroom.Ticket{ID: anteroom.ID{1, 2, 3}, Arrival: 4, Lane: 5, LastCheckIn: 6, Next: 7, Refresh: 8 * time.Millisecond, AcceptedAt: 9, Bind: 10, Home: 11}
	mustOpen(t, sealerOf(ring), sealed, want)
}

func TestNothingPrintsSecrets(t *testing.T) {
	secret := Secret([]byte("0123456789abcdef0123456789abcdef"))
	ring := ringOf(keyOf(secret, Fixed, morning, time.Time{}), []key{keyOf(secret, Current, morning, time.Time{})})
	for _, v := range []any{ring, *ring, secret, Derived{"x", secret}, []Derived{{"x", secret}}, ring.Keys(), struct{ K *Keyring }{ring}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
			out := fmt.Sprintf(verb, v)
			for _, leak := range []string{string(secret[:8]), fmt.Sprintf("%x", secret[:8]), "48 49 50", "0x30, 0x31"} {
				if strings.Contains(out, leak) {
					t.Errorf("%s of %T prints a secret: %s", verb, v, out)
				}
			}
		}
	}
}

// TestRestoreKeepsTickets: what is restored opens again, beside what was sealed since.
func TestRestoreKeepsTickets(t *testing.T) {
	rotate := func(k *Keyring, at time.Duration, keep time.Duration) *Keyring {
		t.Helper()
		next, err := k.Rotate(morning.Add(at), keep)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	first := NewKeyring(morning)
	copied := rotate(first, time.Hour, 0)
	later := rotate(copied, 2*time.Hour, 0)
	forgotten := rotate(later, 3*time.Hour, -1)
	want := sampleTicket()
	all := map[string]string{"first": seal(sealerOf(first), want), "copied": seal(sealerOf(copied), want), "later": seal(sealerOf(later), want)}
	at := morning.Add(4 * time.Hour)
	for _, c := range []struct {
		name  string
		from  *Keyring
		opens []string
		is    string
	}{
		{"over itself", copied, []string{"first", "copied"}, "current previous"},
		{"over a later one", later, []string{"first", "copied", "later"}, "current previous previous"},
		{"over one that has forgotten", forgotten, []string{"first", "copied"}, "current previous previous"},
		{"elsewhere", NewKeyring(morning), []string{"first", "copied"}, "current previous previous"},
	} {
		got := c.from.Restore(copied, at)
		if is := states(got); is != c.is {
			t.Errorf("%s: %s", c.name, is)
		}
		for name, value := range all {
			if slices.Contains(c.opens, name) {
				mustOpen(t, sealerOf(got), value, want)
			} else {
				mustRefuse(t, sealerOf(got), value, UnknownKey)
			}
		}
		own := seal(sealerOf(c.from), want)
		mustOpen(t, sealerOf(got), own, want)
		if seals := map[bool]string{false: own, true: all["copied"]}[c.name == "elsewhere"]; sealerOf(got).Stale(seals) {
			t.Errorf("%s: another key seals", c.name)
		}
		if c.name == "over one that has forgotten" { // the key that comes back counts as replaced at the restore
			mustOpen(t, sealerOf(rotate(got, 28*time.Hour, 0)), all["copied"], want)
			mustRefuse(t, sealerOf(rotate(got, 30*time.Hour, 0)), all["copied"], UnknownKey)
		}
		if _, err := parse(got.marshal()); err != nil {
			t.Errorf("%s: what is written cannot be read: %v", c.name, err)
		}
	}
	full := first
	for len(full.Keys()) < maxKeys {
		full = rotate(full, time.Hour, 0)
	}
	if got := full.Restore(rotate(first, time.Hour, 0), at); len(got.Keys()) != maxKeys {
		t.Errorf("a full ring has %d keys after a restore", len(got.Keys()))
	}
}
