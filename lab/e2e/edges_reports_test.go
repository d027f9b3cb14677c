package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	passes "github.com/anteroom/anteroom/ticket/pass"
)

// Seats of a room whose edges report, with sessions of half a minute and passes of half of that.
var reportedSeat = strings.NewReplacer("session_duration: 5m", "session_duration: 30s", "pass: 30s", "pass: 15s\n    pass_reported: true").Replace(passingSeat)

// An edge that reports whom it lets in keeps a session for as long as the visitor sends requests with a pass, and for session_duration
// after that, not longer by the pass. One that does not report costs its visitor time, and no seat is given away before its pass is over.
func TestEdgesReport(t *testing.T) {
	t.Parallel()
	inGoTo := func(api, token string) passEdge {
		return passEdge{start: func(t *testing.T, _ string, at addresses, _ int64, zone, room string) {
			h := &passes.Handler{Origin: through(at.application, nil), Anteroom: &url.URL{Scheme: "http", Host: at.anteroom}, Want: passes.Want{Audience: zone, Room: anteroom.RoomID(room)}, Token: token}
			if api != "" {
				h.Reports = &url.URL{Scheme: "http", Host: api}
			}
			serveEdge(t, at.listen, h.ServeHTTP)
		}}
	}
	type reporting struct {
		name    string
		reports bool
		edge    func(api, token string) passEdge
	}
	atOnce(t, []reporting{
		{"go", true, inGoTo},
		{"node", true, func(api, token string) passEdge {
			return passEdge{start: inNode("node", "REPORTS=http://"+api, "TOKEN="+token)}
		}},
		{"without reports", false, func(string, string) passEdge { return inGoTo("", "") }},
		{"nobody takes the reports", false, func(_, token string) passEdge { return inGoTo("127.0.0.1:1", token) }},
		{"with a bad token", false, func(api, _ string) passEdge { return inGoTo(api, "e2e-0000000000000000000000000000000000000000000") }},
	}, func(c reporting) string { return c.name }, func(t *testing.T, c reporting) { testReports(t, c.reports, c.edge) })
}

func testReports(t *testing.T, reports bool, edge func(api, token string) passEdge) {
	app := newCounted(t)
	g := newGate(t, reportedSeat, "trusted_proxies: [127.0.0.1]")
	g.origin.url, g.environment = app.URL, []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	g.configure(g.rooms)
	g.start()
	t.Cleanup(g.end)
	at := addresses{listen: freeAddress(t), application: strings.TrimPrefix(app.URL, "http://"), anteroom: g.host}
	var made struct{ Secret string }
	(&office{gate: g}).good("POST", "/anteroom/v1/tokens", `{"name": "edge", "grants": [{"permission": "read", "room": "`+string(anteroom.RoomIDOf("127.0.0.1", "shop"))+`"}]}`, &made)
	startPassEdge(t, edge(g.admin, made.Secret), g, at)
	g.host = at.listen

	ann, bob := newVisitor(t, g), newVisitor(t, g)
	eventually(t, 15*time.Second, func() string {
		if a, err := ann.try(http.MethodGet, "/", ""); err != nil || !a.admitted() {
			return "not admitted"
		}
		return ""
	})
	ann.get("/second") // with a pass in the answer
	known := time.Now()
	straight := func(path string) time.Time {
		t.Helper()
		if a := ann.get(path, "Sec-Fetch-Mode", "cors"); !a.admitted() {
			t.Fatalf("%s: %s", path, a.Status)
		}
		if _, direct := app.last(t, path); !direct {
			t.Fatalf("%s went through Anteroom", path)
		}
		return time.Now()
	}
	// bobEnters returns when bob is let in.
	bobEnters := func() time.Time {
		t.Helper()
		eventually(t, time.Minute, func() string {
			if bob.get("/").admitted() {
				return ""
			}
			return "bob waits"
		})
		return time.Now()
	}
	waits := func(until time.Time) {
		t.Helper()
		always(t, time.Until(until), func() string {
			if bob.get("/").admitted() {
				return "bob is let in " + time.Since(known).String() + " after the last request that Anteroom has seen"
			}
			return ""
		})
	}

	waits(known.Add(11 * time.Second))
	last := straight("/third")
	if !reports {
		// Anteroom knows no more than before: the seat is free after session_duration, long after the last pass.
		waits(known.Add(28 * time.Second))
		if long := bobEnters().Sub(known); long > 36*time.Second {
			t.Errorf("bob was let in after %v", long)
		}
		if a := ann.get("/"); a.admitted() || !strings.Contains(a.text(t), "You are in line") {
			t.Errorf("ann, whose session is over: %s", a.Status)
		}
		return
	}
	waits(last.Add(25 * time.Second)) // longer after the second request than a session lasts
	if a := ann.get("/fourth"); !a.admitted() {
		t.Fatalf("ann, whose last request was reported: %s", a.Status)
	}
	known = time.Now()
	last = straight("/fifth")
	waits(last.Add(28 * time.Second))
	// With a pass of 15 s, and 5 s for clocks, the seat would be held for 50 s after the fourth request.
	if long := bobEnters().Sub(last); long > 40*time.Second {
		t.Errorf("bob was let in %v after ann's last request", long)
	}
	if a := ann.get("/"); a.admitted() {
		t.Error("ann is let in, and her seat is taken")
	}
	if _, text := g.ask("/metrics"); !strings.Contains(text, `anteroom_edge_touches_total{result="taken"} 2`) {
		t.Errorf("the reports are not counted: %s", text[strings.Index(text, "anteroom_edge_touches"):][:400])
	}
}
