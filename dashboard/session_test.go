package dashboard

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/manage"
)

func TestLoginMakesASession(t *testing.T) {
	w := newWorld(t)
	a := w.ask("POST", "/dash/login", `{"token":" `+adminToken+`\n"}`)
	if a.StatusCode != 200 || !strings.Contains(a.body, `"name":"ANTEROOM_API_TOKEN"`) || strings.Contains(a.body, adminToken) {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	c := a.Cookies()[0]
	if c.Name != cookieName || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/dash" || c.Domain != "" || c.Secure || c.MaxAge != 12*60*60 || len(c.Value) != 43 {
		t.Errorf("cookie over HTTP: %+v", c)
	}
	if strings.Contains(c.Value, adminToken) || a.Header.Get("Cache-Control") != "no-store" {
		t.Error("the cookie holds the token, or the answer may be stored")
	}
	if a := w.ask("GET", "/dash/session", "", "Cookie", c.Name+"="+c.Value); a.StatusCode != 200 || !strings.Contains(a.body, `"permission":"admin"`) || !strings.Contains(a.body, `"ends":"2026-11-22T15:00:00Z"`) {
		t.Errorf("session: %d %s", a.StatusCode, a.body)
	}
	r := request("POST", "/dash/login", `{"token":"`+adminToken+`"}`)
	r.TLS = &tls.ConnectionState{}
	if c := w.do(r).Cookies()[0]; !c.Secure {
		t.Error("over TLS the cookie may go in the clear")
	}
	if strings.Contains(w.log.String(), adminToken) {
		t.Error("the token is in the log")
	}
}

func TestWhoIsNotLoggedIn(t *testing.T) {
	w := newWorld(t)
	for _, cookie := range []string{"", cookieName + "=", cookieName + "=x", cookieName + "=" + strings.Repeat("A", 43), cookieName + "=" + adminToken} {
		for _, path := range []string{"/dash/session", "/dash/live", "/dash/api/anteroom/v1/rooms"} {
			if a := w.ask("GET", path, "", "Cookie", cookie); a.StatusCode != 401 || a.Success {
				t.Errorf("%s with %q: %d %s", path, cookie, a.StatusCode, a.body)
			}
		}
	}
}

func TestSessionEnds(t *testing.T) {
	type step = func(w *world, cookie string)
	for name, end := range map[string]step{
		"after an hour without a request": func(w *world, _ string) { w.now = w.now.Add(sessionIdle) },
		"after twelve hours of use": func(w *world, cookie string) {
			for range 24 {
				w.now = w.now.Add(30 * time.Minute)
				w.ask("GET", "/dash/session", "", "Cookie", cookie)
			}
		},
		"when the person logs out": func(w *world, cookie string) {
			if a := w.ask("POST", "/dash/logout", `{}`, "Cookie", cookie); a.StatusCode != 200 || a.Cookies()[0].MaxAge >= 0 {
				w.Errorf("logout: %d %v", a.StatusCode, a.Cookies())
			}
		},
		"when the person logs in anew": func(w *world, cookie string) {
			w.ask("POST", "/dash/login", `{"token":"`+adminToken+`"}`, "Cookie", cookie)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			cookie := w.login(adminToken)
			w.now = w.now.Add(sessionIdle - time.Second)
			if a := w.ask("GET", "/dash/session", "", "Cookie", cookie); a.StatusCode != 200 {
				t.Fatalf("before: %d", a.StatusCode)
			}
			end(w, cookie)
			if a := w.ask("GET", "/dash/session", "", "Cookie", cookie); a.StatusCode != 401 {
				t.Errorf("after: %d", a.StatusCode)
			}
		})
	}
}

func TestDeletedTokenEndsItsSession(t *testing.T) {
	w := newWorld(t)
	made, text := w.token(manage.Read, "")
	cookie := w.login(text)
	if a := w.ask("GET", "/dash/api/anteroom/v1/rooms", "", "Cookie", cookie); a.StatusCode != 200 {
		t.Fatalf("before: %d %s", a.StatusCode, a.body)
	}
	if err := w.manage.DeleteToken(t.Context(), w.admin(), made.ID); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if a := w.ask("GET", "/dash/api/anteroom/v1/rooms", "", "Cookie", cookie); a.StatusCode != 401 {
			t.Errorf("after: %d %s", a.StatusCode, a.body)
		}
	}
	if n := len(w.dash.sessions.all); n != 0 {
		t.Errorf("%d sessions are kept", n)
	}
}

