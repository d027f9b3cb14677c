package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/internal/freeport"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/ticket"
)

// eventually waits until ok says so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(20*time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer limit.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("after %v: %s", patience, what)
		}
	}
}

// corePorts is how many ports a core has in a row.
const corePorts = 3

const clusterSecret = "b0a5c93e17f24d68ae4c71d3920fb85e6d1a4c07f3b92e58\n"

// prepareCore returns a core named first, which is not started yet, with more in its file, and its address for other nodes.
func prepareCore(t *testing.T, more string) (*running, string) {
	t.Helper()
	at := freeport.Address(t, corePorts)
	r := prepareServer(t, listenAnywhere+more+"cluster: {listen: \""+at+"\", node: first, secret_file: secret}\n")
	mustWrite(t, filepath.Join(r.dir, "secret"), clusterSecret)
	return r, at
}

// prepareEdge returns an edge of that core, named second, which is not started yet.
func prepareEdge(t *testing.T, core, secret, more string) *running {
	t.Helper()
	r := prepareServer(t, listenAnywhere+more+"# sites: those of the others\ncluster: {join: [\""+core+"\"], node: second, secret_file: secret}\n")
	mustWrite(t, filepath.Join(r.dir, "secret"), secret)
	return r
}

// A process alone becomes the core of a cluster, a second node joins with an address and the
// secret: sessions, places, rooms, keys and changes are the same at both.
func TestAProcessBecomesACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	r := startServer(t, roomForTwo)
	inside, outside := fill(t, r)
	core := freeport.Address(t, corePorts)
	mustWrite(t, filepath.Join(r.dir, "secret"), clusterSecret)
	r.write(listenAnywhere + roomForTwo + "cluster: {listen: \"" + core + "\", node: first, secret_file: secret}\n")
	r.start()
	if _, err := net.Dial("tcp", core); err != nil {
		t.Errorf("the core does not listen: %v", err)
	}

	second := prepareEdge(t, core, clusterSecret, "")
	second.start()
	for _, at := range []*running{r, second, r, second} {
		for i, c := range inside {
			if a := at.visit("/", c...); !a.isIn() {
				t.Errorf("session %d is gone", i)
			}
		}
		if a := at.visit("/", outside...); a.isIn() {
			t.Error("three are in")
		}
	}
	eventually(t, "the line is not what it was", func() bool {
		second.visit("/", outside...) // who does not come back counts no more
		st := second.s.Status()
		return len(st) == 1 && st[0].ActiveUsers == 2 && st[0].Waiting == 1
	})

	// What is changed at one is in force at the other, durable before it was answered.
	if _, err := second.s.Manager().CreateZone(t.Context(), operator, "example.org"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node does not know the zone", func() bool {
		_, ok := r.s.Manager().State().ZoneNamed("example.org")
		return ok
	})
	if _, err := r.s.Manager().CreateZone(t.Context(), operator, "example.net"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node does not know the zone", func() bool {
		_, ok := second.s.Manager().State().ZoneNamed("example.net")
		return ok
	})

	st, err := second.s.Manager().Cluster(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, n := range st.Nodes {
		nodes = append(nodes, fmt.Sprint(n.Node, n.Core, n.Version))
	}
	if got := strings.Join(nodes, " "); got != "firsttruetest secondfalsetest" || st.Node != "second" || st.Site != "local" || !st.Hub {
		t.Errorf("status: %s, %+v", got, st)
	}

	// What the configuration file of the first says reaches the second, and both say that theirs is the same.
	files := func(not string) (same string) {
		eventually(t, "the nodes have different configurations, or that of before", func() bool {
			st, err := second.s.Manager().Cluster(t.Context(), operator)
			if err != nil || len(st.Nodes) != 2 {
				return false
			}
			same = st.Nodes[0].Files
			return same == st.Nodes[1].Files && same != "" && same != not
		})
		return same
	}
	before := files("")
	mark := second.log.mark()
	r.write(listenAnywhere + strings.ReplaceAll(roomForTwo, "total_active_users: 2", "total_active_users: 3") + "cluster: {listen: \"" + core + "\", node: first, secret_file: secret}\n")
	if err := r.s.Reload(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	second.log.await(t, mark, "configuration reloaded")
	if n := second.s.Config().Rooms[0].TotalActiveUsers; n != 3 {
		t.Errorf("%d at the second node", n)
	}
	files(before)
}

// A new key seals when every node knows it, and what the old one sealed stays good.
func TestKeysAreTheClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	r, core := prepareCore(t, oneRoom)
	r.start()
	second := prepareEdge(t, core, clusterSecret, "")
	second.start()
	var in []*http.Cookie
	eventually(t, "nobody is let in", func() bool {
		a := r.visit("/", in...)
		if c := a.Cookies(); len(c) > 0 {
			in = c
		}
		return a.isIn()
	})
	if err := (keys{second.s}).Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	marks := []int{r.log.mark(), second.log.mark()}
	for i, one := range []*running{r, second} {
		one.log.await(t, marks[i]/2, "configuration reloaded")
		if a := one.visit("/", in...); !a.isIn() {
			t.Error("a ticket is worthless after the rotation")
		}
	}
	copied, err := (keys{r.s}).Export()
	if err != nil {
		t.Fatal(err)
	}
	if err := (keys{second.s}).Import(t.Context(), copied); err != nil {
		t.Error(err)
	}
	if err := (keys{r.s}).Import(t.Context(), []byte("{}")); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("%v", err)
	}
}

