package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/server"
)

// adminToken is the token that servers of these tests take from the environment.
const adminToken = "an-admin-token-of-the-environment-0123456789"

// startAPI serves a configuration in a directory until end is called, which may be called
// twice.
func startAPI(dir, yaml string) (s *server.Server, end func(), err error) {
	file := filepath.Join(dir, "anteroom.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		return nil, nil, err
	}
	s, err = server.New(context.Background(), server.Options{
		Load: func() (config.Config, error) { return config.Load(config.LoadOptions{File: file, Check: server.Check}) },
		Log:  slog.New(slog.DiscardHandler), Version: "test",
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	return s, func() { stop(); <-done }, nil
}

// withFileRoom is a configuration with a room of its own.
func withFileRoom(origin string) string {
	return `listen: 127.0.0.1:0
admin: localhost:0
data: data
sites: [{hosts: "*", origins: "` + origin + `"}]
rooms: [{name: fixed, host: fixed.example.org, total_active_users: 10, new_users_per_minute: 10}]
`
}

// TestAPIScripts runs testdata/api/*.txt against servers of their own: what somebody types who
// runs rooms from the command line, and what they see.
func TestAPIScripts(t *testing.T) {
	t.Setenv("ANTEROOM_API_TOKEN", adminToken)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "the shop") }))
	t.Cleanup(origin.Close)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/api",
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"ANTEROOM_API", "OTHER"} {
				dir, err := os.MkdirTemp(env.WorkDir, "server")
				if err != nil {
					return err
				}
				s, end, err := startAPI(dir, withFileRoom(origin.URL))
				if err != nil {
					return err
				}
				env.Defer(end)
				env.Setenv(name, "http://"+s.Addresses().Admin)
				env.Setenv("SHOP_OF_"+name, "http://"+s.Addresses().Visitors[0])
			}
			env.Setenv("ANTEROOM_API_TOKEN", adminToken)
			env.Setenv("TOKEN", adminToken)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "take": take},
	})
}

// take is "take NAME N": the Nth word of the last command's output becomes a variable; or
// "take NAME TEXT N" of the first line that has a text.
func take(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: take NAME [TEXT] N")
	}
	out := ts.ReadFile("stdout")
	if len(args) == 3 {
		for line := range strings.Lines(out) {
			if strings.Contains(line, args[1]) {
				out = line
				break
			}
		}
	}
	n := int(args[len(args)-1][0] - '0')
	words := strings.Fields(out)
	if len(words) < n {
		ts.Fatalf("there are %d words in %q", len(words), out)
	}
	ts.Setenv(args[0], strings.TrimRight(words[n-1], "."))
}
