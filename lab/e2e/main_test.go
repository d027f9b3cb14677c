// Package e2e holds the end-to-end tests: the real binary before a real nginx, asked by a
// real Chromium, by plain HTTP clients, and by the published clients of the API that it
// speaks.
//
// Every test starts its own gateway (process_test.go) before its own nginx and demo shop
// (origin_test.go), on free ports of the loopback interface. One Chromium serves nearly all tests;
// each gets a browser context, which is a profile of its own (browser_test.go). Plain
// clients stand in visitor_test.go, a gateway whose rooms the API makes in api_test.go. The
// other files are stories, named after what they tell.
//
// ANTEROOM_BINARY names the binary; without it, the tests build one. nginx, chromium, its headless shell, python3 and curl
// are Debian's; npm fetches the accessibility checker and the SDK that package-lock.json pins.
// What Terraform's provider asks is replayed from testdata/terraform; scripts/terraform runs
// the provider itself, with the build tag terraform.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const binaryVariable = "ANTEROOM_BINARY"

func TestMain(m *testing.M) {
	if where := os.Getenv(appVariable); where != "" { // this process is an application, see origin_app_test.go
		fmt.Fprintln(os.Stderr, serveApp(where))
		os.Exit(1)
	}
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// The tests wait far more than they work, so that more of them run at once than there
	// are processors, unless somebody says otherwise.
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", "10"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if os.Getenv(binaryVariable) == "" {
		dir, err := os.MkdirTemp("", "anteroom-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary := filepath.Join(dir, "anteroom")
		build := exec.Command("go", "build", "-trimpath", "-o", binary, "./cmd/anteroom")
		build.Dir = filepath.Join("..", "..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "the binary does not build; %s can name another one\n%s", binaryVariable, out)
			return 1
		}
		os.Setenv(binaryVariable, binary)
	}
	defer closeBrowsers()
	return m.Run()
}

// find returns the path of a program that these tests need.
func find(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is missing: scripts/test install installs what the tests need", strings.Join(names, " or "))
}

// eventually waits until ok returns "" and fails with its last word when that takes longer
// than within.
func eventually(t *testing.T, within time.Duration, ok func() string) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	// Asking a browser costs more than what most of it waits for.
	for between := 25 * time.Millisecond; ; between = min(between*3/2, 150*time.Millisecond) {
		word := ok()
		if word == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("after %v: %s", within, word)
		case <-time.After(between):
		}
	}
}

// atOnce runs a subtest for each case, all at the same time and from now on: parallel subtests would begin behind all tests of the
// package, and the last ones would wait alone.
func atOnce[C any](t *testing.T, cases []C, name func(C) string, test func(t *testing.T, c C)) {
	t.Helper()
	var all sync.WaitGroup
	for _, c := range cases {
		all.Go(func() { t.Run(name(c), func(t *testing.T) { test(t, c) }) })
	}
	all.Wait()
}

// always holds for a while what ok says; "" is fine.
func always(t *testing.T, during time.Duration, ok func() string) {
	t.Helper()
	end := time.NewTimer(during)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if word := ok(); word != "" {
			t.Fatal(word)
		}
		select {
		case <-end.C:
			return
		case <-tick.C:
		}
	}
}
