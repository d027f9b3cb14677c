package manage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
)

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestOnePageInManyRoomsIsInMemoryOnce: the bound of all custom pages counts a text once, and a
// token for one zone can name it in ten thousand rooms.
func TestOnePageInManyRoomsIsInMemoryOnce(t *testing.T) {
	ctx, link := t.Context(), memlink.New()
	m := open(t, Config{Link: link})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com"))
	const size, rooms = 400 << 10, 40
	before := heap()
	for i := range rooms {
		r := shop(fmt.Sprint("r", i))
		r.CustomPageHTML = strings.Repeat("x", size)
		made := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, r))
		must[anteroom.Event](t)(m.CreateEvent(ctx, root, zone.ID, made.ID, anteroom.Event{Name: "e", Start: "2027-01-01T10:00:00Z", End: "2027-01-01T12:00:00Z",
			Overrides: anteroom.Overrides{CustomPageHTML: ptr(strings.Repeat("x", size))}}))
	}
	if grown := heap() - before; grown > 10*size {
		t.Errorf("%d rooms with one page of %d bytes take %d bytes", rooms, size, grown)
	}
	again := open(t, Config{Link: link})
	if grown := heap() - before; grown > 20*size {
		t.Errorf("after a restart they take %d bytes", grown)
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(again)
}

// TestRestoreLeavesTheCallersTokenAlone: its secret of now is good afterwards, and the one that
// was good when the backup was made is not again.
func TestRestoreLeavesTheCallersTokenAlone(t *testing.T) {
	t.Parallel()
	ctx, m := t.Context(), open(t, Config{})
	by := root
	by.Token = m.State().tokens[0].ID
	backup := backupOf(t, m, false)
	_, now, err := m.RotateToken(ctx, by, by.Token, 0)
	if err != nil {
		t.Fatal(err)
	}
	must[Restored](t)(m.Restore(ctx, by, bytes.NewReader(backup)))
	if _, err := m.Authenticate(now, by.Address, ""); err != nil {
		t.Errorf("the caller is locked out: %v", err)
	}
	if _, err := m.Authenticate(m.FirstToken(), by.Address, ""); err == nil {
		t.Error("a secret that was replaced is good again")
	}
}

// TestForgedBackup: whoever can write a backup can sum it up, too.
func TestForgedBackup(t *testing.T) {
	t.Parallel()
	from := furnished(t, memlink.New())
	var lines []string
	for line := range strings.Lines(string(unzip(t, backupOf(t, from, false)))) {
		if !strings.Contains(line, `"key":"manage.audit.`) && !strings.Contains(line, `"sha256":`) {
			lines = append(lines, line)
		}
	}
	s := from.State()
	room, zone := string(s.rooms[0].ID), string(s.zones[0].ID)
	for _, c := range []struct {
		old, new string
		ok       bool
	}{
		{"furnished.test", "furnished.test", true},
		{`"furnished.test"`, `"furnished.test/\u001b[31m"`, false},
		{zone, "../accounts", false},
		{zone, "", false},
		{room, "../../" + room, false},
		{room, string(s.rooms[1].ID), false},
		{string(s.rooms[0].Events[0].ID), string(s.rooms[1].Events[0].ID), false},
		{string(s.rooms[0].Rules[0].ID), "x", false},
		{string(s.lists[0].ID), "x/y", false},
		{string(s.tokens[0].ID), "", false},
		{`"name":"ops"`, `"name":"\u001b]0;title\u0007"`, false},
		{`"permission":"admin"`, `"permission":"root"`, false},
		{`"secrets":[`, `"secrets":[],"networks":["10.0.0.1/33"],"x":[`, false},
	} {
		text := strings.ReplaceAll(strings.Join(lines, ""), c.old, c.new)
		sum := sha256.Sum256([]byte(text))
		text += fmt.Sprintf(`{"lines":%d,"sha256":"%s"}`+"\n", len(lines), hex.EncodeToString(sum[:]))
		to := open(t, Config{FirstToken: envToken})
		before := to.State()
		_, err := to.Restore(t.Context(), root, bytes.NewReader(zipped(t, []byte(text))))
		if c.ok && err != nil || !c.ok && anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%q for %q: %v", c.new, c.old, err)
		}
		if !c.ok && to.State() != before {
			t.Errorf("%q for %q: something has changed", c.new, c.old)
		}
	}
}

