package pass

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// denying is an edge that knows revoked sessions, before an Anteroom whose list is text; empty: it has none.
type denying struct {
	*edgeOf
	text    atomic.Value
	fetched atomic.Int32
	log     bytes.Buffer
}

func newDenying(t *testing.T) *denying {
	e := &denying{edgeOf: newEdgeOf(t)}
	e.lists(`{"revoked": [], "complete": true}`)
	before := e.Anteroom
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/anteroom/revoked" {
			(&Handler{Anteroom: before}).proxy().ServeHTTP(w, r)
			return
		}
		e.fetched.Add(1)
		if text := e.text.Load().(string); text == "" || r.Host != zone || r.URL.RawQuery != "room="+string(e.Want.Room) {
			http.NotFound(w, r)
		} else {
			io.WriteString(w, text)
		}
	}))
	t.Cleanup(s.Close)
	e.Anteroom = must(url.Parse(s.URL))(t)
	e.Revoked, e.Log = true, slog.New(slog.NewTextHandler(&e.log, nil))
	return e
}

func (e *denying) lists(text string) { e.text.Store(text) }

// after asks with a pass that is good then, waits for the fetch in progress, and returns who answered.
func (e *denying) after(long time.Duration) string {
	e.t.Helper()
	e.now = e.now.Add(long)
	got := e.asks("/", "Cookie", e.pass(e.keys, e.now)).Body.String()
	for busy := e.pulls(); busy != nil; busy = e.pulls() {
		<-busy
	}
	return got
}

// pulls is closed when the fetch in progress ends; nil: there is none.
func (e *denying) pulls() chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Handler.revoked.busy
}

const listed = `{"revoked": ["other", "` + sid + `"], "complete": true}`

// The pass of a revoked session leads to Anteroom: at once after a pause, and one request later while requests come all the time.
func TestHandlerRefusesRevokedSessions(t *testing.T) {
	e := newDenying(t)
	for i, step := range []struct {
		after time.Duration
		lists string
		want  string
	}{
		{0, `{"revoked": ["other"], "complete": true}`, "origin"},
		{900 * time.Millisecond, listed, "origin"},   // not fetched again yet
		{100 * time.Millisecond, listed, "origin"},   // fetched in the background
		{100 * time.Millisecond, listed, "Anteroom"}, // as this one finds
		{time.Minute, `{"revoked": [], "complete": true}`, "origin"},
		{3 * time.Second, listed, "Anteroom"}, // the first after a pause waits for the list
	} {
		e.lists(step.lists)
		if got := e.after(step.after); got != step.want {
			t.Errorf("step %d: answered by %q, want %q", i, got, step.want)
		}
	}
	if n := e.fetched.Load(); n != 4 {
		t.Errorf("%d fetches", n)
	}
	e.Revoked = false
	if got := e.after(time.Minute); got != "origin" || e.fetched.Load() != 4 {
		t.Errorf("without the option: %q, %d fetches", got, e.fetched.Load())
	}
}

// While there is no list, passes count to their end, and the log says so once. What is known stays.
func TestHandlerWithoutTheListOfRevokedSessions(t *testing.T) {
	e := newDenying(t)
	logged := func(want string) {
		t.Helper()
		if text := e.log.String(); strings.Count(text, "cannot be fetched") != strings.Count(want, "-") || strings.Count(text, "fetched again") != strings.Count(want, "+") {
			t.Errorf("want %s, the log has\n%s", want, text)
		}
	}
	e.lists("")
	for range 5 {
		if got := e.after(3 * time.Second); got != "origin" {
			t.Errorf("without a list: %q", got)
		}
	}
	logged("-")
	e.lists(listed)
	if got := e.after(3 * time.Second); got != "origin" {
		t.Errorf("the last fetch failed, and the next one is waited for: %q", got)
	}
	if got := e.after(time.Second); got != "Anteroom" {
		t.Errorf("when the list is back: %q", got)
	}
	logged("-+")
	for _, text := range []string{"", "{", `{"revoked": [], "complete": false}`} {
		e.lists(text)
		e.after(time.Second)
		if got := e.after(time.Second); got != "Anteroom" {
			t.Errorf("%q after the list: %q", text, got)
		}
	}
	logged("-+-+")
	e.lists(`{"revoked": [], "complete": true}`)
	e.after(time.Second)
	if got := e.after(time.Second); got != "origin" {
		t.Errorf("a whole list without the session: %q", got)
	}
}

// What is kept of lists that are not complete has a bound.
func TestHandlerKeepsABoundedList(t *testing.T) {
	e := newDenying(t)
	for i := range maxRevoked/10_000 + 3 {
		var text strings.Builder
		for n := range 10_000 {
			fmt.Fprintf(&text, `"%d-%d",`, i, n)
		}
		e.lists(`{"revoked": [` + text.String() + `"x"], "complete": false}`)
		e.after(3 * time.Second)
		if n := len(e.Handler.revoked.sids); n > maxRevoked+10_001 {
			t.Fatalf("%d sessions after %d lists", n, i+1)
		}
	}
}
