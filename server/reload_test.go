package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config"
)

const shopFor = `
rooms:
  - {name: shop, host: "*", total_active_users: %d, new_users_per_minute: 100, refresh: 1s}
`

func TestReloadChangesWhatWaits(t *testing.T) {
	r := startServer(t, fmt.Sprintf(shopFor, 1))
	inside, outside := r.visit("/"), r.visit("/")
	if !inside.isIn() || outside.isIn() {
		t.Fatalf("%q and %q, want one inside and one waiting", inside.body, outside.body)
	}
	r.mustReload(fmt.Sprintf(shopFor, 2))
	if got := r.room("shop").TotalActiveUsers; got != 2 {
		t.Errorf("the limit is %d, want 2", got)
	}
	if a := r.visit("/", inside.Cookies()...); !a.isIn() {
		t.Error("the session did not survive the reload")
	}
	deadline := time.Now().Add(patience)
	for {
		a := r.visit("/", outside.Cookies()...)
		if a.isIn() {
			break
		}
		if c := a.Cookies(); len(c) > 0 {
			outside = a
		}
		if time.Now().After(deadline) {
			t.Fatal("who waited is not let in after the limit was raised")
		}
	}
}

func TestReloadOfMethodTemplateAndRooms(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := startServer(t, fmt.Sprintf(shopFor, 1))
	page := filepath.Join(r.dir, "page.html")
	mustWrite(t, page, "<p>first {{waitTimeKnown}}")
	r.visit("/")
	with := func(more string) string {
		return fmt.Sprintf("\nrooms:\n  - {name: shop, host: \"*\", total_active_users: 1, new_users_per_minute: 100, %s}\n", more)
	}
	r.mustReload(with("custom_page_file: page.html"))
	if a := r.visit("/"); !strings.Contains(a.body, "<p>first") {
		t.Errorf("template: %q", a.body)
	}
	r.mustReload(with("queueing_method: reject"))
	if a := r.visit("/"); a.isIn() || a.Header.Get("Refresh") != "" {
		t.Errorf("reject: Refresh %q", a.Header.Get("Refresh"))
	}
	r.mustReload(with("queueing_method: passthrough"))
	if a := r.visit("/"); !a.isIn() {
		t.Error("passthrough did not pass")
	}
	r.mustReload(with("suspended: true"))
	if a := r.visit("/"); !a.isIn() || len(a.Cookies()) > 0 {
		t.Errorf("suspended: %q with %d cookies", a.body, len(a.Cookies()))
	}
	r.mustReload(with("queueing_status_code: 429"))
	if a := r.visit("/"); a.StatusCode != 429 {
		t.Errorf("status %d, want 429", a.StatusCode)
	}
	r.mustReload(with("path: /checkout") + "  - {name: sale, host: \"*\", path: /sale, total_active_users: 0, new_users_per_minute: 1}\n")
	if a, b, c := r.visit("/"), r.visit("/sale"), r.visit("/checkout"); !a.isIn() || b.isIn() || c.isIn() {
		t.Errorf("outside %v, new room %v, moved room %v; want true false false", a.isIn(), b.isIn(), c.isIn())
	}
	r.mustReload("rooms: []\n")
	if a := r.visit("/checkout"); !a.isIn() {
		t.Error("a removed room still holds visitors")
	}
}

// TestRefusedReloadLeavesNothingBehind reloads configurations that fail at each step; what
// was in force has to be, to the last setting.
func TestRefusedReloadLeavesNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	r := startServer(t, fmt.Sprintf(shopFor, 1)+"on_failure: queue_new\n")
	inside := r.visit("/")
	keys := filepath.Join(r.dir, "data", "keys.json")
	secret := mustRead(t, keys)
	bigger := listenAnywhere + fmt.Sprintf(shopFor, 7) + "on_failure: admit_new\n" +
		"  - {name: extra, host: \"*\", path: /extra, total_active_users: 1, new_users_per_minute: 1}\n"
	bigger = strings.Replace(bigger, "on_failure: admit_new\n", "", 1) + "on_failure: admit_new\n"
	for _, c := range []struct {
		name string
		make func(t *testing.T)
		want string
	}{
		{"syntax", func(*testing.T) { r.write(listenAnywhere + "rooms: [") }, "anteroom.yaml:"},
		{"a room's fault", func(*testing.T) { r.write(strings.Replace(bigger, ": 7,", ": -7,", 1)) }, "too small"},
		{"rooms that collide", func(*testing.T) { r.write(strings.Replace(bigger, "path: /extra", "path: /", 1)) }, "rooms[1]"},
		{"a template", func(*testing.T) {
			r.write(strings.Replace(bigger, "path: /extra", "path: /extra, custom_page_html: \"{{#open}}\"", 1))
		}, "rooms[1].custom_page_html"},
		{"key file gone", func(t *testing.T) {
			if err := os.Remove(keys); err != nil {
				t.Fatal(err)
			}
			r.write(bigger)
		}, "keys.json"},
		{"key file broken", func(t *testing.T) { mustWrite(t, keys, "{}"); r.write(bigger) }, "keys.json"},
		{"a sealed store", func(t *testing.T) {
			r.write(bigger)
			r.s.link.Close()
			r.broken = true
			r.visit("/") // a place that cannot be recorded any more
		}, "closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, old := r.s.Status(), r.s.Config()
			c.make(t)
			err := r.reload()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want something about %q", err, c.want)
			}
			if now := r.s.Config(); !reflect.DeepEqual(now.Rooms, old.Rooms) || now.OnFailure != "queue_new" {
				t.Errorf("the configuration in force changed: %+v", now.Rooms)
			}
			if now := r.s.Status(); len(now) != len(before) || now[0].TotalActiveUsers != 1 {
				t.Errorf("the rooms changed: %+v, before %+v", now, before)
			}
			extra := anteroom.Room{Name: "extra", Routes: []anteroom.Route{{Host: "*", Path: "/extra"}}}.WithDefaults()
			if r.s.node.Room(extra.ID) != nil {
				t.Error("the new room was opened and stayed")
			}
			if a := r.visit("/", inside.Cookies()...); !a.isIn() {
				t.Error("the session ended")
			}
			if a := r.admin("GET", "/metrics"); !strings.Contains(a.body, "anteroom_config_reload_success 0") {
				t.Error("anteroom_config_reload_success is not 0")
			}
			mustWrite(t, keys, string(secret))
		})
	}
}

