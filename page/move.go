package page

import (
	"html"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/qr"
)

// MoveQuery is the query pair by which a visitor asks for a link that continues on another device; with a dot and a token behind it, it
// is such a link.
const MoveQuery = "__anteroom=move"

// ReplaceField is the field of [AppendArriving]'s form that says that the visitor gives up the place on this device.
const ReplaceField = "replace"

// linkShown is how long such a link is shown before the page makes another: it works for ten minutes.
const linkShown = 9 * time.Minute

// moveStyle is what page.css has no room for.
const moveStyle = `svg.code{display:block;width:100%;max-width:17rem;height:auto;margin:0 auto 1rem;background:#fff;border-radius:.5rem}svg.fine{max-width:none}.link{font-size:.8125rem;overflow-wrap:anywhere}`

// AppendMoving appends the page that shows a link for another device, as text and as a QR code, without compression. query is that of the
// address at which the visitor waits, not escaped yet. This page and the next three work without script, and have the policy [LeavePolicy].
// It is to come back after [RefreshSeconds], by [MoveQuery]; its script keeps a stream open instead where there is one.
func AppendMoving(dst []byte, v View, query, link string) []byte {
	w := wordsOf(known(v.Language))
	e := html.EscapeString
	said, code := w.Moving, codeOf(link, e(w.Moving[0]))
	if code == "" {
		said[1] = w.MovingLink
	}
	return appendNotice(dst, v, said, `<style>`+moveStyle+`</style>`+code+`<p class="link"><a href="`+e(link)+`" rel="nofollow">`+e(link)+
		`</a></p><p><a href="?`+e(query)+`">`+e(w.Stay)+`</a></p>`, stay(v, query, MoveQuery, linkShown))
}

// codeOf is a QR code as a picture; empty when the link is too long for one.
func codeOf(link, name string) string {
	code := qr.Of(link)
	if code == nil {
		return ""
	}
	const border = 4 // of light modules, without which no reader finds it
	size := strconv.Itoa(code.Size + 2*border)
	class := "code"
	if code.Size > 97 { // its modules would be too small for the camera of a phone
		class = "code fine"
	}
	var b strings.Builder
	b.WriteString(`<svg class="` + class + `" role="img" aria-label="` + name + `" viewBox="0 0 ` + size + ` ` + size + `" shape-rendering="crispEdges"><path d="`)
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			from := x
			for x < code.Size && code.Dark(x, y) {
				x++
			}
			if n := x - from; n > 0 {
				b.WriteString("M" + strconv.Itoa(from+border) + " " + strconv.Itoa(y+border) + "h" + strconv.Itoa(n) + "v1h-" + strconv.Itoa(n) + "z")
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return b.String()
}

// AppendArriving appends the page to which such a link leads: it asks whether to continue here. replaces says that there is another place on
// this device, and forgetful that the browser keeps no cookies.
func AppendArriving(dst []byte, v View, query, token string, replaces, forgetful bool) []byte {
	w := wordsOf(known(v.Language))
	e := html.EscapeString
	note, field := "", ""
	if forgetful {
		note = `<p class="note" role="alert">` + e(w.Cookies) + `</p>`
	}
	if replaces {
		note += `<p class="note">` + e(w.Replacing) + `</p>`
		field = `<input type="hidden" name="` + ReplaceField + `" value="1">`
	}
	return appendNotice(dst, v, w.Arriving, note+`<form method="post" action="?`+withQuery(query, MoveQuery)+"."+e(token)+`">`+field+`<button>`+e(w.Arriving[0])+`</button></form>`, "")
}

// AppendMoved appends the page that says that the place is at another device now. It does not come back by itself: that would be a new place.
func AppendMoved(dst []byte, v View, query string) []byte {
	return appendRejoin(dst, v, wordsOf(known(v.Language)).Moved, query)
}

// AppendStale appends the page that says that a link for another device does not work.
func AppendStale(dst []byte, v View, query string) []byte {
	return appendNotice(dst, v, wordsOf(known(v.Language)).Stale, "", "")
}

func appendRejoin(dst []byte, v View, said saying, query string) []byte {
	e := html.EscapeString
	return appendNotice(dst, v, said, `<p><a href="?`+e(query)+`" rel="nofollow">`+e(wordsOf(known(v.Language)).Rejoin)+`</a></p>`, "")
}
