package gateway

import (
	"context"
	"net/http"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// FindSession returns the ticket of the session that the header Authorization names.
type FindSession func(ctx context.Context, authorization string) (anteroom.Ticket, bool)

// gateSession is the gate of a room whose sessions begin elsewhere: a request belongs to one, or is refused. It takes no
// place and no seat.
func (x *exchange) gateSession() {
	lines := x.r.Header["Authorization"]
	verdict := anteroom.Refuse
	if len(lines) == 1 {
		if t, ok := x.room.session(x.r.Context(), lines[0]); ok {
			x.presented = t
			verdict = x.decide(anteroom.Visit{Ticket: t, NewID: x.ids.Next(), NoHold: true, NoJoin: true, NoClaim: true}).Verdict
			x.decision.SetCookie = false
		}
	}
	if verdict == anteroom.Admit || verdict == anteroom.Pass || x.room.door.Settings().Suspended {
		x.forward()
		return
	}
	if x.room.Shadow {
		x.bypass(analytics.InShadow)
		return
	}
	x.g.count.refuse(http.StatusUnauthorized)
	x.conn.waits(true)
	h := x.neverStored()
	h["Content-Type"] = valueJSON
	x.write(http.StatusUnauthorized, append(x.buf[:0], `{"message":"Unauthorized"}`...))
}
