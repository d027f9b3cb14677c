package aws

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const (
	clientSecret = "the-secret-of-the-relying-party"
	callback     = "https://shop.example.com/callback?from=wait"
)

func withOpenID(c *Config) { c.ClientSecret, c.RedirectURIs = clientSecret, []string{callback} }

// authorizeQuery is a good one, with changes in pairs; an empty value takes a parameter away.
func authorizeQuery(changes ...string) url.Values {
	q := url.Values{"client_id": {"Sample"}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid"}, "state": {"a&b=c"}, "nonce": {"n-1"}}
	for i := 0; i+1 < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return q
}

// signIn follows a visitor through the page until the relying party is called, and returns the query that it gets.
func (w *world) signIn(q url.Values) url.Values {
	w.Helper()
	target := "/authorize?" + q.Encode()
	for range 10 {
		a := w.ask("GET", target, "")
		to := a.header.Get("Location")
		switch {
		case a.status == 302 && strings.HasPrefix(to, issuer+"/"):
			target = strings.TrimPrefix(to, issuer)
		case a.status == 302:
			back, err := url.Parse(to)
			if err != nil || !strings.HasPrefix(to, "https://shop.example.com/callback?") || a.header.Get("Referrer-Policy") != "no-referrer" {
				w.Fatalf("on to %s: %v", to, a.header)
			}
			return back.Query()
		case a.status == 200 && a.header.Get("Refresh") == "4":
			w.pass(4 * time.Second)
		default:
			w.Fatalf("%d %s", a.status, a.body)
		}
	}
	w.Fatal("the visitor is never admitted")
	return nil
}

// exchange asks for tokens as a relying party does, with changes in pairs.
func (w *world) exchange(code string, changes ...string) said {
	w.Helper()
	f := url.Values{"client_id": {"Sample"}, "client_secret": {clientSecret}, "grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}}
	for i := 0; i+1 < len(changes); i += 2 {
		f.Set(changes[i], changes[i+1])
	}
	return w.ask("POST", "/token", f.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// A visitor waits on the page, and the relying party gets tokens with the nonce for the code, once.
func TestSignIn(t *testing.T) {
	room := sale
	room.TotalActiveUsers = 1
	inWorld(t, room, withOpenID, func(w *world) {
		other := w.join()
		w.serving()
		w.claim(other)
		page := w.ask("GET", "/authorize?"+authorizeQuery().Encode(), "")
		waits := w.ask("GET", strings.TrimPrefix(page.header.Get("Location"), issuer), "")
		if waits.status != 200 || !strings.Contains(waits.body, "Your number is <strong>2</strong>") || !strings.Contains(waits.header.Get("Content-Security-Policy"), "default-src 'none'") || waits.header.Get("Cache-Control") != "no-store" {
			t.Errorf("the page: %d %v %s", waits.status, waits.header, waits.body)
		}
		w.operate("POST", "/update_session", `{"event_id":"Sample","request_id":"`+other+`","status":1}`)
		at, _ := url.Parse(page.header.Get("Location"))
		back := w.signIn(at.Query())
		if back.Get("state") != "a&b=c" || back.Get("from") != "wait" || len(back) != 3 {
			t.Errorf("back with %v", back)
		}
		code := back.Get("code")
		first := "x"
		if code[0] == 'x' {
			first = "y"
		}
		for name, changes := range map[string][]string{
			"another client":       {"client_id", "Other"},
			"another secret":       {"client_secret", "wrong"},
			"another grant":        {"grant_type", "refresh_token"},
			"another redirect_uri": {"redirect_uri", "https://shop.example.com/callback"},
			"another code":         {"code", first + code[1:]},
			"the request id":       {"code", at.Query().Get("request_id")},
		} {
			if a := w.exchange(code, changes...); a.status != 400 || a.body != "Bad Request" || a.header.Get("Content-Type") != textType {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
		a := w.exchange(code)
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		key, _ := w.publicKey()
		if _, claims := w.openJWT(key, a.read("id_token").(string)); claims["nonce"] != "n-1" || claims["aud"] != "Sample" || claims["iss"] != issuer {
			t.Errorf("claims %v", claims)
		}
		if b := w.exchange(code); b.status != 400 {
			t.Errorf("the code again: %d %s", b.status, b.body)
		}
		info := w.ask("GET", "/userInfo", "", "Authorization", "Bearer "+a.read("access_token").(string))
		if info.status != 200 || info.read("sub") != at.Query().Get("request_id") || info.read("token_use") != "access" {
			t.Errorf("userInfo: %d %s", info.status, info.body)
		}
		for _, header := range []string{"", a.read("access_token").(string), "Bearer " + a.read("id_token").(string)} {
			if info := w.ask("GET", "/userInfo", "", "Authorization", header); info.status != 400 {
				t.Errorf("userInfo for %.20q: %d", header, info.status)
			}
		}
	})
}

// A code is worth nothing after a minute, and nothing without the verifier where there was a challenge.
func TestCodes(t *testing.T) {
	inWorld(t, sale, withOpenID, func(w *world) {
		late := w.signIn(authorizeQuery()).Get("code")
		w.pass(codeTime)
		if a := w.exchange(late); a.status != 400 {
			t.Errorf("a minute later: %d %s", a.status, a.body)
		}
		verifier := strings.Repeat("v", 43)
		sum := sha256.Sum256([]byte(verifier))
		code := w.signIn(authorizeQuery("code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method", "S256")).Get("code")
		if a := w.exchange(code); a.status != 400 {
			t.Errorf("without a verifier: %d", a.status)
		}
		if a := w.exchange(code, "code_verifier", verifier+"x"); a.status != 400 {
			t.Errorf("with another verifier: %d", a.status)
		}
		if a := w.exchange(code, "code_verifier", verifier); a.status != 200 {
			t.Errorf("with the verifier: %d %s", a.status, a.body)
		}
	})
}

// Nobody is sent where the operator did not say, and nobody joins by a request that is refused or that no person makes.
func TestAuthorizeRefuses(t *testing.T) {
	inWorld(t, sale, withOpenID, func(w *world) {
		for name, q := range map[string]url.Values{
			"another client":          authorizeQuery("client_id", "Other"),
			"another redirect_uri":    authorizeQuery("redirect_uri", "https://evil.example.com/"),
			"redirect_uri with more":  authorizeQuery("redirect_uri", callback+"&more=1"),
			"redirect_uri below":      authorizeQuery("redirect_uri", "https://shop.example.com/callback/x?from=wait"),
			"redirect_uri, no scheme": authorizeQuery("redirect_uri", "//shop.example.com/callback?from=wait"),
			"redirect_uri, split":     authorizeQuery("redirect_uri", callback+"\r\nSet-Cookie: a=b"),
			"no redirect_uri":         authorizeQuery("redirect_uri", ""),
			"another response":        authorizeQuery("response_type", "token"),
			"no scope":                authorizeQuery("scope", ""),
			"plain challenge":         authorizeQuery("code_challenge", strings.Repeat("c", 43), "code_challenge_method", "plain"),
			"short challenge":         authorizeQuery("code_challenge", "c", "code_challenge_method", "S256"),
			"long":                    authorizeQuery("state", strings.Repeat("s", 8<<10)),
		} {
			if a := w.ask("GET", "/authorize?"+q.Encode(), ""); a.status != 400 || a.body != "Bad Request" || a.header.Get("Location") != "" {
				t.Errorf("%s: %d %s %v", name, a.status, a.body, a.header)
			}
		}
		if a := w.ask("GET", "/authorize?"+authorizeQuery().Encode(), "", "Sec-Purpose", "prefetch;prerender"); a.status != 400 {
			t.Errorf("prefetch: %d", a.status)
		}
		for _, method := range []string{"HEAD", "POST"} {
			if a := w.ask(method, "/authorize?"+authorizeQuery().Encode(), ""); a.status != 403 {
				t.Errorf("%s: %d", method, a.status)
			}
		}
		if n := w.bridge.line.now().Queue; n != 0 {
			t.Errorf("%d numbers were given out", n)
		}
		// A line break in state stays escaped.
		q := w.signIn(authorizeQuery("state", "a\r\nSet-Cookie: b=c"))
		if q.Get("state") != "a\r\nSet-Cookie: b=c" {
			t.Errorf("state %q", q.Get("state"))
		}
	})
}

func TestDiscovery(t *testing.T) {
	inWorld(t, sale, withOpenID, func(w *world) {
		w.is(w.ask("GET", "/.well-known/openid-configuration", ""), 200, `{"authorization_endpoint": "`+issuer+`/authorize", "code_challenge_methods_supported": ["S256"], `+
			`"id_token_signing_alg_values_supported": ["RS256"], "issuer": "`+issuer+`", "jwks_uri": "`+issuer+`/.well-known/jwks.json", "response_types_supported": ["code"], `+
			`"scopes_supported": ["openid"], "subject_types_supported": ["public"], "token_endpoint": "`+issuer+`/token", `+
			`"token_endpoint_auth_methods_supported": ["client_secret_basic","client_secret_post"], "userinfo_endpoint": "`+issuer+`/userInfo"}`)
		one, all := w.ask("GET", "/public_key?event_id=Sample", ""), w.ask("GET", "/.well-known/jwks.json", "")
		w.is(all, 200, `{"keys": [`+one.body+`]}`)
		if r := httptest.NewRequest(http.MethodGet, "https://wait.example.com/aws/samples/x", nil); w.bridge.Covers(r) {
			t.Error("covers another path")
		}
	})
}
