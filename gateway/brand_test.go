package gateway

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

// The page names the site, its policy allows what it has, and the logo comes from an address that changes with it.
func TestBrandOfTheWaitingPage(t *testing.T) {
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) {
		r.Branding = anteroom.Branding{SiteName: "Dawn", Title: "Spring", LogoFile: "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", Color: "#00558c"}
	}))
	res, body := w.do("GET", "/", nil)
	m := regexp.MustCompile(`<header><img src="([^"]+)" alt=""><p dir="auto">Dawn</p><p dir="auto">Spring</p></header>`).FindStringSubmatch(body)
	if m == nil || !strings.Contains(body, "You are in line – Spring – Dawn – ") || !strings.Contains(body, "--deep:#00558c") {
		t.Fatalf("the page is not of the site:\n%s", body)
	}
	if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "img-src data: 'self'") {
		t.Errorf("policy: %s", policy)
	}
	logo, data := w.do("GET", m[1], nil)
	if logo.StatusCode != http.StatusOK || logo.Header.Get("Content-Type") != "image/gif" || !strings.HasPrefix(data, "GIF89a") ||
		logo.Header.Get("X-Content-Type-Options") != "nosniff" || logo.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || len(logo.Header["Set-Cookie"]) != 0 {
		t.Errorf("the logo: %s %v", logo.Status, logo.Header)
	}
	for _, path := range []string{m[1] + "0", m[1][:len(m[1])-1], page.LogoPath, page.LogoPath + string(w.room.ID) + "/", page.LogoPath + "x/y"} {
		if res, _ := w.do("GET", path, nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	if res, _ := w.do("POST", m[1], nil); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", res.Status)
	}
	if n := len(w.origin.requests()); n != 0 {
		t.Errorf("the origin saw %d requests", n)
	}
}
