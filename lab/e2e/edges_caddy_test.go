//go:build edges

package e2e

import (
	"net/http"
	"testing"
)

// TestEdgeCaddy is apart because Caddy takes minutes to build, which scripts/edges does.
func TestEdgeCaddy(t *testing.T) {
	t.Parallel()
	testEdge(t, anEdge{name: "caddy", waiting: http.StatusUnauthorized, stopped: http.StatusBadGateway, start: func(t *testing.T, at addresses) {
		dir := t.TempDir()
		const own = "query __anteroom=*\n\t}\n\thandle @anteroom {\n\t\treverse_proxy "
		file := recipe(t, "edges/caddy/Caddyfile", "shop.example.com {", "http://"+at.listen+" {", own+"127.0.0.1:8080", own+at.anteroom,
			"reverse_proxy 127.0.0.1:8080", "reverse_proxy "+at.anteroom, "127.0.0.1:8082", at.verdicts, "127.0.0.1:3000", at.application)
		file = "{\n\tadmin off\n\tstorage file_system " + dir + "\n}\n" + file
		runs(t, program(t, "caddy", dir, file, "run", "--adapter", "caddyfile", "--config"))
	}})
}
