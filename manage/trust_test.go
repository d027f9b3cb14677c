package manage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/cluster/natslink"
)

// TestPermissions: each method asks for its permission, before it says whether something
// exists.
func TestPermissions(t *testing.T) {
	t.Parallel()
	m, ctx := open(t, Config{FirstToken: envToken}), t.Context()
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	other := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "other.test")).ID
	one := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("one"))).ID
	two := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("two"))).ID
	const nobody anteroom.RoomID = "00000000000000000000000000000000"
	as := func(p Permission, z anteroom.ZoneID, r anteroom.RoomID) Caller {
		return Caller{Name: "x", Grants: []Grant{{Zone: z, Room: r, Permission: p}}}
	}
	change := func(by Caller, z anteroom.ZoneID, r anteroom.RoomID) error {
		_, err := m.ChangeRoom(ctx, by, z, r, func(r *anteroom.Room) error { return nil })
		return err
	}
	see := func(by Caller, z anteroom.ZoneID, r anteroom.RoomID) error { _, err := m.Room(by, z, r); return err }
	for _, c := range []struct {
		what string
		err  error
		want anteroom.Kind
	}{
		{"reader sees", see(as(Read, "", ""), zone, one), anteroom.Other},
		{"reader changes", change(as(Read, "", ""), zone, one), anteroom.Denied},
		{"editor of all", change(as(Edit, "", ""), zone, one), anteroom.Other},
		{"editor of the zone", change(as(Edit, zone, ""), zone, one), anteroom.Other},
		{"editor of another zone", change(as(Edit, other, ""), zone, one), anteroom.Denied},
		{"another zone's reader", see(as(Read, other, ""), zone, one), anteroom.Denied},
		{"another zone's reader, no such room", see(as(Read, other, ""), zone, nobody), anteroom.Denied},
		{"the room by another zone's address", see(as(Read, other, ""), other, one), anteroom.NotFound},
		{"the room by another zone's address, with all rights", change(root, other, one), anteroom.NotFound},
		{"editor of the room", change(as(Edit, zone, one), zone, one), anteroom.Other},
		{"editor of the room's neighbour", change(as(Edit, zone, two), zone, one), anteroom.Denied},
		{"editor of the room deletes the neighbour", m.DeleteRoom(ctx, as(Edit, zone, one), zone, two), anteroom.Denied},
		{"no such zone", see(root, anteroom.ZoneID(nobody), one), anteroom.NotFound},
		{"nobody", see(Caller{}, zone, one), anteroom.Denied},
		{"editor of the room makes one", func() error { _, err := m.CreateRoom(ctx, as(Edit, zone, one), zone, shop("three")); return err }(), anteroom.Denied},
		{"editor of the zone makes a zone", func() error { _, err := m.CreateZone(ctx, as(Edit, zone, ""), "new.test"); return err }(), anteroom.Denied},
		{"editor of the room deletes the zone", m.DeleteZone(ctx, as(Edit, zone, one), zone), anteroom.Denied},
		{"editor of the zone makes a list", func() error { _, err := m.CreateList(ctx, as(Edit, zone, ""), anteroom.List{}); return err }(), anteroom.Denied},
		{"editor makes a token", func() error { _, _, err := m.CreateToken(ctx, as(Edit, "", ""), TokenSpec{}); return err }(), anteroom.Denied},
		{"editor sees tokens", func() error { _, err := m.Tokens(as(Edit, "", "")); return err }(), anteroom.Denied},
		{"editor rotates keys", m.RotateKeys(ctx, as(Edit, "", ""), false), anteroom.Denied},
		{"editor reads the log", func() error { _, err := m.Audit(ctx, as(Edit, "", ""), 0, 0); return err }(), anteroom.Denied},
		{"editor verifies the log", func() error { _, _, err := m.VerifyAudit(ctx, as(Edit, "", "")); return err }(), anteroom.Denied},
		{"editor restores", func() error { _, err := m.Restore(ctx, as(Edit, "", ""), newReader(nil)); return err }(), anteroom.Denied},
		{"reader admits", func() error { _, err := m.AdmitNow(ctx, as(Read, "", ""), zone, one, 1); return err }(), anteroom.Denied},
		{"reader revokes", func() error { _, err := m.Revoke(ctx, as(Read, "", ""), zone, one, anteroom.ID{1}); return err }(), anteroom.Denied},
		{"nobody finds", func() error { _, err := m.Find(ctx, Caller{}, zone, one, "x"); return err }(), anteroom.Denied},
	} {
		if got := anteroom.KindOf(c.err); got != c.want || (c.want == anteroom.Other) != (c.err == nil) {
			t.Errorf("%s: %v", c.what, c.err)
		}
	}
	seen := must[[]anteroom.Room](t)(m.Rooms(as(Read, zone, two), ""))
	if len(seen) != 1 || seen[0].ID != two || len(m.Zones(as(Read, zone, two))) != 1 {
		t.Errorf("the reader of one room sees %d rooms and %d zones", len(seen), len(m.Zones(as(Read, zone, two))))
	}
}

