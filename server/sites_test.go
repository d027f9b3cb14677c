package server

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/internal/freeport"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage"
)

// visitors come to a server one after the other until the returned function is called, each for two requests. It tells
// the longest time that one of them took to get in.
func visitors(t *testing.T, r *running) (worst func() time.Duration) {
	ctx, stop := context.WithCancel(t.Context())
	longest := make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for ctx.Err() == nil {
			began := time.Now()
			var have []*http.Cookie
			for in := 0; in < 2; {
				a := r.visit("/", have...)
				if a.StatusCode != http.StatusOK {
					t.Errorf("a visitor got %d: %s", a.StatusCode, a.body)
				}
				if got := a.Cookies(); len(got) > 0 {
					have = got
				}
				switch {
				case a.isIn():
					in++
				case in > 0:
					t.Error("a session was lost")
					in = 2
				case time.Since(began) > patience:
					t.Error("nobody is let in any more")
					in = 2
				default:
					walltime.Sleep(ctx, 100*time.Millisecond)
				}
			}
			most = max(most, time.Since(began))
		}
		longest <- most
	}()
	return func() time.Duration { stop(); return <-longest }
}

// refused checks that an operator hears why something is not done.
func refused(t *testing.T, err error, kind anteroom.Kind, text string) {
	t.Helper()
	if err == nil || anteroom.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("%v; want kind %v and %q", err, kind, text)
	}
}

// leftInOrder waits until a core has been removed, and checks that it had stopped before: what its doors said last arrived.
func leftInOrder(t *testing.T, r *running, mark int) {
	t.Helper()
	r.log.await(t, mark, "the other cores have removed this one, so it stops")
	r.log.await(t, mark, "msg=\"stopped: sessions and places are kept\"")
	lines, _ := r.log.from(mark)
	at := func(text string) int {
		return slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, text) })
	}
	if at("stopping: no new connections") > at("have removed this one") {
		t.Errorf("the core was removed before it had stopped:\n%s", strings.Join(lines, "\n"))
	}
}

// coreAddresses are those of three cores.
func coreAddresses(t *testing.T) (at []string) {
	t.Helper()
	for range 3 {
		at = append(at, freeport.Address(t, corePorts))
	}
	return at
}

