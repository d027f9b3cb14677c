package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/invite"
)

// Redemption is a visitor who has entered an invite code.
type Redemption struct {
	Room  anteroom.RoomID
	Event anteroom.EventID // the active one; empty: none
	Code  invite.Hash
	By    anteroom.ID // who may try again when the answer was lost
	// Placed says that the visitor has a place already, in the lane with that priority: only a code for a lane counts, and one that
	// does not raise the visitor is not spent.
	Placed bool
	Lane   uint8
}

// Redeem takes a use of an invite code, and returns the priority of the lane that it is for; 0 for none. An error of the kind
// [anteroom.Denied] says that the code is none here, or spent.
type Redeem func(ctx context.Context, r Redemption) (lane uint8, err error)

const (
	// inviteTries is how many wrong codes an address (an IPv6 /64) may enter at once, and invitesPerMinute how many more in each minute.
	inviteTries      = 10
	invitesPerMinute = 5
	// inviteTime is how long a visitor waits for the store, at most.
	inviteTime = 5 * time.Second
)

// What came of invite codes, and of moves to another device; index of Stats.Invites and Stats.Moves.
const (
	inviteAccepted = iota
	inviteRefused
	inviteLimited // too many wrong ones from that address: it was not looked at
	inviteFailed  // the store did not answer
	inviteResults
)

// InviteWords name the results in metrics.
var InviteWords = [inviteResults]string{"accepted", "refused", "limited", "failed"}

// InviteMark returns what makes and recognizes the ids of tickets for an invitation to a room.
func InviteMark(keys *ticket.Keyring, room anteroom.RoomID) invite.Mark {
	return invite.MarkOf(keys.Fixed(ticket.PurposeInvite), room)
}

// InvitedTicket returns a ticket for an invitation. Its visitor joins the queue by coming back with it.
func InvitedTicket(mark invite.Mark, seed string, now anteroom.Time) anteroom.Ticket {
	return anteroom.Ticket{ID: mark.ID(seed), Arrival: now, LastCheckIn: now, Next: now}
}

// asksInvited reports whether the room has times in which only invited visitors join.
func asksInvited(r *anteroom.Room) bool {
	return r.InviteOnly || slices.ContainsFunc(r.Events, func(e anteroom.Event) bool { return e.InviteOnly != nil && *e.InviteOnly })
}

// isUninvited reports whether the visitor waits for want of an invitation. A ticket that was worth nothing any more has got another
// id, which no invitation was for. Who is given no ticket at all waits for something else: for a queue that is full, or for a site that
// has lost its memory and has yet to find the session.
func (r *room) isUninvited(d *anteroom.Decision) bool {
	return r.invited && !d.Ticket.ID.IsZero() && d.Verdict == anteroom.Wait && d.InForce != nil && d.InForce.InviteOnly && d.InForce.QueueingMethod != anteroom.Passthrough &&
		d.InForce.QueueingMethod != anteroom.Reject && !r.mark.Has(d.Ticket.ID)
}

// risesByCode reports whether a code can raise the visitor to a lane of the room: one who waits, with a place. Nobody else needs it.
func (r *room) risesByCode(d *anteroom.Decision) bool {
	return r.hasLanes() && d.Verdict == anteroom.Wait && !d.Ticket.ID.IsZero() && !d.Ticket.Accepted() && !r.isUninvited(d)
}

// laneShown is the name of the lane of a visitor who waits; empty for none, or one that the room does not name.
func (r *room) laneShown(d *anteroom.Decision) string {
	if d.Verdict != anteroom.Wait || d.Ticket.ID.IsZero() || r.isUninvited(d) {
		return ""
	}
	return r.LaneName(d.Ticket.Lane)
}

// hasLanes reports whether there is a lane to rise to.
func (r *room) hasLanes() bool {
	return slices.ContainsFunc(r.Lanes, func(l anteroom.Lane) bool { return l.Priority > 0 })
}

// askCode asks for a code: a visitor without an invitation, or one who has a place and may have a code for a lane.
func (x *exchange) askCode(code string, is page.Invitation, placed bool) {
	r := x.r
	h := x.neverStored()
	x.conn.waits(true)
	x.spareBody()
	if isSubresource(r) || x.websocket {
		x.turnAwayPart(h)
		return
	}
	x.giveTicket(h)
	status := http.StatusForbidden
	if placed && is == page.Uninvited {
		status = http.StatusOK
	}
	switch is {
	case page.InviteUnchecked:
		status = http.StatusServiceUnavailable
		h["Retry-After"] = []string{"60"}
	case page.InviteLimited:
		status = http.StatusTooManyRequests
		h["Retry-After"] = []string{"60"}
	}
	if view := x.view(false); x.writeViewAsJSON(status, &view) {
		return
	}
	x.writeNotice(status, func(dst []byte, view page.View, query string) []byte {
		return page.AppendInvite(dst, view, query, code, is, placed)
	})
}

