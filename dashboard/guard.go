package dashboard

import (
	"mime"
	"net/http"

	"github.com/anteroom/anteroom/api"
)

// policy is what the page may load, ask and be put into. Previews are framed from here: the
// sandbox that they are answered with keeps them apart.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// protect sets the headers that every answer of the dashboard has.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Robots-Tag", "noindex")
}

// Header and its value are on every call of the page that changes something. A page of
// another origin cannot set it without asking first, and is refused then.
const (
	Header      = "X-Anteroom"
	HeaderValue = "dashboard"
)

// guard refuses what somebody else's page may have made a browser send. The cookie's SameSite
// and the listener's check of the origin stand before it; each of them would do.
func guard(r *http.Request) error {
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none": // no browser, our page, and what a person typed
	default:
		return refuse(http.StatusForbidden, "request from another website; only the dashboard's own pages may send this")
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if r.Header.Get(Header) != HeaderValue {
		return refuse(http.StatusForbidden, "a call that changes something needs the header "+Header+": "+HeaderValue)
	}
	if r.ContentLength == 0 {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "a body is application/json")
	}
	return nil
}

func refuse(status int, text string) error {
	return api.Refuse(status, api.CodeHeaders, "Invalid request headers: "+text)
}
