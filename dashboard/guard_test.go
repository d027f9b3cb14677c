package dashboard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/manage"
)

// TestOtherPagesCanChangeNothing: each of the signs of a foreign page is enough, also with the
// cookie, which a browser would not send.
func TestOtherPagesCanChangeNothing(t *testing.T) {
	w := newWorld(t)
	room := w.room("example.com", "shop")
	cookie := w.login(adminToken)
	z, _ := w.manage.State().ZoneNamed("example.com")
	base := "/dash/api/anteroom/v1/zones/" + string(z.ID) + "/rooms/" + string(room.ID)
	paused := func() bool { return w.manage.State().Room(room.ID).Controls.Paused }
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		want                     int
	}{
		{"without the header", "POST", base + "/pause", "", []string{Header, ""}, 403},
		{"with another value", "POST", base + "/pause", "", []string{Header, "1"}, 403},
		{"another site", "POST", base + "/pause", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another host of the site", "POST", base + "/pause", "", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"a read of another site", "GET", base, "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a form", "POST", base + "/admit", "count=1", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"a text", "POST", base + "/admit", `{"count":1}`, []string{"Content-Type", "text/plain"}, 415},
		{"no type", "POST", base + "/admit", `{"count":1}`, []string{"Content-Type", ""}, 415},
		{"GET", "GET", base + "/pause", "", nil, 405},
		{"a method in the query", "GET", base + "/pause?_method=POST", "", []string{"X-Http-Method-Override", "POST"}, 405},
		{"HEAD", "HEAD", base + "/pause", "", nil, 405},
		{"a logout by another page", "POST", "/dash/logout", "{}", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a login by another page", "POST", "/dash/login", `{"token":"` + adminToken + `"}`, []string{Header, ""}, 403},
	} {
		a := w.ask(c.method, c.path, c.body, append([]string{"Cookie", cookie}, c.headers...)...)
		if a.StatusCode != c.want || paused() || len(a.Cookies()) != 0 {
			t.Errorf("%s: %d %s, want %d", c.name, a.StatusCode, a.body, c.want)
		}
	}
	if a := w.ask("POST", base+"/pause", "", "Cookie", cookie); a.StatusCode != 200 || !paused() {
		t.Errorf("our page: %d %s", a.StatusCode, a.body)
	}
	if a := w.ask("POST", base+"/resume", "", "Cookie", cookie, "Sec-Fetch-Site", ""); a.StatusCode != 200 || paused() {
		t.Errorf("a browser without Sec-Fetch-Site: %d %s", a.StatusCode, a.body)
	}
	last, err := w.manage.Audit(t.Context(), w.admin(), 0, 0)
	if err != nil || last[len(last)-1].Actor != "ANTEROOM_API_TOKEN" || last[len(last)-1].Address != "127.0.0.1" {
		t.Errorf("the audit log does not say who: %+v %v", last, err)
	}
}

// TestCallsGoWhereTheyMay: only the APIs are behind the page, by the spelling of their paths,
// and with the token of the session whatever else the request carries.
func TestCallsGoWhereTheyMay(t *testing.T) {
	w := newWorld(t)
	w.room("example.com", "shop")
	_, text := w.token(manage.Read, "")
	cookie := w.login(text)
	for path, want := range map[string]int{
		"/dash/api/anteroom/v1/rooms":                       200,
		"/dash/api/anteroom/v1/rooms?name=shop":             200,
		"/dash/api/client/v4/zones":                         200,
		"/dash/api/anteroom/v1/tokens":                      403,
		"/dash/api/metrics":                                 404,
		"/dash/api/-/status":                                404,
		"/dash/api/dash/session":                            404,
		"/dash/api/anteroom/v1/../v1/rooms":                 404,
		"/dash/api/anteroom/v1/%2e%2e/v1/rooms":             404,
		"/dash/api/anteroom/v1/rooms/":                      404,
		"/dash/api//anteroom/v1/rooms":                      404,
		"/dash/api/anteroom%2fv1/rooms":                     404,
		"/dash/api/anteroom/v1x/rooms":                      404,
		"/dash/api":                                         404,
		"/dash/api/":                                        404,
		"/dash/":                                            404,
		"/dash/session/":                                    404,
		"/dash/sess%69on":                                   404,
		"/dash/../dash/session":                             404,
		"/dash/api/http://attacker.example/anteroom/v1/abc": 404,
	} {
		if a := w.ask("GET", path, "", "Cookie", cookie); a.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, a.StatusCode, a.body, want)
		}
	}
	for _, name := range []string{"Authorization", "X-Auth-Key", "X-Auth-User-Service-Key"} {
		value := adminToken
		if name == "Authorization" {
			value = "Bearer " + value
		}
		if a := w.ask("GET", "/dash/api/anteroom/v1/tokens", "", "Cookie", cookie, name, value, "X-Auth-Email", "a@example.com"); a.StatusCode != 403 {
			t.Errorf("with %s: %d", name, a.StatusCode)
		}
	}
	if a := w.ask("GET", "/dash/api/anteroom/v1/tokens", "", "Authorization", "Bearer "+adminToken); a.StatusCode != 401 {
		t.Errorf("a token without a session: %d", a.StatusCode)
	}
}

// TestProtectionOfEveryAnswer: the headers of threats.md §8.4 are on pages, files, calls and
// refusals alike.
func TestProtectionOfEveryAnswer(t *testing.T) {
	w := newWorld(t)
	cookie := w.login(adminToken)
	paths := []string{"/", "/rooms/example.com/shop", "/nothing", "/dash/session", "/dash/nothing", "/dash/api/anteroom/v1/rooms", "/dash/api/nothing", "/assets/nothing"}
	for name := range w.dash.files.assets {
		paths = append(paths, "/assets/"+name)
	}
	for _, path := range paths {
		h := w.ask("GET", path, "", "Cookie", cookie, "Accept", "text/html").Header
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy %q lacks %q", path, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "http") {
			t.Errorf("%s: policy %q is wide", path, csp)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other origins may read", path)
		}
	}
}

// TestOtherMethodsOfPages change nothing and are told so.
func TestOtherMethodsOfPages(t *testing.T) {
	w := newWorld(t)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, "BREW"} {
		rec := httptest.NewRecorder()
		w.dash.ServeHTTP(rec, request(method, "/", ""))
		if rec.Code != 405 || rec.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s /: %d", method, rec.Code)
		}
	}
}
