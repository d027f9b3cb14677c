package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// signsIn gets an ID token of a person from the provider, as an application does.
func signsIn(t *testing.T, issuer, user string) string {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Timeout: 10 * time.Second, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/back" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	provider, err := oidc.NewProvider(oidc.ClientContext(t.Context(), client), issuer)
	if err != nil {
		t.Fatal(err)
	}
	flow := oauth2.Config{ClientID: "shop", ClientSecret: "a-secret", Endpoint: provider.Endpoint(), RedirectURL: "http://127.0.0.1:9/back", Scopes: []string{oidc.ScopeOpenID}}
	res, err := client.Get(flow.AuthCodeURL("state"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	res, err = client.PostForm(res.Request.URL.String(), url.Values{"username": {user}, "password": {"verysecure"}, "id": {res.Request.URL.Query().Get("authRequestID")}})
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	to, err := res.Location()
	if err != nil {
		t.Fatalf("%s: %v\n%s", res.Status, err, body)
	}
	tokens, err := flow.Exchange(oidc.ClientContext(t.Context(), client), to.Query().Get("code"))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := tokens.Extra("id_token").(string)
	return text
}

// Two people of an OpenID provider come with two devices each, in a room with one seat. Each has one place and one session, as the
// application sees by the proofs of their requests.
// It does not run beside the other test of a provider: the clients that the library knows are shared.
func TestAccountsOfAProvider(t *testing.T) {
	t.Parallel()
	issuer := startProvider(t, "shop", "a-secret", func() string { return "http://127.0.0.1:9/back" })
	tokens := map[string]string{"ann": signsIn(t, issuer, "test-user@localhost"), "bob": signsIn(t, issuer, "test-user2")}
	g := startGate(t, fmt.Sprintf(`  - name: shop
    host: 127.0.0.1
    total_active_users: 1
    new_users_per_minute: 600
    session_duration: 10s
    first_session: 10s
    account_issuer: %s
    account_audience: shop
    account_keys: %s/keys
    account_cookie: login
    account_sign_in_url: %[1]s
`, issuer, issuer), "webhooks: {allow_networks: [127.0.0.0/8, \"::1\"]}\nproof: {enabled: true}")
	type device struct {
		*visitor
		who string
	}
	at, _ := url.Parse(g.scheme + "://" + g.host)
	newDevice := func(who string) device {
		v := newVisitor(t, g)
		v.client.Jar.SetCookies(at, []*http.Cookie{{Name: "login", Value: tokens[who]}})
		return device{v, who}
	}
	comes := func(d device, name string) bool { return d.get("/buy?" + d.who + "=" + name).admitted() }

	if a := newVisitor(t, g).get("/buy?nobody"); a.StatusCode != http.StatusUnauthorized || !strings.Contains(a.text(t), `href="`+issuer+`"`) || a.ticket() != "" {
		t.Fatalf("nobody: %s", a.Status)
	}
	script, b := axe(t), open(t)
	b.visit(g.url("/buy"))
	b.becomes(10*time.Second, `document.querySelector('h1').textContent == 'Sign in' && document.querySelector('main a').href == '`+issuer+`/'`)
	for _, v := range b.violations(script) {
		t.Errorf("%s (%s): %v", v.ID, v.Help, v.Nodes)
	}

	phone, laptop := newDevice("ann"), newDevice("ann")
	eventually(t, 20*time.Second, func() string { // the keys are fetched beside
		if a := phone.get("/buy?ann=phone"); !a.admitted() {
			return fmt.Sprintf("ann is not in: %s %s", a.Status, tail(a.text(t), 600))
		}
		return ""
	})
	first, second := newDevice("bob"), newDevice("bob")
	if !comes(laptop, "laptop") || comes(first, "first") || comes(second, "second") {
		t.Fatal("ann is not in with the laptop, or bob is in")
	}
	eventually(t, 60*time.Second, func() string {
		if !comes(first, "first") {
			return "bob is not in when ann's session is over"
		}
		return ""
	})
	if !comes(second, "second") || comes(phone, "phone") || comes(laptop, "laptop") {
		t.Error("bob is not in with the second device, or ann has a session beside")
	}

	sessions, devices := map[string]map[string]bool{}, map[string]bool{}
	g.origin.mu.Lock()
	defer g.origin.mu.Unlock()
	for _, r := range g.origin.requests {
		_, query, _ := strings.Cut(r.target, "?")
		who, _, ok := strings.Cut(query, "=")
		parts := strings.Split(r.header.Get("X-Anteroom-Assertion"), ".")
		if !ok || len(parts) != 3 {
			if query == "nobody" {
				t.Error("nobody was in")
			}
			continue
		}
		var claims struct {
			Subject string `json:"sub"`
		}
		text, _ := base64.RawURLEncoding.DecodeString(parts[1])
		if json.Unmarshal(text, &claims) != nil || claims.Subject == "" {
			t.Fatalf("%s", text)
		}
		if sessions[who] == nil {
			sessions[who] = map[string]bool{}
		}
		sessions[who][claims.Subject], devices[query] = true, true
	}
	if len(sessions["ann"]) != 1 || len(sessions["bob"]) != 1 || len(devices) != 4 {
		t.Errorf("the application saw %v by %v", sessions, devices)
	}
}
