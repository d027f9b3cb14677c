package manage

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/ticket/invite"
)

// invitedRoom makes a zone with a room.
func invitedRoom(t *testing.T, m *Manager) (anteroom.ZoneID, anteroom.RoomID) {
	t.Helper()
	zone := must[anteroom.Zone](t)(m.CreateZone(t.Context(), root, "example.com"))
	return zone.ID, must[anteroom.Room](t)(m.CreateRoom(t.Context(), root, zone.ID, shop("sale"))).ID
}

// Codes for an event outlive 30 days if the event does, and cannot expire before it begins. A code that comes early is not a wrong one.
func TestInvitesOfALaterEvent(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	m := open(t, Config{Link: memlink.New(), Now: func() time.Time { return now }})
	zone, room := invitedRoom(t, m)
	at := func(days int) time.Time { return now.AddDate(0, 0, days) }
	for _, c := range []struct {
		name                string
		from, to, until, is time.Time
		fault               string
	}{
		{"a later event", at(53), at(54), time.Time{}, at(54), ""},
		{"a sooner event", at(5), at(6), time.Time{}, now.Add(defaultInviteLife), ""},
		{"an event that lasts for long", at(300), at(400), time.Time{}, now.Add(maxInviteLife), ""},
		{"an end within the event", at(53), at(55), at(54), at(54), ""},
		{"an end before the event", at(53), at(54), at(53), time.Time{}, "is before the event begins"},
		{"an event in two years", at(700), at(701), time.Time{}, time.Time{}, "is before the event begins"},
	} {
		event := must[anteroom.Event](t)(m.CreateEvent(ctx, root, zone, room, anteroom.Event{Name: "sale", Start: anteroom.StampOf(c.from), End: anteroom.StampOf(c.to)})).ID
		made, codes, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 1, Event: event, ExpiresOn: c.until})
		if err := m.DeleteEvent(ctx, root, zone, room, event); err != nil {
			t.Fatal(err)
		}
		if c.fault != "" {
			if anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || !made.ExpiresOn.Equal(c.is) {
			t.Errorf("%s: until %v, %v, want %v", c.name, made.ExpiresOn, err, c.is)
			continue
		}
		h, _ := invite.Read(codes[0])
		if _, err := m.Redeem(ctx, room, "", h, anteroom.ID{1}, AnyCode); anteroom.KindOf(err) != anteroom.Conflict {
			t.Errorf("%s: the code comes early: %v", c.name, err)
		}
	}
}

