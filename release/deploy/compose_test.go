package deploy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

const (
	composeFolder = "../../examples/compose"
	besideFolder  = "../../examples/monitoring"
	scrapeToken   = "0123456789abcdef0123456789abcdef0123456789abcdef"
)

// project reads the compose file by the rules of its specification.
func project(t *testing.T, environment types.Mapping) (*types.Project, error) {
	t.Helper()
	return projectIn(t, composeFolder, environment)
}

func projectIn(t *testing.T, folder string, environment types.Mapping) (*types.Project, error) {
	t.Helper()
	dir, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: dir, Environment: environment,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "compose.yml")}}})
}

// text is a file of the set-up.
func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(composeFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// mounts checks that the files are there that services have from this folder.
func mounts(t *testing.T, p *types.Project) {
	t.Helper()
	for name, service := range p.Services {
		for _, v := range service.Volumes {
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// Prometheus and Grafana beside a node: the compose file keeps to its specification, and what it mounts is there.
func TestComposeFileOfMonitoring(t *testing.T) {
	p, err := projectIn(t, besideFolder, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Services) != 2 {
		t.Errorf("%d services", len(p.Services))
	}
	mounts(t, p)
}

// The compose file keeps to its specification, what it mounts is there, and its parts name each other.
func TestComposeFile(t *testing.T) {
	if _, err := project(t, nil); err == nil || !strings.Contains(err.Error(), "ANTEROOM_VERSION") {
		t.Errorf("without a version: %v", err)
	}
	p, err := project(t, types.Mapping{"ANTEROOM_VERSION": "1.2.3", "ANTEROOM_SCRAPE_TOKEN": scrapeToken})
	if err != nil {
		t.Fatal(err)
	}
	mounts(t, p)
	anteroom := p.Services["anteroom"]
	if anteroom.Image != "localhost/anteroom:1.2.3" || anteroom.Hostname != "anteroom" || !anteroom.ReadOnly {
		t.Errorf("anteroom is %s at %q", anteroom.Image, anteroom.Hostname)
	}
	if got := anteroom.Environment["ANTEROOM_SCRAPE_TOKEN"]; got == nil || *got != scrapeToken {
		t.Error("anteroom does not know the token of Prometheus")
	}
	if given := p.Services["prometheus"].Secrets; len(given) != 1 || given[0].Source != "scrape-token" || p.Secrets["scrape-token"].Environment != "ANTEROOM_SCRAPE_TOKEN" {
		t.Errorf("Prometheus has the secrets %v", given)
	}
	for file, parts := range map[string][]string{
		"anteroom.yaml":           {"admin: anteroom:8081", "http://shop:3000"},
		"prometheus.yml":          {`targets: ["anteroom:8081"]`, "credentials_file: /run/secrets/scrape-token"},
		"grafana/prometheus.yml":  {"http://prometheus:9090"},
		"compose.yml":             {`[demo, --shop-only, --listen, ":3000"]`},
		"../monitoring/rules.yml": {"groups:"},
	} {
		for _, part := range parts {
			if !strings.Contains(text(t, file), part) {
				t.Errorf("%s has no %s", file, part)
			}
		}
	}
}

// The commands and the configuration of the compose file, on this machine: a visitor sees the shop through the waiting room.
func TestComposeServesTheShop(t *testing.T) {
	p, err := project(t, types.Mapping{"ANTEROOM_VERSION": "1.2.3", "ANTEROOM_SCRAPE_TOKEN": scrapeToken})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	anteroom := build(t, dir)
	shop, visitors, admin := freeAddress(t), freeAddress(t), freeAddress(t)
	start := func(args ...string) {
		t.Helper()
		log, err := os.Create(filepath.Join(dir, args[0]+".log"))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		ctx, stop := context.WithCancel(context.Background())
		cmd := exec.CommandContext(ctx, anteroom, args...)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.Env = []string{"HOME=" + dir, "ANTEROOM_DATA=" + filepath.Join(dir, "data")}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			stop()
			cmd.Wait()
			if said, err := os.ReadFile(log.Name()); t.Failed() {
				t.Logf("%v: %v\n%s", args, err, said)
			}
		})
	}
	var command []string
	for _, arg := range p.Services["shop"].Command {
		command = append(command, strings.Replace(arg, ":3000", shop, 1))
	}
	start(command...)
	file := filepath.Join(dir, "anteroom.yaml")
	local := strings.NewReplacer(`":8080"`, `"`+visitors+`"`, "anteroom:8081", admin, "shop:3000", shop).Replace(text(t, "anteroom.yaml"))
	if err := os.WriteFile(file, []byte(local), 0o600); err != nil {
		t.Fatal(err)
	}
	start("run", "--config", file)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		res, err := http.Get("http://" + visitors + "/")
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if last = fmt.Sprintf("%s, %v, %.200s", res.Status, err, body); res.StatusCode == http.StatusOK && res.Header.Get("X-Demo-Shop") != "" {
			return
		}
	}
	t.Errorf("no shop: %s", last)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// build makes Anteroom in a folder.
func build(t *testing.T, dir string) (binary string) {
	t.Helper()
	binary = filepath.Join(dir, "anteroom")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./cmd/anteroom")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}
