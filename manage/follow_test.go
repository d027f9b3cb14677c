package manage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// follower is a manager of a node of several, and follows.
type follower struct {
	*Manager
	link  cluster.Link
	stop  context.CancelFunc
	ended chan error
}

func join(t *testing.T, w *memlink.World, site, node string, cfg Config) *follower {
	t.Helper()
	f := &follower{link: w.Join(site, node), ended: make(chan error, 1)}
	if cfg.Link == nil {
		cfg.Link = f.link
	}
	cfg.Webhooks = &sender{}
	f.Manager = open(t, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	go func() { f.ended <- f.Follow(ctx) }()
	return f
}

func (f *follower) leave() {
	f.stop()
	<-f.ended
	f.link.Close()
}

// bubble runs a test of several nodes in virtual time.
func bubble(t *testing.T, test func(t *testing.T, w *memlink.World)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, memlink.NewWorld()) })
}

// agree lets news spread, and checks that all have the same in force, which is what a start finds.
func agree(t *testing.T, all ...*follower) {
	t.Helper()
	synctest.Wait()
	for _, f := range all[1:] {
		same(t, all[0].State(), f.State())
		order := func(s *State) (ids []string) {
			for _, r := range s.rooms {
				ids = append(ids, string(r.ID))
			}
			for _, z := range s.Zones() {
				ids = append(ids, string(z.ID))
			}
			return ids
		}
		if a, b := order(all[0].State()), order(f.State()); !slices.Equal(a, b) {
			t.Errorf("orders differ: %q, %q", a, b)
		}
	}
	same(t, all[0].State(), open(t, Config{Link: all[0].link, FirstToken: envToken, FileRooms: all[0].cfg.FileRooms}).State())
}

