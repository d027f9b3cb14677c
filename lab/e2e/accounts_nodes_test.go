package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// An account has one place, whichever process of a cluster its devices come to: a core and an edge with one store.
func TestAccountsAtTwoNodes(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "one", Algorithm: "ES256", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := func(who string) string {
		text, err := jwt.Signed(signer).Claims(jwt.Claims{Issuer: "https://login.example.com", Subject: who, Audience: jwt.Audience{"shop"}, Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour))}).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	room := fmt.Sprintf(`  - name: shop
    host: 127.0.0.1
    total_active_users: 1
    new_users_per_minute: 600
    session_duration: 5m
    first_session: 5m
    enabled_origin_commands: revoke
    account_issuer: https://login.example.com
    account_audience: shop
    account_keys: '%s'
    account_cookie: login
`, keys)

	listen := freeCore(t)
	core := newGate(t, room)
	secret := filepath.Join(core.dir, "secret")
	if err := os.WriteFile(secret, []byte("6d3b9d1e4c5f7a8b9c0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	core.others = fmt.Sprintf("cluster: {listen: %q, secret_file: %q}", listen, secret)
	core.configure(room)
	core.start()
	t.Cleanup(core.end)
	edge := newGate(t, room)
	edge.origin = core.origin
	own := filepath.Join(edge.dir, "secret")
	if err := os.WriteFile(own, []byte(core.command("cluster", "edge", "edge-1", "--secret-file", secret)), 0o600); err != nil {
		t.Fatal(err)
	}
	edge.others = fmt.Sprintf("cluster: {join: [%q], secret_file: %q}", listen, own)
	edge.configure(room)
	edge.start()
	t.Cleanup(edge.end)

	device := func(g *gate, who string) *visitor {
		v := newVisitor(t, g)
		at, err := url.Parse(g.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		v.client.Jar.SetCookies(at, []*http.Cookie{{Name: "login", Value: token(who), Path: "/"}})
		return v
	}
	inside := device(core, "ann").enter()
	phone := device(core, "bob").wait()
	waits := phone.place("/")
	behind := device(edge, "cid").wait()

	// The same account at the other node has the same ticket, at the front, and takes no place of its own.
	laptop := device(edge, "bob").wait()
	if got := laptop.place("/"); got.Ref != waits.Ref || got.Ahead == nil || *got.Ahead != 0 {
		t.Errorf("bob's laptop at the edge has %v, his phone at the core %v", got, waits)
	}
	if !device(edge, "ann").get("/").admitted() {
		t.Error("ann is not in with a second device at the edge")
	}
	eventually(t, 15*time.Second, func() string {
		if p := behind.place("/"); p.Ahead == nil || *p.Ahead != 1 {
			return fmt.Sprintf("cid, behind bob with his two devices, is told %v", p)
		}
		return ""
	})

	inside.leave()
	eventually(t, 30*time.Second, func() string {
		phone.get("/") // is here
		if !laptop.get("/").admitted() {
			return fmt.Sprintf("bob is not in: %v", laptop.place("/"))
		}
		return ""
	})
	if !phone.get("/").admitted() || behind.get("/").admitted() {
		t.Error("bob is not in with his phone, or cid is in beside him")
	}
	laptop.leave()
	eventually(t, 30*time.Second, func() string {
		if !behind.get("/").admitted() {
			return fmt.Sprintf("cid is not in after bob: %v", behind.place("/"))
		}
		return ""
	})

	// Bob's next place is another ticket, and the store tells the other node which.
	again := phone.wait().place("/")
	if got := device(edge, "bob").wait().place("/"); got.Ref != again.Ref || got.Ref == waits.Ref {
		t.Errorf("bob's tablet at the edge has %v, his phone at the core %v, and had %v before", got, again, waits)
	}
}
