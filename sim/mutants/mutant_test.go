package main

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/sim"
)

// TestListFits: every mutant of the list fits the code, and there are enough.
func TestListFits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := parse("mutants.txt", string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 16 {
		t.Errorf("%d mutants are too few", len(list))
	}
	for _, m := range list {
		if _, err := m.apply("../.."); err != nil {
			t.Error(err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const good = "# head\n\nmutant a\nbreaks It breaks.\nworlds drawn 1, calm 2\nfile x.go\n \tkept\n-\told\n+\tnew\nfile y.go\n-z\n"
	list, err := parse("list", good)
	if err != nil {
		t.Fatal(err)
	}
	if m := list[0]; len(list) != 1 || len(m.worlds) != 2 || len(m.edits) != 2 || m.edits[0].old != "\tkept\n\told\n" || m.edits[0].new != "\tkept\n\tnew\n" || m.edits[1].new != "" {
		t.Errorf("parsed %+v", list)
	}
	for name, bad := range map[string]string{
		"no name":      "breaks x\n",
		"twice":        good + good,
		"no worlds":    "mutant a\nbreaks x\nfile y.go\n-z\n",
		"no seed":      strings.Replace(good, "drawn 1", "drawn", 1),
		"no such":      strings.Replace(good, "drawn 1", "nowhere 1", 1),
		"no change":    strings.Replace(good, "+\tnew", "+\told", 1),
		"unknown line": strings.Replace(good, "breaks", "brakes", 1),
	} {
		if _, err := parse("list", bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestApply: text that is missing or occurs twice is an error, and edits of one file add up.
func TestApply(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/x.go", []byte("a\nb\nb\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := func(edits ...edit) (string, error) {
		m := mutant{name: "m", edits: edits}
		changed, err := m.apply(dir)
		return changed["x.go"], err
	}
	if got, err := one(edit{"x.go", "a\n", "A\n"}, edit{"x.go", "c\n", ""}); err != nil || got != "A\nb\nb\n" {
		t.Errorf("two edits give %q, %v", got, err)
	}
	for _, old := range []string{"b\n", "d\n"} {
		if _, err := one(edit{"x.go", old, ""}); err == nil {
			t.Errorf("replacing %q: no error", old)
		}
	}
}

func TestParseWorlds(t *testing.T) {
	t.Parallel()
	list, err := parseWorlds("drawn 3-5, nodes-cut 1")
	if err != nil || len(list) != 4 || list[2].String() != "drawn 5" || list[3].name != "nodes-cut" {
		t.Errorf("parsed %v, %v", list, err)
	}
	for _, bad := range []string{"drawn", "drawn 5-3", "drawn 1-x", "nowhere 1"} {
		if _, err := parseWorlds(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestJudge: a world that cannot be run is an error that names it, and not one in which every check held.
func TestJudge(t *testing.T) {
	small["impossible"] = func(sc *sim.Scenario, _ *rand.Rand) { sc.Visitors.Tabs = 2 }
	defer delete(small, "impossible")
	var out strings.Builder
	err := judge(t.Context(), &out, []worldID{{"impossible", 1}}, false)
	if err == nil || !strings.Contains(err.Error(), `"impossible 1"`) || !strings.Contains(err.Error(), "a share of 2") || out.Len() > 0 {
		t.Errorf("says %q, and fails with: %v", out.String(), err)
	}
}
