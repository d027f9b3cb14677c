package page

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

var update = flag.Bool("update", false, "write the golden pages")

var sharedParts = regexp.MustCompile(`(?s)(<style>|<script>|"rest":").*?(</style>|</script>|",)`)

// golden compares with testdata/name, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it with go test -update and git diff\n%s", file, got)
	}
}

// Every state in English, and what scripts and directions change in some other languages.
// Style and script, the same in all, are left out.
func TestGoldenPages(t *testing.T) {
	for _, language := range []string{"en-US", "de-DE", "ar-EG", "ja-JP", "hi-IN"} {
		for _, s := range States() {
			if language != "en-US" && !strings.Contains("line far draw closed prequeue shuffle drained", s.Name) {
				continue
			}
			page := string(AppendPage(nil, &View{Decision: s.Decision, Language: language, Returning: s.Name != "first"}, false))
			golden(t, "builtin/"+language+"/"+s.Name+".html", sharedParts.ReplaceAllString(page, "$1…$2"))
		}
	}
	page := string(AppendPage(nil, &View{Decision: States()[0].Decision, Paused: true}, false))
	golden(t, "builtin/en-US/paused.html", sharedParts.ReplaceAllString(page, "$1…$2"))
	page = string(AppendPage(nil, &View{Decision: States()[0].Decision, Unsent: true}, false))
	golden(t, "builtin/en-US/unsent.html", sharedParts.ReplaceAllString(page, "$1…$2"))
	page = string(AppendPage(nil, &View{Decision: States()[0].Decision, Unsent: true, Form: []Field{{"name", `"><script>alert(1)</script>`}, {"submit", "a & b"}}}, false))
	golden(t, "builtin/en-US/form.html", sharedParts.ReplaceAllString(page, "$1…$2"))
}

// What monitors, scripts, readers and robots look for, and what must never be there.
func TestEveryPageHasItsParts(t *testing.T) {
	views(func(name string, v View) {
		page := string(AppendPage(nil, &v, false))
		for _, part := range []string{
			`<!doctype html><html lang="`, `<meta charset="utf-8">`, ` – Waiting Room powered by Anteroom</title>`,
			`<div id="wrapper">`, ` id="last-updated" datetime="`, `<footer class="waitingrooms-text"`, `role="status"`, `role="alert"`,
			`<meta name="robots" content="noindex">`, `<main>`, `<h1>`, `</body></html>`,
		} {
			if n := strings.Count(page, part); n != 1 {
				t.Errorf("%s: %d of %s", name, n, part)
			}
		}
		if at := strings.Index(page, "charset"); at > 1000 {
			t.Errorf("%s: the charset stands at byte %d; browsers look at the first 1024", name, at)
		}
		const namespace = "http://www.w3.org/2000/svg" // of the icon; nobody fetches it
		if strings.Contains(strings.Replace(page, namespace, "", 1), "://") {
			t.Errorf("%s: refers to another place", name)
		}
		if shown, _, _ := strings.Cut(page, `id="words"`); strings.Contains(shown, "{}") {
			t.Errorf("%s: a place for a value is empty", name)
		}
		isClosed := v.Decision.Verdict == anteroom.Refuse && v.Decision.Refresh == 0 || v.Decision.Ticket.Accepted()
		f := v.Decision.InForce
		early := f != nil && f.Phase == anteroom.Prequeueing
		for part, want := range map[string]bool{
			`id="waitTime"`:     !isClosed && !early,
			`id="prequeueTime"`: early,
			`id="check"`:        !isClosed && f != nil && f.Event != nil && f.Event.ShuffleAtStart,
			`id="tell"`:         !isClosed,
			holdQuery:           !isClosed && !v.Paused,
			`dir="rtl"`:         rightToLeft[v.Language],
		} {
			if strings.Contains(page, part) != want {
				t.Errorf("%s: has %s: %v, want %v", name, part, !want, want)
			}
		}
	})
}

