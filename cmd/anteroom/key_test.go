package main

import (
	"bytes"
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
