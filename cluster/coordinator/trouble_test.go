package coordinator

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

// store is a link whose writes fail, wait or end on demand.
type store struct {
	cluster.Link
	own, shared *space
}

type space struct {
	cluster.Space
	mu     sync.Mutex
	refuse func(key string) error // of a write: before it is done
	after  func(key string) error // once it is
	slow   time.Duration
}

func newStore(link cluster.Link) *store {
	return &store{Link: link, own: &space{Space: link.Site()}, shared: &space{Space: link}}
}

func (s *store) Site() cluster.Space { return s.own }

func (s *store) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return s.shared.Put(ctx, key, value)
}

func (x *space) set(refuse, after func(key string) error, slow time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refuse, x.after, x.slow = refuse, after, slow
}

func (x *space) write(key string, do func() (uint64, error)) (uint64, error) {
	x.mu.Lock()
	refuse, after, slow := x.refuse, x.after, x.slow
	x.mu.Unlock()
	time.Sleep(slow)
	if refuse != nil {
		if err := refuse(key); err != nil {
			return 0, err
		}
	}
	revision, err := do()
	if after != nil && err == nil {
		err = after(key)
	}
	return revision, err
}

func (x *space) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return x.write(key, func() (uint64, error) { return x.Space.Put(ctx, key, value) })
}

func (x *space) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return x.write(key, func() (uint64, error) { return x.Space.Update(ctx, key, value, revision) })
}

var errDisk = errors.New("no space left on device")

func refuse(string) error { return errDisk }

// Nothing leaves before the record is stored; what is reserved ahead lasts while the store is
// away; answers of the store that are lost do not fence anybody.
func TestTheStoreIsInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := roomOf(1, few(1000))
		w := newWorld(t, room)
		link := newStore(w.links.Join("hub", "a"))
		link.own.set(refuse, nil, 0)
		h, _ := w.hostOn(link, 1)
		dublin := w.site("dublin")
		time.Sleep(engine.GuessAfter)
		first := dublin.line(room.ID, 5)
		time.Sleep(5 * time.Second)
		if dublin.epoch(room.ID) != 0 || len(w.admissions(room.ID)) != 0 {
			t.Errorf("without a record the site heard of epoch %d, and %d were let in", dublin.epoch(room.ID), len(w.admissions(room.ID)))
		}
		link.own.set(nil, nil, 300*time.Millisecond)
		time.Sleep(5 * time.Second)
		dublin.enter(room.ID, first)
		time.Sleep(time.Second)
		if n := len(w.admissions(room.ID)); n != 5 {
			t.Errorf("with a slow store %d of 5 were let in", n)
		}
		link.own.set(refuse, nil, 0)
		for range 100 {
			dublin.visit(room.ID, anteroom.Ticket{}, false)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		if n := len(w.admissions(room.ID)); n != 105 {
			t.Errorf("%d are inside while the store is away, want 105 by what was reserved", n)
		}
		var lost atomic.Int32
		link.own.set(nil, func(string) error {
			if lost.Add(1) <= 3 {
				return cluster.ErrUnavailable // it was done
			}
			return nil
		}, 0)
		for range 800 {
			dublin.visit(room.ID, anteroom.Ticket{}, false)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		if n := len(w.admissions(room.ID)); n != 905 {
			t.Errorf("%d are inside when the store is back, want 905", n)
		}
		w.site("sydney").visit(room.ID, anteroom.Ticket{}, false) // whose account is to be stored
		time.Sleep(5 * time.Second)
		if lost.Load() == 0 || h.refused().Fenced != 0 {
			t.Errorf("%d writes since, %+v", lost.Load(), h.refused())
		}
		w.within(room.ID)
	})
}

// What is no message, or of no room, is counted and changes nothing.
func TestHostileFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := roomOf(1, few(10))
		w := newWorld(t, room)
		h, _ := w.host("a", 1)
		dublin := w.site("dublin")
		time.Sleep(engine.GuessAfter)
		dublin.visit(room.ID, anteroom.Ticket{}, false)
		time.Sleep(time.Second)
		subject := reportsSubject(cluster.ShardOf(string(room.ID)))
		random := rand.New(rand.NewPCG(1, 2))
		now, _ := dublin.clock(room.ID)
		good := (&engine.Report{From: dublin.key, Seq: 1, Sent: now}).AppendWire(nil)
		key := [16]byte{15: 1}
		for i := range 2000 {
			var frame []byte
			switch i % 4 {
			case 0: // not a frame
				frame = make([]byte, random.IntN(100)+1)
				for k := range frame {
					frame[k] = byte(random.Uint32())
				}
			case 1: // not a report
				body := append([]byte{}, good...)
				body[random.IntN(len(body))] ^= byte(random.IntN(255) + 1)
				frame = cluster.AppendFrame(nil, key, body[:random.IntN(len(body))])
			case 2: // of no room
				frame = cluster.AppendFrame(nil, [16]byte{byte(i), 7}, good)
			case 3: // a site that is no part of a subject
				frame = cluster.AppendFrame(nil, key, (&engine.Report{From: engine.SiteKey{Name: "a.b *"}}).AppendWire(nil))
			}
			if err := dublin.link.Publish(subject, frame); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		n := h.refused()
		if n.Undecodable < 1400 || n.Misplaced < 400 || n.Fenced != 0 {
			t.Errorf("%+v", n)
		}
		dublin.visit(room.ID, anteroom.Ticket{}, false)
		time.Sleep(time.Second)
		if n := len(w.admissions(room.ID)); n != 2 {
			t.Errorf("%d are inside, want 2", n)
		}
	})
}

func TestOperatorsAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := roomOf(1, few(10))
		w := newWorld(t, room)
		link := w.links.Join("dublin", "x")
		defer link.Close()
		c := NewClient(link)
		kindOf := func(what string, err error, want anteroom.Kind, says string) {
			t.Helper()
			if err == nil || anteroom.KindOf(err) != want || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := c.Status(t.Context(), room.ID)
		kindOf("without a host", err, anteroom.Unavailable, "try again in a few seconds")
		if _, silent := c.Sites(t.Context()); len(silent) != cluster.Shards {
			t.Errorf("silent shards: %v", silent)
		}
		h, _ := w.host("a", 1)
		synctest.Wait()
		_, err = c.AdmitNow(t.Context(), room.ID, 1)
		kindOf("just elected", err, anteroom.Unavailable, "is being elected")
		time.Sleep(engine.GuessAfter)
		if n, err := c.AdmitNow(t.Context(), room.ID, 1); n != 0 || err != nil {
			t.Errorf("nobody is there: %d, %v", n, err)
		}
		if st, err := c.Status(t.Context(), room.ID); err != nil || st.Epoch != 0 || st.TotalActiveUsers != 10 || st.Mode != "open" {
			t.Errorf("nobody is there: %+v, %v", st, err)
		}
		_, err = c.Status(t.Context(), "ffffffffffffffffffffffffffffffff")
		kindOf("no room", err, anteroom.NotFound, "ffff")
		_, err = c.AdmitNow(t.Context(), room.ID, 0)
		kindOf("nobody", err, anteroom.Invalid, "from 1 to")
		if _, err := c.ask(t.Context(), cluster.ShardOf(string(room.ID)), time.Second, request{Op: "dance", Room: room.ID}); anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("a request of another version: %v", err)
		}
		for _, data := range [][]byte{nil, []byte("{"), make([]byte, maxRequest+1)} {
			answer, err := link.Request(t.Context(), asking(3), data)
			if err != nil || !strings.Contains(string(answer), `"invalid"`) {
				t.Errorf("%.20q: %s, %v", data, answer, err)
			}
		}
		if n := h.refused().Undecodable; n != 3 {
			t.Errorf("%d requests could not be read, want 3", n)
		}

		room.QueueAll = true
		w.mu.Lock()
		w.plans[room.ID] = room.WithDefaults()
		w.mu.Unlock()
		dublin, sydney := w.site("dublin"), w.site("sydney")
		ids := append(dublin.line(room.ID, 6), sydney.line(room.ID, 6)...)
		time.Sleep(time.Second)
		if n, err := c.AdmitNow(t.Context(), room.ID, 4); n != 4 || err != nil {
			t.Errorf("%d were given turns, %v; want 4", n, err)
		}
		if n, err := c.AdmitNow(t.Context(), room.ID, 100); n != 6 || err != nil {
			t.Errorf("%d more, %v; want 6, for ten is the limit", n, err)
		}
		time.Sleep(time.Second)
		dublin.enter(room.ID, ids[:6])
		sydney.enter(room.ID, ids[6:])
		time.Sleep(time.Second)
		st, err := c.Status(t.Context(), room.ID)
		if err != nil || st.ActiveUsers != 10 || st.Waiting != 2 || st.Epoch != 1 || st.Pool != [2]int64{} || len(st.Sites) != 2 {
			t.Errorf("%+v, %v", st, err)
		}
		sites, silent := c.Sites(t.Context())
		if len(silent) != 0 || len(sites) != 2 || sites[0].Name != "dublin" || sites[0].Rooms != 1 || sites[0].Used+sites[1].Used != 10 || sites[0].Silent != 0 {
			t.Errorf("%+v, %v", sites, silent)
		}
		// A site that has lost its memory is one site still: the units of before are its own.
		used := sites[0].Granted
		dublin.end()
		again := w.site("dublin")
		again.key.Incarnation = 2
		again.line(room.ID, 1)
		time.Sleep(15 * time.Second)
		sites, silent = c.Sites(t.Context())
		if len(silent) != 0 || len(sites) != 2 || sites[0].Rooms != 1 || sites[0].Silent != 0 || sites[0].Heard > 10*time.Second || sites[0].Granted < used {
			t.Errorf("after a loss of memory: %+v, %v", sites, silent)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Status(ctx, room.ID); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who is gone: %v", err)
		}
	})
}
