package gateway

import (
	"net/http"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

// leave asks a visitor whether to give up the place, and does so when the visitor posts the page's form. The cookie goes, and so does
// every copy's worth: see the engine. A page of another site cannot post for the visitor.
func (x *exchange) leave(v anteroom.Visit) {
	switch {
	case v.Fresh || v.Ticket.Accepted(): // nothing to give up
		x.spareBody()
		x.goOn()
		return
	case x.r.Method != http.MethodPost:
		x.decision = anteroom.Decision{At: x.s.now(), Ticket: v.Ticket}
		if d, waits := x.look(&v.Ticket, &v); waits {
			x.decision = d // whose page stays in line
		}
		x.writeNotice(http.StatusOK, page.AppendLeave)
		return
	}
	x.spareBody()
	if !x.isFromHere() {
		x.g.refuse(x.w, x.r, refusal{http.StatusForbidden, "Give up the place with the button of the waiting page", false})
		return
	}
	v.Leave, v.NoJoin, v.NoClaim = true, true, true
	if x.decide(v).Verdict != anteroom.Refuse {
		// The turn has come, or the site could not be told: the address says which.
		x.goOn()
		return
	}
	h := x.neverStored()
	h["Set-Cookie"] = []string{x.dropCookie()}
	query := x.query()
	if query != "" {
		query += "&"
	}
	h["Location"] = []string{"?" + query + page.LeftQuery}
	x.write(http.StatusSeeOther, nil)
}

// writeNotice sends a page that is not about a place.
func (x *exchange) writeNotice(status int, appendTo func([]byte, page.View, string) []byte) {
	view := page.View{Decision: x.decision, Language: x.language(), Brand: x.room.brand}
	h := x.neverStored()
	h["Content-Type"] = valueTextHTML
	h["X-Robots-Tag"] = valueNoindex
	h["Content-Security-Policy"] = []string{page.LeavePolicy(view)}
	x.buf = appendTo(x.buf[:0], view, x.query())
	x.write(status, x.buf)
}
