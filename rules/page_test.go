package rules

import (
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestExamplesOfThePage runs each expression of docs/rules.md against the request that the
// page describes.
func TestExamplesOfThePage(t *testing.T) {
	lists, err := NewLists([]anteroom.List{
		{Name: "office", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "192.0.2.0/28"}}},
		{Name: "partners", Kind: anteroom.ListOfASNs, Items: []anteroom.ListItem{{Value: "AS64496"}}},
		{Name: "shops", Kind: anteroom.ListOfHostnames, Items: []anteroom.ListItem{{Value: "*.example.com"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Method: "GET", Version: "HTTP/1.1", Scheme: "https", Host: "shop.example.com", Path: "/api/v2/items.json", Query: "key=a1&size=42",
		Header: map[string][]string{"User-Agent": {"Monitor/7 (synthetic)"}, "Accept": {"text/html", "application/json"}, "Cookie": {"sso=1; lang=de"}},
		Client: netip.MustParseAddr("192.0.2.7"), Port: 443, SSL: true, Time: time.Date(2026, 11, 27, 7, 59, 0, 0, time.UTC),
		Geo: atlas{"192.0.2.7": {Country: "DE", ASN: 64496}}}
	signed := regexp.MustCompile("(?m)^```rules signed\n(.*)\n(.*)$").FindStringSubmatch(page(t))
	if signed == nil {
		t.Fatal("found no signed link")
	}
	path, query, _ := strings.Cut(signed[2], "?")
	visit := &Request{Path: path, Query: query, Time: r.Time}
	if e, err := Compile(signed[1], nil); err != nil || !e.Match(visit) {
		t.Errorf("%s does not let %s pass: %v", signed[1], signed[2], err)
	} else if visit.Path = "/other"; e.Match(visit) {
		t.Errorf("%s lets another path pass", signed[1])
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?ms)^```rules (match|no match)\n(.*?)^```").FindAllStringSubmatch(page(t), -1) {
		for line := range strings.Lines(block[2]) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			ran++
			e, err := Compile(line, lists)
			if err != nil {
				t.Errorf("%s: %v", line, err)
			} else if got := e.Match(r); got != (block[1] == "match") {
				t.Errorf("%s: match %v, and the page says otherwise", line, got)
			}
		}
	}
	if ran < 15 {
		t.Errorf("found only %d expressions", ran)
	}
}

// rowsUnder returns the first word in the first cell of each row below a heading.
func rowsUnder(t *testing.T, heading string) []string {
	t.Helper()
	_, section, ok := strings.Cut(page(t), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)").FindAllStringSubmatch(section, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// TestPageHasEveryName: one row for each field and each function, and no others.
func TestPageHasEveryName(t *testing.T) {
	if got, want := rowsUnder(t, "Fields"), slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) {
		t.Errorf("fields of the page %v\nof the code %v", got, want)
	}
	if got := rowsUnder(t, "Functions"); !slices.Equal(got, functionNames) {
		t.Errorf("functions of the page %v\nof the code %v", got, functionNames)
	}
}

// TestFieldsAreTested: testdata/fields.txt has an expression for each field.
func TestFieldsAreTested(t *testing.T) {
	b, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !regexp.MustCompile(`(?m)^(any\(|len\()?` + regexp.QuoteMeta(name) + `(\W|$)`).Match(b) {
			t.Errorf("%s is not tested", name)
		}
	}
}