func TestNodesFollow(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		ctx, file := t.Context(), []anteroom.Room{fileRoom()}
		cfg := Config{FirstToken: envToken, FileRooms: file}
		a, b, c := join(t, w, "dublin", "a", cfg), join(t, w, "dublin", "b", cfg), join(t, w, "sydney", "c", cfg)
		defer a.leave()
		defer b.leave()
		defer c.leave()
		zone := must[anteroom.Zone](t)(a.CreateZone(ctx, root, "example.com")).ID
		agree(t, a, b, c)
		page := shop("sale")
		page.CustomPageHTML = "<p>{{waitTime}}</p>"
		room := must[anteroom.Room](t)(b.CreateRoom(ctx, root, zone, page)).ID
		agree(t, a, b, c)
		list := must[anteroom.List](t)(c.CreateList(ctx, root, anteroom.List{Name: "friends", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "192.0.2.1"}}})).ID
		agree(t, a, b, c)
		must[[]anteroom.Rule](t)(a.ChangeRules(ctx, root, zone, room, func(rules []anteroom.Rule) ([]anteroom.Rule, error) {
			return append(rules, anteroom.Rule{Action: anteroom.ActionBypass, Expression: "ip.src in $friends"}), nil
		}))
		agree(t, a, b, c)
		if r := c.State().Room(room); r.Bypass == nil || r.Template == nil || r.CustomPageHTML != page.CustomPageHTML {
			t.Errorf("what was made of the room is missing: %+v", r)
		}
		was := b.State().Room(room).Bypass
		must[anteroom.List](t)(a.ChangeList(ctx, root, list, func(l *anteroom.List) error {
			l.Items = append(l.Items, anteroom.ListItem{Value: "192.0.2.2"})
			return nil
		}))
		agree(t, a, b, c)
		if b.State().Room(room).Bypass == was {
			t.Error("the rules were not compiled anew with the changed list")
		}
		event := must[anteroom.Event](t)(b.CreateEvent(ctx, root, zone, room, anteroom.Event{Name: "launch",
			Start: "2027-01-01T10:00:00Z", End: "2027-01-01T12:00:00Z", Overrides: anteroom.Overrides{CustomPageHTML: ptr("<b>{{eventStartTime}}</b>")}})).ID
		agree(t, a, b, c)
		if c.State().Room(room).EventTemplates[event] == nil {
			t.Error("the event's page is missing")
		}
		must[anteroom.Controls](t)(c.ChangeControls(ctx, root, anteroom.ZoneIDOf("file.test"), file[0].ID, func(c *anteroom.Controls) error { c.Paused = true; return nil }))
		agree(t, a, b, c)
		if !a.State().Room(file[0].ID).Controls.Paused {
			t.Error("the room of the file is not paused at the other node")
		}
		must[anteroom.Zone](t)(a.ChangeZone(ctx, root, zone, func(z *anteroom.Zone) error { z.SearchEngineCrawlerBypass = true; return nil }))
		must[anteroom.Zone](t)(a.ChangeZone(ctx, root, anteroom.ZoneIDOf("file.test"), func(z *anteroom.Zone) error { z.SearchEngineCrawlerBypass = true; return nil }))
		tok, secret, err := b.CreateToken(ctx, root, TokenSpec{Name: "t", Grants: root.Grants})
		if err != nil {
			t.Fatal(err)
		}
		agree(t, a, b, c)
		if _, err := c.Authenticate(secret, root.Address, ""); err != nil {
			t.Errorf("a token of another node: %v", err)
		}
		hook, _, err := b.CreateWebhook(ctx, root, anteroom.Webhook{Name: "on call", URL: "https://hooks.example.com/", Zone: zone})
		if err != nil {
			t.Fatal(err)
		}
		agree(t, a, b, c)
		if got := c.SignedWebhooks(); len(got) != 1 || len(got[0].Secrets) != 1 || got[0].ID != hook.ID {
			t.Errorf("webhooks of another node: %+v", got)
		}
		if err := c.DeleteWebhook(ctx, root, hook.ID); err != nil {
			t.Fatal(err)
		}
		agree(t, a, b, c)
		for i := range 40 { // staged, as the record would be too long
			must[[]anteroom.Rule](t)(c.ChangeRules(ctx, root, zone, room, func(rules []anteroom.Rule) ([]anteroom.Rule, error) {
				return append(rules, anteroom.Rule{Action: anteroom.ActionBypass, Expression: fmt.Sprintf(`http.host eq "%d%s"`, i, strings.Repeat("x", 300))}), nil
			}))
		}
		agree(t, a, b, c)
		if err := errors.Join(a.DeleteToken(ctx, root, tok.ID), b.DeleteEvent(ctx, root, zone, room, event)); err != nil {
			t.Error(err)
		}
		if _, err := c.Authenticate(secret, root.Address, ""); err != nil {
			synctest.Wait()
		}
		agree(t, a, b, c)
		backup := backupOf(t, a.Manager, false)
		if err := errors.Join(c.DeleteRoom(ctx, root, zone, room), c.DeleteZone(ctx, root, zone), c.DeleteList(ctx, root, list)); err != nil {
			t.Error(err)
		}
		agree(t, a, b, c)
		if _, err := b.Restore(ctx, root, bytes.NewReader(backup)); err != nil {
			t.Error(err)
		}
		agree(t, a, b, c)
		if n, _, err := c.VerifyAudit(ctx, root); err != nil || uint64(n) != c.State().Seq() {
			t.Errorf("%d records, %v", n, err)
		}
		// What nobody needs goes after a while, and only that.
		time.Sleep(3 * sweepEvery)
		if keys := must[[]string](t)(a.link.Keys(ctx, stagePrefix)); len(keys) > 0 {
			t.Errorf("staged keys stay: %q", keys)
		}
		if keys := must[[]string](t)(a.link.Keys(ctx, pagePrefix)); len(keys) != 1 || keys[0] != pageKey(page.CustomPageHTML) {
			t.Errorf("pages %q", keys)
		}
		agree(t, a, b, c)
	})
}

// TestPagesThatComeBack: a page that nobody names is kept from being removed by whoever names it
// again, at any moment.
func TestPagesThatComeBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		ctx, cfg := t.Context(), Config{FirstToken: envToken}
		a, b := join(t, w, "dublin", "a", cfg), join(t, w, "sydney", "b", cfg)
		defer a.leave()
		defer b.leave()
		zone := must[anteroom.Zone](t)(a.CreateZone(ctx, root, "example.com")).ID
		room := must[anteroom.Room](t)(a.CreateRoom(ctx, root, zone, shop("sale"))).ID
		page := func(m *follower, html string) {
			t.Helper()
			must[anteroom.Room](t)(m.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error { r.CustomPageHTML = html; return nil }))
			synctest.Wait()
		}
		for _, after := range []time.Duration{0, time.Second, sweepEvery - time.Second, sweepEvery, sweepEvery + 500*time.Millisecond, 2 * sweepEvery} {
			page(a, "<p>one</p>")
			page(a, "<p>two</p>")
			time.Sleep(after)
			page(b, "<p>one</p>")
			time.Sleep(3 * sweepEvery)
			agree(t, a, b)
		}
	})
}

