package manage

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// furnished returns a manager with something of everything.
func furnished(t testing.TB, link cluster.Link) *Manager {
	t.Helper()
	m, ctx := open(t, Config{Link: link, FirstToken: envToken, Webhooks: &sender{}}), t.Context()
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "furnished.test")).ID
	for _, name := range []string{"a", "b"} {
		r := shop(name)
		r.Routes[0].Host, r.CustomPageHTML = "www.furnished.test", "<p>the same page"
		made := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, r))
		must[anteroom.Event](t)(m.CreateEvent(ctx, root, zone, made.ID, anteroom.Event{Name: "e", Start: "2027-01-01T10:00:00Z", End: "2027-01-01T12:00:00Z",
			Overrides: anteroom.Overrides{CustomPageHTML: ptr("<p>its own page")}}))
		must[[]anteroom.Rule](t)(m.ChangeRules(ctx, root, zone, made.ID, func([]anteroom.Rule) ([]anteroom.Rule, error) {
			return []anteroom.Rule{{Action: anteroom.ActionBypass, Expression: `ip.src in {192.0.2.0/24}`}}, nil
		}))
	}
	must[anteroom.List](t)(m.CreateList(ctx, root, anteroom.List{Name: "offices", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "192.0.2.1"}}}))
	if _, _, err := m.CreateToken(ctx, root, TokenSpec{Name: "ops", Grants: root.Grants}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.CreateWebhook(ctx, root, anteroom.Webhook{Name: "on call", URL: "https://hooks.furnished.test/", Zone: zone}); err != nil {
		t.Fatal(err)
	}
	return m
}

func backupOf(t testing.TB, m *Manager, keys bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Backup(t.Context(), root, &b, keys); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// contents is what a state holds, without when it was written.
func contents(s *State) any {
	c := s.clone()
	c.seq, c.head, c.account.Seq = 0, "", 0
	return picture(c)
}

// keyStore are keys that only remember.
type keyStore struct{ now, before string }

func (k *keyStore) Rotate(context.Context, bool) error {
	k.before, k.now = k.now, k.now+"'"
	return nil
}
func (k *keyStore) Export() ([]byte, error) { return []byte(k.now), nil }
func (k *keyStore) Import(_ context.Context, b []byte) error {
	k.now = string(b)
	return nil
}
func (k *keyStore) Check(b []byte) error {
	if !strings.HasPrefix(string(b), "key") {
		return errors.New("these are no keys")
	}
	return nil
}

// TestBackupAndRestore brings everything to another process, which had something else.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from := furnished(t, memlink.New())
	from.cfg.Keys = &keyStore{now: "key of here"}
	backup := backupOf(t, from, true)

	link, keys := memlink.New(), &keyStore{now: "key of there"}
	to := open(t, Config{Link: link, Keys: keys})
	zone := must[anteroom.Zone](t)(to.CreateZone(ctx, root, "example.com"))
	r := shop("gone")
	r.CustomPageHTML = "gone"
	gone := must[anteroom.Room](t)(to.CreateRoom(ctx, root, zone.ID, r))
	by := root
	by.Token = to.State().tokens[0].ID
	got := must[Restored](t)(to.Restore(ctx, by, bytes.NewReader(backup)))
	if got.Zones != 1 || got.Rooms != 2 || got.Lists != 1 || !got.Keys || keys.now != "key of here" {
		t.Errorf("restored %+v, keys %q", got, keys.now)
	}
	if to.State().Room(gone.ID) != nil {
		t.Error("a room that was not in the backup is still there")
	}
	restored := func(m *Manager) any { // without the caller's token, which stays
		t.Helper()
		s := m.State().clone()
		if _, err := s.token(by.Token); err != nil || len(s.tokens) != 2 {
			t.Error("the caller's token is not there beside that of the backup")
		}
		s.setTokens(without(s.tokens, func(o *token) bool { return o.ID == by.Token }))
		return contents(s)
	}
	if x, n := changesOf(contents(from.State()), restored(to)); len(x)+n > 0 {
		t.Errorf("differs: %+v", x)
	}
	again := open(t, Config{Link: link})
	if x, n := changesOf(contents(from.State()), restored(again)); len(x)+n > 0 {
		t.Errorf("differs after a restart: %+v", x)
	}
	if pages := must[[]string](t)(link.Keys(ctx, pagePrefix)); len(pages) != 2 {
		t.Errorf("%d pages are stored, want the two of the backup", len(pages))
	}
	if _, _, err := again.VerifyAudit(ctx, root); err != nil {
		t.Error(err)
	}
	records := must[[]AuditRecord](t)(again.Audit(ctx, root, 0, 0))
	if last := records[len(records)-1]; last.Operation != "backup.restore" || last.Actor != "root" {
		t.Errorf("the last record is %+v", last)
	}
	// What was restored can be worked with.
	must[anteroom.Zone](t)(again.CreateZone(ctx, root, "example.com"))
}

