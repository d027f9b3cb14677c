package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

// A form that was sent from a page of the same site is on the waiting page, so that the browser can send
// it again. That of a foreign site never is: the origin would take it for its own.
func TestWhichFormsTheWaitingPageKeeps(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const kept = `<input type="hidden" name="product" value="mug &amp; cup"><input type="hidden" name="n" value="2">`
	own := "http://" + testHost
	for _, c := range []struct {
		name    string
		method  string
		body    string
		headers []string // after those of a browser; "-" takes one away
		room    func(*anteroom.Room)
		custom  string // page of the room
		unsent  bool
		kept    bool
	}{
		{name: "of the same site", unsent: true, kept: true},
		{name: "of a browser without Sec-Fetch-Site", headers: []string{"Sec-Fetch-Site", "-", "Sec-Fetch-Mode", "-"}, unsent: true, kept: true},
		{name: "without the setting", room: func(r *anteroom.Room) { r.ResubmitForms = false }, unsent: true},
		{name: "on a custom page", custom: "{{#isFormUnsent}}id=\"unsent\"{{/isFormUnsent}}", unsent: true},
		{name: "of a foreign site", headers: []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, unsent: true},
		{name: "of a foreign site, says a browser without Sec-Fetch-Site", headers: []string{"Sec-Fetch-Site", "-", "Origin", "https://evil.example"}, unsent: true},
		{name: "of another host of the site", headers: []string{"Sec-Fetch-Site", "same-site"}, unsent: true},
		{name: "of the site over another scheme", headers: []string{"Sec-Fetch-Site", "-", "Origin", "https://" + testHost}, unsent: true},
		{name: "of a page that hides where it is from", headers: []string{"Origin", "null"}, unsent: true},
		{name: "of who says nothing", headers: []string{"Sec-Fetch-Site", "-", "Origin", "-"}, unsent: true},
		{name: "typed by the visitor", headers: []string{"Sec-Fetch-Site", "none", "Origin", "-"}, unsent: true},
		{name: "with a file", headers: []string{"Content-Type", "multipart/form-data; boundary=x"}, unsent: true},
		{name: "as JSON", headers: []string{"Content-Type", "application/json"}, unsent: true},
		{name: "in another encoding", headers: []string{"Content-Type", "application/x-www-form-urlencoded; charset=latin1"}, unsent: true},
		{name: "of UTF-8", headers: []string{"Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"}, unsent: true, kept: true},
		{name: "that is no UTF-8", body: "a=%ff", unsent: true},
		{name: "with a malformed escape", body: "a=%zz", unsent: true},
		{name: "with a NUL", body: "a=%00", unsent: true},
		{name: "with lines that no browser ends so", body: "a=x%0Ay", unsent: true},
		{name: "with a field without a name", body: "=x", unsent: true},
		{name: "that is no list of fields", body: "a", unsent: true},
		{name: "too long", body: "a=" + strings.Repeat("x", maxFormBytes), unsent: true},
		{name: "of too many fields", body: strings.TrimSuffix(strings.Repeat("a=b&", maxFormFields+1), "&"), unsent: true},
		{name: "empty", body: "-", unsent: true},
		{name: "by script", headers: []string{"Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}},
		{name: "by PUT", method: "PUT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, line, withRoom(func(r *anteroom.Room) {
				r.ResubmitForms = true
				if c.room != nil {
					c.room(r)
				}
			}), func(_ *world, cfg *Config) {
				if c.custom != "" {
					cfg.Templates = map[anteroom.RoomID]*page.Template{cfg.Rooms[0].WithDefaults().ID: compiled(t, c.custom)}
				}
			})
			body := c.body
			if body == "" {
				body = "product=mug+%26+cup&n=2"
			}
			method := "POST"
			if c.method != "" {
				method = c.method
			}
			res, shown := w.do(method, "/cart", func(r *http.Request) {
				if body != "-" {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
				}
				header("Content-Type", "application/x-www-form-urlencoded", "Origin", own, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Referer", own+"/mug?x=1")(r)
				for i := 0; i < len(c.headers); i += 2 {
					if r.Header.Set(c.headers[i], c.headers[i+1]); c.headers[i+1] == "-" {
						r.Header.Del(c.headers[i])
					}
				}
			})
			if res.StatusCode != http.StatusTooManyRequests {
				t.Errorf("status %d", res.StatusCode)
			}
			if got := strings.Contains(shown, `id="unsent"`); got != c.unsent {
				t.Errorf("says that the form was not sent: %v\n%s", got, shown)
			}
			if got := strings.Contains(shown, `<form id="form" method="post" hidden>`); got != c.kept {
				t.Errorf("the page keeps the form: %v", got)
			}
			if c.kept && !strings.Contains(shown, kept) {
				t.Errorf("the fields are not as sent: %s", shown)
			}
			if got, want := res.Header.Get("Refresh"), map[bool]string{true: "20; url=/mug?x=1", false: "20"}[c.unsent]; got != want {
				t.Errorf("Refresh: %q, want %q", got, want)
			}
			if n := len(w.origin.requests()); n != 0 {
				t.Errorf("the origin saw %d requests", n)
			}
		})
	}
}

// Without script the page goes back to the one that the form stood on, if the room covers it, and
// nowhere else.
func TestWhereAFormGoesBackTo(t *testing.T) {
	own := "http://" + testHost
	for referer, want := range map[string]string{
		own + "/mug": "20; url=/mug",
		own + "/mug?a=b&__anteroom=hold&c=%22%0d%0a": "20; url=/mug?a=b&c=%22%0d%0a",
		own + "/a;b%20c":              "20; url=/a;b%20c",
		own + "//evil.example/x":      "20",
		own + "/\\evil.example":       "20; url=/%5Cevil.example",
		"http://evil.example/mug":     "20",
		"http://open.example.com/mug": "20", // no room
		own:                           "20",
		"":                            "20",
		"javascript:alert(1)":         "20",
	} {
		w := newWorld(t, line)
		res, _ := w.do("POST", "/cart", header("Referer", referer))
		if got := res.Header.Get("Refresh"); got != want {
			t.Errorf("from %q: Refresh %q, want %q", referer, got, want)
		}
	}
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.Routes = []anteroom.Route{{Host: testHost, Path: "/cart"}} }))
	if res, _ := w.do("POST", "/cart", header("Referer", own+"/mug")); res.Header.Get("Refresh") != "20" {
		t.Errorf("from outside the room: Refresh %q", res.Header.Get("Refresh"))
	}
}
