package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom"
)

var update = flag.Bool("update", false, "rewrite the golden files, schema.json and docs/config.md")

// golden compares with a file, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; go test ./config -update rewrites it. Got:\n%s\nwant:\n%s", name, got, want)
	}
}

// collide stands for route.Check: a host and path in two rooms.
func collide(_ string, rooms []anteroom.Room) anteroom.Faults {
	var faults anteroom.Faults
	seen := make(map[anteroom.Route]bool)
	for i, r := range rooms {
		for j, rt := range r.Routes {
			if seen[anteroom.Route{Host: rt.Host}] {
				faults = append(faults, anteroom.Fault{Path: fmt.Sprintf("rooms[%d].routes[%d]", i, j), Problem: "the host is taken"})
			}
			seen[anteroom.Route{Host: rt.Host}] = true
		}
	}
	return faults
}

func files(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(names), err)
	}
	return names
}

func TestGoodFilesLoad(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			c, err := Load(LoadOptions{File: name})
			if err != nil {
				t.Fatal(err)
			}
			wd, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".effective", strings.ReplaceAll(c.Effective(), wd, ""))

			// What is effective is itself a file, and gives the same.
			again := filepath.Join(t.TempDir(), "again.yaml")
			if err := os.WriteFile(again, []byte(c.Effective()), 0o600); err != nil {
				t.Fatal(err)
			}
			c2, err := Load(LoadOptions{File: again})
			if err != nil {
				t.Fatalf("the effective configuration does not load: %v", err)
			}
			if len(c.Warnings) != len(c2.Warnings) {
				t.Errorf("warnings: %q, then %q", c.Warnings, c2.Warnings)
			}
			c.Warnings, c2.Warnings = nil, nil // their places differ
			if a, b := plain(t, c), plain(t, c2); !reflect.DeepEqual(a, b) {
				t.Errorf("the effective configuration gives another:\n%+v\n%+v", a, b)
			}
		})
	}
}

// plain is a configuration without what depends on where it was read from.
func plain(t *testing.T, c Config) Config {
	t.Helper()
	abs, err := filepath.Abs(c.Data)
	if err != nil {
		t.Fatal(err)
	}
	c.shown, c.File, c.Files, c.Data = nil, "", nil, abs
	if c.Cluster.SecretFile != "" {
		if c.Cluster.SecretFile, err = filepath.Abs(c.Cluster.SecretFile); err != nil {
			t.Fatal(err)
		}
	}
	c.AWS = slices.Clone(c.AWS)
	for i := range c.AWS {
		if name := &c.AWS[i].ClientSecretFile; *name != "" {
			if *name, err = filepath.Abs(*name); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.QueueIt = slices.Clone(c.QueueIt)
	for i := range c.QueueIt {
		name := &c.QueueIt[i].SecretFile
		if *name, err = filepath.Abs(*name); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestBadFilesGiveEveryFault(t *testing.T) {
	for _, name := range files(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			c, err := Load(LoadOptions{File: name, Check: collide})
			if err == nil || anteroom.KindOf(err) != anteroom.Invalid {
				t.Fatalf("Load: %v, want faults", err)
			}
			if faults, ok := errors.AsType[anteroom.Faults](err); !ok || len(faults) != strings.Count(err.Error(), "\n")+1 {
				t.Errorf("the error does not wrap its faults")
			}
			if len(c.Listen) != 0 || c.Rooms != nil {
				t.Errorf("a configuration came with the faults: %+v", c)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a password is shown")
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".faults", err.Error()+"\n")
		})
	}
}

func TestSchemaAndManualAreInStep(t *testing.T) {
	golden(t, "schema.json", string(schema()))
	golden(t, "../docs/config.md", manual())
}

// schemaCheck returns a function that holds a file against the schema.
func schemaCheck(t testing.TB) func(text []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(schemaURL)
	if err != nil {
		t.Fatal(err)
	}
	return func(text []byte) error {
		var tree any
		if err := yaml.Unmarshal(text, &tree); err != nil {
			return err
		}
		j, err := json.Marshal(tree)
		if err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
}

func TestSchemaAgrees(t *testing.T) {
	valid := schemaCheck(t)
	for _, name := range files(t, "testdata/good/*.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := valid(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c, err := Load(LoadOptions{File: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := valid([]byte(c.Effective())); err != nil {
			t.Errorf("%s, effective: %v", name, err)
		}
	}
	for _, text := range []string{
		"liste: x", "listen: 8080", "listen: [8080]", "log: {level: loud}", "log: text", "timeouts: {drain: 30}", "timeouts: {drain: 30 s}",
		"limits: {connections_per_address: -1}", "limits: {requests_in_flight: 1.5}", "proof: {enabled: 1}",
		"sites: {}", "sites: [{hosts: a}]", "sites: [{hosts: a, origins: b, extra: c}]", "rooms: [{name: a}]",
		"rooms: [{name: a, host: b, total_active_users: 1, new_users_per_minute: 1, queueing_status_code: 503}]",
		"rooms: [{name: a, host: b, total_active_users: 1, new_users_per_minute: 1, session_duration: 1.5}]",
		"rooms: [{name: a, host: b, total_active_users: 3000000000, new_users_per_minute: 1}]",
		"rooms: [{name: a, routes: [{path: /}], total_active_users: 1, new_users_per_minute: 1}]",
		"rooms: [{name: a, host: b, total_active_users: 1, new_users_per_minute: 1, default_template_language: en}]", "[]",
	} {
		if valid([]byte(text)) == nil {
			t.Errorf("the schema accepts %s", text)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, name := range append(files(f, "testdata/good/*.yaml"), files(f, "testdata/bad/*.yaml")...) {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	valid := schemaCheck(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Load(LoadOptions{File: "f.yaml", Open: only("f.yaml", text)})
		if err != nil {
			if faults, ok := errors.AsType[anteroom.Faults](err); !ok || len(faults) == 0 {
				t.Fatalf("%v is no list of faults", err)
			}
			return
		}
		for _, r := range c.Rooms {
			if faults := r.Check(); len(faults) > 0 {
				t.Fatalf("a room with faults was loaded: %v", faults)
			}
		}
		if err := valid(text); err != nil && strings.TrimSpace(string(text)) != "" {
			t.Fatalf("the schema refuses what loads: %v\n%s", err, text)
		}
		effective := c.Effective()
		c2, err := Load(LoadOptions{File: "f.yaml", Open: only("f.yaml", []byte(effective))})
		if err != nil {
			t.Fatalf("the effective configuration does not load: %v\n%s", err, effective)
		}
		if again := c2.Effective(); strings.ReplaceAll(again, " # default", "") != strings.ReplaceAll(effective, " # default", "") {
			t.Fatalf("the effective configuration gives another:\n%s\n%s", effective, again)
		}
	})
}