func TestLifeOfInvites(t *testing.T) {
	t.Parallel()
	ctx, link := t.Context(), memlink.New()
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	m := open(t, Config{Link: link, Now: func() time.Time { return now }})
	zone, room := invitedRoom(t, m)
	made, codes, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Name: "press", Count: 3})
	if err != nil || len(codes) != 3 || made.Uses != 1 || !made.ExpiresOn.Equal(now.Add(defaultInviteLife)) || made.CreatedBy != "root" {
		t.Fatalf("%+v %v %v", made, codes, err)
	}
	redeem := func(code string, event anteroom.EventID, by byte) error {
		t.Helper()
		h, ok := invite.Read(code)
		if !ok {
			t.Fatalf("%q is no code", code)
		}
		_, err := m.Redeem(ctx, room, event, h, anteroom.ID{by}, AnyCode)
		return err
	}
	refused := func(err error, why string) {
		t.Helper()
		if anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("%s: %v", why, err)
		}
	}
	for _, code := range codes {
		if err := redeem(code, "", 1); err != nil {
			t.Error(err)
		}
		refused(redeem(code, "", 2), "a spent code")
	}
	refused(redeem(invite.NewCode(), "", 1), "a code of nobody")
	counted, more, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 1, Uses: 3, ExpiresOn: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for by := range byte(3) {
		if err := redeem(more[0], "", by+1); err != nil {
			t.Error(err)
		}
	}
	refused(redeem(more[0], "", 9), "a fourth use of three")
	for _, c := range []struct {
		of   Invites
		want int
	}{{made, 3}, {counted, 3}} {
		if n, err := m.InviteUses(ctx, c.of); n != c.want || err != nil {
			t.Errorf("%d uses are counted, %v", n, err)
		}
	}
	// Nothing that is stored, logged or backed up has a code.
	keys, err := link.Keys(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	if err := m.Backup(ctx, root, &all, false); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		e, err := link.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		data, err := unpack(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	for _, code := range append(codes, more...) {
		if text := all.String(); strings.Contains(text, code) || strings.Contains(text, strings.ReplaceAll(code, "-", "")) {
			t.Errorf("the store or the backup has the code %s", code)
		}
	}

	// One code can be revoked, with all uses that are left.
	leaked, three, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 2, Uses: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := redeem(three[0], "", 1); err != nil {
		t.Error(err)
	}
	for range 2 { // once more changes nothing
		if got, err := m.RevokeInvite(ctx, root, zone, room, " "+strings.ToLower(three[0])); err != nil || got != leaked {
			t.Errorf("%+v %v", got, err)
		}
		refused(redeem(three[0], "", 2), "a revoked code")
	}
	if err := redeem(three[1], "", 2); err != nil {
		t.Errorf("the other code of the batch: %v", err)
	}
	for code, kind := range map[string]anteroom.Kind{"": anteroom.Invalid, "K7QM-2XHP": anteroom.Invalid, invite.NewCode(): anteroom.NotFound} {
		if _, err := m.RevokeInvite(ctx, root, zone, room, code); anteroom.KindOf(err) != kind {
			t.Errorf("%q: %v", code, err)
		}
	}
	if _, err := m.RevokeInvite(ctx, Caller{Name: "reader", Grants: []Grant{{Permission: Read}}}, zone, room, three[1]); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("by a reader: %v", err)
	}
	log, err := m.Audit(ctx, root, 0, 0)
	if last := log[len(log)-1]; err != nil || last.Operation != "invites.revoke" || strings.Contains(fmt.Sprintf("%+v", last), three[0]) {
		t.Errorf("%+v %v", last, err)
	}
	if err := m.DeleteInvites(ctx, root, zone, room, leaked.ID); err != nil {
		t.Error(err)
	}

	// Another process reads the same, and a deleted batch is worth nothing.
	_, fresh, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	m = open(t, Config{Link: link, Now: func() time.Time { return now }})
	list, err := m.Invites(root, zone, room)
	if err != nil || len(list) != 3 || list[0] != made {
		t.Fatalf("%+v %v", list, err)
	}
	if err := redeem(fresh[0], "", 1); err != nil {
		t.Error(err)
	}
	if err := m.DeleteInvites(ctx, root, zone, room, list[2].ID); err != nil {
		t.Error(err)
	}
	refused(redeem(fresh[1], "", 1), "a revoked code")
	if err := m.DeleteInvites(ctx, root, zone, room, list[2].ID); anteroom.KindOf(err) != anteroom.NotFound {
		t.Errorf("deleted twice: %v", err)
	}

	// An expired code is worth nothing, and its batch is forgotten after a month.
	now = now.Add(time.Hour)
	_, last, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 1, ExpiresOn: now.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	refused(redeem(last[0], "", 1), "an expired code")
	now = now.Add(inviteMemory + 30*24*time.Hour)
	if _, _, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 1}); err != nil {
		t.Fatal(err)
	}
	if list, err := m.Invites(root, zone, room); err != nil || len(list) != 1 {
		t.Errorf("%+v %v", list, err)
	}
	// With the room they are gone.
	if err := m.DeleteRoom(ctx, root, zone, room); err != nil {
		t.Error(err)
	}
	if keys, err := link.Keys(ctx, invitesPrefix); err != nil || len(keys) > 0 {
		t.Errorf("%v %v", keys, err)
	}
}

