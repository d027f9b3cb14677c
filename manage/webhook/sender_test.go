package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
)

// shelf is a store in memory.
type shelf struct {
	mu     sync.Mutex
	queues map[anteroom.WebhookID][]byte
	broken bool
}

func (s *shelf) Load(_ context.Context, id anteroom.WebhookID) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[id], nil
}

func (s *shelf) Save(_ context.Context, id anteroom.WebhookID, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return errors.New("the disk is full")
	}
	if s.queues == nil {
		s.queues = map[anteroom.WebhookID][]byte{}
	}
	s.queues[id] = data
	return nil
}

func (s *shelf) deliveries(t *testing.T, id anteroom.WebhookID) []anteroom.Delivery {
	t.Helper()
	data, _ := s.Load(t.Context(), id)
	all, err := Deliveries(data)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// arrived is a request that a receiver got.
type arrived struct {
	at     time.Time
	header http.Header
	body   string
}

// pipes is an HTTP server whose connections are pipes in memory, so that a test's clock rules them.
type pipes struct {
	conns chan net.Conn
	mu    sync.Mutex
	got   []arrived
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) arrivals() []arrived {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// serve makes a sender that reaches this server only, whatever the address.
func serve(t *testing.T, store Store, answer http.HandlerFunc) (*Sender, *pipes) {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn)}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		p.got = append(p.got, arrived{time.Now(), r.Header, string(body)})
		p.mu.Unlock()
		answer(w, r)
	})}
	go srv.Serve(p)
	t.Cleanup(func() { close(p.conns); srv.Close() })
	s := NewSender(Config{Store: store})
	s.plain.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case p.conns <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s, p
}

// story runs a test by a clock that moves when nothing else does.
func story(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		f(t, ctx)
		stop()
		synctest.Wait()
	})
}

// after lets time pass and everything happen that does by then.
func after(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func message(text string) Message {
	return Message{ID: newID(), Type: anteroom.RoomQueueing, At: time.Now().UTC(), Text: text}
}

func TestDeliveryIsSigned(t *testing.T) {
	story(t, func(t *testing.T, ctx context.Context) {
		store := &shelf{}
		s, p := serve(t, store, ok)
		to := target("http://hooks.example.com/x")
		to.Secrets = []string{"new", "old"}
		s.Use(ctx, []Target{to})
		m := message("somebody waits")
		s.Tell(ctx, to.ID, m)
		after(time.Second)
		got := p.arrivals()
		if len(got) != 1 {
			t.Fatalf("%d arrived", len(got))
		}
		h := got[0].header
		for _, secret := range to.Secrets {
			if err := Verify(h.Get(SignatureHeader), []byte(got[0].body), secret, got[0].at, DefaultTolerance); err != nil {
				t.Errorf("%s: %v", secret, err)
			}
		}
		if h.Get(TypeHeader) != anteroom.RoomQueueing || h.Get(DeliveryHeader) != m.ID || h.Get("Content-Type") != "application/json" {
			t.Errorf("%v", h)
		}
		var body Message
		if err := json.Unmarshal([]byte(got[0].body), &body); err != nil || body.ID != m.ID || body.Webhook.Name != "on call" || body.Text != "somebody waits" {
			t.Errorf("%+v, %v", body, err)
		}
		if d := store.deliveries(t, to.ID); len(d) != 1 || d[0].State != anteroom.DeliveryDelivered || d[0].Status != 200 || d[0].Attempts != 1 || !d[0].NextOn.IsZero() {
			t.Errorf("%+v", d)
		}
	})
}

// A receiver that fails is tried again with growing pauses, at each of which the signature is new and
// the message the same.
func TestItIsTriedAgain(t *testing.T) {
	story(t, func(t *testing.T, ctx context.Context) {
		store, left := &shelf{}, 3
		s, p := serve(t, store, func(w http.ResponseWriter, r *http.Request) {
			if left--; left >= 0 {
				w.WriteHeader(500)
			}
		})
		s.Use(ctx, []Target{target("http://hooks.example.com/")})
		s.Tell(ctx, "1", message("x"))
		after(time.Second)
		if d := store.deliveries(t, "1"); d[0].State != anteroom.DeliveryPending || d[0].Attempts != 1 || d[0].Status != 500 || d[0].Error != "the receiver answered 500 Internal Server Error" || d[0].NextOn.IsZero() {
			t.Errorf("after the first attempt: %+v", d[0])
		}
		after(5 * time.Minute)
		got := p.arrivals()
		if len(got) != 4 {
			t.Fatalf("%d attempts", len(got))
		}
		for i, least := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute} {
			if d := got[i+1].at.Sub(got[i].at); d < least || d > least+least/10+time.Second {
				t.Errorf("pause %d: %v", i+1, d)
			}
			if got[i].body != got[i+1].body || got[i].header.Get(SignatureHeader) == got[i+1].header.Get(SignatureHeader) || got[i].header.Get(DeliveryHeader) != got[i+1].header.Get(DeliveryHeader) {
				t.Error("the message has changed, or the signature has not")
			}
		}
		if d := store.deliveries(t, "1"); d[0].State != anteroom.DeliveryDelivered || d[0].Attempts != 4 || d[0].Error != "" {
			t.Errorf("in the end: %+v", d[0])
		}
	})
}

