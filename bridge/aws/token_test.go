package aws

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// publicKey is that of /public_key, as a reader of JWK makes it.
func (w *world) publicKey() (key *rsa.PublicKey, kid string) {
	w.Helper()
	a := w.ask("GET", "/public_key?event_id=Sample", "")
	var jwk struct{ Alg, E, Kid, Kty, N string }
	if err := json.Unmarshal([]byte(a.body), &jwk); err != nil || jwk.Alg != "RS256" || jwk.Kty != "RSA" || jwk.E != "AQAB" || len(jwk.Kid) != 32 {
		w.Fatalf("%d %s", a.status, a.body)
	}
	n, err := base64.RawURLEncoding.DecodeString(jwk.N)
	if err != nil || len(n) != keyBits/8 {
		w.Fatalf("n of %d bytes: %v", len(n), err)
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: 65537}, jwk.Kid
}

// openJWT verifies a token with the published key and returns what it says.
func (w *world) openJWT(key *rsa.PublicKey, token string) (header, claims map[string]any) {
	w.Helper()
	parts := strings.Split(token, ".")
	sum := sha256.Sum256([]byte(strings.Join(parts[:2], ".")))
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature); err != nil {
		w.Fatal(err)
	}
	for i, into := range []*map[string]any{&header, &claims} {
		text, _ := base64.RawURLEncoding.DecodeString(parts[i])
		if err := json.Unmarshal(text, into); err != nil {
			w.Fatal(err)
		}
	}
	return header, claims
}

// The three tokens of a session are those that authorizers of the original accept.
func TestTokens(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		id := w.join()
		w.serving()
		now := time.Now().Unix()
		a := w.claim(id)
		key, kid := w.publicKey()
		for _, use := range []string{useAccess, useRefresh, useID} {
			header, claims := w.openJWT(key, a.read(use+"_token").(string))
			if header["alg"] != "RS256" || header["typ"] != "JWT" || header["kid"] != kid || len(header) != 3 {
				t.Errorf("header %v", header)
			}
			for name, want := range map[string]any{"aud": "Sample", "sub": id, "queue_position": 1.0, "token_use": use,
				"iat": float64(now), "nbf": float64(now), "exp": float64(now + 600), "iss": issuer} {
				if claims[name] != want {
					t.Errorf("%s token: %s is %v, want %v", use, name, claims[name], want)
				}
			}
			if len(claims) != 8 {
				t.Errorf("%s token: %v", use, claims)
			}
		}
		// The key is kept, and is nothing that the store could tell.
		w.end()
		w.start(sale, nil)
		if again, other := w.publicKey(); other != kid || !again.Equal(key) {
			t.Error("another key after a restart")
		}
		e, err := w.link.Get(w.Context(), "bridge.aws.Sample.key")
		if err != nil || strings.Contains(string(e.Value), string(key.N.Bytes()[:16])) {
			t.Errorf("stored: %v", err)
		}
	})
}

// An issuer of its own is for authorizers that are configured with another name than clients call.
func TestIssuer(t *testing.T) {
	inWorld(t, sale, func(c *Config) { c.Issuer = "https://abc.execute-api.eu-west-1.example.com/api" }, func(w *world) {
		id := w.join()
		w.serving()
		key, _ := w.publicKey()
		access := w.claim(id).read("access_token").(string)
		if _, claims := w.openJWT(key, access); claims["iss"] != "https://abc.execute-api.eu-west-1.example.com/api" {
			t.Errorf("%v", claims)
		}
		if _, ok := w.bridge.Ticket(w.Context(), access); !ok {
			t.Error("not accepted by ourselves")
		}
	})
}

