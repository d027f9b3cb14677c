//go:build terraform

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The real program and the real provider run rooms from creation to deletion, and what they
// ask is written to testdata for the replay (terraform_test.go). scripts/terraform starts
// this: TERRAFORM names the program, terraform or tofu, and TERRAFORM_PROVIDER the folder
// with the provider's binary.
func TestTerraformRunsRoomsFromCreationToDeletion(t *testing.T) {
	o := startOffice(t)
	recorder := &recorder{step: "none"}
	target, err := url.Parse("http://" + o.admin)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ModifyResponse: recorder.answered}
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, recorder.asked(r))
	}))
	t.Cleanup(between.Close)
	dir := t.TempDir()
	settings := filepath.Join(dir, "cli.tfrc")
	text := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"cloudflare/cloudflare\" = %q\n  }\n  direct {}\n}\n", os.Getenv("TERRAFORM_PROVIDER"))
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(os.Getenv("TERRAFORM"), args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CLOUDFLARE_BASE_URL="+between.URL+"/client/v4", "CLOUDFLARE_API_TOKEN="+operatorToken,
			"TF_CLI_CONFIG_FILE="+settings, "TF_VAR_account="+o.account, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		t.Logf("%s: %d\n%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), out)
		return string(out), cmd.ProcessState.ExitCode()
	}
	use := func(name string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join("testdata", "terraform", name, "main.tf"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The rules resource never sets its id, so that each write of it ends with this complaint,
	// whatever the server answered, and its creation leaves it tainted. What was written is
	// checked by the plan that follows.
	const complaint = "still indicated an unknown value for cloudflare_waiting_room_rules.full.id"
	apply := func(step string) {
		t.Helper()
		recorder.step = step
		out, code := run("apply", "-auto-approve", "-no-color", "-parallelism=1")
		if code != 0 && (strings.Count(out, "Error: ") != 1 || !strings.Contains(strings.Join(strings.Fields(out), " "), complaint)) {
			t.Fatalf("%s failed", step)
		}
	}
	settled := func(step string) {
		t.Helper()
		recorder.step = step
		if _, code := run("plan", "-detailed-exitcode", "-no-color", "-parallelism=1"); code != 0 {
			t.Errorf("%s: the plan is not empty", step)
		}
	}
	use("created")
	apply("create")
	if _, code := run("untaint", "cloudflare_waiting_room_rules.full"); code != 0 {
		t.Fatal("the rules cannot be untainted")
	}
	settled("plan after creation")
	use("changed")
	apply("change")
	settled("plan after the change")

	recorder.step = "import"
	state, _ := run("show", "-json")
	ids := terraformIDs(t, state)
	zone, least, full := ids["cloudflare_zone.tickets"], ids["cloudflare_waiting_room.least"], ids["cloudflare_waiting_room.full"]
	for _, one := range [][2]string{
		{"cloudflare_zone.tickets", zone},
		{"cloudflare_waiting_room.least", zone + "/" + least},
		{"cloudflare_waiting_room.full", zone + "/" + full},
		{"cloudflare_waiting_room_event.full", zone + "/" + full + "/" + ids["cloudflare_waiting_room_event.full"]},
		{"cloudflare_waiting_room_rules.full", zone + "/" + full},
		{"cloudflare_waiting_room_settings.tickets", zone},
	} {
		if _, code := run("state", "rm", one[0]); code != 0 {
			t.Fatal("state rm")
		}
		if _, code := run("import", "-no-color", one[0], one[1]); code != 0 {
			t.Fatalf("import %s", one[0])
		}
	}
	settled("plan after the import")
	recorder.step = "destroy"
	if _, code := run("destroy", "-auto-approve", "-no-color", "-parallelism=1"); code != 0 {
		t.Fatal("destroy failed")
	}
	if t.Failed() {
		return
	}
	b, err := json.MarshalIndent(corpus{Account: o.account, Exchanges: recorder.exchanges}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(terraformCorpus, append(numbered(b), '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// numbered puts numbers in the place of ids, and seconds in the place of moments that the
// server took from the clock, each in the order of its first sight, so that two recordings
// differ only in what the provider and we do differently.
func numbered(corpus []byte) []byte {
	number := func(format func(n int) string) func(string) string {
		seen := map[string]string{}
		return func(s string) string {
			if _, ok := seen[s]; !ok {
				seen[s] = format(len(seen) + 1)
			}
			return seen[s]
		}
	}
	id := number(func(n int) string { return fmt.Sprintf("%032x", n) })
	moment := number(func(n int) string {
		return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339)
	})
	text := anID.ReplaceAllStringFunc(string(corpus), id)
	clocked := regexp.MustCompile(`("(?:` + strings.Join(stamps, "|") + `)": ")([^"]+)`)
	return []byte(clocked.ReplaceAllStringFunc(text, func(s string) string {
		m := clocked.FindStringSubmatch(s)
		return m[1] + moment(m[2])
	}))
}

// terraformIDs returns the ids of the resources by their addresses.
func terraformIDs(t *testing.T, state string) map[string]string {
	t.Helper()
	var s struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string
					Values  struct{ ID string }
				}
			} `json:"root_module"`
		}
	}
	if err := json.Unmarshal([]byte(state[strings.Index(state, "{"):]), &s); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, r := range s.Values.Root.Resources {
		ids[r.Address] = r.Values.ID
	}
	return ids
}

// recorder notes what goes through the proxy.
type recorder struct {
	step      string
	exchanges []exchange
}

func (r *recorder) asked(req *http.Request) *http.Request {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		body = []byte(err.Error())
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return req.WithContext(context.WithValue(req.Context(), bodyKey{}, body))
}

// bodyKey is where a request's context has its body.
type bodyKey struct{}

func (r *recorder) answered(res *http.Response) error {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	x := exchange{Step: r.step, Method: res.Request.Method, Path: strings.TrimPrefix(res.Request.URL.RequestURI(), "/client/v4"), Status: res.StatusCode}
	if sent, _ := res.Request.Context().Value(bodyKey{}).([]byte); len(sent) > 0 {
		x.Body = sent
	}
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return fmt.Errorf("not an envelope: %w: %s", err, body)
	}
	x.Result = e.Result
	r.exchanges = append(r.exchanges, x)
	return nil
}
