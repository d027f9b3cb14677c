//go:build conformance

package e2e

import (
	"encoding/xml"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestHTTP2Conformance runs h2spec, a client that nobody here has written, against Anteroom and against a bare net/http server.
// What net/http gets wrong by design is no fault of ours; whatever else fails is. scripts/conformance builds h2spec.
func TestHTTP2Conformance(t *testing.T) {
	cert, key := certificate(t)
	g := startGate(t, `  - {name: shop, host: "*", total_active_users: 100000, new_users_per_minute: 100000}`,
		fmt.Sprintf("tls:\n  certificates:\n    - cert: %s\n      key: %s", cert, key))
	bare := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	bare.EnableHTTP2 = true
	bare.StartTLS()
	t.Cleanup(bare.Close)

	_, allowed := h2spec(t, bare.Listener.Addr().String())
	run, failed := h2spec(t, g.host)
	for name := range failed {
		if !allowed[name] {
			t.Errorf("fails, and does not with net/http alone: %s", name)
		}
	}
	t.Logf("%d cases, %d fail, %d with net/http alone", run, len(failed), len(allowed))
	if run < 100 {
		t.Errorf("only %d cases ran", run)
	}
}

// h2spec returns how many cases ran, and which of them failed.
func h2spec(t *testing.T, address string) (run int, failed map[string]bool) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "report.xml")
	out, err := exec.CommandContext(t.Context(), "h2spec", "-t", "-k", "-h", host, "-p", port, "-j", report).CombinedOutput()
	text, missing := os.ReadFile(report)
	if missing != nil { // a case that fails is an error of the command, too
		t.Fatalf("h2spec: %v\n%s", err, out)
	}
	var doc struct {
		Suites []struct {
			Package string `xml:"package,attr"`
			Cases   []struct {
				Name    string    `xml:"classname,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	failed = map[string]bool{}
	for _, s := range doc.Suites {
		for _, c := range s.Cases {
			if c.Skipped != nil {
				continue
			}
			if run++; c.Failure != nil || c.Error != nil {
				failed[s.Package+": "+c.Name] = true
			}
		}
	}
	return run, failed
}
