package server

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/ticket"
)

const roomForTwo = `
rooms:
  - {name: shop, host: "*", total_active_users: 2, new_users_per_minute: 100}
`

// fill lets two in and one wait, stops the server, and returns the three's cookies.
func fill(t *testing.T, r *running) (inside [2][]*http.Cookie, outside []*http.Cookie) {
	t.Helper()
	for i := range inside {
		a := r.visit("/")
		if !a.isIn() {
			t.Fatalf("visitor %d waits", i)
		}
		inside[i] = a.Cookies()
	}
	a := r.visit("/")
	if a.isIn() {
		t.Fatal("three are in")
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	return inside, a.Cookies()
}

func TestRestartKeepsSessionsAndPlaces(t *testing.T) {
	r := startServer(t, roomForTwo)
	inside, outside := fill(t, r)
	r.start()
	for i, c := range inside {
		if a := r.visit("/", c...); !a.isIn() {
			t.Errorf("session %d is gone", i)
		}
	}
	if a := r.visit("/", outside...); a.isIn() {
		t.Error("three are in")
	}
	if st := r.room("shop"); st.ActiveUsers != 2 || st.Waiting != 1 {
		t.Errorf("%d inside, %d waiting; want 2 and 1", st.ActiveUsers, st.Waiting)
	}
}

// TestDamagedJournal is refused with the way on, and the way on leads on.
func TestDamagedJournal(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := startServer(t, roomForTwo)
	inside, _ := fill(t, r)
	blocks, err := filepath.Glob(filepath.Join(r.dir, "data/store/jetstream/*/streams/JOURNAL/msgs/*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("no journal: %v", err)
	}
	for _, b := range blocks {
		content := mustRead(t, b)
		content[len(content)/2] ^= 0x40
		mustWrite(t, b, string(content))
	}
	if _, err := New(t.Context(), r.options()); err == nil {
		t.Fatal("a damaged journal was taken")
	} else if msg := err.Error(); !strings.Contains(msg, "damaged") || !strings.Contains(msg, "--new-journal") {
		t.Errorf("got %q", msg)
	}
	o := r.options()
	o.NewJournal = true
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.serve(s)
	if a := r.visit("/"); a.isIn() {
		t.Error("a newcomer was let in beyond those who may be alive")
	}
	for i, c := range inside {
		if a := r.visit("/", c...); !a.isIn() {
			t.Errorf("session %d was not taken over", i)
		}
	}
}

// TestRestoredDirectory: a backup does not know who came after it was made, and that is noticed.
func TestRestoredDirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := startServer(t, roomForTwo)
	first := r.visit("/").Cookies()
	data, backup := filepath.Join(r.dir, "data"), filepath.Join(r.dir, "backup")
	if err := os.CopyFS(backup, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	second := r.visit("/")
	if !second.isIn() {
		t.Fatal("the second waits")
	}
	if err := errors.Join(r.end(), os.RemoveAll(data), os.Rename(backup, data), os.Chmod(filepath.Join(data, "keys.json"), 0o600)); err != nil {
		t.Fatal(err)
	}
	mark := r.log.mark()
	r.start()
	r.log.await(t, mark, "is a copy")
	if a := r.visit("/"); a.isIn() {
		t.Error("a newcomer has a seat of somebody who came after the backup")
	}
	for i, c := range [][]*http.Cookie{second.Cookies(), first} {
		if a := r.visit("/", c...); !a.isIn() {
			t.Errorf("session %d was not taken over", i)
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	mark = r.log.mark()
	r.start()
	if lines, _ := r.log.from(mark); strings.Contains(strings.Join(lines, "\n"), "is a copy") {
		t.Error("the next start takes the directory for a copy again")
	}
	if a := r.visit("/", first...); !a.isIn() {
		t.Error("a session that was taken over is gone")
	}
}

// TestVisitorsOfAfterABackup: the keys of a backup are restored beside those that visitors have got tickets under since.
func TestVisitorsOfAfterABackup(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	core, _ := prepareCore(t, oneRoom)
	for name, r := range map[string]*running{"standalone": startServer(t, oneRoom), "core": core.start()} {
		rotate := func() {
			t.Helper()
			before := r.s.keyring.Load().Keys()
			if err := (keys{r.s}).Rotate(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the keys do not rotate", func() bool {
				for _, k := range r.s.keyring.Load().Keys() {
					if k.State == ticket.Current {
						return !slices.ContainsFunc(before, func(one ticket.KeyInfo) bool { return one.ID == k.ID })
					}
				}
				return false
			})
		}
		enter := func() (in []*http.Cookie) {
			t.Helper()
			eventually(t, name+": nobody is let in", func() bool {
				a := r.visit("/", in...)
				if c := a.Cookies(); len(c) > 0 {
					in = c
				}
				return a.isIn()
			})
			return in
		}
		rotate()
		var copied bytes.Buffer
		if err := r.s.Manager().Backup(t.Context(), operator, &copied, true); err != nil {
			t.Fatal(err)
		}
		rotate()
		in := enter()
		if got, err := r.s.Manager().Restore(t.Context(), operator, &copied); err != nil || !got.Keys {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if a := r.visit("/", in...); !a.isIn() {
			t.Errorf("%s: the restore has ended a session", name)
		}
	}
}

// TestLostStoreWithKeysKept: what a backup of the keys alone is worth.
func TestLostStoreWithKeysKept(t *testing.T) {
	r := startServer(t, roomForTwo)
	inside, _ := fill(t, r)
	if err := os.RemoveAll(filepath.Join(r.dir, "data", "store")); err != nil {
		t.Fatal(err)
	}
	r.start()
	for i, c := range inside {
		if a := r.visit("/", c...); !a.isIn() {
			t.Errorf("session %d was not taken over", i)
		}
	}
}
