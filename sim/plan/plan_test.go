package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config/strict"
	"github.com/anteroom/anteroom/internal/field"
	"github.com/anteroom/anteroom/sim"
)

var update = flag.Bool("update", false, "rewrite the golden files and schema.json")

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
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; go test ./sim/plan -update rewrites it:\n%s", name, diff)
	}
}

func files(t testing.TB, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		all = append(all, names...)
	}
	return all
}

const (
	good     = "testdata/good/*.yaml"
	examples = "../../examples/simulate/*.yaml"
)

// show writes a scenario for people, with the first and last of many flows.
func show(sc sim.Scenario) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s) %v drain %v\n%+v\n", sc.Name, sc.About, sc.Length, sc.Drain, sc.Settings)
	for _, c := range sc.Changes {
		fmt.Fprintf(&b, "change %v: %+v\n", c.At, c.Settings)
	}
	for _, s := range sc.Sites {
		fmt.Fprintf(&b, "site %+v\n", s)
	}
	for i, f := range sc.Arrivals {
		if i < 12 || i == len(sc.Arrivals)-1 {
			fmt.Fprintf(&b, "flow %d %v-%v: %d, %g to %g a minute %q\n", i, f.From, f.To, f.Visitors, f.PerMinute, f.ToPerMinute, f.Site)
		}
	}
	fmt.Fprintf(&b, "visitors: %.0f\n%+v\n%+v\n", visitorsOf(sc), sc.Visitors, sc.Faults)
	return b.String()
}

func visitorsOf(sc sim.Scenario) float64 {
	total := 0.0
	for _, f := range sc.Arrivals {
		total += float64(f.Visitors) + (f.PerMinute+f.ToPerMinute)/2*(f.To-f.From).Minutes()
	}
	return total
}

func TestGoodPlans(t *testing.T) {
	for _, name := range files(t, good, examples) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			sc, err := Read(name)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/good/"+strings.TrimSuffix(filepath.Base(name), ".yaml")+".scenario", show(sc))
		})
	}
}

func TestBadPlansGiveEveryFault(t *testing.T) {
	for _, name := range files(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			sc, err := Read(name)
			if err == nil || anteroom.KindOf(err) != anteroom.Invalid || !reflect.DeepEqual(sc, sim.Scenario{}) {
				t.Fatalf("Read: %+v, %v; want faults", sc, err)
			}
			if strings.Contains(err.Error(), "root:") {
				t.Error("shows a file from elsewhere")
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".faults", err.Error()+"\n")
		})
	}
}

// A plan from somebody else must not show files from elsewhere in its faults.
func TestNothingOutsideTheFolderIsRead(t *testing.T) {
	folder := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.csv")
	plan := filepath.Join(folder, "plan.yaml")
	for name, text := range map[string]string{
		secret: "time,visitors\n10:00,secret\n",
		plan:   "{name: a, length: 1h, limits: {total_active_users: 1, new_users_per_minute: 1}, arrivals: [{csv: link.csv}, {csv: '" + secret + "'}]}",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(folder, "link.csv")); err != nil {
		t.Fatal(err)
	}
	_, err := Read(plan)
	if err == nil || strings.Contains(err.Error(), "\"secret\"") || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("got %v", err)
	}
}

