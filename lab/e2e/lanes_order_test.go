package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const clubRoom = `  - name: shop
    host: 127.0.0.1
    total_active_users: 1
    new_users_per_minute: 600
    session_duration: 5m
    first_session: 5m
    unpaced: true
    enabled_origin_commands: revoke
    lanes:
      - {name: press, priority: 80}
      - {name: club, priority: 50, expression: 'http.cookie contains "club=member"'}
      - {name: everyone, priority: 0}
`

// Visitors of three lanes wait for one seat, and a code raises one of them. The shop sees them come in the order of the lanes, and of
// arrival within each, also after the process was killed.
func TestLanesInTheShop(t *testing.T) {
	t.Parallel()
	g := newGate(t, clubRoom)
	g.environment = []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	g.start()
	t.Cleanup(func() { g.end() })
	made := strings.Fields(g.command("room", "invite", "create", "shop", "--count", "1", "--lane", "press", "--api", g.operators(), "--token", operatorToken))
	code, lane, _ := strings.Cut(made[len(made)-1], ",")
	if lane != "press" {
		t.Fatalf("the codes are %q", made)
	}

	inside := newVisitor(t, g).enter()
	visitors := map[string]*visitor{}
	come := func() map[string]answer { // all stay in touch, or they do not count
		answers := map[string]answer{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for name, v := range visitors {
			all.Go(func() {
				a := v.get("/")
				mu.Lock()
				defer mu.Unlock()
				answers[name] = a
			})
		}
		all.Wait()
		return answers
	}
	arrives := func(name string, member bool) {
		v := newVisitor(t, g)
		if member {
			at, err := url.Parse(g.url("/"))
			if err != nil {
				t.Fatal(err)
			}
			v.client.Jar.SetCookies(at, []*http.Cookie{{Name: "club", Value: "member", Path: "/"}})
		}
		visitors[name] = v.wait()
		come()
	}
	arrives("first", false)
	arrives("journalist", false)
	arrives("member", true)
	arrives("last", false)
	arrives("other member", true)

	sees := func(name, lane string, ahead int) {
		t.Helper()
		eventually(t, 15*time.Second, func() string {
			page := come()[name].text(t)
			if p := visitors[name].place("/"); p.Ahead == nil || *p.Ahead != ahead || !strings.Contains(page, lane) {
				return name + " sees " + p.String()
			}
			return ""
		})
	}
	sees("first", "everyone", 0)
	sees("last", "everyone", 2)
	sees("member", "club", 0)
	sees("other member", "club", 1)
	enters := func(code string) answer {
		return visitors["journalist"].do(http.MethodPost, "/?__anteroom=invite", "code="+code, "Content-Type", "application/x-www-form-urlencoded", "Origin", g.scheme+"://"+g.host, "Sec-Fetch-Site", "same-origin")
	}
	if a := enters("0000-0000-0000-0000"); !strings.Contains(a.text(t), "not valid") {
		t.Errorf("a wrong code: %s", a.Status)
	}
	if a := enters(code); a.StatusCode != http.StatusSeeOther {
		t.Errorf("a good code: %s %s", a.Status, a.text(t))
	}
	sees("journalist", "press", 0)

	g.kill()
	g.start()
	inside.leave()
	var order []string
	for range len(visitors) {
		eventually(t, 30*time.Second, func() string {
			for name, a := range come() {
				if a.admitted() {
					order = append(order, name)
					visitors[name].leave()
					delete(visitors, name)
					return ""
				}
			}
			return "nobody is admitted"
		})
	}
	if want := []string{"journalist", "member", "other member", "first", "last"}; !slices.Equal(order, want) {
		t.Errorf("admitted %q, want %q", order, want)
	}
}