// The wait in words, and at the head of the title where it is a number.
func TestWaitInWords(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		name        string
		d           anteroom.Decision
		wait, title string
	}{
		{"not known", anteroom.Decision{}, "Not known yet", "You are in line – "},
		{"at once", anteroom.Decision{WaitKnown: true}, "Less than 1 min", "(1 min) You are in line – "},
		{"minutes", anteroom.Decision{WaitKnown: true, WaitTime: 14 * time.Minute}, "12–18 min", "(18 min) You are in line – "},
		{"at least", anteroom.Decision{Wait25: 59 * time.Second}, "At least 1 min", "You are in line – "},
		{"at least something", anteroom.Decision{Wait25: 40 * time.Second}, "Not known yet", "You are in line – "},
		{"at least hours", anteroom.Decision{Wait25: 7 * time.Hour}, "At least 6 h", "You are in line – "},
		{"at most", anteroom.Decision{Wait25: 10 * time.Second, Wait75: 90 * time.Second}, "Less than 2 min", "(2 min) You are in line – "},
		{"between", anteroom.Decision{Wait25: 2 * time.Minute, Wait75: 5 * time.Minute}, "1–5 min", "(5 min) You are in line – "},
		{"at most days", anteroom.Decision{Wait25: 2 * time.Hour, Wait75: 40 * time.Hour}, "At least 1:30 h", "You are in line – "},
		{"around an hour", anteroom.Decision{WaitKnown: true, WaitTime: 55 * time.Minute}, "0:45–1:15 h", "(1:15 h) You are in line – "},
		{"hours", anteroom.Decision{WaitKnown: true, WaitTime: 200 * time.Minute}, "3–4 h", "(4 h) You are in line – "},
		{"nearly a day", anteroom.Decision{WaitKnown: true, WaitTime: day - time.Minute}, "21–24 h", "(24 h) You are in line – "},
		{"two days", anteroom.Decision{WaitKnown: true, WaitTime: 2 * day}, "More than a day", "You are in line – "},
		{"full", anteroom.Decision{WaitKnown: true, WaitTime: 2 * day, QueueIsFull: true}, "More than a day", "The line is very long – "},
		{"no place", anteroom.Decision{Reason: anteroom.ReasonLineFull, QueueIsFull: true}, "Not known yet", "The line is full – "},
		{"a draw", anteroom.Decision{Method: anteroom.Random, WaitKnown: true, WaitTime: 10 * time.Minute, Wait25: 5 * time.Minute, Wait75: 15 * time.Minute},
			"5–15 min", "(15 min) You are in line – "},
		{"a sure draw", anteroom.Decision{Method: anteroom.Random, WaitKnown: true, WaitTime: time.Minute, Wait25: time.Minute, Wait75: time.Minute},
			"1 min", "(1 min) You are in line – "},
		{"an event", anteroom.Decision{InForce: &anteroom.InForce{Phase: anteroom.Started, Event: &anteroom.Event{}}, WaitKnown: true, WaitTime: 14 * time.Minute},
			"12–18 min", "(18 min) You are in line – "},
		{"a draw over days", anteroom.Decision{Method: anteroom.Random, WaitKnown: true, WaitTime: day, Wait25: 2 * day, Wait75: 3 * day},
			"More than a day", "You are in line – "},
	} {
		page := string(AppendPage(nil, &View{Decision: c.d}, false))
		if !strings.Contains(page, `id="waitTime">`+c.wait+`</dd>`) {
			t.Errorf("%s: the wait is not %q: %s", c.name, c.wait, printed("").appendWait(nil, &View{Decision: c.d}))
		}
		if !strings.Contains(page, "<title>"+c.title) {
			t.Errorf("%s: the title does not begin with %q: %s", c.name, c.title, printed("").appendTitle(nil, &View{Decision: c.d}))
		}
	}
}

func TestUnknownLanguageIsEnglish(t *testing.T) {
	v := View{Decision: States()[0].Decision, Language: "en-US"}
	want := string(AppendPage(nil, &v, false))
	for _, language := range []string{"", "und", "xx-YY", "../en-US", "EN-us"} {
		v.Language = language
		if string(AppendPage(nil, &v, false)) != want {
			t.Errorf("%q is not shown in English", language)
		}
	}
}

