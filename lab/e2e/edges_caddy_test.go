//go:build edges

package e2e

import (
	"net/http"
	"path/filepath"
	"testing"
)

// TestEdgeCaddy is apart because Caddy takes minutes to build, which scripts/edges does.
func TestEdgeCaddy(t *testing.T) {
	t.Parallel()
	caddy := anEdge{name: "caddy", host: "http://LISTEN", waiting: http.StatusUnauthorized, stopped: http.StatusBadGateway, silent: http.StatusGatewayTimeout,
		patient: [2]string{"response_header_timeout 10s", "response_header_timeout 200ms"}, start: func(t *testing.T, dir string, _ addresses) {
			file := "{\n\tadmin off\n\tstorage file_system " + dir + "\n}\n" + edited(t, filepath.Join(dir, "Caddyfile"))
			runs(t, program(t, "caddy", dir, file, "run", "--adapter", "caddyfile", "--config"))
		}}
	testEdge(t, caddy)
	testSilence(t, caddy)
}

// TestEdgeCaddyWithPasses runs Caddy with Anteroom's module.
func TestEdgeCaddyWithPasses(t *testing.T) {
	t.Parallel()
	testPassEdge(t, passEdge{name: "caddy", recipe: "caddy-pass", stopped: http.StatusBadGateway, fetches: true, start: inCaddy()})
}

// TestEdgeCaddyKnowsRevokedSessions is TestEdgesKnowRevokedSessions for Caddy.
func TestEdgeCaddyKnowsRevokedSessions(t *testing.T) {
	t.Parallel()
	testRevoked(t, passEdge{name: "caddy", recipe: "caddy-pass", start: inCaddy("# revoked #", "revoked #")})
}

// inCaddy starts Caddy with Anteroom's module, and a recipe that is changed.
func inCaddy(changes ...string) func(t *testing.T, dir string, at addresses, now int64, zone, room string) {
	return func(t *testing.T, dir string, at addresses, _ int64, _, _ string) {
		file := "{\n\tadmin off\n\tstorage file_system " + dir + "\n}\n" + edited(t, filepath.Join(dir, "Caddyfile"), append(changes, "127.0.0.1 {\n", "http://"+at.listen+" {\n")...)
		runs(t, program(t, "caddy", dir, file, "run", "--adapter", "caddyfile", "--config"))
	}
}
