package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptOf makes a script of the console blocks of a page: each command, and below it what it
// shows, of which the page may leave lines out. What begins with "anteroom: " is an error.
func scriptOf(page string) (script string, commands int) {
	var b strings.Builder
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		lines := strings.Split(strings.TrimSuffix(block[1], "\n"), "\n")
		for i, line := range lines {
			command, ok := strings.CutPrefix(line, "$ anteroom ")
			if !ok {
				continue
			}
			commands++
			end := i + 1
			for end < len(lines) && !strings.HasPrefix(lines[end], "$ ") {
				end++
			}
			how := "exec"
			if end > i+1 && strings.HasPrefix(lines[i+1], "anteroom: ") {
				how = "fails"
			}
			b.WriteString(how + " anteroom " + strings.ReplaceAll(command, "http://127.0.0.1:8081", "$ANTEROOM_API") + "\n")
			for _, shown := range lines[i+1 : end] {
				where := "stdout"
				if how == "fails" {
					where = "stderr"
				}
				pattern := regexp.QuoteMeta(strings.TrimSpace(shown))
				pattern = regexp.MustCompile(` *… *`).ReplaceAllString(pattern, ".*")
				b.WriteString(where + " '^ *" + strings.ReplaceAll(pattern, "'", "''") + ".*$'\n")
			}
		}
	}
	return b.String(), commands
}

// TestThePageOfCommands runs the commands of docs/commands.md, in their order and against one
// server, and compares what they show.
func TestThePageOfCommands(t *testing.T) {
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	script, n := scriptOf(string(page))
	if n < 30 {
		t.Errorf("only %d commands were found", n)
	}
	runPage(t, script)
}

// TestCommandsOfTheReadMe runs what README.md shows of managing rooms.
func TestCommandsOfTheReadMe(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "\n## Change rooms while Anteroom runs\n")
	part, _, _ = strings.Cut(part, "\n## ")
	var script strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^    (anteroom [^#\n]*)`).FindAllStringSubmatch(strings.ReplaceAll(part, "\\\n", ""), -1) {
		how := "exec "
		if strings.Contains(m[1], "3f9a1-c07be") {
			how = "fails " // nobody has called
		}
		script.WriteString(how + m[1] + "\n")
	}
	if n := strings.Count(script.String(), "\n"); n != 4 {
		t.Errorf("%d commands were found:\n%s", n, script.String())
	}
	runPage(t, script.String())
}

// runPage runs a script against a server of its own.
func runPage(t *testing.T, script string) {
	t.Helper()
	t.Setenv("ANTEROOM_API_TOKEN", adminToken)
	origin := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(origin.Close)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "commands.txt"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			s, end, err := startAPI(env.WorkDir, "listen: 127.0.0.1:0\nadmin: localhost:0\ndata: data\nrooms: []\nsites: [{hosts: [shop.example.com, \"*\"], open_hosts: true, origins: \""+origin.URL+"\"}]\n")
			if err != nil {
				return err
			}
			env.Defer(end)
			env.Setenv("ANTEROOM_API", "http://"+s.Addresses().Admin)
			env.Setenv("ANTEROOM_API_TOKEN", adminToken)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"fails": func(ts *testscript.TestScript, neg bool, args []string) {
			if err := ts.Exec(args[0], args[1:]...); err == nil {
				ts.Fatalf("%v did not fail", args)
			}
		}},
	})
}

// What a page shows and nobody prints is noticed.
func TestAPageThatLiesIsNoticed(t *testing.T) {
	script, n := scriptOf("```console\n$ export X=1\n$ anteroom a 'b'\nfound … (it's)\n  indented\n$ anteroom c\nanteroom: no\n$ anteroom d\n```\n")
	want := "exec anteroom a 'b'\nstdout '^ *found.*\\(it''s\\).*$'\nstdout '^ *indented.*$'\nfails anteroom c\nstderr '^ *anteroom: no.*$'\nexec anteroom d\n"
	if script != want || n != 3 {
		t.Errorf("%d\n%s\nwant\n%s", n, script, want)
	}
}
