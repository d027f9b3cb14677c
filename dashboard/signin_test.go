package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/own"
	"github.com/anteroom/anteroom/dashboard/signin"
	"github.com/anteroom/anteroom/manage"
)

// provided is a provider that knows one person.
type provided struct {
	person signin.Person
	err    error
	ended  int
}

func (p *provided) Begin(context.Context) (string, signin.Attempt, error) {
	return "https://login.example.com/authorize?x=1", signin.Attempt{State: "the-state"}, p.err
}

func (p *provided) End(_ context.Context, a signin.Attempt, code string) (signin.Person, error) {
	p.ended++
	if a.State != "the-state" || code != "the-code" {
		return signin.Person{}, anteroom.Errorf(anteroom.Denied, "no such code")
	}
	return p.person, p.err
}

func (w *world) provider(has ...string) *provided {
	p := &provided{person: signin.Person{Name: "jo@example.com", Has: has}}
	w.dash.SignIn = &SignIn{Label: "Example", Provider: p, Lend: w.manage.Lend, Grants: func(has []string) (grants []manage.Grant) {
		if slices.Contains(has, "operators") {
			grants = append(grants, manage.Grant{Permission: manage.Edit})
		}
		return grants
	}}
	return p
}

// back is what the browser asks for when the provider sends it back, with what it has of cookies.
func back(query string, cookies []*http.Cookie) *http.Request {
	r := request("GET", Return+"?"+query, "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

const good = "state=the-state&code=the-code"

// begun goes to the provider and returns the cookies of the browser.
func (w *world) begun() []*http.Cookie {
	w.Helper()
	a := w.ask("GET", "/dash/sign-in", "")
	if a.StatusCode != 303 || a.Header.Get("Location") != "https://login.example.com/authorize?x=1" || len(a.Cookies()) != 1 {
		w.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	if c := a.Cookies()[0]; !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/dash/sign-in" || c.MaxAge != 600 {
		w.Errorf("cookie %+v", c)
	}
	return a.Cookies()
}

// TestAPersonSignsIn: the session has what the roles allow and no more, and the audit names the person.
func TestAPersonSignsIn(t *testing.T) {
	w := newWorld(t)
	room := w.room("example.com", "shop")
	if a := w.ask("GET", "/dash/ways", ""); string(a.Result) != `{"sign_in":null}` {
		t.Errorf("without a provider: %s", a.body)
	}
	w.provider("staff", "operators")
	if a := w.ask("GET", "/dash/ways", ""); string(a.Result) != `{"sign_in":"Example"}` {
		t.Errorf("with one: %s", a.body)
	}
	a := w.do(back(good, w.begun()))
	var session string
	for _, c := range a.Cookies() {
		if c.Name == cookieName && c.SameSite == http.SameSiteStrictMode && c.HttpOnly {
			session = c.Name + "=" + c.Value
		}
	}
	if a.StatusCode != 303 || a.Header.Get("Location") != "/" || session == "" {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	if a := w.ask("GET", "/dash/session", "", "Cookie", session); a.StatusCode != 200 || !strings.Contains(a.body, `"name":"jo@example.com","token":null`) || !strings.Contains(a.body, `"edit"`) {
		t.Errorf("session: %d %s", a.StatusCode, a.body)
	}
	zone, _ := w.manage.State().ZoneNamed("example.com")
	path := "/dash/api" + own.Prefix + "/zones/" + string(zone.ID) + "/rooms/" + string(room.ID) + "/pause"
	if a := w.ask("POST", path, "{}", "Cookie", session); a.StatusCode != 200 {
		t.Errorf("pause: %d %s", a.StatusCode, a.body)
	}
	if a := w.ask("GET", "/dash/api"+own.Prefix+"/tokens", "", "Cookie", session); a.StatusCode != 403 {
		t.Errorf("tokens with edit: %d %s", a.StatusCode, a.body)
	}
	log, err := w.manage.Audit(w.Context(), w.admin(), 0, 0)
	if err != nil || len(log) == 0 || log[len(log)-1].Actor != "jo@example.com" {
		t.Errorf("audit: %d records, %v", len(log), err)
	}
	w.now = w.now.Add(sessionLife)
	if a := w.ask("GET", "/dash/session", "", "Cookie", session); a.StatusCode != 401 {
		t.Errorf("after its life: %d", a.StatusCode)
	}
}

// TestSignInsThatFail: nobody is let in, and the page says why.
func TestSignInsThatFail(t *testing.T) {
	w := newWorld(t)
	fails := func(name string, r *http.Request, why string) {
		t.Helper()
		a := w.do(r)
		to, err := url.Parse(a.Header.Get("Location"))
		if err != nil || a.StatusCode != 303 || to.Path != "/" || to.Host != "" || !strings.Contains(to.Query().Get("sign_in_failed"), why) {
			t.Errorf("%s: %d %v", name, a.StatusCode, a.Header)
		}
		for _, c := range a.Cookies() {
			if c.Name == cookieName {
				t.Errorf("%s: a session begins", name)
			}
		}
	}
	fails("no provider", request("GET", "/dash/sign-in", ""), "there is no provider")
	fails("no provider, back", back(good, nil), "there is no provider")
	p := w.provider("operators")
	fails("never begun", back(good, nil), "has not begun")
	fails("begun by another browser", back(good, []*http.Cookie{{Name: attemptCookie, Value: "other"}}), "has not begun")
	fails("another state", back("state=other&code=the-code", w.begun()), "has not begun")
	fails("no code", back("state=the-state", w.begun()), "not valid")
	fails("another code", back("state=the-state&code=x", w.begun()), "not valid")
	fails("refused", back("state=the-state&error=access_denied&error_description=no", w.begun()), "access_denied no")
	cookies := w.begun()
	w.now = w.now.Add(attemptLife)
	fails("too late", back(good, cookies), "has not begun")
	cookies = w.begun()
	w.do(back(good, cookies))
	fails("twice", back(good, cookies), "has not begun")
	p.person.Has = []string{"staff"}
	fails("no role", back(good, w.begun()), "has none of the roles")
	p.person.Has = []string{"operators"}
	p.person.Name = "a\nb"
	fails("a name that is none", back(good, w.begun()), "cannot begin")
	cookies = w.begun()
	p.err = anteroom.Errorf(anteroom.Unavailable, "gone")
	fails("gone meanwhile", back(good, cookies), "does not answer")
	fails("gone", request("GET", "/dash/sign-in", ""), "does not answer")

	// Only the way back may be caused by another website, and only by sending the browser there.
	for _, r := range []*http.Request{
		request("GET", "/dash/sign-in", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"),
		request("GET", Return+"?"+good, "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"),
		request("POST", Return+"?"+good, "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"),
	} {
		if a := w.do(r); a.StatusCode != 403 {
			t.Errorf("%s %s: %d", r.Method, r.URL, a.StatusCode)
		}
	}
}

// TestAttemptsAreBounded: whoever begins sign-ins without end fills no memory.
func TestAttemptsAreBounded(t *testing.T) {
	var as attempts
	now := time.Now()
	for range 2 * maxAttempts {
		as.begin(signin.Attempt{}, now)
	}
	if len(as.all) != maxAttempts {
		t.Errorf("%d attempts", len(as.all))
	}
	if as.begin(signin.Attempt{}, now.Add(attemptLife)); len(as.all) != 1 {
		t.Errorf("%d attempts after their time", len(as.all))
	}
}