// invite shows the page that asks for a code, and takes what is entered there. A code is never spent by a link: mail programs look at
// links before people do.
func (x *exchange) invite(v anteroom.Visit) {
	rm, now, in := x.room, x.s.now(), x.room.door.Settings()
	posts, joins := x.r.Method == http.MethodPost, in.InviteOnly && !rm.mark.Has(v.Ticket.ID)
	switch {
	case !posts:
	case !joins && !rm.hasLanes(), in.Suspended, in.QueueingMethod == anteroom.Passthrough, v.Ticket.Accepted():
		x.spareBody()
		x.goOn() // which says what holds there
		return
	case !x.isFromHere():
		x.spareBody()
		x.g.refuse(x.w, x.r, refusal{http.StatusForbidden, "Enter the code on the page that asks for it", false})
		return
	}
	if !posts || !joins {
		x.decide(v)
		rises := rm.risesByCode(&x.decision)
		switch {
		case !posts && (rises || rm.isUninvited(&x.decision)):
			x.askCode(x.givenCode(), page.Uninvited, rises)
			return
		case !rises:
			x.spareBody()
			x.goOn()
			return
		}
		if t := &x.decision.Ticket; t.ID == v.Ticket.ID {
			t.Lane = max(t.Lane, v.Ticket.Lane)
		}
		v.Ticket = x.decision.Ticket
	}
	code := ""
	fields, _ := x.form()
	for _, f := range fields {
		if f.Name == page.InviteField && len(f.Value) <= 64 {
			code = f.Value
		}
	}
	if v.Fresh { // the code would be lost
		if joins {
			x.decide(v) // which gives a ticket, if the browser keeps one
		}
		x.askCode(code, page.InviteForgetful, !joins)
		return
	}
	if joins && (in.Draining || in.QueueingMethod == anteroom.Reject) { // a ticket in hand would pass for that of a visitor in the queue
		x.askCode(code, page.InviteUnchecked, false)
		return
	}
	result, lane := x.redeem(&v, code, now, !joins)
	x.g.count.invites[result].Add(1)
	switch {
	case result == inviteRefused:
		x.askCode(code, page.InviteRefused, !joins)
	case result == inviteLimited:
		x.askCode(code, page.InviteLimited, !joins)
	case result == inviteFailed:
		x.askCode(code, page.InviteUnchecked, !joins)
	case joins:
		hash, _ := invite.Read(code)
		t := InvitedTicket(rm.mark, string(v.Ticket.ID[:])+string(hash[:]), now)
		t.Bind, t.Lane = v.Bind, lane
		x.takeTicket(t)
	default:
		x.rise(v, lane)
	}
}

// rise moves a visitor who waits to a lane, with the ticket that is in hand. The code is spent: if the site is out of reach, the ticket
// says so until it is told.
func (x *exchange) rise(v anteroom.Visit, lane uint8) {
	v.Lane = max(v.Lane, lane)
	d := x.decide(v)
	if d.Verdict != anteroom.Wait || d.Ticket.ID != v.Ticket.ID {
		x.goOn()
		return
	}
	d.Ticket.Lane = max(d.Ticket.Lane, v.Lane, v.Ticket.Lane)
	x.takeTicket(d.Ticket)
}

// takeTicket gives the visitor a ticket and goes back to the page, which shows what it is worth.
func (x *exchange) takeTicket(t anteroom.Ticket) {
	x.neverStored()["Set-Cookie"] = []string{x.setCookie(t)}
	x.back()
}

// redeem takes a use of a code for the visitor, and returns the lane that it is for. Placed visitors have a place and want a lane.
func (x *exchange) redeem(v *anteroom.Visit, code string, now anteroom.Time, placed bool) (result int, lane uint8) {
	if !x.s.invites.spend(x.client, now) {
		return inviteLimited, 0
	}
	hash, ok := invite.Read(code)
	if !ok || x.s.Redeem == nil {
		return inviteRefused, 0
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), inviteTime)
	defer cancel()
	r := Redemption{Room: x.room.ID, Code: hash, By: v.Ticket.ID, Placed: placed, Lane: v.Ticket.Lane}
	if e := x.room.At(anteroom.TimeOf(time.Now())).Event; e != nil {
		r.Event = e.ID
	}
	lane, err := x.s.Redeem(ctx, r)
	if err != nil {
		if anteroom.KindOf(err) == anteroom.Denied {
			return inviteRefused, 0
		}
		x.s.invites.restore(x.client)
		if anteroom.KindOf(err) == anteroom.Conflict { // a good code, of an event that is not active
			return inviteRefused, 0
		}
		if x.s.log != nil {
			x.s.log.Warn("an invite code could not be checked", "room", x.room.Name, "error", err)
		}
		return inviteFailed, 0
	}
	x.s.invites.restore(x.client)
	return inviteAccepted, lane
}

// givenCode is the code in the link by which the visitor came.
func (x *exchange) givenCode() string {
	_, code, _ := strings.Cut(x.r.URL.RawQuery, anteroom.InviteQuery+".")
	code, _, _ = strings.Cut(code, "&")
	if len(code) > 64 || strings.Trim(code, "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
		return ""
	}
	return code
}