// A pipe has no writer and would hold the command for ever.
func TestOnlyPlainFilesAreRead(t *testing.T) {
	var b builder
	b.Reader = strict.New("plan.yaml", nil)
	b.beside = func() (fs.FS, func(), error) {
		return fstest.MapFS{"pipe": {Mode: fs.ModeNamedPipe}, "large": {Data: make([]byte, maxCSVBytes+1)}}, func() {}, nil
	}
	for _, name := range []string{"pipe", "large", "gone"} {
		if _, ok := b.readBeside("arrivals["+name+"].csv", name); ok {
			t.Errorf("%s was read", name)
		}
	}
	const want = "arrivals[pipe].csv: \"pipe\" is not a plain file (name a CSV file or a log)\n" +
		"arrivals[large].csv: \"large\" has more than 64 MiB (sum the visitors by the minute)\n" +
		"arrivals[gone].csv: \"gone\" cannot be read: file does not exist (the path starts at the plan's folder and does not leave it)"
	if err := b.Err(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// Rows that scale to fractions of a visitor keep their total.
func TestPastSaleKeepsItsTotal(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("time,visitors\n")
	for i := range 1000 {
		fmt.Fprintf(&rows, "%d,1\n", i*3)
	}
	sc, err := readText("name: a\nlength: 1h\nlimits: {total_active_users: 1, new_users_per_minute: 1}\narrivals: [{csv: a.csv, scale: 0.25}]", rows.String())
	if err != nil {
		t.Fatal(err)
	}
	if n := visitorsOf(sc); n != 250 {
		t.Errorf("%v visitors, want 250", n)
	}
	for _, f := range sc.Arrivals {
		if f.To-f.From != 3*time.Second || f.Visitors != 1 {
			t.Fatalf("flow %+v, want one visitor in 3s", f)
		}
	}
}

// readText reads a plan and the file beside it, a.csv or a.log, from memory.
func readText(text, csv string) (sim.Scenario, error) {
	return read("plan.yaml",
		func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		func() (fs.FS, func(), error) {
			return fstest.MapFS{"a.csv": {Data: []byte(csv)}, "a.log": {Data: []byte(csv)}}, func() {}, nil
		})
}

// A field that a scenario gains must get a key here: the plan with every key sets them all.
func TestEveryMemberOfAScenarioHasAKey(t *testing.T) {
	sc, err := Read("testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		switch {
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		case v.Kind() == reflect.Slice:
			seen[path] = seen[path] || v.Len() > 0
			for i := range v.Len() {
				walk(v.Index(i), path)
			}
		default:
			seen[path] = seen[path] || !v.IsZero()
		}
	}
	walk(reflect.ValueOf(sc), "")
	// Members that follow from a room's events and controls, which a plan has none of, and what only worlds of sim/mutants have.
	made := []string{"Acts", "Quits", "LogsOut", "Drops", "Loses", "Slow", "RenewalEnded", "Prequeueing", "OriginDown", "InfiniteQueue", "Draining", "ResetAt", "Redeem", "Ahead", "Lanes"}
	for path, set := range seen {
		if slices.Contains(made, path[strings.LastIndexByte(path, '.')+1:]) {
			continue
		}
		// False or zero in this plan at its start, and set by its events.
		if !set && path != ".Settings.QueueAll" && path != ".Settings.Suspended" && path != ".Drain" {
			t.Errorf("sim.Scenario has %s, and no key of the plan sets it", path)
		}
	}
}

func TestTheTagsAreSound(t *testing.T) {
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for _, f := range field.Of(typ) {
			if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") {
				t.Errorf("%v %s: doc %q", typ, f.Key, f.Doc)
			}
			if f.IsSection() {
				walk(f.Type)
			} else if f.IsSections() {
				walk(f.Type.Elem())
			} else if w := f.Set(reflect.New(f.Type).Elem(), f.Default); f.HasDefault && w != nil {
				t.Errorf("%v %s: default %q: %s", typ, f.Key, f.Default, w.Problem)
			}
			for tag, bound := range map[string]any{"168h": sim.MaxLength, "5000000": sim.MaxVisitors} {
				if d, err := time.ParseDuration(f.Max); err == nil && tag == f.Max && d != bound {
					t.Errorf("%v %s: bound %s, want %v", typ, f.Key, f.Max, bound)
				} else if err != nil && tag == f.Max && fmt.Sprint(bound) != f.Max {
					t.Errorf("%v %s: bound %s, want %v", typ, f.Key, f.Max, bound)
				}
			}
		}
	}
	walk(reflect.TypeFor[document]())
}

