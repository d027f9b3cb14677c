package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

// stream takes what the handler flushes, one event after another.
type stream struct {
	*httptest.ResponseRecorder
	events chan string
	ctx    context.Context
}

func (s *stream) FlushError() error {
	text := s.Body.String()
	s.Body.Reset()
	select {
	case s.events <- text:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

type shown struct {
	At    string
	All   bool
	Rooms []struct {
		ID       anteroom.RoomID
		Name     string
		QueueAll bool `json:"queue_all"`
	}
	Gone []anteroom.RoomID
}

func (f shown) names() (names []string) {
	for _, r := range f.Rooms {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// follow opens the stream; next returns its next event.
func (w *world) follow(cookie string) (next func() shown, raw func() string, closed <-chan struct{}) {
	ctx, stop := context.WithCancel(w.Context())
	w.Cleanup(stop)
	s := &stream{ResponseRecorder: httptest.NewRecorder(), events: make(chan string), ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.dash.ServeHTTP(s, request(http.MethodGet, "/dash/live", "", "Cookie", cookie).WithContext(ctx))
	}()
	raw = func() string {
		select {
		case text := <-s.events:
			return text
		case <-done:
			return ""
		}
	}
	return func() (f shown) {
		w.Helper()
		text := raw()
		if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "data: ")), &f); err != nil || !strings.HasSuffix(text, "\n\n") {
			w.Fatalf("%v in the event %q", err, text)
		}
		return f
	}, raw, done
}

// TestLiveShowsWhatTheCallerMayRead: all at first, then what differs.
func TestLiveShowsWhatTheCallerMayRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		shop, other := w.room("example.com", "shop"), w.room("example.org", "other")
		_, text := w.token(manage.Read, "example.com")
		mine, _, _ := w.follow(w.login(text))
		everything, _, _ := w.follow(w.login(adminToken))
		if f := mine(); !f.All || !slices.Equal(f.names(), []string{"shop"}) {
			t.Errorf("the zone's token: %+v", f)
		}
		if f := everything(); !f.All || !slices.Equal(f.names(), []string{"other", "shop"}) {
			t.Errorf("the admin: %+v", f)
		}
		if f := everything(); f.All || len(f.Rooms) != 0 || f.At == "" {
			t.Errorf("when nothing differs: %+v", f)
		}
		z, _ := w.manage.State().ZoneNamed("example.org")
		if _, err := w.manage.ChangeRoom(t.Context(), w.admin(), z.ID, other.ID, func(r *anteroom.Room) error { r.QueueAll = true; return nil }); err != nil {
			t.Fatal(err)
		}
		if f := everything(); !slices.Equal(f.names(), []string{"other"}) || !f.Rooms[0].QueueAll {
			t.Errorf("after a change: %+v", f)
		}
		if f := mine(); len(f.Rooms) != 0 {
			t.Errorf("a change elsewhere: %+v", f)
		}
		if err := w.manage.DeleteRoom(t.Context(), w.admin(), z.ID, other.ID); err != nil {
			t.Fatal(err)
		}
		if f := everything(); !slices.Equal(f.Gone, []anteroom.RoomID{other.ID}) || len(f.Rooms) != 0 {
			t.Errorf("after a deletion: %+v, %s stays", f, shop.ID)
		}
	})
}

// TestLiveEndsWithTheSession: a deleted token is told within the second.
func TestLiveEndsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		made, text := w.token(manage.Read, "")
		next, raw, closed := w.follow(w.login(text))
		next()
		if err := w.manage.DeleteToken(t.Context(), w.admin(), made.ID); err != nil {
			t.Fatal(err)
		}
		if got := raw(); got != "event: over\ndata: {}\n\n" {
			t.Errorf("the stream says %q", got)
		}
		<-closed
	})
}

// TestLiveHeaders: nothing on the way may keep or hold back the stream.
func TestLiveHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		s := &stream{ResponseRecorder: httptest.NewRecorder(), events: make(chan string, 1), ctx: ctx}
		r := request(http.MethodGet, "/dash/live", "", "Cookie", w.login(adminToken)).WithContext(ctx)
		done := make(chan struct{})
		go func() { defer close(done); w.dash.ServeHTTP(s, r) }()
		<-s.events
		stop()
		<-done
		h := s.Header()
		if h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%v", h)
		}
	})
}