// TestTokens: what is stored cannot be turned back, secrets end when they should, and rotation
// has two valid ones for a while.
func TestTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, ctx := open(t, Config{Link: memlink.New(), FirstToken: envToken}), t.Context()
		home := netip.MustParseAddr("192.0.2.1")
		works := func(secret string, from netip.Addr) bool {
			_, err := m.Authenticate(secret, from, "r")
			return err == nil
		}
		tok, first, err := m.CreateToken(ctx, root, TokenSpec{Name: "ci", Grants: []Grant{{Permission: Read}}, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/24")}})
		if err != nil {
			t.Fatal(err)
		}
		// By their checksum, scanners recognize leaked secrets.
		if body := first[4:47]; first[47:] != encode62(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body))), 6) {
			t.Errorf("secret %q: not the checksum", first)
		}
		if len(AuthKey(first)) != 37 || strings.Trim(first, base62+"_") != "" || len(first) > 80 {
			t.Errorf("secret %q", first)
		}
		for _, c := range []struct {
			what, secret string
			from         netip.Addr
			want         bool
		}{
			{"the secret", first, home, true},
			{"its key", AuthKey(first), home, true},
			{"mapped address", first, netip.MustParseAddr("::ffff:192.0.2.1"), true},
			{"from elsewhere", first, netip.MustParseAddr("198.51.100.1"), false},
			{"cut", first[:len(first)-1], home, false},
			{"the key's key", AuthKey(AuthKey(first)), home, false},
			{"the environment's", envToken, home, true},
			{"the environment's key", AuthKey(envToken), home, true},
			{"empty", "", home, false},
		} {
			if got := works(c.secret, c.from); got != c.want {
				t.Errorf("%s: %v", c.what, got)
			}
		}
		by, _ := m.Authenticate(first, home, "r7")
		if by.Token != tok.ID || by.May(Edit, "", "") || !by.May(Read, "z", "r") || by.RequestID != "r7" {
			t.Errorf("caller %+v", by)
		}
		_, second, err := m.RotateToken(ctx, root, tok.ID, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if !works(first, home) || !works(second, home) {
			t.Error("during the overlap both are valid")
		}
		time.Sleep(time.Hour)
		if works(first, home) || !works(second, home) {
			t.Error("after the overlap only the second is valid")
		}
		tokens := must[[]Token](t)(m.Tokens(root))
		if len(tokens) != 1 || len(tokens[0].Secrets) != 1 || tokens[0].LastUsed.IsZero() || tokens[0].ExpiresOn.Sub(tokens[0].CreatedOn) != DefaultTokenLife {
			t.Errorf("tokens %+v", tokens)
		}
		time.Sleep(DefaultTokenLife)
		if works(second, home) {
			t.Error("a token that has expired is valid")
		}
		_, third, err := m.RotateToken(ctx, root, tok.ID, 0)
		if err != nil || works(third, home) {
			t.Error("a new secret makes an expired token valid:", err)
		}
		if err := m.DeleteToken(ctx, root, tok.ID); err != nil {
			t.Error(err)
		}
		for _, bad := range []TokenSpec{
			{}, {Name: "x"}, {Name: "x", Grants: []Grant{{Permission: "own"}}}, {Name: "x", Grants: []Grant{{Permission: Admin, Zone: "z"}}},
			{Name: "a\nb", Grants: root.Grants}, {Name: "x", Grants: []Grant{{Permission: Read, Zone: "example.com"}}},
			{Name: "x", Grants: root.Grants, ExpiresOn: time.Now().Add(-time.Second)}, {Name: "x", Grants: root.Grants, Networks: []netip.Prefix{{}}},
		} {
			if _, _, err := m.CreateToken(ctx, root, bad); anteroom.KindOf(err) != anteroom.Invalid {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		if _, _, err := m.RotateToken(ctx, root, tok.ID, MaxTokenOverlap+1); anteroom.KindOf(err) != anteroom.Invalid {
			t.Error(err)
		}
	})
}

