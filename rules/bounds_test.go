package rules

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func compile(t testing.TB, expression string) *Expression {
	t.Helper()
	e, err := Compile(expression, sampleLists(t))
	if err != nil {
		t.Fatalf("%.200s: %v", expression, err)
	}
	return e
}

func problemOf(t *testing.T, expression string) anteroom.Fault {
	t.Helper()
	_, err := Compile(expression, nil)
	faults, ok := errors.AsType[anteroom.Faults](err)
	if !ok || len(faults) != 1 {
		t.Fatalf("%.60s: %v", expression, err)
	}
	return faults[0]
}

// TestHostileExpressionsAreRefused: what was made to exhaust the reader is refused, without
// memory to speak of.
func TestHostileExpressionsAreRefused(t *testing.T) {
	for _, c := range []struct{ name, expression, problem string }{
		{"a hundred thousand parentheses", strings.Repeat("(", 1e5), "has 100000 bytes"},
		{"a hundred thousand nots", strings.Repeat("not ", 1e5), "has 400000 bytes"},
		{"a megabyte of a set", "ip.src in {" + strings.Repeat("10.0.0.1 ", 1<<17) + "}", "bytes"},
		{"as many parentheses as fit", strings.Repeat("(", 4096), "nested too deeply"},
		{"as many nots as fit", strings.Repeat("not ", 1000) + "ssl", "nested too deeply"},
		{"as many signs as fit", strings.Repeat("!", 4000) + "ssl", "nested too deeply"},
		{"as many calls as fit", strings.Repeat("lower(", 600), "nested too deeply"},
		{"as many anys as fit", strings.Repeat("any(", 900), "nested too deeply"},
		{"as many nots in parentheses", strings.Repeat("!(", 2000), "nested too deeply"},
		{"as many conditions as fit", strings.TrimSuffix(strings.Repeat("ssl or ", 580), " or "), "too many parts"},
		{"as many values as fit", "cf.edge.server_port in {" + strings.Repeat("1 ", 2000) + "}", "too many values"},
		{"values in many sets", strings.TrimSuffix(strings.Repeat("cf.edge.server_port in {"+strings.Repeat("1 ", 350)+"} or ", 4), " or "), "too many values"},
		{"as many regexps as fit", strings.TrimSuffix(strings.Repeat(`http.host ~ "a" or `, 17), " or "), "too many regular"},
		{"a long regexp", `http.host ~ "` + strings.Repeat("a", 513) + `"`, "has 513 bytes"},
		{"a large regexp", `http.host ~ "` + strings.Repeat("(abc){1,1000}", 30) + `"`, "too large"},
		{"a regexp of repetitions", `http.host ~ "((abc){1,30}){1,30}"`, "too large"},
		{"a regexp of classes", `http.host ~ "` + strings.Repeat(`[\\pL\\pN]{900}`, 30) + `"`, "too large"},
		{"many arguments", "concat(" + strings.Repeat("1,", 33) + `1) eq ""`, "too many arguments"},
		{"a raw string of many signs", "http.host eq r" + strings.Repeat("#", 256) + `"a"`, "too many #"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f := problemOf(t, c.expression)
		runtime.ReadMemStats(&after)
		if !strings.Contains(f.Problem, c.problem) || f.Column < 1 || f.Column > anteroom.MaxExpressionLength+1 {
			t.Errorf("%s: %+v, want %q", c.name, f, c.problem)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("%s: took %d bytes", c.name, grown)
		}
	}
}

// TestLimitsAreReached: the largest expressions that are allowed compile.
func TestLimitsAreReached(t *testing.T) {
	compile(t, strings.Repeat("(", maxDepth)+"ssl"+strings.Repeat(")", maxDepth))
	compile(t, strings.Repeat("!", maxDepth)+"ssl")
	compile(t, strings.TrimSuffix(strings.Repeat("ssl or ", maxNodes/2), " or "))
	compile(t, "cf.edge.server_port in {"+strings.Repeat("1 ", maxSetItems)+"}")
	compile(t, strings.TrimSuffix(strings.Repeat(`http.host ~ "a" or `, maxRegexps), " or "))
	compile(t, `http.host ~ "`+strings.Repeat("a", maxRegexpLength)+`"`)
	compile(t, `http.host ~ "a{900}"`)
	compile(t, `http.host eq r`+strings.Repeat("#", 255)+`""`+strings.Repeat("#", 255))
}

// TestWorkIsBounded: no request makes an evaluation take much more than its budget, and one
// that used it up is no match, with a not before it neither. Steps are counted, so that the
// test says the same on every machine; BenchmarkNasty measures what a step takes.
func TestWorkIsBounded(t *testing.T) {
	const most = maxWork + 2*30<<10 // the last node may look at one whole header
	for _, c := range nasty {
		for _, expression := range []string{c.expression, "not (" + c.expression + ")"} {
			e := compile(t, expression)
			r := sample()
			c.make(r)
			matched := e.Match(r)
			if done := maxWork - r.work; done > most {
				t.Errorf("%s: %d steps", c.name, done)
			}
			if r.work < 0 && matched {
				t.Errorf("%s: matched with its budget used up", c.name)
			}
		}
	}
}

// TestNastyExpressionsUseTheirBudgetUp: the cases above would be no test if they were cheap.
func TestNastyExpressionsUseTheirBudgetUp(t *testing.T) {
	tired := 0
	for _, c := range nasty {
		r := sample()
		c.make(r)
		compile(t, c.expression).Match(r)
		if r.work < 0 {
			tired++
		}
	}
	if tired < 12 {
		t.Errorf("only %d of %d cases reach the bound", tired, len(nasty))
	}
}

// TestTextsFitTheirRegexps: the longest text that an evaluation can pay for is searched, a longer one
// is not, and what is before the literal with which the expression begins is not paid for.
func TestTextsFitTheirRegexps(t *testing.T) {
	const long = 28 << 10
	for _, c := range []struct {
		expression, agent string
		matches, tired    bool
	}{
		{`http.user_agent matches "[ab]{20}!"`, strings.Repeat("a", 4000) + "!", true, false},
		{`http.user_agent matches "[ab]{20}!"`, strings.Repeat("a", long) + "!", false, true},
		{`not http.user_agent matches "[ab]{20}!"`, strings.Repeat("a", long), false, true},
		{`http.user_agent matches "vip=[0-9]{20}(;|$)"`, strings.Repeat("a", long) + "vip=12345678901234567890", true, false},
		{`http.user_agent matches "vip=[0-9]{20}(;|$)"`, strings.Repeat("a", long), false, false},
		{`http.user_agent matches "vip=[0-9]{20}(;|$)"`, "vip=" + strings.Repeat("1", long), false, true},
	} {
		r := sample()
		r.Header["User-Agent"] = []string{c.agent}
		if got := compile(t, c.expression).Match(r); got != c.matches || r.Exhausted() != c.tired {
			t.Errorf("%s in %d bytes: %v, exhausted %v", c.expression, len(c.agent), got, r.Exhausted())
		}
	}
}

// TestBypassIsBounded: a hundred nasty rules share one budget with all readings of the path,
// and a rule that comes before it is used up still matches.
func TestBypassIsBounded(t *testing.T) {
	heavy := anteroom.Rule{Expression: nasty[1].expression}
	var rules []anteroom.Rule
	for range 100 {
		rules = append(rules, heavy)
	}
	s, err := NewSet(append(rules, anteroom.Rule{Expression: "ssl"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := sample()
	nasty[1].make(r)
	if s.Bypass(r) {
		t.Error("a rule matched after the budget of all rules")
	}
	if !r.Exhausted() {
		t.Error("nobody would hear of it")
	}
	light, err := NewSet([]anteroom.Rule{{Expression: "ssl"}}, nil)
	if err != nil || light.Bypass(r) {
		t.Errorf("another reading of the path begins with a new budget: %v", err)
	}
	r.Reset()
	if r.Exhausted() {
		t.Error("the next request is exhausted from the beginning")
	}
	r = sample()
	nasty[1].make(r)
	if s, err = NewSet([]anteroom.Rule{heavy, heavy, {Expression: "ssl"}}, nil); err != nil || !s.Bypass(r) {
		t.Errorf("two heavy rules kept a third from matching: %v", err)
	}
}

// TestCommonShapesAllocateNothing, once the request has been looked at.
func TestCommonShapesAllocateNothing(t *testing.T) {
	for _, c := range typical {
		e, r := compile(t, c.expression), sample()
		r.Path = strings.ToLower(r.Path)
		e.Match(r)
		least := math.Inf(1)
		for range 100 { // the race detector empties pools at random, that of regexp too
			least = min(least, testing.AllocsPerRun(1, func() { e.Match(r) }))
		}
		if least != 0 {
			t.Errorf("%s: %v allocations", c.name, least)
		}
	}
}

// TestRequestIsReusable: nothing of one request is seen by the next, and the memory is kept.
func TestRequestIsReusable(t *testing.T) {
	e := compile(t, `len(http.request.cookies["sso"]) >= 0 or http.request.uri eq "/a?b" or len(http.request.uri.args["size"]) >= 0 or ip.src.country eq "DE" or any(http.request.headers.names[*] eq "x-data")`)
	r := sample()
	if !e.Match(r) {
		t.Fatal("no match")
	}
	r.Reset()
	if e.Match(r) {
		t.Error("an empty request matched")
	}
	if r.Method != "" || r.Header != nil || r.Geo != nil {
		t.Errorf("fields are left: %+v", r)
	}
	from := sample()
	cookie := compile(t, `len(http.request.cookies["sso"]) >= 0 and len(http.request.uri.args["size"]) >= 0`)
	if n := testing.AllocsPerRun(100, func() {
		r.Reset()
		r.Header, r.Query = from.Header, from.Query
		if !cookie.Match(r) {
			t.Error("no match")
		}
	}); n > 1 { // the escaped name of one cookie
		t.Errorf("%v allocations", n)
	}
}

// TestExhaustionIsNotHandedOn: a rule that runs out of its budget while cookies, arguments or
// headers are read leaves the next rule the whole of them.
func TestExhaustionIsNotHandedOn(t *testing.T) {
	header := map[string][]string{"Cookie": {strings.Repeat("a=b; ", 100), "last=1"}, "X-Last": {"1"}}
	for _, expression := range []string{`len(http.request.cookies["last"]) >= 0`, `len(http.request.uri.args["last"]) >= 0`,
		`any(http.request.headers.names[*] eq "x-last")`, `ends_with(http.request.full_uri, "last=1")`} {
		e := compile(t, expression)
		for budget := range 1000 {
			r := &Request{Header: header, Query: strings.Repeat("a=b&", 100) + "last=1"}
			if e.within(r, budget) {
				break // enough for all of it
			}
			if !e.Match(r) {
				t.Fatalf("%s does not see everything after a rule that had %d steps", expression, budget)
			}
		}
	}
}

// TestPathMayChange: the gateway tests every reading of a path.
func TestPathMayChange(t *testing.T) {
	e := compile(t, `http.request.full_uri eq "https://shop.example.com/b?q" and http.request.uri eq "/b?q" and raw.http.request.uri eq "/a?q" and ends_with(raw.http.request.full_uri, "/a?q")`)
	r := &Request{Scheme: "https", Host: "shop.example.com", Path: "/a", RawPath: "/a", Query: "q"}
	if e.Match(r) {
		t.Error("/a matched")
	}
	if r.Path = "/b"; !e.Match(r) {
		t.Error("/b did not match")
	}
	if r.Path = "/a"; e.Match(r) {
		t.Error("/a matched afterwards")
	}
}

// TestUnknownVisitors: without an address or places, comparisons with them are false.
func TestUnknownVisitors(t *testing.T) {
	for _, expression := range []string{`ip.src eq 192.0.2.1`, `ip.src ne 192.0.2.1`, `ip.src in {0.0.0.0/0 ::/0}`, `ip.src.country ne "DE"`,
		`ip.src.asnum ne 1`, `ip.src.is_in_european_union`, `http.request.timestamp.sec ge 0`, `cf.edge.server_port ge 0`, `cidr6(ip.src, 8) ne ::1`} {
		if compile(t, expression).Match(&Request{}) {
			t.Errorf("%s matched nobody", expression)
		}
	}
	r := sample()
	r.Client = netip.MustParseAddr("::ffff:192.0.2.7")
	if !compile(t, `ip.src eq 192.0.2.7`).Match(r) {
		t.Error("an IPv4 address written as IPv6 is another one")
	}
	r = sample()
	r.Client, r.Geo = netip.MustParseAddr("2001:db8:a:b::7"), nil
	if !compile(t, `cidr(ip.src, 24, 48) eq 2001:db8:a:: and cidr6(ip.src, 32) in {2001:db8::} and ip.src in {2001:db8::/32} and not ip.src in {2001:db8::..2001:db8::ffff 0.0.0.0/0}`).Match(r) {
		t.Error("IPv6")
	}
}

// TestSets: all rules are checked, the enabled ones decide.
func TestSets(t *testing.T) {
	on := anteroom.Rule{Expression: `http.request.method eq "GET"`}
	off := on
	off.Disabled = true
	never := anteroom.Rule{Expression: `http.request.method eq "PUT"`}
	for _, c := range []struct {
		rules []anteroom.Rule
		want  bool
	}{
		{nil, false}, {[]anteroom.Rule{on}, true}, {[]anteroom.Rule{off}, false}, {[]anteroom.Rule{never, off}, false}, {[]anteroom.Rule{never, on}, true},
	} {
		s, err := NewSet(c.rules, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Bypass(sample()); got != c.want {
			t.Errorf("%v: %v", c.rules, got)
		}
	}
	if (*Set)(nil).Bypass(sample()) {
		t.Error("no set is a bypass")
	}
	_, err := NewSet([]anteroom.Rule{on, {Expression: "sll", Disabled: true}, {Expression: ""}}, nil)
	faults, _ := errors.AsType[anteroom.Faults](err)
	if len(faults) != 2 || faults[0].Path != "rules[1].expression" || faults[0].Column != 1 || faults[1].Path != "rules[2].expression" || anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("faults %v", err)
	}
}

// TestListFaults: each wrong list says where and why.
func TestListFaults(t *testing.T) {
	item := func(values ...string) []anteroom.ListItem {
		var items []anteroom.ListItem
		for _, v := range values {
			items = append(items, anteroom.ListItem{Value: v})
		}
		return items
	}
	_, err := NewLists([]anteroom.List{
		{Name: "Office", Kind: anteroom.ListOfIPs},
		{Name: "a", Kind: anteroom.ListOfIPs, Items: item("192.0.2.1", "192.0.2.0/33")},
		{Name: "a", Kind: anteroom.ListOfASNs, Items: item("AS1", "as2", "3", "AS")},
		{Name: "b", Kind: anteroom.ListOfHostnames, Items: item("example.com", "https://example.com")},
		{Name: "c", Kind: anteroom.ListOfHostnames, Items: item("*.*.example.com")},
		{Name: "d", Kind: "country"},
		{Name: "e", Kind: anteroom.ListOfIPs, Items: item("fe80::1%eth0")},
		{Name: "f", Kind: anteroom.ListOfIPs, Items: make([]anteroom.ListItem, MaxListItems+1)},
	})
	faults, _ := errors.AsType[anteroom.Faults](err)
	var paths []string
	for _, f := range faults {
		paths = append(paths, f.Path)
		if f.Problem == "" || f.Fix == "" {
			t.Errorf("%+v says too little", f)
		}
	}
	want := "lists[0].name lists[1].items[1].value lists[2].name lists[2].items[3].value lists[3].items[1].value lists[4].items[0].value lists[5].kind lists[6].items[0].value lists[7].items"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("faults at %s, want %s", got, want)
	}
	if _, err := NewLists(make([]anteroom.List, MaxLists+1)); err == nil {
		t.Error("too many lists are allowed")
	}
}

// TestHostLists: exact names, and domains below a star, in any case, with a dot at the end.
func TestHostLists(t *testing.T) {
	e := compile(t, `http.host in $shops`)
	for host, want := range map[string]bool{
		"a.example.com": true, "a.b.example.com": true, "A.EXAMPLE.COM.": true, "example.com": false, "badexample.com": false,
		"example.org": true, "EXAMPLE.org": true, "a.example.org": false, "": false, ".": false, ".example.com": true, strings.Repeat("a.", 5000): false,
	} {
		if got := e.Match(&Request{Host: host}); got != want {
			t.Errorf("%.40s: %v", host, got)
		}
	}
}

// TestColumnsCountBytes: the column is that of the byte, from 1, with letters of several
// bytes and lines before it.
func TestColumnsCountBytes(t *testing.T) {
	for expression, want := range map[string]int{
		`http.host eq "ä" or sll`:         22,
		"ssl or\n  sll":                   10,
		`sll`:                             1,
		`ssl and`:                         8,
		``:                                1,
		`   `:                             1,
		`http.host ~ "a\"[z-a]"`:          18,
		`http.host wildcard "\x61\x61**"`: 29,
		strings.Repeat("ssl or ", 100) + `http.hst`:   701,
		fmt.Sprintf("%-4097s", "ssl"):                 4097,
		`http.request.headers["a"][*] eq "b" and ssl`: 26,
	} {
		if f := problemOf(t, expression); f.Column != want {
			t.Errorf("%.60q: column %d (%s), want %d", expression, f.Column, f.Problem, want)
		}
	}
}

// TestMatchIsConcurrent: one expression, many requests at once.
func TestMatchIsConcurrent(t *testing.T) {
	e := compile(t, typical[len(typical)-1].expression)
	want := e.Match(sample())
	same := make(chan bool)
	for range 4 {
		go func() {
			ok := true
			for range 200 {
				ok = ok && e.Match(sample()) == want
			}
			same <- ok
		}()
	}
	for range 4 {
		if !<-same {
			t.Error("two equal requests were answered differently")
		}
	}
}

// TestMsecIsOfTheSecond, in any time zone.
func TestMsecIsOfTheSecond(t *testing.T) {
	r := &Request{Time: time.Date(2026, 1, 1, 1, 0, 0, 999_999_999, time.FixedZone("", 3600))}
	if !compile(t, `http.request.timestamp.msec eq 999 and http.request.timestamp.sec eq 1767225600`).Match(r) {
		t.Error("the moment is another one")
	}
}
