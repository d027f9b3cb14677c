package page

import (
	"html"
	"strings"
)

// The query pairs by which a visitor gives up the place: of the page that asks whether to, whose form is posted to the same, and of the
// page that says that it is done.
const (
	leaveQuery = "__anteroom=leave"
	LeftQuery  = "__anteroom=left"
)

// AppendLeave appends the page that asks whether to give up the place of v, without compression. query is that of the address at which
// the visitor waits, not escaped yet. It works without script, and has the policy [LeavePolicy].
func AppendLeave(dst []byte, v View, query string) []byte {
	w := wordsOf(known(v.Language))
	e := html.EscapeString
	return appendNotice(dst, v, w.Leaving, `<form method="post" action="?`+withQuery(query, leaveQuery)+`" data-ref="`+string(appendReference(nil, v.Decision.Ticket.ID))+
		`"><button>`+e(w.Leave)+`</button></form><p><a href="?`+e(query)+`">`+e(w.Stay)+`</a></p>`, stay(v, query, leaveQuery, 0))
}

// AppendLeft appends the page that says that the visitor has no place any more. It does not come back by itself: that would be a new place.
func AppendLeft(dst []byte, v View, query string) []byte {
	return appendRejoin(dst, v, wordsOf(known(v.Language)).Left, query)
}

// LeavePolicy is the Content-Security-Policy of [AppendLeave], [AppendLeft], [AppendInvite], [AppendMoving], [AppendArriving], [AppendMoved], [AppendStale] and [AppendLanguages].
func LeavePolicy(v View) string {
	if v.Brand != nil {
		return v.Brand.leavePolicy
	}
	return library().leavePolicy
}

// appendNotice appends a page without facts: a saying, and what the visitor can do.
func appendNotice(dst []byte, v View, said saying, body, script string) []byte {
	language := known(v.Language)
	var brand Brand
	if v.Brand != nil {
		brand = *v.Brand
	}
	return append(dst, headOf(language, bare("asset/page.css"))+`<title>`+html.EscapeString(said[0])+brand.name+titleTail+`</title>`+brand.style+
		`</head><body><div id="wrapper">`+brand.header+`<main>`+picture(closed)+`<h1>`+html.EscapeString(said[0])+`</h1><p id="lead">`+html.EscapeString(said[1])+`</p>`+body+
		`</main></div><script>`+library().beside+`</script>`+script+`</body></html>`...)
}

// known is a language that there is.
func known(language string) string {
	if !IsLanguage(language) {
		return "en-US"
	}
	return language
}

// withQuery joins a query with a pair, for an attribute.
func withQuery(query, pair string) string {
	if query != "" && !strings.HasSuffix(query, "&") {
		query += "&"
	}
	return html.EscapeString(query) + pair
}