// TestFailedLogins: ten failures of an address are answered in a minute; the error never says
// what was wrong; valid tokens pass all the while, and so do other addresses.
func TestFailedLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := open(t, Config{Link: memlink.New(), FirstToken: envToken})
		_, expired, err := m.CreateToken(t.Context(), root, TokenSpec{Name: "old", Grants: root.Grants, ExpiresOn: time.Now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		from := netip.MustParseAddr("2001:db8::1")
		texts := map[string]bool{}
		for i := range MaxFailedLogins {
			secret := []string{"", "x", strings.Repeat("x", 40), expired}[i%4]
			_, err := m.Authenticate(secret, from, "")
			if anteroom.KindOf(err) != anteroom.Denied {
				t.Errorf("failure %d: %v", i, err)
			}
			texts[fmt.Sprint(err)] = true
		}
		if len(texts) != 1 {
			t.Errorf("the errors tell what was wrong: %v", texts)
		}
		_, err = m.Authenticate("x", netip.MustParseAddr("2001:db8::2"), "") // the same /64
		if !errors.Is(err, ErrTooManyFailures) || anteroom.KindOf(err) != anteroom.Unavailable {
			t.Errorf("one more: %v", err)
		}
		if _, err := m.Authenticate(envToken, from, ""); err != nil {
			t.Errorf("a valid token: %v", err)
		}
		if _, err := m.Authenticate("x", netip.MustParseAddr("192.0.2.1"), ""); anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("another address: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := m.Authenticate("x", from, ""); anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("a minute later: %v", err)
		}
	})
}

// TestChangedAuditRecord changes a byte in each record in turn, and takes each away: the log
// names it.
func TestChangedAuditRecord(t *testing.T) {
	t.Parallel()
	link, ctx := memlink.New(), t.Context()
	m := furnished(t, link)
	records, head, err := m.VerifyAudit(ctx, root)
	if err != nil || uint64(records) != m.State().seq || head != m.State().head {
		t.Fatal(records, head, err)
	}
	for seq := uint64(1); seq <= m.State().seq; seq++ {
		key := auditKey(seq)
		good, err := link.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 66, len(good.Value) / 2, len(good.Value) - 3} {
			bad := bytes.Clone(good.Value)
			bad[i] ^= 1
			link.Put(ctx, key, bad)
			if _, _, err := m.VerifyAudit(ctx, root); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("record %d ", seq)) {
				t.Errorf("byte %d of record %d: %v", i, seq, err)
			}
		}
		// Written anew with a hash that fits: the next one does not.
		e, _ := unseal(key, good.Value)
		e.Actor = "somebody else"
		forged, _, _ := e.seal()
		link.Put(ctx, key, forged)
		if _, _, err := m.VerifyAudit(ctx, root); (err == nil) != (seq == m.State().seq) {
			t.Errorf("record %d written anew: %v", seq, err)
		}
		link.Delete(ctx, key)
		if _, _, err := m.VerifyAudit(ctx, root); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("record %d ", seq)) {
			t.Errorf("record %d away: %v", seq, err)
		}
		link.Put(ctx, key, good.Value)
	}
}