// TestFirstStartOfSeveral: nodes that start at once on nothing make one account and one token.
func TestFirstStartOfSeveral(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		const nodes = 6
		all := make([]*Manager, nodes)
		var wg sync.WaitGroup
		for i := range all {
			link := w.Join([]string{"dublin", "sydney"}[i%2], fmt.Sprint("n", i))
			wg.Go(func() {
				m, err := Open(context.Background(), Config{Link: link})
				if err != nil {
					t.Error(err)
				}
				all[i] = m
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		first := 0
		for _, m := range all {
			if m.FirstToken() != "" {
				first++
			}
			if m.State().account.ID != all[0].State().account.ID || len(m.State().tokens) > 1 {
				t.Errorf("account %s, %d tokens", m.State().account.ID, len(m.State().tokens))
			}
		}
		last := open(t, Config{Link: w.Join("sydney", "late")})
		if first != 1 || len(last.State().tokens) != 1 || last.FirstToken() != "" || last.State().seq != 2 {
			t.Errorf("%d first tokens, %d stored, %d records", first, len(last.State().tokens), last.State().seq)
		}
	})
}

// meanwhile lets something else happen once, after the audit records have been looked for.
type meanwhile struct {
	cluster.Link
	what func()
	once sync.Once
}

func (l *meanwhile) Keys(ctx context.Context, prefix string) ([]string, error) {
	keys, err := l.Link.Keys(ctx, prefix)
	if prefix == auditPrefix {
		l.once.Do(l.what)
	}
	return keys, err
}

// TestAnotherFoundsTheStoreMeanwhile: a node that found no record, and then the documents that another has made since, starts with them.
func TestAnotherFoundsTheStoreMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		var other *Manager
		slow := open(t, Config{Link: &meanwhile{Link: w.Join("dublin", "a"), what: func() { other = open(t, Config{Link: w.Join("sydney", "b")}) }}})
		if slow.State().account.ID != other.State().account.ID || len(slow.State().tokens) != 1 || slow.FirstToken() != "" || other.FirstToken() == "" {
			t.Errorf("accounts %s and %s, %d tokens", slow.State().account.ID, other.State().account.ID, len(slow.State().tokens))
		}
	})
}

