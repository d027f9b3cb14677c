package gateway

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

// Bounds of a form that the waiting page keeps for the visitor.
const (
	maxFormBytes  = 16 << 10 // of the body as it arrives
	maxFormFields = 100
)

// unsent sees to a form whose request waits: the page says that it was not sent, goes back to the
// page that the form stood on, and in rooms with resubmit_forms holds the fields, so that the
// browser can send them once the visitor is admitted. Nothing of it is kept here.
//
// It returns where a page without script goes back to, empty for its own address.
func (x *exchange) unsent(view *page.View) (back string) {
	r := x.r
	if r.Method != http.MethodPost || !isNavigation(r) {
		return ""
	}
	view.Unsent = true
	if x.room.ResubmitForms && view.Template == nil && x.decision.Verdict == anteroom.Wait && x.isFromHere() {
		if form, ok := x.form(); ok {
			view.Form = form
		}
	}
	return x.cameFrom()
}

// isFromHere reports whether a page of the same origin has sent the request, by what browsers say and
// pages cannot change. A form of a foreign site must not become one of ours: cookies that are SameSite
// would come along, and the origin would take the request for its own.
func (x *exchange) isFromHere() bool {
	sites, origins := x.r.Header["Sec-Fetch-Site"], x.r.Header["Origin"]
	if len(sites)+len(origins) == 0 || len(sites) > 1 || len(origins) > 1 {
		return false
	}
	scheme := "http://"
	if x.https {
		scheme = "https://"
	}
	return (len(sites) == 0 || sites[0] == "same-origin") && (len(origins) == 0 || origins[0] == scheme+x.r.Host)
}

// form reads the fields of a form; false when they are not all text within the bounds, or when a browser
// would not send the same again.
func (x *exchange) form() (fields []page.Field, ok bool) {
	r := x.r
	kind, params, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	params = strings.TrimSpace(params)
	if !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") || params != "" && !strings.EqualFold(params, "charset=utf-8") ||
		len(r.Header["Content-Encoding"]) > 0 || r.ContentLength <= 0 || r.ContentLength > maxFormBytes || r.Body == nil {
		return nil, false
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil { // within bodyTime
		return nil, false
	}
	for pair := range strings.SplitSeq(string(body), "&") {
		name, value, set := strings.Cut(pair, "=")
		f := page.Field{Name: decoded(name), Value: decoded(value)}
		if !set || len(fields) == maxFormFields || f.Name == "" || !isFieldText(f.Name) || !isFieldText(f.Value) {
			return nil, false
		}
		fields = append(fields, f)
	}
	return fields, true
}

// decoded is a part of a form's body; invalid UTF-8 when it is not encoded well.
func decoded(s string) string {
	s, err := url.QueryUnescape(s)
	if err != nil {
		return "\xff"
	}
	return s
}

// isFieldText reports whether a hidden field holds the text as it is: HTML has no NUL, and line ends are
// CRLF in every form that a browser sends.
func isFieldText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.ContainsAny(strings.ReplaceAll(s, "\r\n", ""), "\r\n")
}

// cameFrom is the path and query of the page that has sent the request, if the room covers it: anywhere
// else, a page that refreshes would stop waiting. It is empty otherwise.
func (x *exchange) cameFrom() string {
	from, err := url.Parse(x.r.Header.Get("Referer"))
	if err != nil || from.Host != x.r.Host || from.Opaque != "" {
		return ""
	}
	path, query := from.EscapedPath(), withoutAsk(from.RawQuery)
	// What begins with two slashes would be the address of another host.
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || hasControl(path) || hasControl(query) {
		return ""
	}
	if query != "" {
		path += "?" + query
	}
	if m, err := x.s.table.Lookup(x.r.Host, path); err != nil || m == nil || m.Room.ID != x.room.ID {
		return ""
	}
	return path
}