// TestAuditSaysWhoAndWhat: with names of fields as in the API, and without secrets.
func TestAuditSaysWhoAndWhat(t *testing.T) {
	t.Parallel()
	m, ctx := furnished(t, memlink.New()), t.Context()
	zone, _ := m.State().ZoneNamed("furnished.test")
	rooms := must[[]anteroom.Room](t)(m.Rooms(root, zone.ID))
	must[anteroom.Room](t)(m.ChangeRoom(ctx, root, zone.ID, rooms[0].ID, func(r *anteroom.Room) error {
		r.TotalActiveUsers, r.CustomPageHTML = 777, strings.Repeat("x", 5000)
		return nil
	}))
	must[anteroom.Room](t)(m.ChangeRoom(ctx, root, zone.ID, rooms[0].ID, func(r *anteroom.Room) error { return nil })) // nothing
	all := must[[]AuditRecord](t)(m.Audit(ctx, root, 0, 0))
	last := all[len(all)-1]
	if last.Operation != "room.change" || last.Actor != "root" || last.Address != "192.0.2.7" || last.Request != "r1" || last.Room != rooms[0].ID || last.Zone != zone.ID || last.Name != "a" {
		t.Errorf("%+v", last)
	}
	fields := map[string]FieldChange{}
	for _, c := range last.Changes {
		fields[c.Field] = c
	}
	if len(fields) != 2 || fields["room.total_active_users"] != (FieldChange{"room.total_active_users", "300", "777"}) || fields["page"].After == "" {
		t.Errorf("changes %+v", last.Changes)
	}
	text := fmt.Sprintf("%+v", all)
	for _, r := range m.State().rooms {
		for _, e := range r.Events {
			if strings.Contains(text, fmt.Sprint(e.Seed[:4])) || strings.Contains(text, fmt.Sprint(e.Seed)) {
				t.Error("the log shows the seed of an event")
			}
		}
	}
	if !strings.Contains(text, "[secret]") {
		t.Error("nothing is masked")
	}
	if some := must[[]AuditRecord](t)(m.Audit(ctx, root, 3, 2)); len(some) != 2 || some[0].Seq != 4 {
		t.Errorf("two records after the third: %+v", some)
	}
}

// TestTwoWriters: two managers on one store change the same room at the same time; no change
// is lost and both end with the same state.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	link, ctx := memlink.New(), t.Context()
	a := open(t, Config{Link: link, FirstToken: envToken})
	zone := must[anteroom.Zone](t)(a.CreateZone(ctx, root, "example.com")).ID
	room := must[anteroom.Room](t)(a.CreateRoom(ctx, root, zone, shop("sale"))).ID
	b := open(t, Config{Link: link, FirstToken: envToken})
	const each = 20
	var wg sync.WaitGroup
	for _, m := range []*Manager{a, b} {
		wg.Go(func() {
			for range each {
				_, err := m.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error { r.TotalActiveUsers++; return nil })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := open(t, Config{Link: link, FirstToken: envToken})
	if n := got.State().Room(room).TotalActiveUsers; n != 300+2*each {
		t.Errorf("%d changes arrived, want %d", n-300, 2*each)
	}
	if n, _, err := got.VerifyAudit(ctx, root); err != nil || n != 3+2*each {
		t.Errorf("%d records, %v", n, err)
	}
}

// refusing is a link whose disk is full while it is told so.
type refusing struct {
	cluster.Link
	full bool
}

func (r *refusing) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if r.full {
		return 0, cluster.ErrFull
	}
	return r.Link.Put(ctx, key, value)
}

func (r *refusing) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if r.full {
		return 0, cluster.ErrFull
	}
	return r.Link.Update(ctx, key, value, revision)
}

// TestStoreThatRefuses: a change that cannot be recorded has not happened, at the doors
// neither; when there is space again, all goes on.
func TestStoreThatRefuses(t *testing.T) {
	t.Parallel()
	link := &refusing{Link: memlink.New()}
	var settled, dropped int
	m := open(t, Config{Link: link, FirstToken: envToken, Prepare: func(context.Context, *State) (func(bool), error) {
		return func(ok bool) {
			if ok {
				settled++
			} else {
				dropped++
			}
		}, nil
	}})
	ctx := t.Context()
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	before, doors := m.State(), settled
	link.full = true
	_, err := m.CreateRoom(ctx, root, zone, shop("sale"))
	if anteroom.KindOf(err) != anteroom.Unavailable || !errors.Is(err, cluster.ErrFull) {
		t.Errorf("%v", err)
	}
	if m.State() != before || settled != doors || dropped != 1 {
		t.Errorf("something has changed: %d settled, %d dropped", settled-doors, dropped)
	}
	link.full = false
	must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("sale")))
	if _, _, err := m.VerifyAudit(ctx, root); err != nil {
		t.Error(err)
	}
}

