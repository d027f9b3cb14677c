package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/server"
	"github.com/anteroom/anteroom/ticket"
)

// The list names keys as everything else does that names them.
func TestKeyListShowsTheIDsOfTheKeys(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := ticket.LoadOrCreate(server.KeyFile(dir), time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"rotate"}, {"list"}, {"list", "--json"}} {
		cmd := keyCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(append(args, "--data", dir))
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		keys, err := ticket.ListFile(server.KeyFile(dir))
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) != 2 {
			t.Fatalf("%d keys after one rotation", len(keys))
		}
		for _, k := range keys {
			if len(k.ID) != 8 || !strings.Contains(out.String(), k.ID) || !strings.Contains(out.String(), string(k.State)) {
				t.Errorf("%v does not show %s key %s:\n%s", args, k.State, k.ID, out.String())
			}
		}
	}
}

// The keys that seal tickets are rotated over the API, and are in force in the process that
// serves.
func TestKeysAreRotatedOverTheAPI(t *testing.T) {
	t.Setenv("ANTEROOM_API_TOKEN", adminToken)
	dir := t.TempDir()
	s, end, err := startAPI(dir, withFileRoom("http://127.0.0.1:9"))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	c, err := client.New(client.Config{URL: "http://" + s.Addresses().Admin, Token: adminToken})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), "POST", ours+"/keys/rotate", nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	keys, err := ticket.ListFile(server.KeyFile(s.Config().Data))
	if err != nil || len(keys) != 2 {
		t.Errorf("%d keys after a rotation, %v", len(keys), err)
	}
}

// The keys of a cluster are in its store: the command says so instead of changing a file that nobody reads, and rotates them over
// the API.
func TestKeysOfAClusterAreRotatedOverTheAPI(t *testing.T) {
	t.Setenv("ANTEROOM_API_TOKEN", adminToken)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("b0a5c93e17f24d68ae4c71d3920fb85e6d1a4c07f3b92e58\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, end, err := startAPI(dir, withFileRoom("http://127.0.0.1:9")+"cluster: {listen: \""+freeCore(t)+"\", node: core-1, secret_file: secret}\n")
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	key := func(args ...string) (string, error) {
		cmd := keyCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	run := func(args ...string) (string, error) { return key(append([]string{"rotate"}, args...)...) }
	data := s.Config().Data
	// A file from before the cluster is in the directory, or none.
	for range 2 {
		for want, args := range map[string][]string{
			"it cannot list them":                       {"list"},
			"/.well-known/anteroom/pass.pem":            {"pass", "--pem"},
			"anteroom key pass --edge front --data DIR": {"pass", "--edge", "front"},
		} {
			if out, err := key(append(args, "--data", data)...); err == nil || !strings.Contains(err.Error(), "belongs to a node of a cluster") || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, %s", args, err, out)
			}
		}
		if _, _, err := ticket.LoadOrCreate(server.KeyFile(data), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	_, err = run("--data", data, "--forget")
	if err == nil || !strings.Contains(err.Error(), `run "anteroom key rotate --api URL --forget"`) {
		t.Errorf("on the data directory of a core: %v", err)
	}
	api := "http://" + s.Addresses().Admin
	if _, err := run("--data", data, "--api", api); err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Errorf("with both: %v", err)
	}
	for _, args := range [][]string{{"--api", api}, {"--api", api, "--forget"}} {
		if out, err := run(args...); err != nil {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
	// What the command says to do for the secrets of an edge works.
	c, err := client.New(client.Config{URL: api, Token: adminToken})
	if err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	if err := c.Download(t.Context(), ours+"/backup", url.Values{"keys": {"true"}}, &backup, maxTransfer); err != nil {
		t.Fatal(err)
	}
	lines, err := gzip.NewReader(&backup)
	if err != nil {
		t.Fatal(err)
	}
	var line struct{ Key, Text string }
	for d := json.NewDecoder(lines); line.Key != "keys.json"; {
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
	}
	copied := t.TempDir()
	if err := os.WriteFile(server.KeyFile(copied), []byte(line.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := key("pass", "--edge", "front", "--data", copied); err != nil || !strings.Contains(out, "HS256") {
		t.Errorf("from a backup: %v, %s", err, out)
	}
}

// freeCore is an address for a core, which takes the two ports after it as well. It lies below the ports that outgoing connections get.
func freeCore(t *testing.T) string {
	t.Helper()
	for range 100 {
		port, free := 10_000+rand.IntN(20_000), 0
		for i := range 3 {
			if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port+i)); err == nil {
				l.Close()
				free++
			}
		}
		if free == 3 {
			return fmt.Sprint("127.0.0.1:", port)
		}
	}
	t.Fatal("no three free ports in a row")
	return ""
}