// TestChangesOfSeveralAtOnce: none is lost, none is made on what was not in force.
func TestChangesOfSeveralAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		ctx, cfg := t.Context(), Config{FirstToken: envToken}
		all := []*follower{join(t, w, "dublin", "a", cfg), join(t, w, "dublin", "b", cfg), join(t, w, "sydney", "c", cfg), join(t, w, "sydney", "d", cfg)}
		zone := must[anteroom.Zone](t)(all[0].CreateZone(ctx, root, "example.com")).ID
		room := must[anteroom.Room](t)(all[0].CreateRoom(ctx, root, zone, shop("sale"))).ID
		synctest.Wait()
		const each = 30
		var wg sync.WaitGroup
		for _, f := range all {
			wg.Go(func() {
				for range each {
					if _, err := f.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error { r.TotalActiveUsers++; return nil }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		agree(t, all...)
		if n := all[3].State().Room(room).TotalActiveUsers; n != 300+4*each {
			t.Errorf("%d changes arrived, want %d", n-300, 4*each)
		}
		if n, _, err := all[1].VerifyAudit(ctx, root); err != nil || n != 3+4*each {
			t.Errorf("%d records, %v", n, err)
		}
		for _, f := range all {
			f.leave()
		}
	})
}

// TestLongChangesAtOnce: what several nodes stage for the same record does not mix.
func TestLongChangesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		ctx, cfg := t.Context(), Config{FirstToken: envToken}
		all := []*follower{join(t, w, "dublin", "a", cfg), join(t, w, "dublin", "b", cfg), join(t, w, "sydney", "c", cfg)}
		zone := must[anteroom.Zone](t)(all[0].CreateZone(ctx, root, "example.com")).ID
		var rooms []anteroom.RoomID
		for i := range all {
			rooms = append(rooms, must[anteroom.Room](t)(all[0].CreateRoom(ctx, root, zone, shop(fmt.Sprint("sale", i)))).ID)
		}
		synctest.Wait()
		const each = 10
		var wg sync.WaitGroup
		for i, f := range all {
			wg.Go(func() {
				for n := range each {
					if _, err := f.ChangeRules(ctx, root, zone, rooms[i], func([]anteroom.Rule) (rules []anteroom.Rule, err error) {
						for j := range 40 {
							rules = append(rules, anteroom.Rule{Action: anteroom.ActionBypass, Expression: fmt.Sprintf(`http.host eq "%d-%d-%d%s"`, i, n, j, strings.Repeat("x", 300))})
						}
						return rules, nil
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		agree(t, all...)
		for i, room := range rooms {
			if r := all[0].State().Room(room).Rules; len(r) != 40 || !strings.HasPrefix(r[7].Expression, fmt.Sprintf(`http.host eq "%d-%d-7x`, i, each-1)) {
				t.Errorf("room %d has %d rules, the last %.40q", i, len(r), r[len(r)-1].Expression)
			}
		}
		time.Sleep(3 * sweepEvery)
		if keys := must[[]string](t)(all[0].link.Keys(ctx, stagePrefix)); len(keys) > 0 {
			t.Errorf("staged keys stay: %q", keys)
		}
		agree(t, all...)
		for _, f := range all {
			f.leave()
		}
	})
}

// TestWriterThatDies: a node dies at any of the writes of a change. The others have the change in force
// exactly if it happened, and go on changing.
func TestWriterThatDies(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		ctx, cfg := t.Context(), Config{FirstToken: envToken}
		b := join(t, w, "sydney", "b", cfg)
		defer b.leave()
		zone := must[anteroom.Zone](t)(b.CreateZone(ctx, root, "example.com")).ID
		room := must[anteroom.Room](t)(b.CreateRoom(ctx, root, zone, shop("sale"))).ID
		happened := 0
		for k := 1; k <= 8; k++ {
			for _, done := range []bool{false, true} {
				link := w.Join("dublin", "a")
				dying := open(t, Config{Link: link, FirstToken: envToken})
				dying.cfg.Link = &failing{Link: link, left: k, done: done}
				html := fmt.Sprintf("<p>%d %v %s</p>", k, done, strings.Repeat("staged ", 2000))
				seq := b.State().Seq()
				_, err := dying.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error {
					r.CustomPageHTML, r.Description = html, strings.Repeat("d", 200)
					for range 9 {
						r.Rules = append(r.Rules, anteroom.Rule{})
					}
					r.Rules = r.Rules[:len(r.Rules)-9]
					return nil
				})
				link.Close()
				synctest.Wait()
				changed := b.State().Room(room).CustomPageHTML == html
				if err == nil && !changed || changed != (b.State().Seq() == seq+1) {
					t.Errorf("write %d, done %v: %v, changed %v", k, done, err, changed)
				}
				if changed {
					happened++
				}
				must[anteroom.Room](t)(b.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error { r.TotalActiveUsers++; return nil }))
				agree(t, b)
			}
		}
		if happened < 5 {
			t.Errorf("only %d changes of those who died happened", happened)
		}
		if n, _, err := b.VerifyAudit(ctx, root); err != nil || uint64(n) != b.State().Seq() {
			t.Errorf("%d records, %v", n, err)
		}
	})
}