// What was used of the codes is in a backup: a restore into an empty store, or into one that knows less, gives nobody another use, and one
// into a store that knows more gives none back.
func TestBackupKnowsWhichCodesWereUsed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m := open(t, Config{Link: memlink.New(), FirstToken: envToken})
	zone, room := invitedRoom(t, m)
	made, codes, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 2, Uses: 3})
	if err != nil {
		t.Fatal(err)
	}
	redeem := func(m *Manager, code string, by byte) error {
		h, _ := invite.Read(code)
		_, err := m.Redeem(ctx, room, "", h, anteroom.ID{by}, AnyCode)
		return err
	}
	used := func(m *Manager, want int) {
		t.Helper()
		if n, err := m.InviteUses(ctx, made); n != want || err != nil {
			t.Errorf("%d uses, %v; want %d", n, err, want)
		}
	}
	early := backupOf(t, m, false)
	for by := range byte(2) {
		if err := redeem(m, codes[0], by+1); err != nil {
			t.Fatal(err)
		}
	}
	late := backupOf(t, m, false)
	if _, err := m.Restore(ctx, root, bytes.NewReader(early)); err != nil {
		t.Fatal(err)
	}
	used(m, 2)
	other := open(t, Config{Link: memlink.New(), FirstToken: envToken})
	for range 2 {
		if _, err := other.Restore(ctx, root, bytes.NewReader(late)); err != nil {
			t.Fatal(err)
		}
		used(other, 2)
	}
	if err := redeem(other, codes[0], 7); err != nil {
		t.Error(err)
	}
	if err := redeem(other, codes[0], 8); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("a fourth use: %v", err)
	}
	if _, err := other.Restore(ctx, root, bytes.NewReader(late)); err != nil {
		t.Fatal(err)
	}
	used(other, 3)

	// Uses that cannot be.
	lines := strings.Split(strings.TrimSpace(string(unzip(t, late))), "\n")
	lines = lines[:len(lines)-1]
	i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"key":"`+spentPrefix(made.ID)) })
	if i < 0 {
		t.Fatal("the backup has no uses")
	}
	fresh := open(t, Config{Link: memlink.New(), FirstToken: envToken})
	for name, bad := range map[string]string{
		"more than there are": strings.Replace(lines[i], `"document":2`, `"document":4`, 1),
		"none":                strings.Replace(lines[i], `"document":2`, `"document":0`, 1),
		"a text":              strings.Replace(lines[i], `"document":2`, `"document":"2"`, 1),
		"another batch":       strings.Replace(lines[i], made.ID, strings.Repeat("a", len(made.ID)), 1),
		"another code":        strings.Replace(lines[i], made.ID+".", made.ID+".00", 1),
		"a code of nobody":    `{"key":"` + spentPrefix(made.ID) + strings.Repeat("0", 32) + `","document":1}`,
		"twice":               lines[i] + "\n" + lines[i],
	} {
		all := slices.Clone(lines)
		all[i] = bad
		text := strings.Join(all, "\n") + "\n"
		sum := sha256.Sum256([]byte(text))
		text += fmt.Sprintf(`{"lines":%d,"sha256":"%x"}`, strings.Count(text, "\n"), sum) + "\n"
		if _, err := fresh.Restore(ctx, root, bytes.NewReader(zipped(t, []byte(text)))); anteroom.KindOf(err) != anteroom.Invalid || len(fresh.State().Zones()) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A batch for an event is accepted while that event is active, and nowhere else.
func TestInvitesOfAnEvent(t *testing.T) {
	t.Parallel()
	m := open(t, Config{Link: memlink.New()})
	zone, room := invitedRoom(t, m)
	at := time.Now().Add(time.Hour)
	e, err := m.CreateEvent(t.Context(), root, zone, room, anteroom.Event{Name: "presale", Start: anteroom.StampOf(at), End: anteroom.StampOf(at.Add(time.Hour))})
	if err != nil {
		t.Fatal(err)
	}
	_, codes, err := m.CreateInvites(t.Context(), root, zone, room, InviteSpec{Count: 1, Event: e.ID})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := invite.Read(codes[0])
	for _, other := range []anteroom.EventID{"", "00000000000000000000000000000001"} {
		if _, err := m.Redeem(t.Context(), room, other, h, anteroom.ID{1}, AnyCode); anteroom.KindOf(err) != anteroom.Conflict {
			t.Errorf("in the event %q: %v", other, err)
		}
	}
	if _, err := m.Redeem(t.Context(), "00000000000000000000000000000001", e.ID, h, anteroom.ID{1}, AnyCode); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("in another room: %v", err)
	}
	if _, err := m.Redeem(t.Context(), room, e.ID, h, anteroom.ID{1}, AnyCode); err != nil {
		t.Error(err)
	}
}

