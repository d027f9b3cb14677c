package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Doctor, from outside, at the recipes of edges that verify passes: a room is in front, bad passes are refused, and the
// application that everybody can reach is noticed.
func TestDoctorAtEdges(t *testing.T) {
	t.Parallel()
	for _, e := range passEdges {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			app := newCounted(t)
			at := addresses{listen: freeAddress(t), application: strings.TrimPrefix(app.URL, "http://")}
			g := newGate(t, strings.Replace(passingSeat, "total_active_users: 1", "total_active_users: 50", 1)+e.setting(), "trusted_proxies: [127.0.0.1]")
			g.origin.url, g.environment = app.URL, []string{"ANTEROOM_API_TOKEN=" + operatorToken}
			g.configure(g.rooms)
			g.start()
			t.Cleanup(g.end)
			at.anteroom = g.host
			startPassEdge(t, e, g, at)
			eventually(t, 15*time.Second, func() string {
				if _, err := http.Get("http://" + at.listen + "/"); err != nil {
					return err.Error()
				}
				return ""
			})
			said := g.command("doctor", "--url", "http://"+at.listen)
			for _, want := range []string{"a room is in front", "answers with tickets are not cached", "forged headers", "the paths below", "another signature", "alg none", "HS256 signed", "two cookies"} {
				if !strings.Contains(said, want) {
					t.Errorf("doctor did not look at %q", want)
				}
			}
			if strings.Contains(said, "warning ") || strings.Contains(said, "unknown ") {
				t.Error("doctor found something")
			}
			if t.Failed() {
				t.Log(said)
			}
			out, err := exec.Command(os.Getenv(binaryVariable), "doctor", "--url", "http://"+at.listen, "--origin", app.URL).Output()
			if err == nil || !strings.Contains(string(out), "error    visitors can bypass the room") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