func TestItIsGivenUpAfterADay(t *testing.T) {
	story(t, func(t *testing.T, ctx context.Context) {
		store, begun := &shelf{}, time.Now()
		s, p := serve(t, store, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) })
		s.Use(ctx, []Target{target("http://hooks.example.com/")})
		s.Tell(ctx, "1", message("x"))
		after(30 * time.Hour)
		got := p.arrivals()
		if last := got[len(got)-1].at.Sub(begun); last > 24*time.Hour || last < 18*time.Hour || len(got) < 10 || len(got) > 20 {
			t.Errorf("%d attempts, the last after %v", len(got), last)
		}
		if d := store.deliveries(t, "1"); d[0].State != anteroom.DeliveryFailed || !strings.Contains(d[0].Error, "after a day") || d[0].Status != 404 {
			t.Errorf("%+v", d[0])
		}
	})
}

func TestGoneIsGone(t *testing.T) {
	story(t, func(t *testing.T, ctx context.Context) {
		store := &shelf{}
		s, p := serve(t, store, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(410) })
		s.Use(ctx, []Target{target("http://hooks.example.com/")})
		s.Tell(ctx, "1", message("x"))
		after(25 * time.Hour)
		if d := store.deliveries(t, "1"); len(p.arrivals()) != 1 || d[0].State != anteroom.DeliveryFailed {
			t.Errorf("%d attempts, %+v", len(p.arrivals()), d[0])
		}
	})
}

func TestRetryAfter(t *testing.T) {
	story(t, func(t *testing.T, ctx context.Context) {
		s, p := serve(t, &shelf{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "999999999")
			w.WriteHeader(429)
		})
		s.Use(ctx, []Target{target("http://hooks.example.com/")})
		s.Tell(ctx, "1", message("x"))
		after(90 * time.Minute)
		if got := p.arrivals(); len(got) != 2 || got[1].at.Sub(got[0].at) < maxLater {
			t.Errorf("%d attempts", len(got))
		}
	})
}

// A receiver that never answers, or never ends its answer, keeps nothing waiting but its own queue.
func TestSlowReceivers(t *testing.T) {
	story(t, func(t *testing.T, ctx context.Context) {
		store := &shelf{}
		s, p := serve(t, store, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/never":
				<-r.Context().Done()
			case "/endless":
				w.WriteHeader(200)
				for {
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						return
					}
				}
			}
		})
		never, endless, quick := target("http://hooks.example.com/never"), target("http://hooks.example.com/endless"), target("http://hooks.example.com/quick")
		endless.ID, quick.ID = "2", "3"
		s.Use(ctx, []Target{never, endless, quick})
		for _, id := range []anteroom.WebhookID{"1", "2", "3"} {
			s.Tell(ctx, id, message("x"))
		}
		after(time.Second)
		for id, state := range map[anteroom.WebhookID]string{"1": anteroom.DeliveryPending, "2": anteroom.DeliveryDelivered, "3": anteroom.DeliveryDelivered} {
			if d := store.deliveries(t, id); d[0].State != state {
				t.Errorf("%s: %+v", id, d[0])
			}
		}
		after(attemptTime)
		if d := store.deliveries(t, "1"); d[0].Attempts != 1 || d[0].Error != "the receiver did not answer within 10s" {
			t.Errorf("%+v", d[0])
		}
		if n := len(p.arrivals()); n != 3 {
			t.Errorf("%d arrived", n)
		}
	})
}

