package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The lines stand for the original API's address. What leads them to ours is curl's own
// configuration: a connection elsewhere, and an authority to trust.
func TestCurlLinesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	if _, err := find("curl"); err != nil {
		t.Fatal(err)
	}
	cert, key := certificate(t, "api.cloudflare.com")
	o := startOffice(t, fmt.Sprintf("admin_tls:\n  cert: %s\n  key: %s", cert, key))
	home := t.TempDir()
	conf := fmt.Sprintf("silent\nshow-error\ncacert = %q\nconnect-to = \"api.cloudflare.com:443:%s\"\n", cert, o.admin)
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("clients/lines.sh")
	if err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "CURL_HOME="+home, "HOME="+home, "CLOUDFLARE_API_TOKEN="+operatorToken,
		"CLOUDFLARE_API_KEY="+operatorToken, "CLOUDFLARE_EMAIL=operator@example.com", "ACCOUNT_ID="+o.account)
	takes := regexp.MustCompile(`(?m)^# > (\w+)$`)
	answers := map[string]json.RawMessage{}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		if !strings.Contains(paragraph, "\ncurl ") {
			continue
		}
		title := strings.TrimPrefix(strings.SplitN(paragraph, "\n", 2)[0], "# ")
		cmd := exec.Command("sh", "-eu", "-c", paragraph)
		cmd.Env = environment
		out, err := cmd.CombinedOutput()
		var e envelope
		if err != nil || json.Unmarshal(out, &e) != nil || !e.Success || len(e.Errors) != 0 {
			t.Fatalf("%s: %v\n%s\n%s", title, err, paragraph, out)
		}
		answers[title] = e.Result
		if m := takes.FindStringSubmatch(paragraph); m != nil {
			var made struct{ ID string }
			if err := json.Unmarshal(e.Result, &made); err != nil || made.ID == "" {
				t.Fatalf("%s: no id: %s", title, e.Result)
			}
			environment = append(environment, m[1]+"="+made.ID)
		}
	}
	for title, want := range map[string]string{
		"Create a room":        `"queueing_method":"fifo"`,
		"List rooms":           `"name":"shop_waiting_room"`,
		"Edit a room":          `"custom_page_html":"<p>{{waitTime}} minutes</p>"`,
		"Update a room":        `"queueing_status_code":202`,
		"Status":               `"status":"suspended"`,
		"Create an event":      `"event_start_time":"2021-09-28T15:30:00.000Z"`,
		"Event details":        `"session_duration":1`,
		"Edit an event":        `"queueing_method":null`,
		"List rules":           `"description":"file extension bypass"`,
		"Preview":              `"preview_url":"http`,
		"Settings of the zone": `"search_engine_crawler_bypass":true`,
	} {
		if !strings.Contains(unescaped(t, answers[title]), want) {
			t.Errorf("%s: no %s in %s", title, want, answers[title])
		}
	}
}

// unescaped writes a document compactly and without escapes that HTML would need.
func unescaped(t *testing.T, document json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Our own address over HTTPS, and what curl says when the authority is not known.
func TestCurlOverHTTPSNeedsTheAuthority(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	o := startOffice(t, fmt.Sprintf("admin_tls:\n  cert: %s\n  key: %s", cert, key))
	ask := func(args ...string) (string, error) {
		cmd := exec.Command("curl", append([]string{"--disable", "--silent", "--show-error", "--header", "Authorization: Bearer " + operatorToken}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	address := o.api + "/user/tokens/verify"
	if out, err := ask("--cacert", cert, address); err != nil || !strings.Contains(out, `"status":"active"`) {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := ask(address); err == nil {
		t.Errorf("without the authority: %s", out)
	}
	if out, err := ask(strings.Replace(address, "https://", "http://", 1)); err == nil && strings.Contains(out, "active") {
		t.Errorf("in plain text: %s", out)
	}
}