// After a leak, no earlier key opens a ticket at any node, nor does one that was about to seal.
func TestKeysOfAClusterAreForgotten(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	r, core := prepareCore(t, oneRoom)
	r.start()
	second := prepareEdge(t, core, clusterSecret, "")
	second.start()
	var in []*http.Cookie
	eventually(t, "nobody is let in", func() bool {
		a := r.visit("/", in...)
		if c := a.Cookies(); len(c) > 0 {
			in = c
		}
		return a.isIn()
	})
	ids := func() (all []string) {
		t.Helper()
		copied, err := (keys{r.s}).Export()
		if err != nil {
			t.Fatal(err)
		}
		ring, err := ticket.FromExport(copied)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range ring.Keys() {
			all = append(all, k.ID)
		}
		return all
	}
	if err := (keys{r.s}).Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	before := ids()
	if err := (keys{second.s}).Rotate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if len(before) != 2 {
		t.Errorf("keys: %v", before)
	}
	eventually(t, "the earlier keys are not forgotten", func() bool {
		after := ids()
		return len(after) == 1 && !slices.Contains(before, after[0])
	})
	for _, one := range []*running{r, second} {
		eventually(t, "a ticket under a key that was forgotten is good", func() bool { return !one.visit("/", in...).isIn() })
	}
}