// schemaCheck returns a function that holds a plan against the schema.
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
	golden(t, "schema.json", string(schema()))
	valid := schemaCheck(t)
	for _, name := range files(t, good, examples) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := valid(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"{}", "name: 5", "{name: a, length: 1, arrivals: []}", "{name: a, length: 1h, arrivals: [], visitors: {streams: 2}}",
		"{name: a, length: 1h, arrivals: [{at: -5m, visitors: 1}]}", "{name: a, length: 1h, arrivals: [], extra: 1}"} {
		if valid([]byte(text)) == nil {
			t.Errorf("the schema accepts %s", text)
		}
	}
}

// The end of docs/simulate.md is made from the structs in plan.go.
func TestDocumentedKeys(t *testing.T) {
	const page, line = "../../docs/simulate.md", "<!-- Below: made from the structs in sim/plan/plan.go by: go test ./sim/plan -update -->\n\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(text), line)
	if !ok {
		t.Fatalf("%s has no line %s", page, line)
	}
	golden(t, page, before+line+manual())
}

func TestManualNamesEveryKey(t *testing.T) {
	m := manual()
	for _, key := range []string{"`total_active_users`", "## `arrivals[]`", "## `visitors.browsing`", "| `leave_per_minute` | number, 0 to 1, or a percentage like 2% | `2%` |", "### Past sales"} {
		if !strings.Contains(m, key) {
			t.Errorf("the manual lacks %s", key)
		}
	}
}

func FuzzPlan(f *testing.F) {
	for _, name := range files(f, good, examples, "testdata/bad/*.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "time,visitors\n10:00,5\n")
	}
	for _, name := range files(f, "testdata/good/*.csv", "testdata/bad/*.csv") {
		rows, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("{name: a, length: 168h, limits: {total_active_users: 1, new_users_per_minute: 1}, arrivals: [{csv: a.csv}]}", string(rows))
	}
	for _, lines := range logs {
		f.Add("{name: a, length: 168h, limits: {total_active_users: 1, new_users_per_minute: 1}, arrivals: [{log: a.log, path: /shop}]}", lines)
	}
	valid := schemaCheck(f)
	f.Fuzz(func(t *testing.T, text, csv string) {
		sc, err := readText(text, csv)
		if err != nil {
			if faults, ok := errors.AsType[anteroom.Faults](err); !ok || len(faults) == 0 {
				t.Fatalf("%v is no list of faults", err)
			}
			return
		}
		if err := valid([]byte(text)); err != nil {
			t.Fatalf("the schema refuses what loads: %v\n%s", err, text)
		}
		check(t, sc)
	})
}

// check holds a scenario against what is written at its type.
func check(t *testing.T, sc sim.Scenario) {
	t.Helper()
	if sc.Length <= 0 || sc.Length > sim.MaxLength || len(sc.Arrivals) == 0 || len(sc.Arrivals) > sim.MaxFlows || visitorsOf(sc) > sim.MaxVisitors+1 {
		t.Fatalf("out of bounds: %s", show(sc))
	}
	names := map[string]int{"": sim.MaxNodes}
	for _, s := range sc.Sites {
		names[s.Name] = s.Nodes
	}
	for _, f := range sc.Arrivals {
		if _, known := names[f.Site]; f.From < 0 || f.To < f.From || f.To > sc.Length || f.Visitors < 0 || f.PerMinute < 0 || f.ToPerMinute < 0 || !known {
			t.Fatalf("flow %+v of %v", f, sc.Length)
		}
	}
	for i, c := range sc.Changes {
		if i > 0 && c.At <= sc.Changes[i-1].At || c.At > sc.Length || len(faultsOf(c.Settings)) > 0 || c.Settings.TotalActiveUsers < 1 {
			t.Fatalf("changes %+v", sc.Changes)
		}
	}
	for _, d := range sc.Faults.Deaths {
		if d.What != "coordinator" && (d.Site == "" || d.Node < 0 || d.Node >= names[d.Site]) {
			t.Fatalf("death %+v", d)
		}
	}
	if faults := faultsOf(sc.Settings); len(faults) > 0 || len(sc.Sites) == 0 {
		t.Fatalf("%v, %d sites", faults, len(sc.Sites))
	}
}

func faultsOf(s anteroom.Settings) anteroom.Faults {
	return anteroom.Room{Name: "plan", Settings: s}.Check()
}