// TestATokenForARoomSeesItsZoneOnly: the zone can be left out where the room is named.
func TestATokenForARoomSeesItsZoneOnly(t *testing.T) {
	t.Parallel()
	ctx, m := t.Context(), open(t, Config{})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com"))
	other := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "secret-launch.example"))
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, shop("sale")))
	by := Caller{Grants: []Grant{{Room: room.ID, Permission: Read}}}
	if all := m.Zones(by); len(all) != 1 || all[0].ID != zone.ID {
		t.Errorf("it sees %v", all)
	}
	must[anteroom.Zone](t)(m.Zone(by, zone.ID))
	must[anteroom.Room](t)(m.Room(by, zone.ID, room.ID))
	for _, id := range []anteroom.ZoneID{other.ID, "00000000000000000000000000000000"} {
		if _, err := m.Zone(by, id); anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("zone %s: %v", id, err)
		}
	}
}

// TestATokenTakesNothingFromOtherZonesAndRooms: a room with a longer path goes first, so that
// whoever may choose a room's routes could let everybody past somebody else's room.
func TestATokenTakesNothingFromOtherZonesAndRooms(t *testing.T) {
	t.Parallel()
	ctx, m := t.Context(), open(t, Config{})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com"))
	every := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "*"))
	below := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "shop.example.com"))
	must[anteroom.Room](t)(m.CreateRoom(ctx, root, below.ID, shop("sale")))
	at := func(name, host, path string) anteroom.Room {
		r := shop(name)
		r.Routes[0] = anteroom.Route{Host: host, Path: path}
		return r
	}
	may := func(grants ...Grant) Caller { return Caller{Name: "small", Grants: grants} }
	one := may(Grant{Zone: zone.ID, Permission: Edit})
	for _, c := range []struct {
		by   Caller
		zone anteroom.ZoneID
		host string
		ok   bool
	}{
		{one, zone.ID, "shop.example.com", false},
		{one, zone.ID, "a.shop.example.com", false},
		{one, zone.ID, "www.example.com", true},
		{one, zone.ID, "myshop.example.com", true},
		{may(Grant{Zone: every.ID, Permission: Edit}), every.ID, "www.example.com", false},
		{may(Grant{Zone: every.ID, Permission: Edit}), every.ID, "example.org", true},
		{may(Grant{Zone: zone.ID, Permission: Edit}, Grant{Zone: below.ID, Permission: Edit}), zone.ID, "shop.example.com", true},
		{root, zone.ID, "b.shop.example.com", true},
	} {
		made, err := m.CreateRoom(ctx, c.by, c.zone, at("r", c.host, "/sale/deeper"))
		if c.ok && err != nil || !c.ok && anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%v at %s: %v", c.by.Grants, c.host, err)
		}
		if err == nil {
			if err := m.DeleteRoom(ctx, root, c.zone, made.ID); err != nil {
				t.Error(err)
			}
		}
	}
	own := must[anteroom.Room](t)(m.CreateRoom(ctx, one, zone.ID, at("own", "www.example.com", "/own")))
	_, err := m.ChangeRoom(ctx, one, zone.ID, own.ID, func(r *anteroom.Room) error { r.Routes[0].Host = "shop.example.com"; return nil })
	if anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("moved into another zone: %v", err)
	}
	must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, at("hidden", "www.example.com", "/hidden")))
	for _, by := range []Caller{may(Grant{Room: own.ID, Permission: Edit}), may(Grant{Zone: zone.ID, Room: own.ID, Permission: Edit})} {
		_, err := m.ChangeRoom(ctx, by, zone.ID, own.ID, func(r *anteroom.Room) error { r.Routes[0].Path = "/hidden/deeper"; return nil })
		if anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("a room's token changes what it covers: %v", err)
		}
		must[anteroom.Room](t)(m.ChangeRoom(ctx, by, zone.ID, own.ID, func(r *anteroom.Room) error { r.TotalActiveUsers++; return nil }))
	}
	must[anteroom.Room](t)(m.CreateRoom(ctx, root, every.ID, at("secret", "www.example.com", "/secret")))
	_, err = m.CreateRoom(ctx, one, zone.ID, at("again", "www.example.com", "/secret"))
	if anteroom.KindOf(err) != anteroom.Invalid || strings.Contains(err.Error(), `"secret"`) {
		t.Errorf("the fault names a room that the caller may not see: %v", err)
	}
}