// TestNodeThatIsCut: it keeps what it has, refuses changes, starts from its copy, and has
// everything when it is back.
func TestNodeThatIsCut(t *testing.T) {
	for _, cut := range []memlink.Cut{memlink.Both, memlink.In, memlink.Out} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *memlink.World) {
				ctx, cfg := t.Context(), Config{FirstToken: envToken, Keys: &keyStore{now: "keys"}}
				a, b := join(t, w, "dublin", "a", cfg), join(t, w, "sydney", "b", cfg)
				defer a.leave()
				defer b.leave()
				zone := must[anteroom.Zone](t)(a.CreateZone(ctx, root, "example.com")).ID
				room := must[anteroom.Room](t)(a.CreateRoom(ctx, root, zone, shop("sale"))).ID
				set := func(m *follower, n int) error {
					_, err := m.ChangeRoom(ctx, root, zone, room, func(r *anteroom.Room) error { r.TotalActiveUsers = n; return nil })
					return err
				}
				synctest.Wait()
				w.CutSite("sydney", cut)
				if err := set(b, 1000); anteroom.KindOf(err) != anteroom.Unavailable || !errors.Is(err, cluster.ErrUnavailable) {
					t.Errorf("a change without touch: %v", err)
				}
				if got := b.State().Room(room); got == nil || got.TotalActiveUsers != 300 {
					t.Errorf("without touch: %+v", got)
				}
				if _, err := readBackup(bytes.NewReader(backupOf(t, b.Manager, false))); err != nil {
					t.Errorf("the backup made without touch: %v", err)
				}
				if err := b.Backup(ctx, root, io.Discard, true); anteroom.KindOf(err) != anteroom.Unavailable || !strings.Contains(err.Error(), "without keys") {
					t.Errorf("a backup with keys that nobody can record: %v", err)
				}
				if err := set(a, 2000); err != nil {
					t.Error(err)
				}
				late := open(t, Config{Link: w.Join("sydney", "c"), FirstToken: envToken})
				if late.State().Room(room) == nil {
					t.Error("a node that starts without touch knows nothing")
				}
				w.CutSite("sydney", memlink.None)
				time.Sleep(3 * followAgain)
				agree(t, a, b)
				if n := b.State().Room(room).TotalActiveUsers; n != 2000 {
					t.Errorf("after the cut: %d", n)
				}
				if err := errors.Join(set(b, 3000), set(a, 4000)); err != nil {
					t.Error(err)
				}
				agree(t, a, b)
			})
		})
	}
}

// TestStartFromACopyThatIsOld: it has a document that was deleted, and no record says so any more.
func TestStartFromACopyThatIsOld(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		ctx, cfg := t.Context(), Config{FirstToken: envToken}
		a, first := join(t, w, "dublin", "a", cfg), join(t, w, "sydney", "b", cfg)
		defer a.leave()
		gone := must[anteroom.Zone](t)(a.CreateZone(ctx, root, "gone.example.com")).ID
		kept := must[anteroom.Zone](t)(a.CreateZone(ctx, root, "example.com")).ID
		synctest.Wait()
		w.CutSite("sydney", memlink.Both)
		first.leave()
		b := join(t, w, "sydney", "c", cfg)
		defer b.leave()
		if err := a.link.Delete(ctx, zonePrefix+string(gone)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * followAgain)
		if _, ok := b.State().ZoneNamed("gone.example.com"); !ok {
			t.Error("a node that starts without touch has forgotten a zone")
		}
		w.CutSite("sydney", memlink.None)
		time.Sleep(3 * followAgain)
		synctest.Wait()
		if _, ok := b.State().ZoneNamed("gone.example.com"); ok {
			t.Error("what was deleted stays in force")
		}
		if z, ok := b.State().ZoneNamed("example.com"); !ok || z.ID != kept {
			t.Error("what was not deleted is gone")
		}
	})
}

// TestFollowerThatMissedRecords: the log was cut while it was away.
func TestFollowerThatMissedRecords(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		ctx, cfg := t.Context(), Config{FirstToken: envToken}
		a, b := join(t, w, "dublin", "a", cfg), join(t, w, "sydney", "b", cfg)
		defer a.leave()
		defer b.leave()
		w.CutSite("sydney", memlink.Both)
		for i := range 10 {
			must[anteroom.Zone](t)(a.CreateZone(ctx, root, fmt.Sprintf("%d.example.com", i)))
		}
		before := must[entry](t)(a.auditEntry(ctx, 6))
		for seq := uint64(1); seq <= 6; seq++ {
			if err := a.link.Delete(ctx, auditKey(seq)); err != nil {
				t.Fatal(err)
			}
		}
		data := must[[]byte](t)(encode(anchorDocument{header{documentVersion, 11}, 7, before.Hash}))
		must[uint64](t)(a.link.Put(ctx, anchorKey, data))
		w.CutSite("sydney", memlink.None)
		time.Sleep(time.Second)
		agree(t, a, b)
		if n := len(b.State().Zones()); n != 10 {
			t.Errorf("%d zones", n)
		}
	})
}

