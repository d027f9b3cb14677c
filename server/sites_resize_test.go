package server

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage"
)

// A core alone becomes one of three and the only one again while visitors come: no session and no place is lost, and a
// full room stays full.
func TestOneCoreBecomesThreeAndOneAgainWhileVisitorsCome(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	at := coreAddresses(t)
	const rooms = `
rooms:
  - {name: big, host: "*", total_active_users: 100000, new_users_per_minute: 100000}
  - {name: small, host: "*", path: /small, total_active_users: 2, new_users_per_minute: 1000}
`
	config := func(i int, cores ...string) string {
		list := ""
		if len(cores) > 0 {
			list = ", cores: [" + strings.Join(cores, ", ") + "]"
		}
		return listenAnywhere + rooms + fmt.Sprintf("cluster: {node: core-%d, listen: %q, secret_file: secret%s}\n", i+1, at[i], list)
	}
	prepare := func(i int, cores ...string) *running {
		r := prepareServer(t, config(i, cores...))
		mustWrite(t, filepath.Join(r.dir, "secret"), clusterSecret)
		return r
	}
	first := prepare(0).start()
	add := func() (manage.AddedCores, error) { return first.s.Manager().AddCores(t.Context(), operator) }
	_, err := first.s.Manager().AddCores(t.Context(), manage.Caller{Grants: []manage.Grant{{Permission: manage.Edit}}})
	refused(t, err, anteroom.Denied, "admin")
	_, err = add()
	refused(t, err, anteroom.Conflict, "cluster.cores in the configuration lists no other cores")
	refused(t, first.s.Manager().ShrinkCores(t.Context(), operator), anteroom.Conflict, "core-1 is the only core of site local already")
	first.write(config(0, at...))
	_, err = add()
	refused(t, err, anteroom.Conflict, "start it first")

	visitors(t, first)() // somebody is admitted: the roles have been taken
	var tickets [3][]*http.Cookie
	see := func(i int, r *running) answer {
		t.Helper()
		a := r.visit("/small", tickets[i]...)
		if c := a.Cookies(); len(c) > 0 {
			tickets[i] = c
		}
		return a
	}
	eventually(t, "two are not in the small room", func() bool { return see(0, first).isIn() && see(1, first).isIn() })
	// watched has those of the small room come again and again, until the returned function is called.
	watched := func() (end func()) {
		ctx, stop := context.WithCancel(t.Context())
		var coming sync.WaitGroup
		for i := range tickets {
			coming.Go(func() {
				for ctx.Err() == nil {
					if a := see(i, first); a.isIn() != (i < 2) {
						t.Errorf("visitor %d of the small room: in %v, %d", i, a.isIn(), a.StatusCode)
					}
					walltime.Sleep(ctx, 50*time.Millisecond)
				}
			})
		}
		return func() { stop(); coming.Wait() }
	}

	others := []*running{prepare(1, at...), prepare(2, at...)}
	serve := startTogether(t, others...)
	worst, end := visitors(t, first), watched()
	var added manage.AddedCores
	eventually(t, "the core does not become one of three", func() bool {
		added, err = add()
		return err == nil
	})
	if added != (manage.AddedCores{Cores: 3, Complete: true}) {
		t.Errorf("added: %+v", added)
	}
	serve()
	awaitNodes(t, others[0], 3)
	end()
	t.Logf("while one core became three, a visitor took at most %v to get in", worst())
	eventually(t, "a new core does not know a session", func() bool { return others[0].visit("/small", tickets[0]...).isIn() })
	_, err = add()
	refused(t, err, anteroom.Conflict, "this core is one of 3 already")

	refused(t, first.s.Manager().ShrinkCores(t.Context(), operator), anteroom.Conflict, "cluster.cores in the configuration lists 3 cores: remove it")
	first.write(config(0))
	worst, end = visitors(t, first), watched()
	marks := []int{others[0].log.mark(), others[1].log.mark()}
	if err := first.s.Manager().ShrinkCores(t.Context(), operator); err != nil {
		t.Fatal(err)
	}
	for i, r := range others {
		leftInOrder(t, r, marks[i])
		if err := r.end(); err != nil {
			t.Error(err)
		}
	}
	awaitNodes(t, first, 1)
	end()
	t.Logf("while three cores became one, a visitor took at most %v to get in", worst())
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	first.start()
	eventually(t, "the sessions are gone after a restart", func() bool { return see(0, first).isIn() && see(1, first).isIn() })
	if see(2, first).isIn() {
		t.Error("three are in the small room")
	}
}
