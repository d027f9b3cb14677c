package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

func TestThePageSpeaksTheVisitorsLanguage(t *testing.T) {
	inBooth(t, func(r *anteroom.Room) { r.DefaultTemplateLanguage = "fr-FR" }, func(b booth) {
		get := func(target string, headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("GET", target, nil)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			rec := httptest.NewRecorder()
			b.h.ServeHTTP(rec, r)
			return rec
		}
		for _, c := range []struct{ accept, cookie, lang string }{
			{"", "", "fr-FR"},
			{"de-AT,de;q=0.9,en;q=0.5", "", "de-DE"},
			{"sw", "", "fr-FR"},
			{"de", "__anteroom_language=ar-EG", "ar-EG"},
			{"de", "__anteroom_language=../../etc", "de-DE"},
		} {
			rec := get("/", "Accept-Language", c.accept, "Cookie", c.cookie)
			if !strings.Contains(rec.Body.String(), `<html lang="`+c.lang+`"`) {
				t.Errorf("%+v: %.60s", c, rec.Body)
			}
		}

		// The switch works without script, and keeps the address.
		from := "http://example.com/cart?id=5&x=%3Cb"
		rec := get("/cart?__anteroom=languages", "Referer", from)
		if link := `<a href="?id=5&amp;x=%3Cb&amp;__anteroom=language.de-DE" lang="de-DE">Deutsch</a>`; !strings.Contains(rec.Body.String(), link) {
			t.Errorf("no %s in\n%s", link, rec.Body)
		}
		rec = get("/cart?id=5&x=%3Cb&__anteroom=language.de-DE")
		if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "?id=5&x=%3Cb" {
			t.Errorf("%d, Location %q", rec.Code, rec.Header().Get("Location"))
		}
		if cookie := rec.Header().Get("Set-Cookie"); cookie != "__anteroom_language=de-DE; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax" {
			t.Errorf("Set-Cookie %q", cookie)
		}
		for _, bad := range []string{"/?__anteroom=language.xx", "/?__anteroom=language.", "/?__anteroom=language.de-DE%0d%0aX:1"} {
			if rec := get(bad); rec.Code != http.StatusBadRequest || rec.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s: %d, Set-Cookie %q", bad, rec.Code, rec.Header().Get("Set-Cookie"))
			}
		}
		// A Referer from elsewhere is not believed.
		if rec := get("/cart?__anteroom=language.de-DE", "Referer", "http://evil.example/cart?a=b"); rec.Header().Get("Location") != "?" {
			t.Errorf("Location %q", rec.Header().Get("Location"))
		}
	})
}
