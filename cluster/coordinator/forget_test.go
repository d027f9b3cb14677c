package coordinator

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// A site is lost with all of its seats. Written off, they serve the other site: in a room with a coordinator at once,
// in one without as soon as it has one again.
func TestASiteIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, resting := roomOf(1, few(10)), roomOf(2, few(10))
		w := newWorld(t, busy, resting)
		_, kill := w.host("a", 1)
		dublin, sydney := w.site("dublin"), w.site("sydney")
		time.Sleep(engine.GuessAfter)
		for _, room := range []anteroom.Room{busy, resting} {
			ids := sydney.line(room.ID, 10)
			time.Sleep(time.Second)
			sydney.enter(room.ID, ids)
			if n := verdicts(sydney, ids); n != 10 {
				t.Fatalf("%d of 10 were let in at sydney", n)
			}
		}
		link := w.links.Join("hub", "asks")
		defer link.Close()
		c := NewClient(link)
		late := dublin.line(busy.ID, 10)
		forget := func() (Forgotten, error) {
			began := time.Now()
			defer func() {
				if took := time.Since(began); took > time.Second {
					t.Errorf("forgetting took %v", took)
				}
			}()
			return c.Forget(t.Context(), "sydney")
		}
		if _, err := forget(); anteroom.KindOf(err) != anteroom.Conflict || !strings.Contains(err.Error(), "stop its nodes, and try again in") {
			t.Errorf("a site that reports: %v", err)
		}
		sydney.end()
		enter := func(seconds int) {
			for range seconds {
				time.Sleep(time.Second)
				dublin.enter(busy.ID, late)
			}
		}
		enter(10)
		if _, err := forget(); anteroom.KindOf(err) != anteroom.Conflict {
			t.Errorf("a site that was heard ten seconds ago: %v", err)
		}
		enter(60)
		if n := verdicts(dublin, late); n != 0 {
			t.Errorf("%d were let in on the seats of a silent site", n)
		}
		forgot, err := forget()
		if err != nil || forgot != (Forgotten{Rooms: 2, Seats: 20}) {
			t.Errorf("%+v, %v", forgot, err)
		}
		enter(20)
		if n := verdicts(dublin, late); n != 10 {
			t.Errorf("%d of 10 were let in on the seats of a forgotten site", n)
		}
		if again, err := forget(); err != nil || again != (Forgotten{}) {
			t.Errorf("forgotten twice: %+v, %v", again, err)
		}
		// The next coordinator does not know the site either, and neither does that of the other room.
		kill()
		w.host("b", 2)
		time.Sleep(engine.GuessAfter)
		other := dublin.line(resting.ID, 10)
		time.Sleep(time.Second)
		dublin.enter(resting.ID, other)
		time.Sleep(5 * time.Second)
		dublin.enter(resting.ID, other)
		if n := verdicts(dublin, other); n != 10 {
			t.Errorf("%d of 10 were let in at a room that had no coordinator", n)
		}
	})
}
