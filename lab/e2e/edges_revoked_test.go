package e2e

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Edges that fetch the list of revoked sessions send visitors whose session has ended to Anteroom, though their passes are valid. The
// others do not.
func TestEdgesKnowRevokedSessions(t *testing.T) {
	t.Parallel()
	for _, e := range []passEdge{{name: "go", start: inGo(true)}, {name: "node", start: inNode("node", "REVOKED=1")}} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			testRevoked(t, e)
		})
	}
	t.Run("without the list", func(t *testing.T) {
		t.Parallel()
		app, v := revokedAtEdge(t, passEdge{name: "go", start: inGo(false)})
		always(t, 3*time.Second, func() string {
			if a := v.get("/after"); !a.admitted() {
				return a.Status
			}
			if _, direct := app.last(t, "/after"); !direct {
				return "by Anteroom"
			}
			return ""
		})
	})
}

// revokedAtEdge returns a visitor whose session has just ended, and who has a pass that is valid for some time.
func revokedAtEdge(t *testing.T, e passEdge) (*counted, *visitor) {
	t.Helper()
	app, g, at := behindPassEdge(t, e, addresses{})
	g.host = at.listen
	v := newVisitor(t, g)
	eventually(t, 15*time.Second, func() string {
		if a, err := v.try(http.MethodGet, "/", ""); err != nil || !a.admitted() {
			return "not admitted"
		}
		return ""
	})
	v.get("/second")
	v.get("/third")
	if _, direct := app.last(t, "/third"); !direct || v.pass() == "" {
		t.Fatalf("the third request did not go straight to the application: %v", v.cookies())
	}
	kept := v.pass()
	v.holdPass("") // so that Anteroom sees the request
	if a := v.do(http.MethodPost, "/leave", ""); !a.admitted() {
		t.Fatalf("leaving: %s", a.Status)
	}
	v.holdPass(kept)
	return app, v
}

func testRevoked(t *testing.T, e passEdge) {
	_, v := revokedAtEdge(t, e)
	eventually(t, 5*time.Second, func() string {
		if a := v.get("/after"); a.admitted() {
			return "a revoked session is let in by its pass"
		}
		return ""
	})
	// The seat is held until the pass is over, so the visitor waits.
	if a := v.get("/"); a.admitted() || !strings.Contains(a.text(t), "You are in line") {
		t.Errorf("then: %s", a.Status)
	}
}

// While there is no list, passes in JavaScript count to their end, and the log says so once.
func TestPassesInJavaScriptWithoutTheListOfRevokedSessions(t *testing.T) {
	t.Parallel()
	node, err := find("node", "nodejs")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(node, "clients/revoked.mjs").CombinedOutput()
	const want = "true 1\nfalse 2\nfalse 2\nfalse 3 warn\nfalse 4\nfalse 5 info\nfalse 6\ntrue 6\ntrue 7\nfalse 7\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
