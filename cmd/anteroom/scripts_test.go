package main

import (
	"bytes"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"github.com/rogpeppe/go-internal/testscript"
)

// patience bounds every wait.
const patience = 20 * time.Second

// TestMain makes this binary the command that scripts run. With the race detector, which makes the start of a process
// fifty times slower, they run a binary without it: the servers that they talk to are in this process and are watched.
func TestMain(m *testing.M) {
	if !raced {
		testscript.Main(m, map[string]func(){"anteroom": main})
		return
	}
	dir, err := os.MkdirTemp("", "anteroom")
	if err != nil {
		log.Fatal(err)
	}
	if err := buildInto(dir); err != nil {
		log.Fatal(err)
	}
	os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	testscript.Main(tidily{m, dir}, nil)
}

// buildInto compiles the program into a file or folder, as it is shipped, so that the race detector's tests need nothing compiled anew.
func buildInto(to string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// tidily removes a directory after the tests.
type tidily struct {
	*testing.M
	dir string
}

func (t tidily) Run() int {
	defer os.RemoveAll(t.dir)
	return t.M.Run()
}

// TestScripts runs testdata/*.txt: what somebody types, and what they see.
func TestScripts(t *testing.T) {
	countries := countriesFile(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			// An address that somebody else has.
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			env.Defer(func() { l.Close() })
			env.Setenv("TAKEN", l.Addr().String())
			return os.WriteFile(filepath.Join(env.WorkDir, "countries.mmdb"), countries, 0o644)
		},
		Condition: func(cond string) (bool, error) {
			if cond != "root" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return os.Getuid() == 0, nil // root may write everywhere
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "await": await, "screen": screen,
		},
	})
}

// countriesFile is a MaxMind DB file in which 81.2.69.0/24 is in Great Britain.
func countriesFile(t *testing.T) []byte {
	w, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-Country"})
	if err != nil {
		t.Fatal(err)
	}
	_, network, err := net.ParseCIDR("81.2.69.0/24")
	if err == nil {
		err = w.Insert(network, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("GB")}})
	}
	var b bytes.Buffer
	if err == nil {
		_, err = w.WriteTo(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// exits is "exits CODE COMMAND...": exec, with the exit code that is expected.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if e, ok := err.(interface{ ExitCode() int }); ok {
		code = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// await is "await FILE TEXT": until the file that a background command makes is there and holds the text.
func await(ts *testscript.TestScript, neg bool, args []string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && bytes.Contains(b, []byte(args[1])) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s has no %q: %s", args[0], args[1], b)
		}
	}
}

// screen is "screen COMMAND...": the help of a command fits on a screen of 40 lines.
func screen(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(ts.Exec("anteroom", append(args, "--help")...))
	if n := strings.Count(ts.ReadFile("stdout"), "\n"); n > 40 || n < 3 {
		ts.Fatalf("%d lines of help, want 3 to 40", n)
	}
}
