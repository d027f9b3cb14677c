package pass

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// reporting is an edge before an API that takes reports, unless it is down.
type reporting struct {
	*edgeOf
	mu    sync.Mutex
	down  bool
	bodys []string
	log   bytes.Buffer
}

func newReporting(t *testing.T) *reporting {
	e := &reporting{edgeOf: newEdgeOf(t)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if r.Method != http.MethodPost || r.URL.Path != "/anteroom/v1/touch" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s %q", r.Method, r.URL, r.Header)
		}
		if e.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		text, _ := io.ReadAll(r.Body)
		e.bodys = append(e.bodys, string(text))
		io.WriteString(w, `{"success":true}`)
	}))
	t.Cleanup(s.Close)
	e.Handler.Reports, e.Handler.Token, e.Log = must(url.Parse(s.URL))(t), "secret", slog.New(slog.NewTextHandler(&e.log, nil))
	e.Handler.after = func(time.Duration, func()) {} // the test says when it reports
	return e
}

// visits sends requests of a session with a good pass and a ticket.
func (e *reporting) visits(sid, ticket string) {
	e.t.Helper()
	token := must(issuerOf(e.t, e.keys, "").Issue(sid, e.now, half))(e.t)
	if got := e.asks("/", "Cookie", Cookie+"="+token+"; __cfwaitingroom="+ticket).Body.String(); got != "origin" {
		e.t.Fatalf("answered by %s", got)
	}
	if e.seen.Header.Get("Cookie") != "" {
		e.t.Errorf("the application sees %q", e.seen.Header.Get("Cookie"))
	}
}

// reported returns what the next report says.
func (e *reporting) reported() string {
	e.bodys = nil
	e.report()
	return strings.ReplaceAll(strings.Join(e.bodys, "\n"), `"room":"`+string(shop)+`",`, "")
}

// The newest request of each session is reported, by its ticket; what nobody took is reported again, until it counts no more.
func TestHandlerReports(t *testing.T) {
	e := newReporting(t)
	e.visits("ann", "A1")
	e.now = e.now.Add(time.Second)
	e.visits("bob", "B1")
	e.now = e.now.Add(time.Second)
	e.visits("ann", "A2")
	e.visits("eve", "not a ticket")
	e.visits("eve", strings.Repeat("x", anteroom.MaxTicketBytes+1))
	e.visits("eve", "")
	if got := e.asks("/").Body.String(); got != "Anteroom" {
		t.Errorf("a visitor without a pass: %s", got)
	}
	e.now = e.now.Add(time.Second)
	if got, want := e.reported(), `{"touches":[{"ticket":"A2","seconds_ago":1},{"ticket":"B1","seconds_ago":2}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := e.reported(); got != "" {
		t.Errorf("then %s", got)
	}

	e.down = true
	e.visits("ann", "A3")
	e.now = e.now.Add(6 * time.Second)
	e.visits("bob", "B2")
	e.reported()
	e.now = e.now.Add(3 * time.Second)
	e.visits("ann", "A4")
	e.reported()
	e.down = false
	e.now = e.now.Add(2 * time.Second)
	if got, want := e.reported(), `{"touches":[{"ticket":"A4","seconds_ago":2},{"ticket":"B2","seconds_ago":5}]}`; got != want {
		t.Errorf("after a pause of Anteroom: %s, want %s", got, want)
	}
	if n := strings.Count(e.log.String(), "\n"); n != 2 {
		t.Errorf("%d lines in the log: %s", n, e.log.String())
	}
	e.down = true
	e.visits("ann", "A5")
	e.now = e.now.Add(anteroom.MaxTouchAge)
	if e.reported(); len(e.Handler.reports.order) > 0 || e.Handler.reports.pending {
		t.Error("what counts no more is kept")
	}
}

// However many visitors there are, memory is bounded; the newest are reported, in batches that Anteroom takes.
func TestReportsAreBounded(t *testing.T) {
	e := newReporting(t)
	for i := range maxReports + 5 {
		e.Handler.reports.note(fmt.Sprint(i), sighting{fmt.Sprint("T", i), e.now})
	}
	if n := len(e.Handler.reports.seen); n != maxReports {
		t.Errorf("%d are kept", n)
	}
	e.reported()
	var all []string
	for _, body := range e.bodys {
		var b struct{ Touches []struct{ Ticket string } }
		if err := json.Unmarshal([]byte(body), &b); err != nil || len(b.Touches) > anteroom.MaxTouches {
			t.Errorf("%d in a batch, %v", len(b.Touches), err)
		}
		for _, one := range b.Touches {
			all = append(all, one.Ticket)
		}
	}
	if len(all) != maxReports || !slices.Contains(all, "T5") || slices.Contains(all, "T4") {
		t.Errorf("%d are reported", len(all))
	}
}

// A handler that nobody told to report does not, and one with suffix and name of its own finds its ticket.
func TestTicketsToReport(t *testing.T) {
	for _, c := range []struct {
		h      *Handler
		cookie string
		want   string
	}{
		{&Handler{}, "a=b; __cfwaitingroom=A", "A"},
		{&Handler{Suffix: "shop"}, "__cfwaitingroom=A; __cfwaitingroom_shop=B", "B"},
		{&Handler{CookieName: "__Host-wait"}, "__cfwaitingroom=A;__Host-wait=C", "C"},
		{&Handler{}, "__cfwaitingroom_shop=B", ""},
		{&Handler{}, "x__cfwaitingroom=A", ""},
	} {
		if got := c.h.ticket([]string{c.cookie}); got != c.want {
			t.Errorf("%q: %q, want %q", c.cookie, got, c.want)
		}
	}
	e := newEdgeOf(t)
	if e.asks("/", "Cookie", e.pass(e.keys, morning)+"; __cfwaitingroom=A"); e.Handler.reports.pending || len(e.Handler.reports.order) > 0 {
		t.Error("it reports")
	}
}