func TestBadInvites(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m := open(t, Config{Link: memlink.New()})
	zone, room := invitedRoom(t, m)
	for path, spec := range map[string]InviteSpec{
		"count":       {Count: 0},
		"count ":      {Count: maxInviteCodes + 1},
		"uses":        {Count: 1, Uses: -1},
		"uses ":       {Count: 1, Uses: maxInviteUses + 1},
		"expires_on":  {Count: 1, ExpiresOn: time.Now().Add(-time.Second)},
		"expires_on ": {Count: 1, ExpiresOn: time.Now().Add(maxInviteLife + time.Hour)},
		"event":       {Count: 1, Event: "00000000000000000000000000000001"},
		"name":        {Count: 1, Name: strings.Repeat("x", 65)},
		"name ":       {Count: 1, Name: "a\nb"},
	} {
		_, codes, err := m.CreateInvites(ctx, root, zone, room, spec)
		faults, _ := errors.AsType[anteroom.Faults](err)
		if len(faults) != 1 || faults[0].Path != strings.TrimSpace(path) || codes != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	reader := Caller{Name: "reader", Grants: []Grant{{Permission: Read}}}
	if _, _, err := m.CreateInvites(ctx, reader, zone, room, InviteSpec{Count: 1}); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("made by a reader: %v", err)
	}
	if err := m.DeleteInvites(ctx, reader, zone, room, "x"); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("deleted by a reader: %v", err)
	}
	for range maxInviteBatches {
		if _, _, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 1}); err == nil || !strings.Contains(err.Error(), "delete unused ones") {
		t.Errorf("one more: %v", err)
	}
}

