package gateway

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/ticket"
)

const (
	// moveTime is how long a link that continues on another device works.
	moveTime = 10 * time.Minute
	// movesAtOnce is how many such links an address (an IPv6 /64) may press the button of at once, and movesPerMinute how many more in
	// each minute. Each can be a synced write.
	movesAtOnce    = 30
	movesPerMinute = 30
	// moveCookie names a device for a move. Where it does not come back, the browser keeps no cookies: the place would be lost.
	moveCookie = "__anteroom_move"
)

// Links with a ticket in them.
const (
	linkMove = "move" // to another device
	linkBack = "back" // of a notification
)

// linkKey seals the tickets in links of a room: at the host, until a moment. Nothing is kept of a link before somebody uses it.
func (x *exchange) linkKey(kind, until string) *ticket.Sealer {
	return x.s.Keys.Sealer(x.room.Zone, x.room.ID, x.room.scope.Name+"\x00"+kind+"\x00"+strings.ToLower(x.r.Host)+"\x00"+until)
}

// linkToken is what makes a link, for a ticket.
func (x *exchange) linkToken(kind string, t anteroom.Ticket, works time.Duration) string {
	until := strconv.FormatInt(x.start.Add(works).Unix(), 16)
	return until + "." + string(x.linkKey(kind, until).Seal(nil, t))
}

// linkTo is the address at which the visitor waits, with a pair behind its query.
func (x *exchange) linkTo(pair string) string {
	link := "http://"
	if x.https {
		link = "https://"
	}
	link += x.r.Host + x.r.URL.EscapedPath() + "?"
	if query := x.query(); query != "" {
		link += query + "&"
	}
	return link + pair
}

// givenLink is the token of the link by which the visitor came; "" without one.
func (x *exchange) givenLink(kind string) string {
	_, token, _ := strings.Cut(x.r.URL.RawQuery, reservedParam+"="+kind+".")
	token, _, _ = strings.Cut(token, "&")
	return token
}

// openLink returns the ticket in a token that may still be used here. To what it says of other networks, a room that binds tickets
// does not listen.
func (x *exchange) openLink(kind, token string, v *anteroom.Visit) (t anteroom.Ticket, ok bool) {
	until, sealed, _ := strings.Cut(token, ".")
	if end, err := strconv.ParseInt(until, 16, 64); err != nil || len(until) > 16 || x.start.Unix() >= end {
		return t, false
	}
	t, result := x.linkKey(kind, until).Open(sealed)
	return t, result == ticket.OK && (v.Bind == 0 || t.Bind == 0 || v.Bind == t.Bind)
}

// leftBehind reports whether a ticket is a copy of one whose place has moved to another device. Sessions do not move, and an account has
// its place on every device.
func (x *exchange) leftBehind(t *anteroom.Ticket) bool {
	return !t.Accepted() && x.room.accounts == nil && x.s.Node != nil && x.s.Node.Moved(t.ID) > t.Moved
}

// tellMoved tells a visitor whose only ticket was left behind that the place is at another device, and takes the ticket back when the
// visitor reads that. It reports false for a request that goes on without a ticket.
func (x *exchange) tellMoved(ask int) bool {
	switch ask {
	case askReceipt, askLanguages, askLanguage:
		return false
	case askMove:
		if x.givenLink(linkMove) != "" { // the place comes back
			return false
		}
	}
	if x.room.Shadow || x.room.door.Settings().Suspended {
		return false
	}
	x.decision = anteroom.Decision{Verdict: anteroom.Refuse, Reason: anteroom.ReasonLeft, At: x.s.now()}
	if v := x.verdict(); v != nil {
		v.decided(x.decision.Verdict)
	}
	x.conn.waits(true)
	x.spareBody()
	h, view := x.neverStored(), x.view(false)
	switch {
	case ask == askStatus:
		x.status()
	case ask == askStream:
		x.write(http.StatusNoContent, nil)
	case isSubresource(x.r) || x.websocket:
		x.turnAwayPart(h)
	case x.writeViewAsJSON(http.StatusForbidden, &view):
	default:
		status := x.room.QueueingStatusCode
		if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
			status = http.StatusForbidden // what was sent has not been done: no 2xx
		}
		h["Set-Cookie"] = []string{x.dropCookie()}
		x.writeNotice(status, page.AppendMoved)
	}
	return true
}

// move shows a visitor who waits a link for another device, and moves the place when somebody presses the button that is behind it.
// Opening the link does nothing: programs look at links before people do.
func (x *exchange) move(v anteroom.Visit) {
	token := x.givenLink(linkMove)
	switch {
	case token != "" && x.room.accounts == nil:
		x.arrive(v, token)
		return
	case x.r.Method == http.MethodPost:
		x.spareBody()
		x.g.refuse(x.w, x.r, refusal{http.StatusMethodNotAllowed, "Post on the other device", false})
		return
	case v.Fresh || v.Ticket.Accepted() || x.room.LotteryPercent > 0: // no place
		x.goOn()
		return
	}
	d := x.decide(v)
	// In a room with accounts, signing in on the other device is enough.
	if d.Verdict != anteroom.Wait || d.Ticket.ID != v.Ticket.ID || x.room.isUninvited(&d) || x.room.accounts != nil {
		x.goOn()
		return
	}
	x.giveTicket(x.neverStored())
	// It stays in line, and ends when the turn comes or another device has the place.
	again := "?" + page.MoveQuery
	if query := x.query(); query != "" { // which the Referer of this page would not say
		again = "?" + query + "&" + page.MoveQuery
	}
	view := x.view(false)
	x.w.Header()["Refresh"] = []string{strconv.Itoa(max(page.RefreshSeconds(&view), 1)) + "; url=" + again}
	link := x.linkTo(page.MoveQuery + "." + x.linkToken(linkMove, d.Ticket, moveTime))
	x.writeNotice(http.StatusOK, func(dst []byte, view page.View, query string) []byte {
		return page.AppendMoving(dst, view, query, link)
	})
}

