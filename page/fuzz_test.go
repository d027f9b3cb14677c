package page

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/cbroglie/mustache"
)

// Whatever passes the checks renders within its bound, and as the library of mustache does it, which stays here to be
// compared with ([ADR 0039]).
//
// [ADR 0039]: https://github.com/anteroom/anteroom/blob/main/docs/adr/0039-nothing-is-called-by-name.md
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		"{{waitTime}}", "{{#queueAll}}{{{turnstile}}}{{/queueAll}}", "{{> /etc/passwd}}", "{{=<% %>=}}<%>x%>", "{{! {{ }}", "{{{a}}", "{{ {a} }}",
		"{{#a}}\n{{^a}}\r\n{{/a}}\n{{/a}}", "{{&a}}{{.}}{{a.b}}", "{{", "}}", "{{{", "{{{}}}", "{{\xff}}", "{{!}}}", "{{{a}}}}", "{{!a}}\n{{#b}}{{/b }}",
		" {{#message}} \n\t{{message}} \n  {{/message}}  ", "\r\n {{! x }}\r\n y{{^placeLost}}  \n{{/placeLost}}\n", "{{#waitTime}}\n{{#isPaused}}x{{/isPaused}}\n{{^isPaused}}{{lastUpdated}}{{/isPaused}}\n{{/waitTime}} \t",
		"a\n  {{#turnstile}}{{/turnstile}}  \nb", "{{{message}}}{{& message}}{{message}}", "x {{! a }}\n", "{{!a}}  {{!b}}\n",
	} {
		f.Add(seed)
	}
	v := View{Decision: States()[0].Decision}
	values := variables(v)
	values["message"] = "<b>\"it's\" & so on\x00</b>"
	values["turnstile"] = " \t\n"
	f.Fuzz(func(t *testing.T, page string) {
		parts, faults := parse(page)
		if len(faults) > 0 {
			for _, fault := range faults {
				if fault.Line < 1 || fault.Column < 1 || fault.Problem == "" {
					t.Errorf("%+v", fault)
				}
			}
			return
		}
		theirs, err := mustache.ParseStringPartials(page, &mustache.StaticProvider{})
		if err != nil {
			t.Fatalf("the checks let pass what does not parse: %v", err)
		}
		noPartials(t, theirs.Tags())
		want, err := theirs.Render(values)
		if err != nil {
			t.Fatal(err)
		}
		if got := string((&Template{parts}).render(nil, values)); got != want {
			t.Errorf("%q shows\n%q, the library shows\n%q", page, got, want)
		}
		tmpl, err := Compile(page)
		if err != nil {
			t.Fatal(err)
		}
		v.Template = tmpl
		out := AppendPage(nil, &v, false)
		if len(out) > len(page)+64*maxTemplateTags {
			t.Errorf("%d bytes from %d", len(out), len(page))
		}
	})
}

func noPartials(t *testing.T, tags []mustache.Tag) {
	for _, tag := range tags {
		switch tag.Type() {
		case mustache.Partial:
			t.Errorf("partial %q", tag.Name())
		case mustache.Section, mustache.InvertedSection:
			noPartials(t, tag.Tags())
		}
		if strings.ContainsAny(tag.Name(), ". ") {
			t.Errorf("name %q", tag.Name())
		}
	}
}

// No decision, however wrong, makes a page that breaks, JSON that does not parse, or
// compressed bytes that do not decode.
func FuzzDecision(f *testing.F) {
	f.Add(uint8(0), uint8(10), "fifo", uint8(1), 1234, 5000, int64(14*time.Minute), int64(0), int64(0), int64(20*time.Second), int64(1_800_000_000_000_000), int64(1_800_000_300_000_000), int64(0))
	f.Add(uint8(2), uint8(17), "reject", uint8(0), -1, -1, int64(-1), int64(1)<<62, int64(-1)<<62, int64(-5), int64(-1)<<62, int64(1)<<62, int64(1)<<60)
	f.Add(uint8(200), uint8(200), "\"</script>", uint8(255), 1<<31, 1<<31, int64(25*time.Hour), int64(time.Hour), int64(30*time.Hour), int64(1), int64(0), int64(0), int64(-1))
	f.Fuzz(func(t *testing.T, verdict, reason uint8, method string, flags uint8, ahead, waiting int, wait, low, high, refresh, at, kept, now int64) {
		known := anteroom.QueueingMethod("")
		for _, m := range anteroom.QueueingMethods {
			if string(m) == method {
				known = m
			}
		}
		d := anteroom.Decision{
			Verdict: anteroom.Verdict(verdict), Reason: anteroom.Reason(reason), Method: known,
			QueueAll: flags&1 != 0, AheadKnown: flags&2 != 0, WaitKnown: flags&4 != 0, QueueIsFull: flags&8 != 0, Stream: flags&16 != 0,
			Ahead: ahead, Waiting: waiting, WaitTime: time.Duration(wait), Wait25: time.Duration(low), Wait75: time.Duration(high),
			Refresh: time.Duration(refresh), At: anteroom.Time(at), KeptUntil: anteroom.Time(kept), Ticket: anteroom.Ticket{ID: anteroom.ID{flags}},
		}
		if flags&128 != 0 {
			d.InForce = &anteroom.InForce{
				Phase:      anteroom.Phase(reason % 3),
				Occurrence: anteroom.Occurrence{Start: d.At.Std().Add(time.Duration(low)), End: d.At.Std().Add(time.Duration(high))},
				Event:      &anteroom.Event{ShuffleAtStart: ahead%2 == 0},
			}
		}
		v := View{Decision: d, Language: anteroom.Languages[int(reason)%len(anteroom.Languages)], Returning: flags&32 != 0, Paused: flags&64 != 0}
		if now != 0 {
			v.Now = time.UnixMilli(now % (1 << 50))
		}
		for _, out := range [][]byte{AppendJSON(nil, &v), AppendStatus(nil, &v)} {
			if !json.Valid(out) {
				t.Errorf("not JSON: %s", out)
			}
		}
		if n := len(AppendStatus(nil, &v)); n > 350 {
			t.Errorf("a status of %d bytes", n)
		}
		plain := AppendPage(nil, &v, false)
		if !bytes.Equal(unzip(t, AppendPage(nil, &v, true)), plain) {
			t.Error("the compressed page differs")
		}
		if n := bytes.Count(plain, []byte("</script>")); n != 3 && n != 4 {
			t.Errorf("%d scripts", n)
		}
	})
}
