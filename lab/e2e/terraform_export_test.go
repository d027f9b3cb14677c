//go:build terraform

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What "anteroom config export terraform" writes is taken over by the real program and the real
// provider, and they find nothing to change, whatever an operator has written into a page, a
// description or a rule. scripts/terraform starts this.
func TestTerraformTakesOverWhatWasExported(t *testing.T) {
	o := startOffice(t)
	hostile := `${file("/etc/passwd")} %{if true} $${x} %%{y} "q" \ ` + "\t<<EOT Ä \u2028"
	rooms := "/zones/" + o.zone + "/waiting_rooms"
	var room struct{ ID string }
	o.good("POST", rooms, string(mustJSON(t, map[string]any{"name": "checkout", "host": "shop.example", "path": "/checkout", "total_active_users": 500,
		"new_users_per_minute": 300, "description": hostile, "custom_page_html": "<p>" + hostile + "\n</p>\n", "enabled_origin_commands": []string{"revoke"}, "cookie_suffix": "a",
		"additional_routes": []map[string]string{{"host": "www.shop.example", "path": "/"}}})), &room)
	o.good("POST", rooms, `{"name":"plain","host":"shop.example","path":"/plain","total_active_users":500,"new_users_per_minute":300}`, nil)
	o.good("POST", rooms+"/"+room.ID+"/events", `{"name":"drop","prequeue_start_time":"2046-11-27T09:30:00Z","event_start_time":"2046-11-27T10:00:00.000Z",
		"event_end_time":"2046-11-27T13:00:00+01:00","shuffle_at_event_start":true,"queueing_method":"random","total_active_users":900,"new_users_per_minute":200}`, nil)
	o.good("POST", rooms+"/"+room.ID+"/rules", string(mustJSON(t, map[string]any{"action": "bypass_waiting_room", "description": hostile,
		"expression": `http.request.uri.path contains "${x}"`})), nil)
	dir := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "ANTEROOM_API="+o.operators(), "ANTEROOM_API_TOKEN="+operatorToken, "CLOUDFLARE_BASE_URL="+o.api, "CLOUDFLARE_API_TOKEN="+operatorToken,
			"TF_CLI_CONFIG_FILE="+filepath.Join(dir, "cli.tfrc"), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	for name, text := range map[string]string{
		"cli.tfrc": fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"cloudflare/cloudflare\" = %q\n  }\n  direct {}\n}\n", os.Getenv("TERRAFORM_PROVIDER")),
		"main.tf":  "terraform {\n  required_providers {\n    cloudflare = { source = \"cloudflare/cloudflare\" }\n  }\n}\nprovider \"cloudflare\" {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(os.Getenv(binaryVariable), "config", "export", "terraform", "--out", "rooms.tf")
	out := run(os.Getenv("TERRAFORM"), "plan", "-no-color", "-parallelism=1")
	if !strings.Contains(out, "Plan: 5 to import, 0 to add, 0 to change, 0 to destroy.") {
		t.Errorf("the plan is\n%s", out)
	}
}
