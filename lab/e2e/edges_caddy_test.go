//go:build edges

package e2e

import (
	"net/http"
	"testing"
)

// Caddy takes minutes to build, so that scripts/edges does it.
func init() {
	edges = append(edges, anEdge{name: "caddy", waiting: http.StatusUnauthorized, stopped: http.StatusBadGateway, start: func(t *testing.T, at addresses) {
		dir := t.TempDir()
		file := "{\n\tadmin off\n\tstorage file_system " + dir + "\n}\n" + recipe(t, "edges/caddy/Caddyfile", "shop.example.com {", "http://"+at.listen+" {",
			"query __anteroom=*\n\t}\n\thandle @anteroom {\n\t\treverse_proxy 127.0.0.1:8080", "query __anteroom=*\n\t}\n\thandle @anteroom {\n\t\treverse_proxy "+at.anteroom,
			"reverse_proxy 127.0.0.1:8080", "reverse_proxy "+at.anteroom, "127.0.0.1:8082", at.verdicts, "127.0.0.1:3000", at.application)
		runs(t, program(t, "caddy", dir, file, "run", "--adapter", "caddyfile", "--config"))
	}})
}
