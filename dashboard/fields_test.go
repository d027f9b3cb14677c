package dashboard

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

var update = flag.Bool("update", false, "rewrite the page's table of fields")

const fieldsFile = "app/pages/model/fields.json"

// formField is what a form needs to ask for a field; fields.ts has the same.
type formField struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Label    string   `json:"label"`
	Help     string   `json:"help"`
	Group    string   `json:"group"`
	Min      *int     `json:"min,omitempty"`
	Max      *int     `json:"max,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Options  []string `json:"options,omitempty"`
	Required bool     `json:"required,omitempty"`
	Own      bool     `json:"own,omitempty"`
	Event    bool     `json:"event,omitempty"`
	Initial  any      `json:"initial,omitempty"`
}

// formFields are the fields of a room in the order of a form; help texts name other fields as the
// form does.
func formFields() []formField {
	var fields []field.Field
	for _, f := range anteroom.RoomFields() {
		if !f.IsSection() {
			fields = append(fields, f)
			continue
		}
		for _, inside := range field.Of(f.Type) {
			inside.Key = f.Key + "." + inside.Key
			fields = append(fields, inside)
		}
	}
	var names []string
	longestFirst := func(a, b field.Field) int { return len(b.Key) - len(a.Key) }
	for _, f := range slices.SortedFunc(slices.Values(fields), longestFirst) {
		if strings.Contains(f.Key, "_") {
			names = append(names, f.Key, "“"+f.Label+"”")
		}
	}
	inWords := strings.NewReplacer(names...)
	var out []formField
	for _, f := range fields {
		one := formField{Name: f.Key, Kind: kindOf(f), Label: f.Label, Help: inWords.Replace(f.Doc), Group: f.Group, Unit: f.Unit, Options: f.Enum,
			Required: f.Required, Own: f.Ours, Event: f.Event, Initial: f.JSONDefault()}
		if f.Minutes {
			one.Unit, one.Min, one.Max = "minutes", minutes(f.Min), minutes(f.Max)
		} else if one.Kind == "number" {
			one.Min, one.Max = number(f.Min), number(f.Max)
		}
		out = append(out, one)
	}
	groups := []string{"Room", "Limits", "Queue", "Lanes", "Lottery", "Accounts", "Origin", "Waiting page", "Cookie", "Other"}
	slices.SortStableFunc(out, func(a, b formField) int { return slices.Index(groups, a.Group) - slices.Index(groups, b.Group) })
	return out
}

func kindOf(f field.Field) string {
	switch {
	case f.Key == "custom_page_html":
		return "html"
	case f.Key == "lanes":
		return "lanes"
	case f.IsSections():
		return "routes"
	case f.IsList():
		return "choices"
	case len(f.Enum) > 0:
		return "choice"
	case f.Minutes:
		return "number"
	case f.IsDuration():
		return "duration"
	}
	return map[reflect.Kind]string{reflect.Bool: "bool", reflect.Int: "number", reflect.String: "text"}[f.Type.Kind()]
}

func number(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}

func minutes(text string) *int {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil
	}
	n := max(1, int(d/time.Minute))
	return &n
}

// The forms ask for what the table of settings has.
func TestTheFormsHaveTheTableOfSettings(t *testing.T) {
	for _, f := range formFields() {
		if f.Label == "" || f.Help == "" || f.Group == "" || f.Kind == "" {
			t.Errorf("%s lacks a label, a description, a group or a kind: %+v", f.Name, f)
		}
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(formFields()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(fieldsFile, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(fieldsFile); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the table says (%v): run go test ./dashboard -update, then scripts/dashboard", fieldsFile, err)
	}
}