// startTogether starts nodes that wait for each other; serve returns when all of them serve.
func startTogether(t *testing.T, nodes ...*running) (serve func()) {
	t.Helper()
	servers := make([]*Server, len(nodes))
	var starting sync.WaitGroup
	for i, r := range nodes {
		starting.Go(func() {
			var err error
			if servers[i], err = New(t.Context(), r.options()); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		t.Helper()
		starting.Wait()
		if t.Failed() {
			t.FailNow()
		}
		for i, r := range nodes {
			r.serve(servers[i])
		}
	}
}

// awaitNodes waits until a node knows of so many of its site that run.
func awaitNodes(t *testing.T, r *running, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("no %d nodes run", want), func() bool {
		st, err := r.s.Manager().Cluster(t.Context(), operator)
		return err == nil && len(st.Nodes) == want
	})
}

// prepareOneOf makes one of several cores, at the i-th of their addresses.
func prepareOneOf(t *testing.T, at []string, node string, i int) *running {
	t.Helper()
	r := prepareServer(t, listenAnywhere+`rooms: [{name: shop, host: "*", total_active_users: 100000, new_users_per_minute: 100000}]`+
		fmt.Sprintf("\ncluster: {node: %s, listen: %q, cores: [%s], secret_file: secret}\n", node, at[i], strings.Join(at, ", ")))
	mustWrite(t, filepath.Join(r.dir, "secret"), clusterSecret)
	return r
}

// Two operators remove a core each of three at once: one of them is refused, and the core that stays serves on.
func TestOneChangeOfCoresAtATime(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	at := coreAddresses(t)
	all := []*running{prepareOneOf(t, at, "core-1", 0), prepareOneOf(t, at, "core-2", 1), prepareOneOf(t, at, "core-3", 2)}
	startTogether(t, all...)()
	awaitNodes(t, all[0], 3)
	visitors(t, all[2])() // somebody is let in: the roles have been taken
	var errs [2]error
	var both sync.WaitGroup
	for i := range errs {
		both.Go(func() {
			errs[i] = all[2].s.Manager().RemoveNode(t.Context(), operator, fmt.Sprintf("core-%d", i+1), true)
		})
	}
	both.Wait()
	stays := slices.IndexFunc(errs[:], func(err error) bool { return err != nil })
	if stays < 0 || errs[1-stays] != nil {
		t.Fatalf("%v; want one error", errs)
	}
	refused(t, errs[stays], anteroom.Conflict, fmt.Sprintf("nothing was done, because another command changes the cores of site local now: remove core-%d", 2-stays))
	all[1-stays].log.await(t, 0, "msg=\"stopped: sessions and places are kept\"")
	visitors(t, all[stays])() // it serves on
	err := all[2].s.Manager().RemoveNode(t.Context(), operator, fmt.Sprintf("core-%d", stays+1), true)
	refused(t, err, anteroom.Conflict, "core-3 would be the only core left of site local")
}

// While visitors come, a core that runs is removed by itself, a new one takes its place, and a dead one is replaced by
// another.
func TestCoresAreRemovedAndReplacedWhileVisitorsCome(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	at := coreAddresses(t)
	prepare := func(node string, i int) *running { return prepareOneOf(t, at, node, i) }
	all := []*running{prepare("core-1", 0), prepare("core-2", 1), prepare("core-3", 2)}
	startTogether(t, all...)()
	awaitNodes(t, all[0], 3)
	first, second, third := all[0].s.Manager(), all[1].s.Manager(), all[2].s.Manager()
	refused(t, second.RemoveNode(t.Context(), manage.Caller{Grants: []manage.Grant{{Permission: manage.Edit}}}, "core-1", false), anteroom.Denied, "admin")
	refused(t, second.RemoveNode(t.Context(), operator, "core-1", false), anteroom.Conflict, "core-1 runs, or was heard within the last 5 seconds: if it has ended")
	refused(t, second.RemoveNode(t.Context(), operator, "core-9", true), anteroom.Invalid, "site local has no core core-9; its cores are core-1, core-2, core-3")
	_, err := second.ReplaceNode(t.Context(), operator, "core-1", "core-3", false)
	refused(t, err, anteroom.Conflict, "core-1 runs, or was heard within the last 5 seconds: stop it")
	_, err = second.ReplaceNode(t.Context(), operator, "core-1", "core-3", true)
	refused(t, err, anteroom.Conflict, "site local has 3 cores and lists 3, so none of them has come in the place of core-1")
	_, err = second.ForgetSite(t.Context(), operator, "local")
	refused(t, err, anteroom.Conflict, "local is the site that answers")

	visitors(t, all[2])() // somebody is let in: the roles have been taken
	worst := visitors(t, all[2])
	mark := all[0].log.mark()
	if err := first.RemoveNode(t.Context(), operator, "core-1", false); err != nil {
		t.Fatal(err)
	}
	leftInOrder(t, all[0], mark)
	all[0].end()
	t.Logf("while a core was removed, a visitor took at most %v to get in", worst())
	_, err = New(t.Context(), all[0].options())
	refused(t, err, anteroom.Other, "the other cores have removed this one")
	refused(t, third.RemoveNode(t.Context(), operator, "core-2", true), anteroom.Conflict, "core-3 would be the only core left of site local")

	// Another core takes its place; one more dies and is replaced.
	all[0] = prepare("core-4", 0).start()
	awaitNodes(t, all[0], 3)
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !natslink.AwaitWhole(within, all[2].s.link) {
		t.Fatal("the new core has no complete copies")
	}
	worst = visitors(t, all[2])
	all[1].end()
	awaitNodes(t, all[0], 2)
	eventually(t, "the cores that are left have no leader", func() bool {
		_, err = third.ReplaceNode(t.Context(), operator, "core-2", "core-5", false)
		return anteroom.KindOf(err) != anteroom.Unavailable
	})
	refused(t, err, anteroom.Conflict, "core-5 is not another core of site local that runs")
	all[1] = prepare("core-5", 1).start()
	awaitNodes(t, all[0], 3)
	_, err = third.ReplaceNode(t.Context(), operator, "core-2", "core-4", false)
	refused(t, err, anteroom.Conflict, "core-4 has not come in the place of core-2: the core that came last is core-5")
	complete, err := third.ReplaceNode(t.Context(), operator, "core-2", "core-5", false)
	if err != nil || !complete {
		t.Errorf("replaced: complete %v, %v", complete, err)
	}
	t.Logf("while a dead core was replaced, a visitor took at most %v to get in", worst())
	if a := all[1].visit("/"); !a.isIn() {
		t.Errorf("the new core serves: %s", a.body)
	}

	// A core that runs is removed at another by force only, and stops by itself.
	mark = all[0].log.mark()
	if err := third.RemoveNode(t.Context(), operator, "core-4", true); err != nil {
		t.Fatal(err)
	}
	leftInOrder(t, all[0], mark)
	if a := all[2].visit("/"); a.StatusCode != http.StatusOK {
		t.Errorf("the others answer %d", a.StatusCode)
	}
}
