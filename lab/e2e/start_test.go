package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// "A person opening the page queues, sees the line move, and gets in within a minute."
func TestDemoLetsAPersonInWithinAMinute(t *testing.T) {
	t.Parallel()
	dir, visitors, admin := t.TempDir(), freeAddress(t), freeAddress(t)
	p := spawn(t, filepath.Join(dir, "out"), nil, "demo", "--listen", visitors, "--admin", admin)
	eventually(t, 20*time.Second, func() string {
		if status, body := ask(admin, "/-/ready"); status != http.StatusOK {
			return fmt.Sprintf("not ready: %d %s", status, body)
		}
		return ""
	})
	p.waitSaid(t, "http://"+visitors+"/", 1)
	waiting := regexp.MustCompile(`"name": "shop"[^}]*"queue_all": false[^}]*"waiting": [0-9]{2,}`) // and the line moves
	eventually(t, 20*time.Second, func() string {
		_, body := ask(admin, "/-/status")
		if !waiting.MatchString(body) {
			return "no crowd is waiting: " + tail(body, 1500)
		}
		return ""
	})
	b := open(t)
	b.visit("http://" + visitors + "/")
	came := time.Now()
	b.waits()
	first := eval[int](b, `JSON.parse(document.getElementById('status').textContent).ahead`)
	// Slots that were taken together come free together: everybody ahead may enter in one step, and the visitor with them.
	b.becomes(40*time.Second, fmt.Sprintf(`document.getElementById('ahead') ? +document.getElementById('ahead').textContent.replace(/\D/g, '') < %d : (%s)`, first, showsShop))
	b.becomes(60*time.Second-time.Since(came), showsShop)
	t.Logf("%d were ahead; in after %v", first, time.Since(came).Round(time.Second))
	p.waitSaid(t, "  shop: ", 1)
	if strings.Contains(p.said(), "  drop: ") {
		t.Errorf("the numbers of a room in which nobody is: %s", p.said())
	}
	// The shop's page holds a stream open; Ctrl-C does not wait for it.
	b.becomes(10*time.Second, `typeof feed == 'object' && feed.readyState == EventSource.OPEN`)
	pressed := time.Now()
	p.Process.Signal(syscall.SIGINT)
	if code := p.waitEnd(t); code != 0 || time.Since(pressed) > 15*time.Second {
		t.Errorf("Ctrl-C: exit code %d after %v: %s", code, time.Since(pressed), tail(p.said(), 500))
	}
}

func TestSecondSignalDoesNotWaitForRequests(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	v := newVisitor(t, g).enter()
	result := make(chan error, 1)
	go func() {
		_, err := v.try(http.MethodGet, "/cart?delay=25s", "")
		result <- err
	}()
	eventually(t, 10*time.Second, func() string {
		if len(g.origin.seen("GET", "/cart?delay=25s")) == 0 {
			return "the slow request has not reached the origin"
		}
		return ""
	})
	g.signal(syscall.SIGTERM)
	g.waitLog("stopping", 1)
	g.signal(syscall.SIGTERM)
	<-g.process.ended
	if err := <-result; err == nil {
		t.Error("the request was waited for")
	}
	g.start()
	if a := v.get("/"); !a.admitted() {
		t.Error("the session is lost")
	}
}

func TestFlagsAndEnvironmentMakeARoom(t *testing.T) {
	t.Parallel()
	o := startOrigin(t)
	dir, visitors, admin := t.TempDir(), freeAddress(t), freeAddress(t)
	spawn(t, filepath.Join(dir, "out"), []string{"ANTEROOM_ORIGIN=" + o.url, "ANTEROOM_ADMIN=" + admin, "ANTEROOM_TOTAL_ACTIVE_USERS=7"},
		"run", "--listen", visitors, "--data", filepath.Join(dir, "data"), "--total-active-users", "1", "--new-users-per-minute", "100")
	g := &gate{t: t, host: visitors, scheme: "http", admin: admin}
	eventually(t, 20*time.Second, func() string {
		if status, body := g.ask("/-/ready"); status != http.StatusOK {
			return fmt.Sprintf("not ready: %d %s", status, body)
		}
		return ""
	})
	newVisitor(t, g).enter()
	newVisitor(t, g).wait() // the flag counts, not the variable
}

// What can go wrong at the start is said with what, where and how to fix it.
func TestStartsThatCannotWorkSaySo(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	faulty := file("faulty.yaml", "listn: :80\nrooms:\n  - name: a b\n    total_active_users: -1\n")
	readable := file("keys.json", "{}")
	if err := os.Chmod(readable, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"data directory in use", []string{"run", "--config", g.file(), "--listen", freeAddress(t), "--admin", freeAddress(t)}, 1, []string{g.data()}},
		{"address in use", []string{"run", "--origin", g.origin.url, "--listen", g.host, "--admin", freeAddress(t), "--data", filepath.Join(dir, "d1")}, 1, []string{g.host, "in use"}},
		{"faults", []string{"run", "--config", faulty}, 1, []string{"faulty.yaml:1:1", "did you mean listen?", "name", "total_active_users", "4:"}},
		{"the same faults by validate", []string{"validate", "--config", faulty}, 1, []string{"faulty.yaml:1:1", "did you mean listen?", "name", "total_active_users", "4:"}},
		{"no file", []string{"run", "--config", filepath.Join(dir, "none.yaml")}, 1, []string{"none.yaml"}},
		{"keys that others can read", []string{"run", "--origin", g.origin.url, "--listen", freeAddress(t), "--admin", freeAddress(t), "--data", dir}, 1, []string{"keys.json", "chmod 600"}},
		{"unknown flag", []string{"run", "--orign", "x"}, 2, []string{"orign"}},
		{"argument", []string{"run", "now"}, 2, []string{"now"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := spawn(t, filepath.Join(t.TempDir(), "out"), nil, c.args...)
			if code := p.waitEnd(t); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, word := range c.says {
				if !strings.Contains(p.said(), word) {
					t.Errorf("does not say %q:\n%s", word, p.said())
				}
			}
			if strings.Contains(p.said(), "goroutine ") {
				t.Errorf("panics:\n%s", p.said())
			}
		})
	}
	if out := g.command("validate", "--config", g.file()); !strings.Contains(out, "1 room") {
		t.Errorf("validate: %s", out)
	}
}
