package e2e

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// startProvider starts the OpenID provider that comes with Zitadel's library. It knows two people, and returns its URL.
func startProvider(t *testing.T, client, secret string, back func() string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer := fmt.Sprintf("http://localhost:%d", l.Addr().(*net.TCPAddr).Port)
	router := sync.OnceValue(func() http.Handler {
		clients := map[string]*storage.Client{client: storage.WebClient(client, secret, back())}
		return exampleop.SetupServer(issuer, storage.NewStorageWithClients(storage.NewUserStore(issuer), clients), nil, false, op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { router().ServeHTTP(w, r) })}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return issuer
}

// Operators sign in at their organization's provider, as they do everywhere: what they may do comes from there, the audit
// log names them, and whoever has no role stays outside.
func TestDashboardSignInAtAProvider(t *testing.T) {
	t.Parallel()
	var o *office
	issuer := startProvider(t, "anteroom", "a-secret", func() string { return o.operators() + "/dash/sign-in/return" })
	secret := filepath.Join(t.TempDir(), "client-secret")
	if err := os.WriteFile(secret, []byte("a-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o = startOffice(t, fmt.Sprintf("sign_in:\n  issuer: %s\n  client_id: anteroom\n  client_secret_file: %s\n  url: http://{admin}\n  label: Example\n"+
		"  claim: preferred_username\n  roles:\n    - {value: test-user@localhost, permission: edit}", issuer, secret))
	o.newRoom(fields{"name": "checkout"})
	enter := func(d *desk, user string) {
		d.visit(o.operators() + "/")
		d.becomes(20*time.Second, `[...document.querySelectorAll('a')].some(a => a.innerText == 'Sign in with Example')`)
		d.try(`[...document.querySelectorAll('a')].find(a => a.innerText == 'Sign in with Example').click()`)
		d.becomes(20*time.Second, `document.readyState == 'complete' && document.querySelector('#username')`) // all of the form is there
		if at := eval[string](d.tab, "location.origin"); at != issuer {
			t.Fatalf("a password is asked for at %s", at)
		}
		d.try(fmt.Sprintf(`document.querySelector('#username').value = %q`, user))
		d.try(`document.querySelector('#password').value = 'verysecure'`)
		d.try(`document.querySelector('button').click()`)
	}

	stranger := comeIn(t, shell, o)
	enter(stranger, "test-user2")
	stranger.becomes(20*time.Second, `document.querySelector('main.login')?.innerText.includes('test-user2@zitadel.ch has none of the roles in sign_in.roles')`)
	if stranger.offers("Log out") {
		t.Error("somebody without a role is inside")
	}

	d := comeIn(t, shell, o)
	enter(d, "test-user@localhost")
	d.becomes(20*time.Second, `document.querySelector('nav')`)
	if at := eval[string](d.tab, "location.href"); at != o.operators()+"/" {
		t.Errorf("after signing in at %s", at)
	}
	d.goes("/rooms/shop.example/checkout")
	d.presses("Pause")
	d.becomes(5*time.Second, dialogText+`.includes('Pause: checkout?')`)
	d.presses("Pause")
	eventually(t, 10*time.Second, func() string {
		res, body := o.send(operatorToken, "GET", "/anteroom/v1/audit", "")
		if !strings.Contains(body, `"actor":"test-user@zitadel.ch"`) {
			return fmt.Sprintf("%d %s", res.StatusCode, tail(body, 400))
		}
		return ""
	})
	if status := eval[int](d.tab, `(() => { const r = new XMLHttpRequest(); r.open('GET', '/dash/api/anteroom/v1/tokens', false); r.send(); return r.status })()`); status != http.StatusForbidden {
		t.Errorf("tokens with the permission edit: %d", status)
	}
}