// TestDoorsThatRefuse: what the doors cannot take is not stored.
func TestDoorsThatRefuse(t *testing.T) {
	t.Parallel()
	refuse := false
	link := memlink.New()
	m := open(t, Config{Link: link, FirstToken: envToken, Prepare: func(context.Context, *State) (func(bool), error) {
		if refuse {
			return nil, errors.New("no")
		}
		return func(bool) {}, nil
	}})
	refuse = true
	before := m.State()
	if _, err := m.CreateZone(t.Context(), root, "example.com"); anteroom.KindOf(err) != anteroom.Unavailable {
		t.Error(err)
	}
	if again := open(t, Config{Link: link, FirstToken: envToken}); again.State().seq != before.seq || m.State() != before {
		t.Error("something was stored")
	}
}

// TestDamagedDocuments: whatever is not what was written is refused at the start, by its key,
// with the way back.
func TestDamagedDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	ctx := t.Context()
	keys := must[[]string](t)(furnishedLink(t).Keys(ctx, keyPrefix))
	damage := map[string]func(b []byte) []byte{
		"cut":              func(b []byte) []byte { return b[:len(b)/2] },
		"empty":            func([]byte) []byte { return nil },
		"another":          func([]byte) []byte { return []byte("{}") },
		"newer":            func(b []byte) []byte { return bytes.Replace(b, []byte(`"version":1`), []byte(`"version":2`), 1) },
		"an unknown field": func(b []byte) []byte { return bytes.Replace(b, []byte(`{`), []byte(`{"colour":"red",`), 1) },
		"followed":         func(b []byte) []byte { return append(bytes.Clone(b), "{}"...) },
	}
	for what, spoil := range damage {
		for _, key := range keys {
			link := furnishedLink(t)
			if strings.HasPrefix(key, auditPrefix) {
				continue // looked at when asked, or as the last one
			}
			if strings.HasPrefix(key, pagePrefix) && (what == "newer" || what == "an unknown field") {
				continue // not JSON
			}
			all := must[[]string](t)(link.Keys(ctx, keyPrefix)) // ids differ from furnishing to furnishing
			mine := ""
			for _, k := range all {
				if kind := key[:strings.LastIndexByte(key, '.')+1]; strings.HasPrefix(k, kind) {
					mine = k
				}
			}
			got, err := link.Get(ctx, mine)
			if err != nil {
				t.Fatal(err)
			}
			link.Put(ctx, mine, spoil(got.Value))
			_, err = Open(ctx, Config{Link: link, FirstToken: envToken})
			if anteroom.KindOf(err) != anteroom.Unavailable || !strings.Contains(err.Error(), mine) || !strings.Contains(err.Error(), "restore") {
				t.Errorf("%s, %s: %v", mine, what, err)
			}
		}
	}
}

// furnishedLink is the store of a furnished manager, with the last record's document written
// long ago.
func furnishedLink(t testing.TB) cluster.Link {
	link := memlink.New()
	m := furnished(t, link)
	if err := m.act(t.Context(), root, "keys.rotate", "", "", "", nil); err != nil {
		t.Fatal(err)
	}
	return link
}

