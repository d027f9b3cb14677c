package rest

import (
	"encoding/json/v2"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// ourPart is docs/api.md up to where another package's part begins.
func ourPart(t *testing.T) string {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	part, _, _ := strings.Cut(string(text), "\n## Our own additions\n")
	return part
}

// TestTheExamplesOfThePage runs the commands of docs/api.md, in their order and in one
// installation, and compares the answers of those that show one.
func TestTheExamplesOfThePage(t *testing.T) {
	t.Parallel()
	in := open(t)
	in.live = nil // every room is at the doors
	sh := shell{in: in, vars: map[string]string{}}
	ran := 0
	for _, block := range regexp.MustCompile("(?ms)^```(sh|json)\n(.*?)^```$").FindAllStringSubmatch(ourPart(t), -1) {
		if block[1] == "sh" {
			for _, command := range commands(block[2]) {
				sh.run(t, command)
				ran++
			}
			continue
		}
		var want any
		if err := json.Unmarshal([]byte(block[2]), &want); err != nil {
			t.Fatalf("%v in\n%s", err, block[2])
		}
		var got any
		if err := json.Unmarshal([]byte(sh.last), &got); err != nil {
			t.Fatal(err)
		}
		if at := differs(want, got, ""); at != "" {
			t.Errorf("%s\nthe page says\n%s\nthe answer is\n%s", at, block[2], sh.last)
		}
	}
	if ran < 20 {
		t.Errorf("only %d commands were found", ran)
	}
}

// TestOperationsOfThePage: the page names every operation, and no other.
func TestOperationsOfThePage(t *testing.T) {
	t.Parallel()
	var want, got []string
	braces := regexp.MustCompile(`\{(\w)\w*\}`)
	for _, r := range open(t).routes() {
		path := braces.ReplaceAllString(strings.TrimPrefix(r.Path, Prefix), "{$1}")
		path = strings.NewReplacer("/waiting_rooms/{r}", "/waiting_rooms/{w}").Replace(path)
		want = append(want, r.Method+" "+path)
	}
	_, table, _ := strings.Cut(ourPart(t), "\n## Operations\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `(/[^`]*)` \\| (.*) \\|$").FindAllStringSubmatch(table, -1) {
		for _, method := range regexp.MustCompile(`\b[A-Z]{3,6}\b`).FindAllString(row[2], -1) {
			got = append(got, method+" "+row[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the page has\n%s\nthe API has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// differs returns where an answer is not what a page shows of it.
func differs(want, got any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return at + ": is no object"
		}
		for name, v := range want {
			one, ok := got[name]
			if !ok {
				return at + "/" + name + ": is missing"
			}
			if d := differs(v, one, at+"/"+name); d != "" {
				return d
			}
		}
		return ""
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return at + ": is another list"
		}
		for i := range want {
			if d := differs(want[i], got[i], fmt.Sprintf("%s/%d", at, i)); d != "" {
				return d
			}
		}
		return ""
	case string:
		if text, ok := got.(string); want == "…" && ok && text != "" {
			return ""
		}
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s: %v, not %v", at, got, want)
	}
	return ""
}

// commands splits a block of shell at the ends of lines that are outside of quotes.
func commands(block string) (out []string) {
	var one strings.Builder
	quote := rune(0)
	for _, c := range block {
		switch {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case c == '\n' && quote == 0:
			out = append(out, one.String())
			one.Reset()
			continue
		}
		one.WriteRune(c)
	}
	return out
}

// shell understands as much of a shell as the page needs: variables, quotes, and what curl and
// jq -r .a.b[0] do.
type shell struct {
	in   *installation
	vars map[string]string
	last string
}

var (
	assignment = regexp.MustCompile(`(?s)^(\w+)=\$\((.*) \| jq -r (\S+)\)$`)
	export     = regexp.MustCompile(`^export (\w+)=(\S+)$`)
	variable   = regexp.MustCompile(`\$\w+`)
)

func (s *shell) run(t *testing.T, command string) {
	t.Helper()
	if m := export.FindStringSubmatch(command); m != nil {
		s.vars[m[1]] = m[2]
		return
	}
	if m := assignment.FindStringSubmatch(command); m != nil {
		s.curl(t, m[2])
		s.vars[m[1]] = query(t, s.last, m[3])
		return
	}
	s.curl(t, command)
}

func (s *shell) curl(t *testing.T, command string) {
	t.Helper()
	words := s.words(command)
	if words[0] != "curl" {
		t.Fatalf("no curl: %s", command)
	}
	method, target, body := "", "", ""
	headers := []string{"Authorization", ""}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-s":
		case "-X":
			i++
			method = words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			headers = append(headers, name, value)
		case "--json":
			i++
			body = words[i]
		default:
			target = words[i]
		}
	}
	if method == "" {
		method = "GET"
		if body != "" {
			method = "POST"
		}
	}
	below, ok := strings.CutPrefix(target, "http://127.0.0.1:8081"+Prefix)
	if !ok {
		t.Fatalf("%s asks for %s", command, target)
	}
	s.last = s.in.ask(t, method, below, body, headers...).Text
}

// words splits a command and fills in variables.
func (s *shell) words(command string) (out []string) {
	for _, m := range regexp.MustCompile(`(?s)'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(command, -1) {
		if m[1] != "" {
			out = append(out, m[1])
			continue
		}
		out = append(out, variable.ReplaceAllStringFunc(m[2]+m[3], func(name string) string {
			if name == "$TOKEN" {
				return adminToken
			}
			return s.vars[name[1:]]
		}))
	}
	return out
}

// query returns a member of a JSON text, as jq -r does for paths like .a.b[0].c.
func query(t *testing.T, text, path string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	for _, step := range regexp.MustCompile(`\w+`).FindAllString(path, -1) {
		if i, err := strconv.Atoi(step); err == nil {
			list, _ := v.([]any)
			if i >= len(list) {
				t.Fatalf("no %s in %s", path, text)
			}
			v = list[i]
			continue
		}
		object, _ := v.(map[string]any)
		v = object[step]
	}
	out, ok := v.(string)
	if !ok {
		t.Fatalf("no %s in %s", path, text)
	}
	return out
}

// TestThePageHasOurMembers: what published clients do not know is described, in the words of the table.
func TestThePageHasOurMembers(t *testing.T) {
	t.Parallel()
	page := ourPart(t)
	for of, fields := range map[string][]field.Field{"room": anteroom.RoomFields(), "event": anteroom.EventFields()} {
		for _, f := range fields {
			if row := fmt.Sprintf("| `%s` | %s | %s |", f.Key, of, f.Doc); f.Ours && !strings.Contains(page, row) {
				t.Errorf("docs/api.md lacks the row %s", row)
			}
		}
	}
}