// arrive is a visitor who comes by a link.
func (x *exchange) arrive(v anteroom.Visit, token string) {
	x.spareBody()
	t, ok := x.openLink(linkMove, token, &v)
	posts := x.r.Method == http.MethodPost
	known := uint8(0)
	if x.s.Node != nil {
		known = x.s.Node.Moved(t.ID)
	}
	// A move that was just made may be this device's, whose answer was lost.
	again := posts && known == t.Moved+1
	switch {
	case !v.Fresh && (v.Ticket.Accepted() || ok && v.Ticket.ID == t.ID): // needs no place, or has it
		x.goOn()
		return
	case x.s.Node == nil || !ok || known > t.Moved && !again:
		x.staleMove()
		return
	case !posts:
		x.askArrival(http.StatusOK, token, &v, false)
		return
	case !x.isFromHere():
		x.g.refuse(x.w, x.r, refusal{http.StatusForbidden, "Press the button of the page that the link shows", false})
		return
	}
	agreed := false
	fields, _ := x.form()
	for _, f := range fields {
		agreed = agreed || f.Name == page.ReplaceField
	}
	device := x.device()
	switch {
	case device == "":
		x.askArrival(http.StatusForbidden, token, &v, true)
		return
	case !v.Fresh && !agreed: // the page did not know yet of the place that is here
		x.askArrival(http.StatusOK, token, &v, false)
		return
	case !x.s.moves.spend(x.client, x.s.now()):
		x.g.count.moves[inviteLimited].Add(1)
		x.laterMove(http.StatusTooManyRequests, "60", "Too many places have moved from your network in the last minute; yours stays where it is. Please try again in a minute")
		return
	}
	d, waits := x.look(&t, &v)
	switch {
	case d.Verdict == anteroom.Pass: // the room is open to everyone
		x.goOn()
		return
	case !waits:
		x.g.count.moves[inviteRefused].Add(1)
		x.staleMove()
		return
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), inviteTime)
	defer cancel()
	if err := x.s.Node.Move(ctx, x.room.ID, &t, device); anteroom.KindOf(err) == anteroom.Denied {
		x.g.count.moves[inviteRefused].Add(1)
		x.staleMove()
		return
	} else if err != nil {
		x.g.count.moves[inviteFailed].Add(1)
		if x.s.log != nil {
			x.s.log.Warn("a place could not move to another device", "room", x.room.Name, "error", err)
		}
		// It may have been done. Then the same device may do it again, for a minute.
		x.laterMove(http.StatusServiceUnavailable, "5", "Your place could not move just now. Please go back and press the button again in a few seconds")
		return
	}
	x.g.count.moves[inviteAccepted].Add(1)
	if !v.Fresh { // the place that was here
		v.Leave, v.NoJoin, v.NoClaim = true, true, true
		x.room.door.Decide(x.r.Context(), v)
	}
	moved := t.Moved + 1
	t = d.Ticket // whose arrival is the one that counts
	t.Moved, t.Bind = moved, v.Bind
	x.neverStored()["Set-Cookie"] = []string{x.setCookie(t)}
	x.back()
}

// device is what names this device for a move; "" if its browser has kept nothing.
func (x *exchange) device() (name string) {
	eachCookie(x.cookies, moveCookie, func(value string) {
		if raw, err := base64.RawURLEncoding.DecodeString(value); err == nil && len(raw) == 16 {
			name = value
		}
	})
	return name
}

// askArrival shows the button.
func (x *exchange) askArrival(status int, token string, v *anteroom.Visit, forgetful bool) {
	h := x.neverStored()
	if x.device() == "" {
		var name [16]byte
		rand.Read(name[:])
		c := http.Cookie{Name: moveCookie, Value: base64.RawURLEncoding.EncodeToString(name[:]), Path: "/", MaxAge: int(moveTime / time.Second), HttpOnly: true, Secure: x.https, SameSite: http.SameSiteLaxMode}
		h["Set-Cookie"] = []string{c.String()}
	}
	h["Referrer-Policy"] = []string{"same-origin"} // the address is worth a place
	x.writeNotice(status, func(dst []byte, view page.View, query string) []byte {
		return page.AppendArriving(dst, view, query, token, !v.Fresh, forgetful)
	})
}

// staleMove says that a link does not work, whatever the reason.
func (x *exchange) staleMove() { x.writeNotice(http.StatusGone, page.AppendStale) }

// laterMove asks to press the button again later.
func (x *exchange) laterMove(status int, after, text string) {
	x.neverStored()["Retry-After"] = []string{after}
	x.g.refuse(x.w, x.r, refusal{status, text, false})
}
