package rest

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the stories of testdata: a request, and what matters of its answer. Each
// file begins with an empty installation that has one room of the configuration file.
//
//	request [id=name] [as=token] [only=(member,…)] [if-match=(tag)]
//	METHOD /path/below/client/v4
//	{"body": …}
//	----
//	status, then the result (a list: a line for each), the errors, the messages, result_info
//
// The id that came first in the answer is called $name afterwards; one without a name is $. The
// account, and zone and room of the file, have names from the beginning. Further directives:
// "advance 1h", "token name=… permission=… [zone=…] [room=…]", "live room=…" with the
// numbers of the doors.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	hit := map[string]bool{}
	for _, file := range files {
		in := open(t, func(c *manage.Config) { c.Strict = strings.Contains(file, "strict") })
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, file, in.directive)
		})
		maps.Copy(hit, in.hit)
	}
	// The first thing that the checklist of the published API asks for.
	for _, r := range open(t).routes() {
		if !hit[r.Method+" "+r.Path] {
			t.Errorf("no story has a good answer of %s %s", r.Method, r.Path)
		}
	}
}

func (in *installation) directive(t *testing.T, d *datadriven.TestData) string {
	arg := func(name string) string {
		var s string
		d.MaybeScanArgs(t, name, &s)
		return in.unnamed(s)
	}
	switch d.Cmd {
	case "request":
		first, body, _ := strings.Cut(in.unnamed(d.Input), "\n")
		method, target, ok := strings.Cut(first, " ")
		if !ok {
			t.Fatalf("%s: no request: %s", d.Pos, first)
		}
		headers := []string{"If-Match", arg("if-match")}
		if as := arg("as"); as != "" {
			headers = append(headers, "Authorization", "Bearer "+in.tokens[as])
		}
		args := map[string][]string{}
		for _, a := range d.CmdArgs {
			args[a.Key] = a.Vals
		}
		a := in.ask(t, method, target, body, headers...)
		in.call(a.Text, args["id"])
		return in.named(shown(t, a, args["only"]))
	case "advance":
		span, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		in.advance(span)
		return in.clock().Format(time.RFC3339)
	case "token":
		admin, err := in.manage.Authenticate(adminToken, in.address(), "")
		if err != nil {
			t.Fatal(err)
		}
		grant := manage.Grant{Zone: anteroom.ZoneID(arg("zone")), Room: anteroom.RoomID(arg("room")), Permission: manage.Permission(arg("permission"))}
		_, secret, err := in.manage.CreateToken(context.Background(), admin, manage.TokenSpec{Name: arg("name"), Grants: []manage.Grant{grant}})
		if err != nil {
			t.Fatal(err)
		}
		in.tokens[arg("name")] = secret
		return ""
	case "live":
		var n struct {
			Mode            string
			Active, Waiting int
			Wait            string // forecast of a newcomer; empty for unknown
		}
		if err := json.Unmarshal([]byte(d.Input), &n, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		wait, err := time.ParseDuration(n.Wait)
		in.mu.Lock()
		in.live[anteroom.RoomID(arg("room"))] = anteroom.Status{Mode: n.Mode, ActiveUsers: n.Active, Waiting: n.Waiting, WaitOfNewcomer: wait, WaitKnown: err == nil}
		in.mu.Unlock()
		return ""
	}
	t.Fatalf("%s: no directive %q", d.Pos, d.Cmd)
	return ""
}

// shown writes an answer: status, result, errors, messages, result_info.
func shown(t *testing.T, a answer, only []string) string {
	var b strings.Builder
	fmt.Fprintln(&b, a.Status)
	line := func(prefix string, v any) {
		text, err := json.Marshal(v, json.Deterministic(true), jsontext.SpaceAfterComma(true), jsontext.SpaceAfterColon(true))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s%s\n", prefix, text)
	}
	part := func(v any) any {
		m, ok := v.(map[string]any)
		if !ok || only == nil {
			return v
		}
		m = maps.Clone(m)
		maps.DeleteFunc(m, func(name string, _ any) bool { return !slices.Contains(only, name) })
		return m
	}
	switch result := a.Result.(type) {
	case nil:
	case []any:
		b.WriteString("[\n")
		for _, one := range result {
			line("  ", part(one))
		}
		b.WriteString("]\n")
	default:
		line("", part(result))
	}
	for _, e := range a.Errors {
		fmt.Fprintf(&b, "%.0f %s", e["code"], e["message"])
		if source, ok := e["source"].(map[string]any); ok {
			fmt.Fprintf(&b, " @%s", source["pointer"])
		}
		b.WriteByte('\n')
	}
	for _, m := range a.Messages {
		line("message ", m)
	}
	if a.ResultInfo != nil {
		line("info ", a.ResultInfo)
	}
	if tag := a.Header.Get("ETag"); slices.Contains(only, "etag") {
		fmt.Fprintf(&b, "etag %s\n", regexp.MustCompile(`[0-9a-f]{16}`).ReplaceAllString(tag, "…"))
	}
	return b.String()
}
