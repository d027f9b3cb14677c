package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/invite"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/ticket"
)

// Redemption is a visitor who has entered an invite code.
type Redemption struct {
	Room  anteroom.RoomID
	Event anteroom.EventID // the active one; empty: none
	Code  invite.Hash
	By    anteroom.ID // who may try again when the answer was lost
}

// Redeem takes a use of an invite code. An error of the kind [anteroom.Denied] says that the code is none, or spent.
type Redeem func(ctx context.Context, r Redemption) error

const (
	// inviteTries is how many wrong codes an address (an IPv6 /64) may enter at once, and invitesPerMinute how many more in each minute.
	inviteTries      = 10
	invitesPerMinute = 5
	// inviteTime is how long a visitor waits for the store, at most.
	inviteTime = 5 * time.Second
)

// What came of invite codes, and of moves to another device; index of Stats.Invites and Stats.Moves.
const (
	InviteAccepted = iota
	InviteRefused
	InviteLimited // too many wrong ones from that address: it was not looked at
	InviteFailed  // the store did not answer
	InviteResults
)

// InviteWords name the results in metrics.
var InviteWords = [InviteResults]string{"accepted", "refused", "limited", "failed"}

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

// turnAwayUninvited asks for a code.
func (x *exchange) turnAwayUninvited(code string, is page.Invitation) {
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
	switch is {
	case page.InviteUnchecked:
		status = http.StatusServiceUnavailable
		h["Retry-After"] = []string{"60"}
	case page.InviteLimited:
		status = http.StatusTooManyRequests
		h["Retry-After"] = []string{"60"}
	}
	if x.writeViewAsJSON(status, x.view(false)) {
		return
	}
	x.writeNotice(status, func(dst []byte, view page.View, query string) []byte {
		return page.AppendInvite(dst, view, query, code, is)
	})
}

// invite shows the page that asks for a code, and takes what is entered there. A code is never spent by a link: mail programs look at
// links before people do.
func (x *exchange) invite(v anteroom.Visit) {
	rm, now, in := x.room, x.s.now(), x.room.door.Settings()
	switch {
	case x.r.Method != http.MethodPost:
		if x.decide(v); rm.isUninvited(&x.decision) {
			x.turnAwayUninvited(x.givenCode(), page.Uninvited)
			return
		}
		x.goOn()
		return
	case !in.InviteOnly, in.Suspended, in.QueueingMethod == anteroom.Passthrough, v.Ticket.Accepted(), rm.mark.Has(v.Ticket.ID):
		x.spareBody()
		x.goOn() // which says what holds there
		return
	case !x.isFromHere():
		x.spareBody()
		x.g.refuse(x.w, x.r, refusal{http.StatusForbidden, "Enter the code on the page that asks for it", false})
		return
	}
	code := ""
	fields, _ := x.form()
	for _, f := range fields {
		if f.Name == page.InviteField && len(f.Value) <= 64 {
			code = f.Value
		}
	}
	if v.Fresh { // the code would be lost
		x.turnAwayUninvited(code, page.InviteForgetful)
		return
	}
	if in.Draining || in.QueueingMethod == anteroom.Reject { // a ticket in hand would pass for that of a visitor in the queue
		x.turnAwayUninvited(code, page.InviteUnchecked)
		return
	}
	result, t := x.redeem(&v, code, now)
	x.g.count.invites[result].Add(1)
	switch result {
	case InviteAccepted:
		h := x.neverStored()
		h["Set-Cookie"] = []string{x.setCookie(t)}
		x.back()
	case InviteRefused:
		x.turnAwayUninvited(code, page.InviteRefused)
	case InviteLimited:
		x.turnAwayUninvited(code, page.InviteLimited)
	default:
		x.turnAwayUninvited(code, page.InviteUnchecked)
	}
}

// redeem takes a use of a code for the visitor, and returns the ticket.
func (x *exchange) redeem(v *anteroom.Visit, code string, now anteroom.Time) (result int, t anteroom.Ticket) {
	if !x.s.invites.spend(x.client, now) {
		return InviteLimited, t
	}
	hash, ok := invite.Read(code)
	if !ok || x.s.Redeem == nil {
		return InviteRefused, t
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), inviteTime)
	defer cancel()
	r := Redemption{Room: x.room.ID, Code: hash, By: v.Ticket.ID}
	if e := x.room.At(anteroom.TimeOf(time.Now())).Event; e != nil {
		r.Event = e.ID
	}
	if err := x.s.Redeem(ctx, r); err != nil {
		if anteroom.KindOf(err) == anteroom.Denied {
			return InviteRefused, t
		}
		x.s.invites.restore(x.client)
		if x.s.log != nil {
			x.s.log.Warn("an invite code could not be checked", "room", x.room.Name, "error", err)
		}
		return InviteFailed, t
	}
	x.s.invites.restore(x.client)
	t = InvitedTicket(x.room.mark, string(v.Ticket.ID[:])+string(hash[:]), now)
	t.Bind = v.Bind
	return InviteAccepted, t
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