// What was not delivered when the process ended is by the next, and what was is not told twice.
func TestARestartLosesNothing(t *testing.T) {
	story(t, func(t *testing.T, ctx context.Context) {
		store := &shelf{}
		first, stop := context.WithCancel(ctx)
		s, p := serve(t, store, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
		s.Use(first, []Target{target("http://hooks.example.com/")})
		s.Tell(first, "1", message("one"))
		after(time.Second)
		stop()
		s.Wait()
		if len(p.arrivals()) != 1 {
			t.Fatalf("%d arrived", len(p.arrivals()))
		}
		s, p = serve(t, store, ok)
		s.Use(ctx, []Target{target("http://hooks.example.com/")})
		s.Tell(ctx, "1", message("two"))
		after(time.Minute)
		var texts []string
		for _, a := range p.arrivals() {
			var m Message
			if err := json.Unmarshal([]byte(a.body), &m); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, m.Text)
		}
		if fmt.Sprint(texts) != "[two one]" {
			t.Errorf("%v arrived", texts)
		}
	})
}

func TestAQueueIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	story(t, func(t *testing.T, ctx context.Context) {
		store := &shelf{}
		s, _ := serve(t, store, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		s.Use(ctx, []Target{target("http://hooks.example.com/")})
		long := message(strings.Repeat("\x01", 2000))
		long.Change = &Change{Fields: make([]Field, 60)}
		for i := range long.Change.Fields {
			long.Change.Fields[i] = Field{"field", strings.Repeat("<", 100), strings.Repeat("&", 100)}
		}
		for range MaxPending + maxKept + 1 {
			long.ID = newID()
			s.Tell(ctx, "1", long)
		}
		data, _ := store.Load(ctx, "1")
		if len(data) > 1<<20 {
			t.Errorf("the queue has %d bytes; a key of the store holds 1 MiB", len(data))
		}
		pending := 0
		all := store.deliveries(t, "1")
		for _, d := range all {
			if d.State == anteroom.DeliveryPending {
				pending++
			}
		}
		if pending != MaxPending || len(all) != MaxPending+maxKept {
			t.Errorf("%d pending of %d", pending, len(all))
		}
	})
}

// A store that takes nothing is no reason to be silent.
func TestABrokenStore(t *testing.T) {
	story(t, func(t *testing.T, ctx context.Context) {
		s, p := serve(t, &shelf{broken: true}, ok)
		s.Use(ctx, []Target{target("http://hooks.example.com/")})
		s.Tell(ctx, "1", message("x"))
		after(time.Second)
		if len(p.arrivals()) != 1 {
			t.Error("nothing arrived")
		}
	})
}

// A webhook that is gone is told nothing more; one that has changed is told at its new address.
func TestUse(t *testing.T) {
	story(t, func(t *testing.T, ctx context.Context) {
		var mu sync.Mutex
		var paths []string
		s, _ := serve(t, &shelf{}, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			paths = append(paths, r.URL.Path)
			mu.Unlock()
			w.WriteHeader(500)
		})
		s.Use(ctx, []Target{target("http://hooks.example.com/old")})
		s.Tell(ctx, "1", message("x"))
		after(time.Second)
		s.Use(ctx, []Target{target("http://hooks.example.com/new")})
		after(time.Minute)
		s.Use(ctx, nil)
		s.Tell(ctx, "1", message("y"))
		after(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(paths) != "[/old /new /new]" {
			t.Errorf("%v", paths)
		}
	})
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte(`{"version":1,"deliveries":[{"id":"1","state":"pending","message":{"id":"1"}}]}`))
	f.Add([]byte(`{"version":1,"deliveries":[null]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := Deliveries(data)
		if err != nil && all != nil {
			t.Error("an error with deliveries")
		}
	})
}