// TestDamagedBackup changes bytes of a backup and cuts it at many lengths: it is refused and
// nothing has changed.
func TestDamagedBackup(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	m := open(t, Config{FirstToken: envToken})
	small := open(t, Config{FirstToken: envToken})
	must[anteroom.Zone](t)(small.CreateZone(t.Context(), root, "example.com"))
	good := backupOf(t, small, false)
	before := m.State()
	try := func(what string, i int, b []byte) {
		t.Helper()
		if _, err := m.Restore(t.Context(), root, bytes.NewReader(b)); anteroom.KindOf(err) != anteroom.Invalid {
			t.Fatalf("%s %d: %v", what, i, err)
		}
	}
	text := unzip(t, good)
	for i := range text {
		bad := bytes.Clone(text)
		if bad[i] ^= 1; i%2 == 0 {
			try("byte of the text", i, zipped(t, bad))
		}
		if i%7 == 0 && i < len(text)-1 { // the last line needs no end
			try("text cut at", i, zipped(t, text[:i]))
		}
	}
	for i := 0; i < len(good); i += 3 {
		if i >= 4 && i < 10 { // gzip's own time, level and system mean nothing
			continue
		}
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if r, err := gzip.NewReader(bytes.NewReader(bad)); err == nil {
			if got, err := io.ReadAll(r); err == nil && bytes.Equal(got, text) {
				continue // one of the bits that fill up the last byte
			}
		}
		try("byte", i, bad)
		try("cut at", i, good[:i])
	}
	try("twice", 0, zipped(t, append(bytes.Clone(text), text...)))
	if m.State() != before {
		t.Error("something has changed")
	}
	if _, err := m.Restore(t.Context(), root, bytes.NewReader(good)); err != nil {
		t.Error(err)
	}
}

func unzip(t testing.TB, b []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return must[[]byte](t)(io.ReadAll(r))
}

func zipped(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBackupHoldsNoSecretOfTokens: tokens are in it as hashes, ticket keys only when asked for.
func TestBackupHoldsNoSecretOfTokens(t *testing.T) {
	t.Parallel()
	m := open(t, Config{Keys: &keyStore{now: "key of here"}})
	text := string(unzip(t, backupOf(t, m, false)))
	if m.FirstToken() == "" || strings.Contains(text, m.FirstToken()) || strings.Contains(text, AuthKey(m.FirstToken())) || strings.Contains(text, "key of here") {
		t.Error("the backup holds a secret")
	}
	if !strings.Contains(string(unzip(t, backupOf(t, m, true))), "key of here") {
		t.Error("the backup does not hold the keys that were asked for")
	}
	if err := m.Backup(t.Context(), Caller{Grants: []Grant{{Permission: Edit}}}, io.Discard, false); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("a backup without the permission: %v", err)
	}
}

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }
