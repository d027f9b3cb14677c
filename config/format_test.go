package config

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A formatted file keeps its comments and its meaning.
func TestFormat(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"in the order of the manual, indented by two",
			"rooms:\n- new_users_per_minute: 5\n  name: a   # the shop\n  total_active_users: 5\n  rules:\n      - name: tls\n        expression: ssl\nsites: [{origins: http://a, hosts: a}]\nlisten: :80\n",
			"listen: :80\nsites: [{hosts: a, origins: 'http://a'}]\n\nrooms:\n  - name: a # the shop\n    total_active_users: 5\n    new_users_per_minute: 5\n    rules:\n      - expression: ssl\n        name: tls\n"},
		{"comments stay with their keys",
			"# schema\n\n# about the log\nlog:\n    level: debug\n# about addresses\n# in two lines\nlisten: :80\n# the end\n",
			"# schema\n\n# about addresses\n# in two lines\nlisten: :80\n# the end\n\n# about the log\nlog:\n  level: debug\n"},
		{"aliases follow their anchors",
			"rooms:\n  - &a {name: a}\nsites:\n  - <<: *a\n",
			"rooms:\n  - &a {name: a}\n\nsites:\n  - <<: *a\n"},
		{"unknown keys are last", "lisen: 1\nadmin: x\n", "admin: x\nlisen: 1\n"},
		{"only comments", "# nothing\n", "# nothing\n"},
		{"text keeps its quotes", "data: '5'\nadmin: \"on\"\n", "admin: \"on\"\ndata: '5'\n"},
	} {
		got, err := Format([]byte(c.text))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
		again, err := Format(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s, again: %v\n%s", c.name, err, again)
		}
	}
	for _, text := range []string{"a: [", "a: 1\n b: 2\n"} {
		if got, err := Format([]byte(text)); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Every good file can be formatted and then gives the same configuration.
func TestFormattedFilesLoad(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Format(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again := filepath.Join(filepath.Dir(name), ".formatted.yaml") // beside the files that it names
		if err := os.WriteFile(again, got, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err1 := Load(LoadOptions{File: name})
		after, err2 := Load(LoadOptions{File: again})
		os.Remove(again)
		if err1 != nil || err2 != nil || before.Effective() != after.Effective() {
			t.Errorf("%s: %v, %v\n%s", name, err1, err2, got)
		}
	}
}

func FuzzFormat(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Format(text)
		if err != nil {
			return
		}
		var before, after yaml.Node
		if yaml.Unmarshal(text, &before) != nil {
			t.Fatalf("%q is not YAML and was formatted as %q", text, got)
		}
		if err := yaml.Unmarshal(got, &after); err != nil {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
		if again, err := Format(got); err == nil && string(again) != string(got) {
			t.Fatalf("%q became %q and then %q", text, got, again)
		}
	})
}