// TestWhatIsStoredCanBeRead: a document that packs well must not be too large to be unpacked.
func TestWhatIsStoredCanBeRead(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	ctx, link := t.Context(), memlink.New()
	m := open(t, Config{Link: link})
	l := anteroom.List{Name: "l", Kind: anteroom.ListOfASNs}
	for i := range MaxListItems {
		l.Items = append(l.Items, anteroom.ListItem{Value: fmt.Sprint(i + 1), Comment: strings.Repeat("<", anteroom.MaxDescriptionLength)})
	}
	if _, err := m.CreateList(ctx, root, l); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("%v", err)
	}
	open(t, Config{Link: link})
}

// TestABackupThatUnpacksToMuch is refused where it begins to be too much, not at its end.
func TestABackupThatUnpacksToMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	m := open(t, Config{FirstToken: envToken})
	large := strings.Repeat("a", anteroom.MaxTemplateBytes+1)
	const head = `{"anteroom_backup":1,"made":"2026-11-27T10:00:00Z","seq":1}` + "\n"
	for _, line := range []string{
		`{"key":"manage.page.0","text":"` + large + `"}`,
		`{"key":"` + pageKey(large) + `","text":"` + large + `"}`,
		`{"key":"manage.room.0","document":{"a":"` + strings.Repeat("a", inflateLimit) + `"}}`,
	} {
		_, err := m.Restore(t.Context(), root, bytes.NewReader(zipped(t, []byte(head+line+"\n"+line+"\n"))))
		if anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "line 2:") {
			t.Errorf("%v", err)
		}
	}
}

// TestLargestCustomPage: a page of the published size that does not compress comes back after a restart and
// from a backup, and a larger one is refused.
func TestLargestCustomPage(t *testing.T) {
	t.Parallel()
	ctx, link := t.Context(), memlink.New()
	m := open(t, Config{Link: link})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com"))
	noise := make([]byte, anteroom.MaxTemplateBytes)
	rand.NewChaCha8([32]byte{}).Read(noise)
	for i, b := range noise {
		noise[i] = ' ' + b%64 // without { for tags
	}
	r := shop("large")
	r.CustomPageHTML = string(noise)
	made := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone.ID, r))
	if again := open(t, Config{Link: link}); again.State().Room(made.ID).CustomPageHTML != r.CustomPageHTML {
		t.Error("another page is there after a restart")
	}
	other := open(t, Config{})
	if _, err := other.Restore(ctx, root, bytes.NewReader(backupOf(t, m, false))); err != nil || other.State().Room(made.ID).CustomPageHTML != r.CustomPageHTML {
		t.Errorf("the backup brings another page: %v", err)
	}
	if _, err := m.ChangeRoom(ctx, root, zone.ID, made.ID, func(r *anteroom.Room) error { r.CustomPageHTML += " "; return nil }); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("a larger page: %v", err)
	}
}
