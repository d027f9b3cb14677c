package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestDeletionOfWhatChangesMeanwhile: of a deletion and a change that name the same state, one is refused.
func TestDeletionOfWhatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	in := open(t)
	send := func(method, target, body, tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, Prefix+target, strings.NewReader(body))
		r.RemoteAddr = in.address().String() + ":4711"
		r.Header.Set("Authorization", "Bearer "+adminToken)
		if tag != "" {
			r.Header.Set("If-Match", tag)
		}
		w := httptest.NewRecorder()
		in.ServeHTTP(w, r)
		return w
	}
	id := func(w *httptest.ResponseRecorder) string {
		_, rest, _ := strings.Cut(w.Body.String(), `"id":"`)
		if w.Code != http.StatusOK || len(rest) < 32 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return rest[:32]
	}
	rooms := "/zones/" + id(send("POST", "/zones", `{"name":"example.com"}`, "")) + "/waiting_rooms"
	const room = `{"name":"shop","host":"example.com","total_active_users":300,"new_users_per_minute":200}`
	const event = `{"name":"e","event_start_time":"2026-11-27T15:30:00Z","event_end_time":"2026-11-27T17:00:00Z"}`
	for range 100 {
		at := rooms + "/" + id(send("POST", rooms, room, ""))
		events := at + "/events"
		event := events + "/" + id(send("POST", events, event, ""))
		for _, one := range []struct{ at, change string }{{event, `{"suspended":true}`}, {at, `{"session_duration":6}`}} {
			tag := send("GET", one.at, "", "").Header().Get("ETag")
			var changed, deleted *httptest.ResponseRecorder
			var both sync.WaitGroup
			both.Go(func() { changed = send("PATCH", one.at, one.change, tag) })
			both.Go(func() { deleted = send("DELETE", one.at, "", tag) })
			both.Wait()
			if changed.Code == http.StatusOK && deleted.Code != http.StatusPreconditionFailed {
				t.Fatalf("%s was changed, and the deletion of what was there before: %d", one.at, deleted.Code)
			}
			if deleted.Code != http.StatusOK {
				send("DELETE", one.at, "", "")
			}
		}
	}
}