// An access token, with or without a scheme, is the ticket of its session until the session ends; nothing else is.
func TestAnAccessTokenIsATicket(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		id := w.join()
		w.serving()
		a := w.claim(id)
		access, refresh := a.read("access_token").(string), a.read("refresh_token").(string)
		foreign := w.operate("POST", "/generate_token", `{"event_id":"Sample","request_id":"`+id+`","issuer":"https://other.example.com"}`).read("access_token").(string)
		parts := strings.Split(access, ".")
		none := encode([]byte(`{"alg":"none","typ":"JWT"}`))
		hmacs := encode([]byte(`{"alg":"HS256","kid":"` + w.bridge.signer.kid + `","typ":"JWT"}`))
		for name, c := range map[string]struct {
			header string
			ok     bool
		}{
			"as it is":          {access, true},
			"bearer":            {"Bearer " + access, true},
			"refresh token":     {refresh, false},
			"of another issuer": {foreign, false},
			"no signature":      {parts[0] + "." + parts[1] + ".", false},
			"no algorithm":      {none + "." + parts[1] + ".", false},
			"another algorithm": {hmacs + "." + parts[1] + "." + parts[2], false},
			"other claims":      {parts[0] + "." + encode([]byte(`{}`)) + "." + parts[2], false},
			"empty":             {"", false},
			"too long":          {strings.Repeat("a", 2*maxToken), false},
			"a request id":      {id, false},
		} {
			ticket, ok := w.bridge.Ticket(w.Context(), c.header)
			if ok != c.ok {
				t.Errorf("%s: %v", name, ok)
			}
			if !ok {
				continue
			}
			d := w.node.Room(sale.ID).Decide(w.Context(), anteroom.Visit{Ticket: ticket, NoClaim: true})
			if d.Reason != anteroom.ReasonSession {
				t.Errorf("%s: %v %v", name, d.Verdict, d.Reason)
			}
		}
		ticket, _ := w.bridge.Ticket(w.Context(), access)
		w.operate("POST", "/update_session", `{"event_id":"Sample","request_id":"`+id+`","status":1}`)
		if d := w.node.Room(sale.ID).Decide(w.Context(), anteroom.Visit{Ticket: ticket, NoClaim: true}); d.Verdict != anteroom.Refuse {
			t.Errorf("after the end: %v %v", d.Verdict, d.Reason)
		}
		w.pass(sale.SessionDuration)
		if _, ok := w.bridge.Ticket(w.Context(), access); ok {
			t.Error("valid after exp")
		}
	})
}

// The counters stay small and right, whatever is invited, claimed and missed.
func TestRecordStaysSmall(t *testing.T) {
	var r record
	now, hold := epoch, 10*time.Minute
	r.Queue = 1 << 20
	for i := range 3_000 {
		now = now.Add(time.Second)
		r.expire(now, hold)
		r.serve(now, int64(i%3), hold)
		if i%5 == 0 {
			r.claim(r.Serving)
		}
		if len(r.Batches) > maxBatches+1 {
			t.Fatalf("%d batches", len(r.Batches))
		}
		if !slices.IsSortedFunc(r.Batches, func(a, b batch) int { return int(a.UpTo - b.UpTo) }) || r.expected(now) < 0 || r.waiting() < 0 {
			t.Fatalf("%+v", r)
		}
	}
	// No position expires before its time.
	for _, b := range r.Batches {
		if at := r.invitedAt(position{number: uint32(b.UpTo), arrival: epoch}); now.Sub(at) > hold {
			t.Errorf("%d invited %v ago", b.UpTo, now.Sub(at))
		}
	}
	text, err := json.Marshal(r)
	if err != nil || len(text) > 8<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func FuzzToken(f *testing.F) {
	made, err := rsa.GenerateKey(nil, keyBits)
	if err != nil {
		f.Fatal(err)
	}
	s := &signer{key: made, kid: "00"}
	good, err := s.sign(claims{Audience: "Sample", Use: useAccess})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		if c, err := s.verify(token); err == nil && (token != good || c.Audience != "Sample") {
			t.Errorf("%q is accepted", token)
		}
	})
}
