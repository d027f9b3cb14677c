package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

// A visitor gives up the place by the page's form, which asks first. Those behind move up, and no copy of the cookie brings the place back.
func TestVisitorLeavesTheLine(t *testing.T) {
	inBooth(t, func(r *anteroom.Room) { r.SiteName = "Mug & Co" }, func(b booth) {
		first, second := b.guest(), b.guest()
		first.ask()
		b.pass(2 * time.Second) // it comes back, by which the place is proven
		first.ask()
		second.ask()
		b.pass(3 * time.Second)
		if p := first.ask(); p.Ahead != 0 || p.Admitted {
			t.Fatalf("the first: %+v", p)
		}
		if p := second.ask(); p.Ahead != 1 {
			t.Fatalf("the second: %+v", p)
		}

		asked := first.get("/cart?id=5&x=%3Cb&__anteroom=leave")
		for _, part := range []string{`<form method="post" action="?id=5&amp;x=%3Cb&amp;__anteroom=leave"`, `<a href="?id=5&amp;x=%3Cb">`, `>Leave the line</button>`, `Mug &amp; Co`} {
			if !strings.Contains(asked.Body.String(), part) {
				t.Errorf("no %s in\n%s", part, asked.Body)
			}
		}
		if policy := asked.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "form-action") || asked.Header().Get("Refresh") != "" {
			t.Errorf("policy %q, Refresh %q", policy, asked.Header().Get("Refresh"))
		}

		post := func(g *guest, target string, headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", target, nil)
			r.Header.Set("Cookie", g.cookie)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			rec := httptest.NewRecorder()
			b.h.ServeHTTP(rec, r)
			return rec
		}
		// Neither a page of another site nor a link can do it.
		for _, foreign := range [][]string{{}, {"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "null"}} {
			if rec := post(first, "/cart?__anteroom=leave", foreign...); rec.Code != http.StatusForbidden || rec.Header().Get("Set-Cookie") != "" {
				t.Errorf("%q: %d", foreign, rec.Code)
			}
		}
		if rec := post(first, "/cart?__anteroom=left", "Sec-Fetch-Site", "same-origin"); rec.Code != http.StatusMethodNotAllowed {
			t.Errorf("posted to the page that says so: %d", rec.Code)
		}
		if p := first.ask(); p.Ahead != 0 {
			t.Fatalf("the place is gone: %+v", p)
		}

		copied := first.cookie
		rec := post(first, "/cart?id=5&__anteroom=leave", "Sec-Fetch-Site", "same-origin")
		if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "?id=5&"+page.LeftQuery || !strings.Contains(rec.Header().Get("Set-Cookie"), "=; Max-Age=0; Path=/;") {
			t.Fatalf("%d %v", rec.Code, rec.Header())
		}
		first.cookie = ""
		said := first.get("/cart?id=5&" + page.LeftQuery)
		if !strings.Contains(said.Body.String(), `<h1>You have left the line</h1>`) || !strings.Contains(said.Body.String(), `<a href="?id=5" rel="nofollow">`) || said.Header().Get("Refresh") != "" || said.Header().Get("Set-Cookie") != "" {
			t.Errorf("%v\n%s", said.Header(), said.Body)
		}
		b.pass(3 * time.Second)
		if p := second.ask(); p.Ahead != 0 {
			t.Errorf("the second has not moved up: %+v", p)
		}
		thief := b.guest()
		thief.cookie = copied
		if p := thief.ask(); p.Ahead != 1 || p.Reason != anteroom.ReasonUsed.String() {
			t.Errorf("a copy of the cookie: %+v", p)
		}
		// Again, and by somebody without a place: nothing happens.
		if rec := post(first, "/?__anteroom=leave", "Sec-Fetch-Site", "same-origin"); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "?" {
			t.Errorf("without a place: %d %v", rec.Code, rec.Header())
		}
	})
}

// A session is not a place: its holder stays.
func TestLeavingEndsNoSession(t *testing.T) {
	inEmptyBooth(t, nil, func(b booth) {
		g := b.guest()
		if !g.ask().Admitted {
			t.Fatal("waits")
		}
		r := httptest.NewRequest("POST", "/?__anteroom=leave", nil)
		r.Header.Set("Cookie", g.cookie)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		rec := httptest.NewRecorder()
		b.h.ServeHTTP(rec, r)
		if rec.Code != http.StatusSeeOther || rec.Header().Get("Set-Cookie") != "" || !g.ask().Admitted {
			t.Errorf("%d %v", rec.Code, rec.Header())
		}
	})
}

// What the page loads on demand is the same for everybody, and kept by its address.
func TestWhatThePageLoadsOnDemand(t *testing.T) {
	w := newWorld(t, line)
	_, body := w.do("GET", "/", nil)
	_, folder, _ := strings.Cut(body, `"rest":"`)
	folder, _, _ = strings.Cut(folder, `"`)
	for name, kind := range map[string]string{folder + "/more.js": "text/javascript; charset=utf-8", folder + "/de-DE.json": "application/json", page.WorkerName: "text/javascript; charset=utf-8"} {
		res, _ := w.do("GET", page.MorePath+name, nil)
		lasting := strings.Contains(res.Header.Get("Cache-Control"), "immutable")
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != kind || lasting != (name != page.WorkerName) || len(res.Header["Set-Cookie"]) != 0 || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %s %v", name, res.Status, res.Header)
		}
		zipped, _ := w.do("GET", page.MorePath+name, header("Accept-Encoding", "gzip"))
		if zipped.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s is not compressed", name)
		}
	}
	for _, name := range []string{"", folder, folder + "/", "more.js", "x/more.js", folder + "/xx.json", folder + "/../worker.js"} {
		if res, _ := w.do("GET", page.MorePath+name, nil); res.StatusCode == http.StatusOK {
			t.Errorf("%q: %s", name, res.Status)
		}
	}
}