func TestPolicyAllowsTheStyleAndTheScript(t *testing.T) {
	policy := ContentSecurityPolicy(View{})
	page := string(AppendPage(nil, &View{Decision: States()[0].Decision}, false))
	allowed := 0
	for _, s := range States() {
		rest := string(AppendPage(nil, &View{Decision: s.Decision}, false))
		for _, tag := range []string{"style", "script"} {
			_, source, _ := strings.Cut(policy, tag+"-src ")
			source, _, _ = strings.Cut(source, ";")
			for {
				_, body, ok := strings.Cut(rest, "<"+tag+">")
				if !ok {
					break
				}
				body, rest, _ = strings.Cut(body, "</"+tag+">")
				sum := sha256.Sum256([]byte(body))
				if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(source, want) {
					t.Errorf("%s: %s lacks %s", s.Name, policy, want)
				}
				allowed++
			}
		}
	}
	if most := strings.Count(policy, "sha256-"); allowed <= most {
		t.Errorf("%d styles and scripts looked at, %d allowed", allowed, most)
	}
	if strings.Contains(page, " style=") || strings.Contains(page, " onclick=") {
		t.Error("an attribute that the policy forbids")
	}
	if ContentSecurityPolicy(View{Template: &Template{}}) != "" {
		t.Error("an operator's page must not get our policy")
	}
}

func TestRefreshSeconds(t *testing.T) {
	d := States()[0].Decision
	if n := RefreshSeconds(&View{Decision: d}); n != 20 {
		t.Errorf("%d, want 20", n)
	}
	if n := RefreshSeconds(&View{Decision: d, Paused: true}); n != 0 {
		t.Errorf("paused: %d, want 0", n)
	}
	d.Refresh = 1
	if n := RefreshSeconds(&View{Decision: d}); n != 1 {
		t.Errorf("a nanosecond: %d, want 1", n)
	}
}

// The data that the script starts from is what it gets later.
func TestThePageCarriesItsStatus(t *testing.T) {
	v := View{Decision: States()[0].Decision}
	_, rest, _ := strings.Cut(string(AppendPage(nil, &v, false)), `id="status">`)
	data, _, _ := strings.Cut(rest, "</script>")
	if data != string(AppendStatus(nil, &v)) {
		t.Errorf("%s", data)
	}
	_, rest, _ = strings.Cut(string(AppendPage(nil, &v, false)), `id="words">`)
	data, _, _ = strings.Cut(rest, "</script>")
	if !json.Valid([]byte(data)) {
		t.Errorf("not JSON: %s", data)
	}
}

// Text has to stand out from its ground by 4.5 to 1 (WCAG 2.2, 1.4.3), in both schemes.
func TestContrast(t *testing.T) {
	roots := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(bare("asset/page.css"), -1)
	if len(roots) != 2 {
		t.Fatalf("%d colour schemes, want 2", len(roots))
	}
	for i, root := range roots {
		colour := map[string]string{}
		for _, pair := range strings.Split(root[1], ";") {
			name, value, _ := strings.Cut(pair, ":")
			colour[name] = value
		}
		for _, pair := range [][2]string{{"ink", "card"}, {"soft", "card"}, {"soft", "bg"}, {"ink", "note"}, {"deep", "card"}} {
			a, b := luminance(t, colour["--"+pair[0]]), luminance(t, colour["--"+pair[1]])
			if ratio := (max(a, b) + .05) / (min(a, b) + .05); ratio < 4.5 {
				t.Errorf("scheme %d: %s on %s has %.2f to 1", i, pair[0], pair[1], ratio)
			}
		}
	}
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
	if err != nil || len(colour) != 7 {
		t.Fatalf("%q is not a colour", colour)
	}
	channel := func(c uint64) float64 {
		v := float64(c&255) / 255
		if v <= .04045 {
			return v / 12.92
		}
		return math.Pow((v+.055)/1.055, 2.4)
	}
	return .2126*channel(n>>16) + .7152*channel(n>>8) + .0722*channel(n)
}

// Every reason that can stand behind a page leads to one that renders.
func TestEveryReasonRenders(t *testing.T) {
	for _, reason := range anteroom.Reasons() {
		for _, verdict := range []anteroom.Verdict{anteroom.Wait, anteroom.Admit, anteroom.Refuse, anteroom.Pass} {
			page := string(AppendPage(nil, &View{Decision: anteroom.Decision{Verdict: verdict, Reason: reason}}, false))
			if want := fmt.Sprintf(`"reason":"%s"`, reason); !strings.Contains(page, want) {
				t.Errorf("%v: the page lacks %s", reason, want)
			}
		}
	}
}