// TestFilesThatDiffer: each node serves the rooms of its own file. What the API adds must fit
// into each; where it does not, that node stays at what it had and says so.
func TestFilesThatDiffer(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		ctx, one, two := t.Context(), fileRoom(), shop("other")
		two.Zone, two.Routes[0].Host = "file.test", "two.file.test"
		two = two.WithDefaults()
		a := join(t, w, "dublin", "a", Config{FirstToken: envToken, FileRooms: []anteroom.Room{one}})
		b := join(t, w, "dublin", "b", Config{FirstToken: envToken, FileRooms: []anteroom.Room{two}})
		defer a.leave()
		defer b.leave()
		pause := func(m *follower, id anteroom.RoomID) {
			t.Helper()
			must[anteroom.Controls](t)(m.ChangeControls(ctx, root, anteroom.ZoneIDOf(one.Zone), id, func(c *anteroom.Controls) error { c.Paused = true; return nil }))
			synctest.Wait()
		}
		pause(a, one.ID)
		pause(b, two.ID)
		if !a.State().Room(one.ID).Controls.Paused || !b.State().Room(two.ID).Controls.Paused || a.State().Room(two.ID) != nil {
			t.Error("each has its own rooms, paused")
		}
		again := open(t, Config{Link: a.link, FirstToken: envToken, FileRooms: []anteroom.Room{one, two}})
		if !again.State().Room(one.ID).Controls.Paused || !again.State().Room(two.ID).Controls.Paused {
			t.Error("the other's pause took one back")
		}
		zone := must[anteroom.Zone](t)(a.ChangeZone(ctx, root, anteroom.ZoneIDOf(one.Zone), func(z *anteroom.Zone) error { z.SearchEngineCrawlerBypass = true; return nil })).ID
		synctest.Wait()
		r := shop("clash")
		r.Routes = two.Routes
		room := must[anteroom.Room](t)(a.CreateRoom(ctx, root, zone, r)).ID
		synctest.Wait()
		if a.State().Room(room) == nil || b.State().Room(room) != nil {
			t.Error("a room that is in conflict with the other node's file")
		}
		if _, err := b.CreateZone(ctx, root, "example.com"); err == nil {
			t.Error("a node that cannot follow changes something")
		}
		if err := a.DeleteRoom(ctx, root, zone, room); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * followAgain)
		if a.State().Seq() != b.State().Seq() {
			t.Errorf("records %d and %d", a.State().Seq(), b.State().Seq())
		}
	})
}

// TestDoorsThatCannotFollow: the state stays, and follows when they can.
func TestDoorsThatCannotFollow(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		ctx := t.Context()
		var mu sync.Mutex
		broken := false
		a := join(t, w, "dublin", "a", Config{FirstToken: envToken})
		b := join(t, w, "dublin", "b", Config{FirstToken: envToken, Prepare: func(context.Context, *State) (func(bool), error) {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				return nil, errors.New("no")
			}
			return func(bool) {}, nil
		}})
		defer a.leave()
		defer b.leave()
		mu.Lock()
		broken = true
		mu.Unlock()
		for i := range 3 {
			must[anteroom.Zone](t)(a.CreateZone(ctx, root, fmt.Sprintf("%d.example.com", i)))
		}
		time.Sleep(10 * time.Second)
		if n := len(b.State().Zones()); n != 0 {
			t.Errorf("%d zones in force without their doors", n)
		}
		mu.Lock()
		broken = false
		mu.Unlock()
		time.Sleep(2 * followAgain)
		agree(t, a, b)
	})
}

func TestFollowEndsWithTheLink(t *testing.T) {
	bubble(t, func(t *testing.T, w *memlink.World) {
		a := join(t, w, "dublin", "a", Config{FirstToken: envToken})
		a.link.Close()
		if err := <-a.ended; !errors.Is(err, cluster.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		a.stop()
	})
}
