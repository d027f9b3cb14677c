package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestNPMSDKRunsRoomsFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	node, err := find("node", "nodejs")
	if err != nil {
		t.Fatal(err)
	}
	npmPackages(t)
	cert, key := certificate(t)
	for name, c := range map[string]struct {
		credentials []string
		others      string
	}{
		"token": {credentials: []string{"CLOUDFLARE_API_TOKEN=" + operatorToken}},
		"key and email, over HTTPS": {
			credentials: []string{"CLOUDFLARE_API_KEY=" + operatorToken, "CLOUDFLARE_EMAIL=operator@shop.example", "NODE_EXTRA_CA_CERTS=" + cert},
			others:      fmt.Sprintf("admin_tls:\n  cert: %s\n  key: %s", cert, key),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := startOffice(t, c.others)
			cmd := exec.Command(node, "clients/life.mjs")
			cmd.Env = append(append(os.Environ(), "CLOUDFLARE_BASE_URL="+o.api, "ACCOUNT="+o.account), c.credentials...)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "lived") {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
