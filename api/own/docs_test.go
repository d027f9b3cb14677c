package own

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// ourPart is what docs/api.md says of this API.
func ourPart(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## Our own additions\n")
	return part
}

// TestTheExamplesOfThePage sends the requests of docs/api.md, in their order, and compares the
// answers.
func TestTheExamplesOfThePage(t *testing.T) {
	w := newWorld(t)
	room, event := w.shop()
	w.doors.shuffle = &anteroom.Shuffle{}
	ids := strings.NewReplacer("{zone}", strings.Split(room, "/")[2], "{room}", strings.Split(room, "/")[4], "{event}", strings.Split(event, "/")[6])
	var last answer
	n := 0
	for _, block := range regexp.MustCompile("(?ms)^```(http|json)\n(.*?)^```$").FindAllStringSubmatch(ourPart(t), -1) {
		if block[1] == "http" {
			line, body, _ := strings.Cut(ids.Replace(block[2]), "\n")
			method, target, _ := strings.Cut(line, " ")
			last = w.do(adminToken, method, strings.TrimPrefix(target, Prefix), strings.TrimSpace(body))
			n++
			continue
		}
		var want, got any
		if err := json.Unmarshal([]byte(block[2]), &want); err != nil {
			t.Fatalf("%v in\n%s", err, block[2])
		}
		if err := json.Unmarshal([]byte(last.Text), &got); err != nil {
			t.Fatal(err)
		}
		if at := differs(want, got, ""); at != "" {
			t.Errorf("%s\nthe page says\n%s\nthe answer is\n%s", at, block[2], last.Text)
		}
	}
	if n < 8 {
		t.Errorf("only %d requests were found", n)
	}
}

// differs returns where an answer is not what a page shows of it: "…" stands for any text, and
// members that the page leaves out are not compared.
func differs(want, got any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		members, _ := got.(map[string]any)
		for name, v := range want {
			one, ok := members[name]
			if !ok {
				return at + "/" + name + ": is missing"
			}
			if d := differs(v, one, at+"/"+name); d != "" {
				return d
			}
		}
		return ""
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return at + ": is another list"
		}
		for i := range want {
			if d := differs(want[i], list[i], fmt.Sprintf("%s/%d", at, i)); d != "" {
				return d
			}
		}
		return ""
	}
	if text, ok := got.(string); want == "…" && ok && text != "" || reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("%s: %v, not %v", at, got, want)
}

// TestThePageHasTheOperations: the table names every operation, and no other.
func TestThePageHasTheOperations(t *testing.T) {
	var want, got []string
	for _, o := range operations(t) {
		want = append(want, o.Method+" "+strings.TrimPrefix(o.Path, Prefix))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(/[^`]*)` \\| ([A-Z, ]*) \\|").FindAllStringSubmatch(ourPart(t), -1) {
		for method := range strings.SplitSeq(row[2], ", ") {
			got = append(got, method+" "+row[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the page has\n%s\nthe API has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
