package server

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSignInAtAProvider: the settings lead browsers to the provider, whose certificate a file vouches for, and changing them
// takes a restart, which the log says.
func TestSignInAtAProvider(t *testing.T) {
	var provider *httptest.Server
	provider = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]string{"issuer": provider.URL, "authorization_endpoint": provider.URL + "/authorize", "token_endpoint": provider.URL + "/token",
			"jwks_uri": provider.URL + "/keys"})
	}))
	defer provider.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := "sign_in: {issuer: \"" + provider.URL + "\", client_id: us, url: \"https://anteroom.example.com\", label: Example, scopes: [groups], ca_file: " + ca +
		", roles: [{value: operators, permission: edit}]}\n"
	r := startServer(t, oneRoom+settings)
	if a := r.admin("GET", "/dash/ways"); !strings.Contains(a.body, `"sign_in":"Example"`) {
		t.Errorf("ways: %s", a.body)
	}
	a := r.admin("GET", "/dash/sign-in", "Host", "anteroom.example.com")
	to, err := url.Parse(a.Header.Get("Location"))
	if err != nil || a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to.String(), provider.URL+"/authorize?") {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	if q := to.Query(); q.Get("client_id") != "us" || q.Get("redirect_uri") != "https://anteroom.example.com/dash/sign-in/return" || q.Get("scope") != "email groups openid profile" {
		t.Errorf("asked for %v", q)
	}
	mark := r.log.mark()
	r.mustReload(oneRoom + strings.Replace(settings, "Example", "Another", 1))
	if line := r.log.await(t, mark, "next restart"); !strings.Contains(line, "sign_in") {
		t.Error(line)
	}
}