// TestAuditIsBounded: old records go, the chain goes on from the anchor.
func TestAuditIsBounded(t *testing.T) {
	t.Parallel()
	link, ctx := memlink.New(), t.Context()
	m := open(t, Config{Link: link, FirstToken: envToken})
	for range maxAuditRecords + 3*pruneAhead {
		if err := m.act(ctx, root, "keys.rotate", "", "", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	n, head, err := m.VerifyAudit(ctx, root)
	if err != nil || n < maxAuditRecords || n > maxAuditRecords+2*pruneAhead || head != m.State().head {
		t.Errorf("%d records, %v", n, err)
	}
	if keys := must[[]string](t)(link.Keys(ctx, auditPrefix)); len(keys) > n+2*pruneAhead {
		t.Errorf("%d records are stored", len(keys))
	}
	if first := must[[]AuditRecord](t)(m.Audit(ctx, root, 0, 1)); len(first) != 1 || first[0].Seq != m.State().seq-uint64(n)+1 {
		t.Errorf("the first is %+v of %d", first, n)
	}
	again := open(t, Config{Link: link, FirstToken: envToken})
	if more, _, err := again.VerifyAudit(ctx, root); err != nil || more != n {
		t.Errorf("after a restart: %d, %v", more, err)
	}
}

// killEnv tells the test binary to be the process that is killed.
const killEnv = "MANAGE_TEST_KILLED"

// TestKillInTheMiddleOfChanges kills a process that changes rooms as fast as it can, on the
// store that production has. What it said to be done is there afterwards.
func TestKillInTheMiddleOfChanges(t *testing.T) {
	if dir := os.Getenv(killEnv); dir != "" {
		changeUntilKilled(t, dir)
		return
	}
	t.Parallel()
	dir := t.TempDir()
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKillInTheMiddleOfChanges$")
		cmd.Env = append(os.Environ(), killEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said, users := 0, 0
		for said < 8+5*round {
			if _, err := fmt.Fscanln(out, &users); err != nil {
				rest, _ := io.ReadAll(out)
				t.Fatalf("round %d: the process ended by itself: %v\n%s", round, err, rest)
			}
			said++
		}
		cmd.Process.Kill()
		cmd.Wait()
		link, err := natslink.Open(natslink.Config{Dir: dir, LockWait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		m := open(t, Config{Link: link, FirstToken: envToken})
		if _, _, err := m.VerifyAudit(t.Context(), root); err != nil {
			t.Error(err)
		}
		for r := range m.State().Rooms() {
			if r.TotalActiveUsers < users || r.CustomPageHTML != pageFor(r.TotalActiveUsers) {
				t.Errorf("round %d: %d users with page %.20q, and %d were acknowledged", round, r.TotalActiveUsers, r.CustomPageHTML, users)
			}
		}
		link.Close()
	}
}

// pageFor is a page that belongs to a number, so that a mix of two states is seen.
func pageFor(users int) string { return fmt.Sprintf("<p>%d", users) }

func changeUntilKilled(t *testing.T, dir string) {
	link, err := natslink.Open(natslink.Config{Dir: dir, LockWait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m, ctx := open(t, Config{Link: link, FirstToken: envToken}), t.Context()
	zone, known := m.State().ZoneNamed("example.com")
	if !known {
		zone = must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com"))
		r := shop("sale")
		r.CustomPageHTML = pageFor(r.TotalActiveUsers)
		must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, r))
	}
	room := must[[]anteroom.Room](t)(m.Rooms(root, zone.ID))[0]
	for {
		changed := must[anteroom.Room](t)(m.ChangeRoom(ctx, root, zone.ID, room.ID, func(r *anteroom.Room) error {
			r.TotalActiveUsers++
			r.CustomPageHTML = pageFor(r.TotalActiveUsers)
			return nil
		}))
		fmt.Println(changed.TotalActiveUsers)
	}
}

// sparing is a link that refuses the documents of rooms while it is told so, and nothing else.
type sparing struct {
	cluster.Link
	refuse bool
}

func (s *sparing) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if s.refuse && strings.HasPrefix(key, roomPrefix) {
		return 0, cluster.ErrFull
	}
	return s.Link.Update(ctx, key, value, revision)
}

// TestDocumentsThatComeLater: when the record is stored and its document is not, the change has
// happened; no other comes before the document is there, and a start writes it as well.
func TestDocumentsThatComeLater(t *testing.T) {
	t.Parallel()
	link, ctx := &sparing{Link: memlink.New()}, t.Context()
	m := open(t, Config{Link: link, FirstToken: envToken})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("sale"))).ID
	set := func(n int) error {
		_, err := m.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error { r.TotalActiveUsers = n; return nil })
		return err
	}
	link.refuse = true
	if err := set(1000); err != nil || m.State().Room(room).TotalActiveUsers != 1000 {
		t.Errorf("the change is recorded and not in force: %v", err)
	}
	if err := set(2000); anteroom.KindOf(err) != anteroom.Unavailable || m.State().Room(room).TotalActiveUsers != 1000 {
		t.Errorf("a change before the last one's document is there: %v", err)
	}
	if again := open(t, Config{Link: link.Link, FirstToken: envToken}); again.State().Room(room).TotalActiveUsers != 1000 {
		t.Error("a start does not know the change")
	}
	link.refuse = false
	if err := set(3000); err != nil {
		t.Error(err)
	}
	if again := open(t, Config{Link: link.Link, FirstToken: envToken}); again.State().Room(room).TotalActiveUsers != 3000 {
		t.Error("a start does not know the change after it")
	}
}
