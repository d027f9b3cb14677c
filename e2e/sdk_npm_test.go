package e2e

import (
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
	for name, credentials := range map[string][]string{
		"token":         {"CLOUDFLARE_API_TOKEN=" + operatorToken},
		"key and email": {"CLOUDFLARE_API_KEY=" + operatorToken, "CLOUDFLARE_EMAIL=operator@shop.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := startOffice(t)
			cmd := exec.Command(node, "clients/life.mjs")
			cmd.Env = append(append(os.Environ(), "CLOUDFLARE_BASE_URL="+o.api, "ACCOUNT="+o.account), credentials...)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "lived") {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
