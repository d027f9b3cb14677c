package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/page"
)

// The script of custom pages comes from us to visitors who wait, is the same for all of them, and says nothing of anybody.
func TestScriptOfCustomPages(t *testing.T) {
	w := newWorld(t, line)
	res, body := w.do("GET", page.LivePath+"de-DE.js", nil)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/javascript; charset=utf-8" || res.Header.Get("X-Content-Type-Options") != "nosniff" ||
		res.Header.Get("Cache-Control") != "public, max-age=300" || len(res.Header["Set-Cookie"]) != 0 || !strings.Contains(body, "Personen vor Ihnen") {
		t.Errorf("%s %v %.80s", res.Status, res.Header, body)
	}
	for _, path := range []string{page.LivePath, page.LivePath + "xx.js", page.LivePath + "de-DE"} {
		if res, _ := w.do("GET", path, nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	if res, _ := w.do("POST", page.LivePath+"de-DE.js", nil); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", res.Status)
	}
	if n := len(w.origin.requests()) + len(w.door.seen()); n != 0 {
		t.Errorf("origin and door saw %d requests", n)
	}
}