// Two processes share a store: of the visitors who enter one code at the same moment, one gets its use.
func TestACodeAtSeveralNodes(t *testing.T) {
	t.Parallel()
	link := memlink.New()
	a := open(t, Config{Link: link})
	_, room := invitedRoom(t, a)
	zone, _ := a.State().ZoneNamed("example.com")
	_, codes, err := a.CreateInvites(t.Context(), root, zone.ID, room, InviteSpec{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, Config{Link: link})
	h, _ := invite.Read(codes[0])
	var all sync.WaitGroup
	var got atomic.Int32
	for i := range 20 {
		m := []*Manager{a, b}[i%2]
		all.Go(func() {
			switch _, err := m.Redeem(t.Context(), room, "", h, anteroom.ID{byte(i + 1)}, AnyCode); anteroom.KindOf(err) {
			case anteroom.Denied:
			default:
				if err != nil {
					t.Error(err)
				}
				got.Add(1)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d visitors have the one use", got.Load())
	}
}

// A full batch fits into a document, and is found in.
func TestTheLargestBatch(t *testing.T) {
	t.Parallel()
	link := memlink.New()
	m := open(t, Config{Link: link})
	zone, room := invitedRoom(t, m)
	_, codes, err := m.CreateInvites(t.Context(), root, zone, room, InviteSpec{Count: maxInviteCodes})
	if err != nil {
		t.Fatal(err)
	}
	m = open(t, Config{Link: link})
	for _, i := range []int{0, 1, maxInviteCodes / 2, maxInviteCodes - 1} {
		h, _ := invite.Read(codes[i])
		if _, err := m.Redeem(t.Context(), room, "", h, anteroom.ID{1}, AnyCode); err != nil {
			t.Errorf("code %d: %v", i, err)
		}
	}
}

// Codes for a lane say which one it is now, to visitors without a place, and to those whom they raise. Others are told that they need none, or
// that the code does not count, and keep its use.
func TestInvitesForALane(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	m := open(t, Config{Link: memlink.New(), Now: func() time.Time { return now }})
	zone, room := invitedRoom(t, m)
	set := func(lanes ...anteroom.Lane) {
		t.Helper()
		must[anteroom.Room](t)(m.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error { r.Lanes = lanes; return nil }))
	}
	set(anteroom.Lane{Name: "gold", Priority: 80}, anteroom.Lane{Name: "everyone"})
	for _, lane := range []string{"silver", "everyone", "Gold"} {
		_, codes, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 1, Lane: lane})
		if faults, _ := errors.AsType[anteroom.Faults](err); len(faults) != 1 || faults[0].Path != "lane" || codes != nil {
			t.Errorf("%s: %v", lane, err)
		}
	}
	if m.HasLaneCodes(room) {
		t.Error("there are no codes yet")
	}
	_, plain, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 1})
	if err != nil || m.HasLaneCodes(room) {
		t.Fatal(err)
	}
	made, codes, err := m.CreateInvites(ctx, root, zone, room, InviteSpec{Count: 3, Lane: "gold", ExpiresOn: now.Add(time.Hour)})
	if err != nil || made.Lane != "gold" || !m.HasLaneCodes(room) {
		t.Fatalf("%+v %v", made, err)
	}
	redeem := func(code string, by byte, placed int) (uint8, error) {
		h, _ := invite.Read(code)
		return m.Redeem(ctx, room, "", h, anteroom.ID{by}, placed)
	}
	expect := func(what string, code string, by byte, placed int, lane uint8, kind anteroom.Kind, used int) {
		t.Helper()
		got, err := redeem(code, by, placed)
		if n, failed := m.InviteUses(ctx, made); got != lane || anteroom.KindOf(err) != kind || n != used || failed != nil {
			t.Errorf("%s: lane %d, %v, %d used, %v", what, got, err, n, failed)
		}
	}
	var fine anteroom.Kind = anteroom.KindOf(nil)
	expect("a code for no lane, in line", plain[0], 1, 0, 0, anteroom.Denied, 0)
	expect("a code that does not raise", codes[0], 1, 80, 80, fine, 0)
	expect("a code that raises", codes[0], 1, 79, 80, fine, 1)
	expect("likewise, again", codes[0], 1, 0, 80, fine, 1)
	expect("of another", codes[0], 2, 0, 0, anteroom.Denied, 1)
	expect("to join", codes[1], 3, AnyCode, 80, fine, 2)
	set(anteroom.Lane{Name: "gold", Priority: 30})
	expect("after a change of the lane", codes[2], 4, 0, 30, fine, 3)
	set(anteroom.Lane{Name: "platinum", Priority: 30})
	if m.HasLaneCodes(room) {
		t.Error("the lane is gone, and has codes")
	}
	expect("the lane is gone", codes[2], 4, 0, 0, anteroom.Denied, 3)
	expect("likewise, to join", codes[2], 4, AnyCode, 0, fine, 3)
	expect("a code for no lane, to join", plain[0], 5, AnyCode, 0, fine, 3)
	set(anteroom.Lane{Name: "gold", Priority: 30})
	if now = now.Add(2 * time.Hour); m.HasLaneCodes(room) {
		t.Error("the codes have expired")
	}
}
