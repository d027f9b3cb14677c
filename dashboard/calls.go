package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/api"
)

// credentialHeaders never go on to an API: the session alone says who calls.
var credentialHeaders = []string{"Authorization", "Cookie", "X-Auth-Email", "X-Auth-Key", "X-Auth-User-Service-Key"}

// call hands a request on to an API, in this process, with the token of the session.
func (d *Dashboard) call(w http.ResponseWriter, r *http.Request, path string) {
	if r.URL.RawPath != "" || !slices.ContainsFunc(d.APIs, func(prefix string) bool { return strings.HasPrefix(path, prefix+"/") }) {
		api.SendError(w, api.Refuse(http.StatusNotFound, api.CodeNoRoute, "No route for that URI"))
		return
	}
	s, _, err := d.who(r)
	if err != nil {
		api.SendError(w, err)
		return
	}
	out := r.Clone(r.Context())
	out.URL = &url.URL{Path: path, RawQuery: r.URL.RawQuery}
	out.RequestURI = out.URL.RequestURI()
	for _, name := range credentialHeaders {
		out.Header.Del(name)
	}
	out.Header.Set("Authorization", "Bearer "+s.secret)
	d.API.ServeHTTP(w, out)
}
