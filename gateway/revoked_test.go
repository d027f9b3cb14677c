package gateway

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/proof"
)

// denied is the deny list as an edge reads it.
type denied struct {
	Revoked  []string
	Complete bool
}

// deniesOn reads the deny list of a host.
func (w *world) deniesOn(host string) (d denied) {
	w.t.Helper()
	res, text := w.do("GET", revokedPath, func(r *http.Request) { r.Host = host })
	if res.StatusCode != http.StatusOK || res.Header.Get("Cache-Control") != "public, max-age=1" {
		w.t.Errorf("%s, Cache-Control %q", res.Status, res.Header.Get("Cache-Control"))
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil || d.Revoked == nil {
		w.t.Fatalf("%q: %v", text, err)
	}
	return d
}

// forgets makes the answers of the doors a second old.
func (w *world) forgets() {
	for _, r := range w.gw.live.Load().rooms {
		r.denied.mu.Lock()
		r.denied.asked = r.denied.asked.Add(-revokedEvery)
		r.denied.mu.Unlock()
	}
}

// Whoever names a room gets its list alone; whoever names none, and would have many rooms asked, is told to.
func TestRevokedSessionsOfARoom(t *testing.T) {
	w := newWorld(t, admit, passing(), withConfig(func(c *Config) {
		for i := range maxRevokedRooms {
			path := fmt.Sprint("/", i)
			one := anteroom.Room{Name: path[1:], Routes: []anteroom.Route{{Host: testHost, Path: path}}}
			one.Pass = 30 * time.Second
			c.Rooms = append(c.Rooms, one)
		}
	}))
	rooms := w.gw.live.Load().rooms
	for query, want := range map[string]int{"": http.StatusBadRequest, "?room=" + string(rooms[0].ID): http.StatusOK, "?room=x": http.StatusNotFound} {
		res, text := w.do("GET", revokedPath+query, func(r *http.Request) {
			if query != "" {
				r.Host = "open.example.com" // an edge names the zone, and the room's routes may be on other hosts
			}
		})
		if res.StatusCode != want {
			t.Errorf("%q: %s, %s", query, res.Status, text)
		}
	}
	asked := 0
	for _, r := range rooms {
		if !r.denied.asked.IsZero() {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("%d rooms were asked", asked)
	}
}

// The list names sessions as their passes do, of the rooms of the host that have passes, and of no other.
func TestRevokedSessionsOfAHost(t *testing.T) {
	other, plain := anteroom.Room{Name: "vip", Routes: []anteroom.Route{{Host: testHost, Path: "/vip"}}}, anteroom.Room{Name: "plain", Routes: []anteroom.Route{{Host: testHost, Path: "/plain"}}}
	other.Pass = 30 * time.Second
	w := newWorld(t, admit, passing(), withConfig(func(c *Config) { c.Rooms = append(c.Rooms, other, plain) }))
	subject := func(room anteroom.RoomID, id anteroom.ID) string {
		return proof.Subject(proof.Seed(w.keys.Fixed(ticket.PurposeSubject)), room, id)
	}
	var want []string
	for i, r := range w.gw.live.Load().rooms {
		id := anteroom.ID{byte(i + 1)}
		r.door.Revoke(id)
		if r.passes != nil {
			want = append(want, subject(r.ID, id))
		}
	}
	if got := w.deniesOn(testHost); !slices.Equal(got.Revoked, want) || !got.Complete || len(want) != 2 {
		t.Errorf("%+v, want %v", got, want)
	}
	if got := w.deniesOn("open.example.com"); len(got.Revoked) != 0 || !got.Complete {
		t.Errorf("a host without rooms: %+v", got)
	}
	// A pass of the session has the same name for it.
	tk := session()
	res, _ := w.do("GET", "/", header("Cookie", w.seal(tk)))
	token, _ := passOf(res)
	w.gw.live.Load().rooms[0].door.Revoke(tk.ID)
	w.forgets()
	if got := w.deniesOn(testHost); !slices.Contains(got.Revoked, w.verify(token).Session) {
		t.Errorf("%+v lacks %s", got, w.verify(token).Session)
	}

	if res, _ := newWorld(t, admit).do("GET", revokedPath, nil); res.Header.Get("Content-Type") == "application/json" {
		t.Errorf("without passes: %s", res.Status)
	}
}

// However many ask, the sites are asked once per second, and what is asked for is bounded and says whether it is all.
func TestRevokedSessionsAreBounded(t *testing.T) {
	w := newWorld(t, admit, passing())
	asked := func() int {
		w.door.mu.Lock()
		defer w.door.mu.Unlock()
		return w.door.asked
	}
	meet := make(chan struct{})
	w.door.asking = func() { // long enough for another one to come, if it may
		select {
		case meet <- struct{}{}:
		case <-meet:
		case <-time.After(100 * time.Millisecond):
		}
	}
	var many sync.WaitGroup
	for range 20 {
		many.Go(func() { w.deniesOn(testHost) })
	}
	many.Wait()
	if n := asked(); n != 1 {
		t.Errorf("20 requests at the same time asked %d times", n)
	}
	w.door.asking = nil
	w.door.Revoke(anteroom.ID{1})
	if got := w.deniesOn(testHost); len(got.Revoked) != 0 || asked() != 1 {
		t.Errorf("within the second: %+v", got)
	}
	w.forgets()
	if got := w.deniesOn(testHost); len(got.Revoked) != 1 || asked() != 2 {
		t.Errorf("after it: %+v", got)
	}
	w.door.partly = true
	w.forgets()
	if got := w.deniesOn(testHost); len(got.Revoked) != 1 || got.Complete {
		t.Errorf("a site did not answer: %+v", got)
	}
	w.door.partly = false
	for n := range uint32(engine.MaxRevoked) {
		id := anteroom.ID{2}
		binary.BigEndian.PutUint32(id[1:], n)
		w.door.Revoke(id)
	}
	w.forgets()
	if got := w.deniesOn(testHost); len(got.Revoked) != engine.MaxRevoked || got.Complete {
		t.Errorf("%d of one more than the bound, complete: %v", len(got.Revoked), got.Complete)
	}
}
