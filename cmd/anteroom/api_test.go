package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/inventory"
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
		Load: func() (config.Config, error) {
			return config.Load(config.LoadOptions{File: file, Check: server.Check, CheckSecret: server.CheckSecret})
		},
		Log: slog.New(slog.DiscardHandler), Version: "test",
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
				env.Setenv("DATA_OF_"+name, filepath.Join(dir, "data"))
				env.Setenv("VISITORS_OF_"+name, s.Addresses().Visitors[0])
			}
			env.Setenv("ANTEROOM_API_TOKEN", adminToken)
			env.Setenv("TOKEN", adminToken)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "take": take, "visit": visit, "moment": moments, "awaits": awaits, "rule": rule},
	})
}

// rule is "rule API ZONE ROOM DESCRIPTION EXPRESSION": a rule is added to the room there.
func rule(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: rule API ZONE ROOM DESCRIPTION EXPRESSION")
	}
	c, err := client.New(client.Config{URL: args[0], Token: adminToken})
	ts.Check(err)
	c = c.Below(published)
	all, err := inventory.Read(context.Background(), c, args[1])
	ts.Check(err)
	for _, room := range all.Zones[0].Rooms {
		if room.Name() == args[2] {
			ts.Check(c.Do(context.Background(), http.MethodPost, "/zones/"+all.Zones[0].ID+"/waiting_rooms/"+room.ID+"/rules", nil,
				map[string]string{"action": "bypass_waiting_room", "description": args[3], "expression": args[4]}, nil))
			return
		}
	}
	ts.Fatalf("there is no room %s", args[2])
}

// code is what the waiting page shows, by which a visitor can be found.
var code = regexp.MustCompile(`\b[0-9a-f]{5}-[0-9a-f]{5}\b`)

// visit is "visit WHO in|waits [SECONDS]": a browser of WHO's, with its cookie, asks for the
// shop, up to so many seconds long until it is in, or waits. The code of the page becomes the
// variable WHO.
func visit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: visit WHO in|waits [SECONDS]")
	}
	until := time.Now()
	if len(args) > 2 {
		d, err := time.ParseDuration(args[2] + "s")
		ts.Check(err)
		until = until.Add(d)
	}
	name := ts.MkAbs("cookie-of-" + args[0])
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		req, err := http.NewRequest("GET", ts.Getenv("SHOP_OF_ANTEROOM_API")+"/", nil)
		ts.Check(err)
		req.Header.Set("Accept", "text/html")
		if cookie, err := os.ReadFile(name); err == nil {
			req.Header.Set("Cookie", string(cookie))
		}
		// A connection of its own: two visitors without cookies on one are the same person.
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		ts.Check(err)
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		ts.Check(err)
		for _, c := range res.Cookies() {
			ts.Check(os.WriteFile(name, []byte(c.Name+"="+c.Value), 0o600))
		}
		is := "waits"
		if string(body) == "the shop" {
			is = "in"
		} else if found := code.Find(body); found != nil {
			ts.Setenv(args[0], string(found))
		}
		if is == args[1] {
			return
		}
		if time.Now().After(until) {
			ts.Fatalf("%s: %s, want %s: %.300s", args[0], is, args[1], body)
		}
	}
}

// awaits is "awaits TEXT COMMAND...": exec, again and again until the output has a text. The
// address of a shuffle's record becomes the variable RECORD.
func awaits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: awaits TEXT COMMAND...")
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		ts.Check(ts.Exec(args[1], args[2:]...))
		out := ts.ReadFile("stdout")
		if strings.Contains(out, args[0]) {
			break
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no %q in %s", args[0], out)
		}
	}
	var rec shuffleRecord
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("after/record.json")), &rec))
	ts.Setenv("RECORD", ts.Getenv("SHOP_OF_ANTEROOM_API")+"/.well-known/anteroom/draw/"+string(rec.Room)+"/"+string(rec.Event)+"/0")
}

// moments is "moment NAME SECONDS": the time so many seconds from now becomes a variable.
func moments(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: moment NAME SECONDS")
	}
	d, err := time.ParseDuration(args[1] + "s")
	ts.Check(err)
	ts.Setenv(args[0], time.Now().Add(d).UTC().Format(time.RFC3339Nano))
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

// What an API says in an error goes to a terminal, and it may be anybody's API.
func TestErrorsCannotDriveTheTerminal(t *testing.T) {
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"success":false,"errors":[{"code":1,"message":"a\u001b]0;title\u0007\nb\u009b31m\u202ec"}]}`)
	}))
	defer hostile.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = w
	code := run([]string{"zone", "list", "--api", hostile.URL, "--token", adminToken})
	os.Stderr = stderr
	w.Close()
	said, err := io.ReadAll(r)
	if err != nil || code != exitFailed || strings.ContainsAny(string(said), "\x1b\a\u009b\u202e") || strings.Count(string(said), "\n") != 1 {
		t.Errorf("%d, %v: %q", code, err, said)
	}
}

// What an edge of a cluster does for nobody is not about the token.
func TestWhatAnEdgeRefusesIsNotAboutTheToken(t *testing.T) {
	for code, token := range map[int]bool{10403: false, 10000: true} {
		edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"success":false,"errors":[{"code":%d,"message":"no"}]}`, code)
		}))
		c, err := client.New(client.Config{URL: edge.URL, Token: adminToken})
		if err != nil {
			t.Fatal(err)
		}
		if err := advise(c.Do(t.Context(), "GET", "/x", nil, nil, nil)); strings.Contains(err.Error(), "token") != token {
			t.Errorf("%d: %v", code, err)
		}
		edge.Close()
	}
}
