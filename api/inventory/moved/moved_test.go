package moved_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/api/inventory/moved"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/server"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// exports are the files of testdata and the system of each.
var exports = map[string]string{"aws.json": "aws", "aws-parameters.json": "aws", "queue-it.json": "queue-it", "fastly-items.json": "fastly",
	"fastly-table.vcl": "fastly", "fastly-config.js": "fastly", "fastly-store.json": "fastly", "cloudflare.json": "cloudflare"}

// Each export becomes a configuration that loads, and a report that accounts for every value.
func TestExports(t *testing.T) {
	for file, system := range exports {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := moved.Systems[system](data)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := cfg.YAML(&out); err != nil {
				t.Fatal(err)
			}
			loads(t, out.String())
			out.WriteString("---\n")
			for _, n := range cfg.Notes {
				fmt.Fprintf(&out, "%s | %s | %s | %s\n", n.Outcome, n.Theirs, n.Ours, n.Why)
			}
			golden := filepath.Join("testdata", file+".golden")
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, secret := range []string{"c2VjcmV0", "correct horse"} {
				if strings.Contains(out.String(), secret) {
					t.Errorf("the result shows the secret %q", secret)
				}
			}
		})
	}
}

// loads fails unless text is a configuration that a start accepts, once the operator has put the secret there.
func loads(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "anteroom.yaml")
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(strings.Repeat("s", 72)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(config.LoadOptions{File: file, Check: server.Check, Open: func(name string) (io.ReadCloser, error) {
		if name == file {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return os.Open(name)
	}})
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestBadExports(t *testing.T) {
	for _, c := range []struct{ system, text, want string }{
		{"aws", "{\n  \"Stacks\": [}", "line 2, column 14"},
		{"aws", "{\"Stacks\": [{\"Parameters\": {\"EventId\": {}}}]}", "line 1, column 28"},
		{"aws", "[]", "no stack has a parameter EventId"},
		{"aws", "", "unexpected end of JSON input"},
		{"aws", `{"Stacks":[]} {}`, "line 1, column 15"},
		{"queue-it", `{"Integrations": 7}`, "line 1"},
		{"queue-it", `{"Integrations": [{"ActionType": "Ignore"}]}`, `the ActionType "Queue"`},
		{"fastly", "", "neither allow_percentage nor automaticQuantity"},
		{"fastly", `{"data": 1}`, "is of another kind"},
		{"fastly", `[{"item_key": 1}]`, "line 1"},
		{"cloudflare", `{"success": false, "errors": [{"code": 10000}], "result": null}`, "this answer of the API is an error"},
		{"cloudflare", `{"result": []}`, "there are no waiting rooms"},
		{"cloudflare", `[{"id": "x"}]`, "result[0] has no name and host"},
		{"cloudflare", `[7]`, "result[0]"},
	} {
		_, err := moved.Systems[c.system]([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want %q", c.system, c.text, err, c.want)
		}
	}
}

// Hosts times paths of one trigger would be more than any room has.
func TestTriggersAreBounded(t *testing.T) {
	var values strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&values, `,"x%d.example.com"`, i)
	}
	text := `{"Integrations":[{"ActionType":"Queue","EventId":"a","Triggers":[{"LogicalOperator":"And","TriggerParts":[
		{"ValidatorType":"UrlValidator","Operator":"EqualsAny","UrlPart":"HostName","ValuesToCompare":[` + values.String()[1:] + `]},
		{"ValidatorType":"UrlValidator","Operator":"ContainsAny","UrlPart":"PagePath","ValuesToCompare":[` + values.String()[1:] + `]}]}]}]}`
	cfg, err := moved.QueueIt([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := cfg.YAML(&out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "host:"); n != 100 {
		t.Errorf("%d routes, want 100", n)
	}
	if !strings.Contains(fmt.Sprint(cfg.Notes), "a room has at most 100 routes") {
		t.Error("the report does not say that routes are missing")
	}
}

// Whatever is in an export, it is an error or a configuration that is YAML.
func FuzzExports(f *testing.F) {
	for file, system := range exports {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(system, data)
	}
	f.Fuzz(func(t *testing.T, system string, data []byte) {
		read, known := moved.Systems[system]
		if !known {
			return
		}
		cfg, err := read(data)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := cfg.YAML(&out); err != nil {
			t.Fatal(err)
		}
		if _, err := config.JSON(out.String()); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
	})
}
