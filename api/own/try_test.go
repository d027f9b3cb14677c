package own

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

func TestMessageToTheLine(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	var got struct{ Message *string }
	w.ok("PUT", room+"/message", `{"text":"  <b>Restocking</b> & \"back\" soon.  "}`, &got)
	if got.Message == nil || *got.Message != `<b>Restocking</b> & "back" soon.` {
		t.Errorf("it says %v", got.Message)
	}
	w.ok("POST", room+"/pause", "", &got)
	if got.Message == nil {
		t.Error("a pause takes the message away")
	}
	for body, want := range map[string]string{`{}`: "text: is missing", `{"text":"  "}`: "text: is missing", `{"text":5}`: "text: is a number",
		`{"text":"a\nb"}`: "text: has the unprintable character U+000A", `{"text":"` + strings.Repeat("x", 281) + `"}`: "text: has 281 characters"} {
		w.refused(adminToken, "PUT", room+"/message", body, 400, want)
	}
	w.ok("DELETE", room+"/message", "", &got)
	if got.Message != nil {
		t.Errorf("it still says %q", *got.Message)
	}
	var audit []struct {
		Operation string
		Changes   []struct{ Field, After string }
	}
	w.ok("GET", "/audit", "", &audit)
	if !slices.ContainsFunc(audit, func(r struct {
		Operation string
		Changes   []struct{ Field, After string }
	}) bool {
		return r.Operation == "room.controls" && len(r.Changes) == 1 && r.Changes[0].Field == "room.controls.message"
	}) {
		t.Errorf("the audit log does not tell: %+v", audit)
	}
}

// TestMessageOfARoomOfTheFile: it is no setting, as a pause is none.
func TestMessageOfARoomOfTheFile(t *testing.T) {
	w := newWorld(t)
	id := anteroom.RoomIDOf("fixed.example.org", "fixed")
	path := "/zones/" + string(anteroom.ZoneIDOf("fixed.example.org")) + "/rooms/" + string(id)
	w.ok("PUT", path+"/message", `{"text":"Hello."}`, nil)
	if got := w.manage.State().Room(id).Controls.Message; got != "Hello." {
		t.Errorf("it says %q", got)
	}
}

func TestTryRequests(t *testing.T) {
	w := newWorld(t)
	type result struct {
		Valid    bool
		Matches  *bool
		Wide     bool
		Error    *struct{ Position *int }
		Readings []struct{ Path string }
		Fields   map[string]any
	}
	try := func(body string) (got result) {
		t.Helper()
		w.ok("POST", "/rules/test", body, &got)
		return got
	}
	if got := try(`{"expression":"any(http.request.headers[\"x-a\"][*] eq \"2\") and http.host eq \"b.example.com\" and ip.src.asnum eq 64500",
		"request":{"headers":{"X-A":["1","2"],"host":"b.example.com"},"asn":64500}}`); !got.Valid || !*got.Matches {
		t.Errorf("headers: %+v", got)
	}
	if got := try(`{"expression":"ssl"}`); !*got.Matches || !got.Wide || got.Fields["http.request.uri.path"] != "/" {
		t.Errorf("an ordinary visit: %+v", got)
	}
	if got := try(`{"expression":"http.host eq \"ü\" and ip.scr eq 1"}`); got.Valid || got.Matches != nil || got.Error == nil || *got.Error.Position != 22 {
		t.Errorf("a mistake: %+v at %d", got, *got.Error.Position)
	}
	if got := try(`{"expression":"starts_with(http.request.uri.path, \"/a/\")","request":{"url":"http://x.example:8080/a/%2e%2e/b"}}`); *got.Matches || len(got.Readings) < 2 {
		t.Errorf("readings: %+v", got)
	}
	for body, want := range map[string]string{
		`{"expression":"ssl","request":{"url":"/x"}}`:                                          "/request/url",
		`{"expression":"ssl","request":{"url":"ftp://x/"}}`:                                    "/request/url",
		`{"expression":"ssl","request":{"ip":"here"}}`:                                         "/request/ip",
		`{"expression":"ssl","request":{"headers":{"a b":"c"}}}`:                               "is not the name of a header",
		`{"expression":"ssl","request":{"headers":{"a":5}}}`:                                   "is a number",
		`{"expression":"ssl","request":{"time":"now"}}`:                                        "/request/time",
		`{"expression":"ssl","request":{"asn":-1}}`:                                            "/request/asn",
		`{"expression":"ssl","request":{"cookie":"x"}}`:                                        "is not known here",
		`{"expression":"ssl","action":"block"}`:                                                "bypass_waiting_room",
		`{"expression":"ssl","request":{"url":"https://x/` + strings.Repeat("a", 9000) + `"}}`: "/request/url",
	} {
		w.refused(adminToken, "POST", "/rules/test", body, 400, want)
	}
	w.refused(adminToken, "POST", "/rules/test", `{"expression":"ssl","room":"0123456789abcdef0123456789abcdef"}`, 404, "")
}

func TestCheckTemplates(t *testing.T) {
	w := newWorld(t)
	type result struct {
		Valid         bool
		Faults        []struct{ Line, Column int }
		BytesGzip     int `json:"bytes_gzip"`
		Accessibility []struct{ Rule string }
		States        []string
		Languages     []string
		Preview       map[string]string
	}
	check := func(token, body string) (got result) {
		t.Helper()
		a := w.do(token, "POST", "/templates/check", body)
		if a.Status != 200 {
			t.Fatal(a.Text)
		}
		if err := json.Unmarshal(a.Result, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := check(adminToken, `{"html":"<p>{{ahead}}</p>\n<img src=x>","language":"de-DE"}`)
	if !got.Valid || got.BytesGzip == 0 || len(got.Accessibility) == 0 || got.Preview["held"] != "/preview/made?language=de-DE&state=held" ||
		!slices.Equal(got.Languages, anteroom.Languages) || !slices.Equal(slices.Sorted(maps.Keys(got.Preview)), slices.Sorted(slices.Values(page.StateNames()))) {
		t.Errorf("%+v", got)
	}
	if got := check(adminToken, `{"html":"a\n {{#x}}"}`); got.Valid || len(got.Faults) != 1 || got.Faults[0].Line != 2 || got.Faults[0].Column != 2 || got.Preview != nil || got.BytesGzip != 0 {
		t.Errorf("%+v", got)
	}
	if got := check(adminToken, `{"html":""}`); !got.Valid || got.BytesGzip < 2000 || len(got.Accessibility) > 0 || len(got.Preview) == 0 {
		t.Errorf("the built-in page: %+v", got)
	}
	w.refused(adminToken, "POST", "/templates/check", `{"html":"","language":"tlh"}`, 400, "language: is not known")

	var reader struct{ Secret string }
	w.ok("POST", "/tokens", `{"name":"reader","grants":[{"permission":"read"}]}`, &reader)
	if got := check(reader.Secret, `{"html":"x"}`); !got.Valid || got.Preview != nil {
		t.Errorf("who may only read has made a public page: %+v", got.Preview)
	}
}
