package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// terraformCorpus holds what Terraform's provider asked, and was answered, when it made,
// read, changed, imported and destroyed what testdata/terraform describes. The plan that
// followed each change was empty (terraform_run_test.go), and a plan is a function of the
// answers: as long as they are the same, it stays empty.
const terraformCorpus = "testdata/terraform/requests.json"

type corpus struct {
	Account   string
	Exchanges []exchange
}

// exchange is a request with its answer.
type exchange struct {
	Step, Method, Path string
	Body               json.RawMessage `json:",omitempty"`
	Status             int
	Result             json.RawMessage
}

func TestTerraformIsAnsweredAsWhenItsPlansWereEmpty(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(terraformCorpus)
	if err != nil {
		t.Fatal(err)
	}
	var recorded corpus
	if err := json.Unmarshal(b, &recorded); err != nil {
		t.Fatal(err)
	}
	o := startOffice(t)
	r := replay{ids: map[string]string{recorded.Account: o.account}, stamps: map[string]string{}}
	steps := map[string]int{}
	explicit := 0
	for _, x := range recorded.Exchanges {
		steps[x.Step]++
		explicit += strings.Count(string(x.Body), "null")
		status, e := o.call(x.Method, r.now(x.Path), r.now(string(x.Body)))
		if status != x.Status {
			t.Fatalf("%s: %s %s %s: %d %+v, recorded %d", x.Step, x.Method, x.Path, x.Body, status, e.Errors, x.Status)
		}
		var want, got any
		if err := json.Unmarshal(x.Result, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(e.Result, &got); err != nil {
			t.Fatal(err)
		}
		for _, fault := range r.differences("result", "", want, got) {
			t.Errorf("%s: %s %s: %s", x.Step, x.Method, x.Path, fault)
		}
		if x.Method == http.MethodPost || x.Method == http.MethodPut {
			r.echoed(t, x, got)
		}
		if t.Failed() {
			return
		}
	}
	for _, step := range []string{"create", "plan after creation", "change", "plan after the change", "import", "plan after the import", "destroy"} {
		if steps[step] == 0 {
			t.Errorf("the corpus has no step %q", step)
		}
	}
	if explicit == 0 {
		t.Error("the corpus has no explicit null")
	}
}

// replay translates what differs from run to run: ids and moments.
type replay struct {
	ids    map[string]string // recorded, now
	stamps map[string]string // of an object's field with a recorded value, now
}

var (
	anID   = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	wholly = regexp.MustCompile(`^[0-9a-f]{32}$`)
	stamps = []string{"created_on", "modified_on", "last_updated", "activated_on", "completed"}
)

// now puts today's ids into a recorded text.
func (r *replay) now(text string) string {
	return anID.ReplaceAllStringFunc(text, func(id string) string {
		if now, ok := r.ids[id]; ok {
			return now
		}
		return id
	})
}

// differences compares answers. An id stands for the recorded one from its first sight on; a
// moment may differ, and must stay what it was as long as the recorded one stayed.
func (r *replay) differences(path, owner string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v, recorded %v", path, got, want)}
		}
		if id, ok := have["id"].(string); ok {
			owner = id
		}
		var faults []string
		for _, key := range keys(want, have) {
			w, recorded := want[key]
			g, present := have[key]
			old, isText := w.(string)
			switch {
			case recorded != present:
				faults = append(faults, fmt.Sprintf("%s.%s is there: %v, recorded: %v", path, key, present, recorded))
			case slices.Contains(stamps, key) && isText:
				now, _ := g.(string)
				if _, err := time.Parse(time.RFC3339Nano, now); err != nil {
					faults = append(faults, fmt.Sprintf("%s.%s is %v, not a moment", path, key, g))
				}
				known := owner + key + old
				if before, seen := r.stamps[known]; seen && before != now {
					faults = append(faults, fmt.Sprintf("%s.%s changed from %s to %s, where it stayed in the recording", path, key, before, now))
				}
				r.stamps[known] = now
			default:
				faults = append(faults, r.differences(path+"."+key, owner, w, g)...)
			}
		}
		return faults
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return []string{fmt.Sprintf("%s is %v, recorded %v", path, got, want)}
		}
		var faults []string
		for i := range want {
			faults = append(faults, r.differences(fmt.Sprintf("%s[%d]", path, i), owner, want[i], have[i])...)
		}
		return faults
	case string:
		have, ok := got.(string)
		if ok && wholly.MatchString(want) && wholly.MatchString(have) {
			if _, seen := r.ids[want]; !seen {
				r.ids[want] = have
			}
			want = r.ids[want]
		}
		if !ok || r.now(want) != have {
			return []string{fmt.Sprintf("%s is %q, recorded %q", path, got, want)}
		}
		return nil
	default:
		if want != got {
			return []string{fmt.Sprintf("%s is %v, recorded %v", path, got, want)}
		}
		return nil
	}
}

// echoed checks that the members of a written object come back as they were written: this
// is what the provider compares.
func (r *replay) echoed(t *testing.T, x exchange, got any) {
	t.Helper()
	var sent map[string]any
	object, ok := got.(map[string]any)
	if json.Unmarshal([]byte(r.now(string(x.Body))), &sent) != nil || !ok {
		return // a list of rules or items
	}
	for key, value := range sent {
		if value == nil {
			continue
		}
		a, err := json.Marshal(value)
		b, err2 := json.Marshal(object[key])
		if _, nested := value.(map[string]any); nested || key == "additional_routes" {
			continue // completed by defaults
		}
		if err != nil || err2 != nil || string(a) != string(b) {
			t.Errorf("%s: %s %s: %s was sent as %s and came back as %s", x.Step, x.Method, x.Path, key, a, b)
		}
	}
}

// keys returns the keys of both, in order.
func keys(a, b map[string]any) []string {
	var out []string
	for k := range a {
		out = append(out, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
