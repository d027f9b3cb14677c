package signin

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// issuer is an OpenID provider as far as one sign-in goes. Edit changes the claims of its ID token, and the header.
type issuer struct {
	*httptest.Server
	key   *rsa.PrivateKey
	form  url.Values // of the last exchange
	nonce string     // of the last way to it
	info  any        // what it says of the person elsewhere; nil: it says nothing there
	edit  func(header, claims map[string]any)
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &issuer{key: key}
	encode := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	mux := http.NewServeMux()
	answer := func(path string, v func(r *http.Request) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(v(r))
		})
	}
	answer("/.well-known/openid-configuration", func(*http.Request) any {
		about := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}}
		if p.info != nil {
			about["userinfo_endpoint"] = p.URL + "/info"
		}
		return about
	})
	answer("/info", func(r *http.Request) any {
		if r.Header.Get("Authorization") != "Bearer a" {
			t.Errorf("asked by %q", r.Header.Get("Authorization"))
		}
		return p.info
	})
	answer("/keys", func(*http.Request) any {
		n := base64.RawURLEncoding.EncodeToString(key.N.Bytes())
		return map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig", "n": n, "e": "AQAB"}}}
	})
	answer("/token", func(r *http.Request) any {
		r.ParseForm()
		p.form = r.PostForm
		header := map[string]any{"alg": "RS256", "kid": "k"}
		claims := map[string]any{"iss": p.URL, "aud": "us", "sub": "17", "nonce": p.nonce, "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(),
			"email": "jo@example.com", "email_verified": true, "groups": []string{"operators", "staff"}}
		if p.edit != nil {
			p.edit(header, claims)
		}
		text := encode(header) + "." + encode(claims)
		sum := sha256.Sum256([]byte(text))
		signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		if err != nil {
			t.Error(err)
		}
		if header["alg"] == "none" {
			signature = nil
		}
		return map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": text + "." + base64.RawURLEncoding.EncodeToString(signature)}
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// sign makes one whole sign-in.
func (p *issuer) sign(t *testing.T, edit func(header, claims map[string]any)) (Person, error) {
	t.Helper()
	p.edit = edit
	who := New(Config{Issuer: p.URL, ClientID: "us", ClientSecret: "secret", Return: "http://here/back", Scopes: []string{"groups"}, Claim: "groups"})
	to, a, err := who.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	challenge := sha256.Sum256([]byte(a.verifier))
	if q.Get("state") != a.State || q.Get("redirect_uri") != "http://here/back" || q.Get("response_type") != "code" || q.Get("scope") != "email groups openid profile" ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]) || q.Get("nonce") == "" {
		t.Errorf("sent to %s", to)
	}
	p.nonce = q.Get("nonce")
	person, err := who.End(t.Context(), a, "the code")
	if p.form.Get("code") != "the code" || p.form.Get("code_verifier") != a.verifier {
		t.Errorf("exchanged %v", p.form)
	}
	return person, err
}

func TestSignIn(t *testing.T) {
	p := newIssuer(t)
	who, err := p.sign(t, nil)
	if err != nil || who.Name != "jo@example.com" || !slices.Equal(who.Has, []string{"operators", "staff"}) {
		t.Errorf("%+v %v", who, err)
	}
	short := func(_, c map[string]any) { delete(c, "groups"); delete(c, "email") }
	if who, err := p.sign(t, short); err != nil || who.Name != "17" || len(who.Has) != 0 {
		t.Errorf("without the claim: %+v %v", who, err)
	}
	p.info = map[string]any{"sub": "17", "email": "jo@example.com", "email_verified": false, "groups": "operators"}
	if who, err := p.sign(t, short); err != nil || who.Name != "jo@example.com" || !slices.Equal(who.Has, []string{"operators"}) {
		t.Errorf("with the claim elsewhere: %+v %v", who, err)
	}
	p.info = map[string]any{"sub": "18", "groups": "operators"}
	if who, err := p.sign(t, short); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("somebody else elsewhere: %+v %v", who, err)
	}
	p.info = nil
	for name, edit := range map[string]func(header, claims map[string]any){
		"nonce of another sign-in": func(_, c map[string]any) { c["nonce"] = "another" },
		"no nonce":                 func(_, c map[string]any) { delete(c, "nonce") },
		"for somebody else":        func(_, c map[string]any) { c["aud"] = "them" },
		"of somebody else":         func(_, c map[string]any) { c["iss"] = "https://elsewhere.example.com" },
		"expired":                  func(_, c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
		"not signed":               func(h, _ map[string]any) { h["alg"] = "none" },
		"signed with its own key":  func(h, _ map[string]any) { h["alg"] = "HS256" },
		"key nobody has":           func(h, _ map[string]any) { h["kid"] = "other" },
	} {
		if who, err := p.sign(t, edit); anteroom.KindOf(err) != anteroom.Denied {
			t.Errorf("%s: %+v %v", name, who, err)
		}
	}
	p.Close()
	if _, _, err := New(Config{Issuer: p.URL, ClientID: "us"}).Begin(t.Context()); anteroom.KindOf(err) != anteroom.Unavailable {
		t.Errorf("a provider that is gone: %v", err)
	}
}

// TestLargeAnswer is a provider that does not stop to describe itself.
func TestLargeAnswer(t *testing.T) {
	sent := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 64 {
			n, err := fmt.Fprint(w, strings.Repeat(" ", 1<<20))
			if sent += n; err != nil {
				return
			}
		}
	}))
	defer s.Close()
	if _, _, err := New(Config{Issuer: s.URL, ClientID: "us"}).Begin(t.Context()); anteroom.KindOf(err) != anteroom.Unavailable {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		claims string
		want   string
	}{
		{`{"email": "jo@example.com", "email_verified": true, "name": "Jo"}`, "jo@example.com"},
		{`{"email": "jo@example.com", "email_verified": false, "name": "Jo"}`, "Jo"},
		{`{"email": "jo@example.com", "name": "Jo"}`, "Jo"},
		{`{"email": "jo@example.com", "email_verified": "true", "preferred_username": "jo"}`, "jo"},
		{`{"name": 5}`, "17"},
		{`{"name": "a\nb", "preferred_username": " "}`, "17"},
		{`{"name": "` + strings.Repeat("é", 100) + `"}`, strings.Repeat("é", anteroom.MaxNameLength/2)},
	} {
		var claims map[string]any
		if err := json.Unmarshal([]byte(c.claims), &claims); err != nil {
			t.Fatal(err)
		}
		if got := nameOf("17", claims); got != c.want {
			t.Errorf("%s: %q, want %q", c.claims, got, c.want)
		}
	}
	if got := nameOf("\x00\x01", nil); got != "0001" {
		t.Errorf("a subject that is no text: %q", got)
	}
}

func TestValues(t *testing.T) {
	for claim, want := range map[string][]string{
		`"ops"`:                   {"ops"},
		`"ops staff"`:             {"ops staff", "ops", "staff"},
		`["ops", 5, "", "staff"]`: {"ops", "staff"},
		`null`:                    nil,
		`5`:                       nil,
		`{"ops": true}`:           nil,
		`["` + strings.Repeat("x", maxValue+1) + `", "ops"]`: {"ops"},
	} {
		var v any
		if err := json.Unmarshal([]byte(claim), &v); err != nil {
			t.Fatal(err)
		}
		if got := values(v); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", claim, got, want)
		}
	}
}
