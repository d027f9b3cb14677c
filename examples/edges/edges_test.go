package edges

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/packed"
)

var update = flag.Bool("update", false, "write recipes.gz")

// What is in the binary are the files of this folder that recipes name.
func TestTheFilesArePacked(t *testing.T) {
	want := map[string]string{}
	for _, r := range Recipes {
		for _, name := range r.files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want[name] = string(text)
		}
	}
	if *update {
		if err := os.WriteFile("recipes.gz", packed.PackFiles(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !maps.Equal(files(), want) {
		t.Error("recipes.gz is stale: run go test ./examples/edges -update")
	}
}

var another = Installation{
	Host: "tickets.test", Anteroom: "anteroom.test:81", Verdicts: "verdicts.test:82", Application: "[::1]:83", Folder: "/srv/edge",
	Zone: "zone.test", Room: "ffffffffffffffffffffffffffffffff", Suffix: "vip", Pass: 50 * time.Second, Issuer: "https://issuer.test", Kid: "pass-ffffffff",
	Secrets: map[string]string{"edge-1": "secret-1", "edge-2": "secret-2"},
}

// For the installation of the examples, the recipes are the files of this folder, byte for byte.
func TestTheExamplesAreWhatIsWritten(t *testing.T) {
	for _, r := range Recipes {
		example := Example
		example.Folder = r.Folder
		written, err := r.Files(example)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range r.files {
			text, err := os.ReadFile(name)
			if err != nil || written[filepath.Base(name)] != string(text) {
				t.Errorf("%s: %v, or not as it stands here", name, err)
			}
		}
	}
}

// For another installation, nothing of the example is left, and each value stands where a recipe needs it.
func TestAnotherInstallationHasItsOwnValues(t *testing.T) {
	used := map[string]bool{}
	for _, r := range Recipes {
		written, err := r.Files(another)
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, text := range written {
			all.WriteString(text)
		}
		for _, of := range []string{Example.Host, Example.Anteroom, Example.Verdicts, Example.Application, Example.Room, Example.Kid, "1a2b3c4d", "/etc/haproxy/", "the-secret", "port_value: 8080", "port_value: 8082", "port_value: 3000"} {
			if strings.Contains(all.String(), of) {
				t.Errorf("%s: %s is left of the example", r.Name, of)
			}
		}
		for _, value := range []string{"[::1]:83", "address: ::1, port_value: 83}", "anteroom.test:81", "verdicts.test:82", "tickets.test", "-m str zone.test", "/srv/edge/",
			"-m int ge 25\n", "-m str https://issuer.test\n", "req.cook_cnt(__anteroom_pass_vip)", "[__cfwaitingroom_vip]", "[__anteroom_pass_vip]", "audiences: ['zone.test']", "zone `zone.test`", "issuer `https://issuer.test`", "suffix `vip`", "zone: 'zone.test'", "issuer: 'https://issuer.test'", "suffix: 'vip'", "'anteroom.tickets.test'", "{'edge-1': 'secret-1', 'edge-2': 'secret-2'}", "zone = 'zone.test'", another.Room, another.Kid} {
			used[value] = used[value] || strings.Contains(all.String(), value)
		}
	}
	for value, ok := range used {
		if !ok {
			t.Errorf("no recipe has %q", value)
		}
	}
}

func TestValuesThatWouldChangeAConfigurationAreRefused(t *testing.T) {
	haproxy, _ := Named("haproxy-pass")
	for name, change := range map[string]func(*Installation){
		"a line more":    func(i *Installation) { i.Issuer = "a\nserver two 192.0.2.1:80" },
		"a quote":        func(i *Installation) { i.Folder = `/srv/"x` },
		"a space":        func(i *Installation) { i.Host = "a b" },
		"nothing":        func(i *Installation) { i.Room = "" },
		"no port":        func(i *Installation) { i.Application = "shop.internal" },
		"a brace":        func(i *Installation) { i.Suffix = "}" },
		"a command":      func(i *Installation) { i.Zone = "a;b" },
		"an endless one": func(i *Installation) { i.Kid = strings.Repeat("k", 301) },
	} {
		i := another
		change(&i)
		if _, err := haproxy.Files(i); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if !slices.IsSortedFunc(Recipes, func(a, b Recipe) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the recipes are not in their order")
	}
	if _, ok := Named("apache"); ok {
		t.Error("there is a recipe for Apache")
	}
}