func TestExpiredTokenEndsItsSession(t *testing.T) {
	w := newWorld(t)
	made, text, err := w.manage.CreateToken(t.Context(), w.admin(), manage.TokenSpec{Name: "short", Grants: []manage.Grant{{Permission: manage.Read}}, ExpiresOn: w.now.Add(10 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	cookie := w.login(text)
	w.now = made.ExpiresOn
	if a := w.ask("GET", "/dash/session", "", "Cookie", cookie); a.StatusCode != 401 {
		t.Errorf("%d", a.StatusCode)
	}
}

func TestGuessingTokensIsSlow(t *testing.T) {
	w := newWorld(t)
	for i := range manage.MaxFailedLogins {
		a := w.ask("POST", "/dash/login", fmt.Sprintf(`{"token":"a-token-that-is-nobody-s-0123456789-%010d"}`, i))
		if a.StatusCode != 401 || len(a.Cookies()) != 0 {
			t.Fatalf("%d: %d %s", i, a.StatusCode, a.body)
		}
	}
	if a := w.ask("POST", "/dash/login", `{"token":"a-token-that-is-nobody-s-0123456789-xxxxxxxxxx"}`); a.StatusCode != 429 || a.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", a.StatusCode, a.body)
	}
	w.login(adminToken) // who has a token is not kept out by others behind the same address
	w.now = w.now.Add(2 * time.Minute)
	if a := w.ask("POST", "/dash/login", `{"token":"a-token-that-is-nobody-s-0123456789-xxxxxxxxxx"}`); a.StatusCode != 401 {
		t.Errorf("later: %d", a.StatusCode)
	}
}

func TestLoginBodies(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{"", "{", "[]", `"x"`, `{"token":5}`, `{"token":"` + strings.Repeat("a", maxLogin) + `"}`} {
		if a := w.ask("POST", "/dash/login", body); a.StatusCode != 400 {
			t.Errorf("%.30q: %d %s", body, a.StatusCode, a.body)
		}
	}
	if a := w.ask("GET", "/dash/login?token="+adminToken, ""); a.StatusCode != 404 || len(a.Cookies()) != 0 {
		t.Errorf("a token in an address: %d", a.StatusCode)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	w := newWorld(t)
	first := w.login(adminToken)
	w.now = w.now.Add(time.Second)
	second := w.login(adminToken)
	w.now = w.now.Add(time.Second)
	w.ask("GET", "/dash/session", "", "Cookie", first)
	for range maxSessions - 1 {
		w.dash.sessions.begin(adminToken)
	}
	if n := len(w.dash.sessions.all); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	for cookie, want := range map[string]int{first: 200, second: 401} {
		if a := w.ask("GET", "/dash/session", "", "Cookie", cookie); a.StatusCode != want {
			t.Errorf("%d, want %d: the one that was used longest ago ends", a.StatusCode, want)
		}
	}
}

// TestTheAPIsReadNoCookies: what a browser sends by itself opens nothing there.
func TestTheAPIsReadNoCookies(t *testing.T) {
	w := newWorld(t)
	cookie := w.login(adminToken)
	for _, path := range []string{"/anteroom/v1/rooms", "/client/v4/zones", "/anteroom/v1/tokens"} {
		rec := httptest.NewRecorder()
		w.apis.ServeHTTP(rec, request("GET", path, "", "Cookie", cookie))
		if rec.Code != 401 {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
}

// TestLinksReplaceNoSession: the token of a link logs in whom nobody is, and is refused to whoever is
// logged in with another one.
func TestLinksReplaceNoSession(t *testing.T) {
	w := newWorld(t)
	_, other := w.token(manage.Read, "")
	link := func(token, cookie string) answer {
		return w.ask("POST", "/dash/login", fmt.Sprintf(`{"token":%q,"link":true}`, token), "Cookie", cookie)
	}
	a := link(adminToken, "")
	if a.StatusCode != 200 || len(a.Cookies()) != 1 {
		t.Fatalf("a link for nobody: %d %s", a.StatusCode, a.body)
	}
	cookie := cookieName + "=" + a.Cookies()[0].Value
	for token, want := range map[string]int{adminToken: 200, other: 409, other[:len(other)-1] + "~": 401} {
		if a := link(token, cookie); a.StatusCode != want || len(a.Cookies()) != 0 {
			t.Errorf("another link: %d %s, want %d", a.StatusCode, a.body, want)
		}
	}
	if a := w.ask("GET", "/dash/session", "", "Cookie", cookie); a.StatusCode != 200 || !strings.Contains(a.body, "ANTEROOM_API_TOKEN") {
		t.Errorf("the session: %d %s", a.StatusCode, a.body)
	}
	if a := link(other, cookieName+"=over"); a.StatusCode != 200 {
		t.Errorf("after the session: %d %s", a.StatusCode, a.body)
	}
}
