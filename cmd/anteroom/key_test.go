package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

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