// Edges that share a secret have a name of their own each, for as long as their data directory.
func TestEdgesThatShareASecretHaveNames(t *testing.T) {
	named := func(data, node string) string {
		t.Helper()
		name, err := nodeName(config.Config{Data: data, Cluster: config.Cluster{Node: node}})
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	one, other := t.TempDir(), t.TempDir()
	first := named(one, "edge-")
	if !strings.HasPrefix(first, "edge-") || len(first) != len("edge-")+8 {
		t.Errorf("the first edge is called %q", first)
	}
	if again := named(one, "edge-"); again != first {
		t.Errorf("it is called %q after a restart, and was %q", again, first)
	}
	if second := named(other, "edge-"); second == first {
		t.Error("two edges have one name")
	}
	if moved := named(one, "web-"); !strings.HasPrefix(moved, "web-") {
		t.Errorf("with another beginning it is called %q", moved)
	}
	if whole := named(one, "edge-1"); whole != "edge-1" {
		t.Errorf("with a name it is called %q", whole)
	}
}

// An edge with a secret of its own serves visitors as any node does. By that secret nobody makes a token of operators, a change
// or a backup: not with its process, and not with another one that speaks the cluster's language.
func TestAnEdgesSecretMakesNoTokenAndNoBackup(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	r, core := prepareCore(t, oneRoom)
	r.start()
	secret, err := EdgeSecret(strings.TrimSpace(clusterSecret), "anteroom", "second")
	if err != nil {
		t.Fatal(err)
	}
	edge := prepareEdge(t, core, secret+"\n", "")
	edge.start()

	var in []*http.Cookie
	admitted := func(at *running) func() bool {
		return func() bool {
			a := at.visit("/", in...)
			if c := a.Cookies(); len(c) > 0 {
				in = c
			}
			return a.isIn()
		}
	}
	eventually(t, "nobody is admitted at the edge", admitted(edge))
	eventually(t, "the core does not know the session", admitted(r))
	mark := edge.log.mark()
	if err := (keys{r.s}).Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	edge.log.await(t, mark, "configuration reloaded")
	if !admitted(edge)() {
		t.Error("a ticket is worthless after the rotation")
	}
	if _, err := r.s.Manager().CreateZone(t.Context(), operator, "example.org"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the edge does not know the zone", func() bool {
		_, ok := edge.s.Manager().State().ZoneNamed("example.org")
		return ok
	})
	_, err = (sites{edge.s}).AddCores(t.Context(), func() error { return nil })
	refused(t, err, anteroom.Invalid, "only a core knows and changes the cores of its site: ask at one")
	tokens := func() int {
		all, err := r.s.Manager().Tokens(operator)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := tokens()

	m := edge.s.Manager()
	for name, try := range map[string]func() error{
		"a zone": func() error { _, err := m.CreateZone(t.Context(), operator, "example.net"); return err },
		"a token": func() error {
			_, _, err := m.CreateToken(t.Context(), operator, manage.TokenSpec{Name: "mine", Grants: operator.Grants, NeverExpires: true})
			return err
		},
		"a backup":           func() error { return m.Backup(t.Context(), operator, io.Discard, false) },
		"a backup with keys": func() error { return m.Backup(t.Context(), operator, io.Discard, true) },
		"a rotation":         func() error { return (keys{edge.s}).Rotate(t.Context(), false) },
		"the keys":           func() error { _, err := (keys{edge.s}).Export(); return err },
	} {
		if err := try(); anteroom.KindOf(err) != anteroom.Elsewhere || !strings.Contains(err.Error(), "the admin address of a core") {
			t.Errorf("%s: %v", name, err)
		}
	}

	// A process that is not ours.
	link, err := natslink.Join(t.Context(), natslink.ClusterConfig{Dir: t.TempDir(), Cluster: "anteroom", Node: "second", Secret: secret, Join: []string{core}})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	for _, key := range []string{"manage.token.0123456789abcdef0123456789abcdef", "manage.audit.00000000000000ff", "keys.ring", "keys.edges"} {
		if _, err := link.Put(t.Context(), key, []byte("{}")); err == nil {
			t.Errorf("%s was written", key)
		}
	}
	shared, err := natslink.EdgeKey(secret, "anteroom")
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := link.Get(t.Context(), ringKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ticket.OpenRing(sealed.Value, "anteroom", shared, secret); err == nil {
		t.Error("the cores' ring opens with what an edge has")
	}
	if n := tokens(); n != before {
		t.Errorf("there are %d tokens, were %d", n, before)
	}
}

// A token is revoked, and something else is changed, while a node is down. When it starts again, it may have no other news of the
// token than what is stored by then.
func TestWhatWasDeletedWhileANodeWasDownStaysDeleted(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	r, core := prepareCore(t, oneRoom)
	r.start()
	edge := prepareEdge(t, core, clusterSecret, "")
	edge.start()
	at := r.s.Manager()
	leaked, _, err := at.CreateToken(t.Context(), operator, manage.TokenSpec{Name: "leaked", Grants: operator.Grants, NeverExpires: true})
	if err != nil {
		t.Fatal(err)
	}
	known := func(x *running) bool {
		all, err := x.s.Manager().Tokens(operator)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(o manage.Token) bool { return o.ID == leaked.ID })
	}
	eventually(t, "the edge does not know the token", func() bool { return known(edge) })
	if err := edge.end(); err != nil {
		t.Fatal(err)
	}
	if err := at.DeleteToken(t.Context(), operator, leaked.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := at.CreateZone(t.Context(), operator, "example.org"); err != nil {
		t.Fatal(err)
	}
	for range 3 { // what expires, and the mark that it did, last so long
		if _, err := r.s.link.Lease(t.Context(), "test.lease", nil, 0, cluster.MinLease); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a lease does not expire", func() bool {
			_, err := r.s.link.Get(t.Context(), "test.lease")
			return errors.Is(err, cluster.ErrNotFound)
		})
	}
	edge.start()
	eventually(t, "the edge does not know the zone", func() bool {
		_, ok := edge.s.Manager().State().ZoneNamed("example.org")
		return ok
	})
	if known(edge) {
		t.Error("the edge accepts a token that was revoked")
	}

	// Nodes start when a deletion was the last change.
	zone, _ := at.State().ZoneNamed("example.org")
	if err := at.DeleteZone(t.Context(), operator, zone.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the edge knows the zone", func() bool {
		_, ok := edge.s.Manager().State().ZoneNamed("example.org")
		return !ok
	})
	for _, x := range []*running{edge, r} {
		if err := x.end(); err != nil {
			t.Fatal(err)
		}
		x.start()
	}
}

// TestFindingsOfTheStore: the store may be out of reach because its streams are gone, which the doctor then says. Where nobody answers, that
// is known already.
func TestFindingsOfTheStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		facts natslink.Facts
		want  string
	}{
		{natslink.Facts{External: true, Server: "nats-1", Missing: []string{"KV_site"}}, "error stream KV_site does not exist any more"},
		{natslink.Facts{}, ""},
	} {
		got := ""
		for _, f := range examineStore(c.facts, false) {
			got += string(f.Severity) + " " + f.What
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.facts, got, c.want)
		}
	}
}