// TestGatewayThatRefusesLeavesTheNodeAlone: the last step that can fail comes after rooms
// were prepared; they are given back.
func TestGatewayThatRefusesLeavesTheNodeAlone(t *testing.T) {
	r := startServer(t, fmt.Sprintf(shopFor, 1))
	r.write(listenAnywhere + fmt.Sprintf(shopFor, 7) + "  - {name: extra, host: \"*\", path: /extra, total_active_users: 1, new_users_per_minute: 1}\n")
	r.s.opts.Load = func() (config.Config, error) {
		cfg, err := config.Load(config.LoadOptions{File: r.file})
		cfg.Sites[0].Hosts = []string{"no host"} // which Load would have refused
		return cfg, err
	}
	if err := r.reload(); err == nil {
		t.Fatal("the gateway took a host that is none")
	}
	if got := r.room("shop").TotalActiveUsers; got != 1 || len(r.s.Status()) != 1 {
		t.Errorf("limit %d, %d rooms; want those of before", got, len(r.s.Status()))
	}
	extra := anteroom.Room{Name: "extra", Routes: []anteroom.Route{{Host: "*", Path: "/extra"}}}.WithDefaults()
	if r.s.node.Room(extra.ID) != nil {
		t.Error("the new room was opened and stayed")
	}
}

// TestBadConfigurationsAgainstARunningServer (F9): every bad file of config's tests.
func TestBadConfigurationsAgainstARunningServer(t *testing.T) {
	r := startServer(t, fmt.Sprintf(shopFor, 1))
	inside := r.visit("/")
	files, err := filepath.Glob("../config/testdata/bad/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		r.replace(r.file, string(mustRead(t, f)))
		a := r.admin("POST", "/-/reload")
		if a.StatusCode != 400 || !strings.Contains(a.body, "anteroom.yaml:") && !strings.Contains(a.body, "sites: ") {
			t.Errorf("%s: %d %q, want 400 with file and line", f, a.StatusCode, a.body)
		}
		if a := r.visit("/", inside.Cookies()...); !a.isIn() || r.room("shop") == nil {
			t.Fatalf("%s: the last good configuration is not in force", f)
		}
	}
	r.mustReload(fmt.Sprintf(shopFor, 3))
	if got := r.room("shop").TotalActiveUsers; got != 3 {
		t.Errorf("a good file after the bad ones: limit %d, want 3", got)
	}
}

func TestWhatNeedsARestartIsSaidAndLeftAlone(t *testing.T) {
	r := startServer(t, fmt.Sprintf(shopFor, 1))
	inside := r.visit("/")
	mark := r.log.mark()
	r.write(strings.Replace(listenAnywhere, "data: data", "data: elsewhere", 1) + fmt.Sprintf(shopFor, 2) +
		"log: {level: error}\ntimeouts: {idle: 9s}\nlimits: {connections_per_address: 0}\n")
	if err := r.reload(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"data", "log", "timeouts", "limits.connections_per_address"} {
		r.log.await(t, mark, "next restart\" key="+key)
	}
	if a := r.visit("/", inside.Cookies()...); !a.isIn() {
		t.Error("the keys of another data directory were taken: the session is gone")
	}
	if _, err := os.Stat(filepath.Join(r.dir, "elsewhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the other data directory: %v", err)
	}
	mark = r.log.mark()
	r.write(strings.Replace(listenAnywhere, "127.0.0.1:0", "127.0.0.1:1", 1) + fmt.Sprintf(shopFor, 2))
	if err := r.reload(); err != nil {
		t.Fatal(err)
	}
	r.log.await(t, mark, "next restart\" key=listen")
}
