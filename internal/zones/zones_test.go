package zones

import (
	"archive/zip"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/packed"
)

var update = flag.Bool("update", false, "write zones.gz from the zones of the Go that runs the test")

// ofGo returns the zones of the Go that runs the test.
func ofGo(t *testing.T) map[string]string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		zone, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(zone) > 0 { // else a folder
			out[f.Name] = string(zone)
		}
	}
	return out
}

// Every zone that Go has is here, byte for byte.
func TestTheZonesAreThoseOfGo(t *testing.T) {
	want := ofGo(t)
	if *update {
		names := map[string][]string{} // of each zone
		for _, name := range slices.Sorted(maps.Keys(want)) {
			names[want[name]] = append(names[want[name]], name)
		}
		var list strings.Builder
		for _, zone := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return strings.Compare(names[a][0], names[b][0]) }) {
			fmt.Fprintf(&list, "%s %d\n%s", strings.Join(names[zone], " "), len(zone), zone)
		}
		if err := os.WriteFile("zones.gz", packed.Pack([]byte(list.String())), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(want) < 500 || !maps.Equal(all(), want) {
		t.Errorf("%d zones, Go has %d: run go test ./internal/zones -update", len(all()), len(want))
	}
}

// Package time asks for a zone that the machine does not know, here one that no machine knows.
func TestPackageTimeAsks(t *testing.T) {
	Use()
	all()["Anteroom/Kolkata"] = all()["Asia/Kolkata"]
	defer delete(all(), "Anteroom/Kolkata")
	place, err := time.LoadLocation("Anteroom/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	if got := time.Unix(0, 0).In(place).Format("15:04"); got != "05:30" {
		t.Errorf("midnight in London is %s there", got)
	}
	if _, err := time.LoadLocation("Nowhere/Land"); err == nil {
		t.Error("a zone that there is not is found")
	}
}
