package gateway

import (
	"context"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/push"
	"github.com/anteroom/anteroom/page"
)

const (
	// pushesAtOnce is how many subscriptions to web push an address (an IPv6 /64) may have kept at once, and pushesPerMinute how many more
	// in each minute. Each is a synced write.
	pushesAtOnce    = 30
	pushesPerMinute = 30
	// maxBackURL bounds the address of a notification, which has to come with the rest of a message.
	maxBackURL = 3000
)

// Push is what a gateway needs to keep subscriptions to web push.
type Push struct {
	Book *push.Book
	Key  *push.Key
	// CheckURL returns what is wrong with the endpoint of a push service; nil: nothing that is known.
	CheckURL func(url string) error
	// Webhook reports whether a webhook hears of visitors of a room whose turn it is; nil: none does.
	Webhook func(anteroom.RoomID) bool
}

// offersPush reports whether the page may ask for web push. In a room by lottery there is no turn of which it could tell.
func (x *exchange) offersPush() bool {
	return x.room.WebPush && x.s.Push.Book != nil && x.room.LotteryPercent == 0 && !x.room.Shadow
}

// push gives the page the key to which a browser binds its subscription, and keeps or removes what the page posts.
func (x *exchange) push(v anteroom.Visit) {
	h := x.neverStored()
	refuse := func(status int, text string) {
		x.g.refuse(x.w, x.r, refusal{status, text, false})
	}
	switch {
	case !x.offersPush():
		x.spareBody()
		refuse(http.StatusNotFound, "This room does not notify by web push")
		return
	case x.r.Method != http.MethodPost:
		h["Content-Type"] = valueJSON
		x.buf = append(append(append(x.buf[:0], `{"key":"`...), x.s.Push.Key.Public()...), `"}`...)
		x.write(http.StatusOK, x.buf)
		return
	case !x.isFromHere():
		x.spareBody()
		refuse(http.StatusForbidden, "Subscribe with the button of the waiting page")
		return
	}
	fields, read := x.form()
	x.spareBody()
	var s push.Subscription
	off, contact := false, ""
	for _, f := range fields {
		switch f.Name {
		case "endpoint":
			s.Endpoint = f.Value
		case "p256dh":
			s.P256DH = f.Value
		case "auth":
			s.Auth = f.Value
		case "contact":
			contact = f.Value
		case "off":
			off = true
		}
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), inviteTime)
	defer cancel()
	switch {
	case !read:
		refuse(http.StatusBadRequest, "Send a form with endpoint, p256dh and auth, or with contact, or with off")
		return
	case v.Fresh || v.Ticket.Accepted():
		refuse(http.StatusConflict, "This visitor has no place in line")
		return
	case off:
		if err := x.s.Push.Book.Delete(ctx, x.room.ID, v.Ticket.ID); err != nil {
			x.pushFailed(err)
			return
		}
		x.write(http.StatusNoContent, nil)
		return
	}
	err := s.Check()
	if contact != "" {
		err = x.checkContact(contact)
	} else if err == nil && x.s.Push.CheckURL != nil {
		if no := x.s.Push.CheckURL(s.Endpoint); no != nil {
			err = anteroom.Errorf(anteroom.Invalid, "endpoint %w", no)
		}
	}
	if err != nil {
		refuse(http.StatusBadRequest, "The subscription is refused: "+err.Error())
		return
	}
	if !x.s.pushes.spend(x.client, x.s.now()) {
		h["Retry-After"] = []string{"60"}
		refuse(http.StatusTooManyRequests, "Too many subscriptions have come from your network in the last minute")
		return
	}
	d, waits := x.look(&v.Ticket, &v)
	if !waits || x.room.isUninvited(&d) {
		refuse(http.StatusConflict, "This visitor has no place in line")
		return
	}
	d.Ticket.Moved = v.Ticket.Moved
	if contact != "" {
		s = push.Subscription{}
	}
	e := push.Entry{Room: x.room.ID, Ticket: d.Ticket, Subscription: s, Visitor: contact, Contact: "https://" + x.r.Host,
		URL: x.linkTo(page.BackQuery + "." + x.linkToken(linkBack, d.Ticket, push.KeptFor))}
	e.Title, e.Text, e.Language = page.Notification(x.language())
	if len(e.URL) > maxBackURL {
		refuse(http.StatusBadRequest, "The address of this page is too long for a notification")
		return
	}
	if err := x.s.Push.Book.Put(ctx, &e); err != nil {
		x.pushFailed(err)
		return
	}
	x.write(http.StatusNoContent, nil)
}

// checkContact returns what is wrong with what a visitor has entered to be written to.
func (x *exchange) checkContact(contact string) error {
	switch {
	case x.s.Push.Webhook == nil || !x.s.Push.Webhook(x.room.ID):
		return anteroom.Errorf(anteroom.Invalid, "no webhook of this room has the event visitor.called")
	case len(contact) > push.MaxContact:
		return anteroom.Errorf(anteroom.Invalid, "contact has %d bytes, at most %d are allowed", len(contact), push.MaxContact)
	case !utf8.ValidString(contact) || strings.ContainsFunc(contact, unicode.IsControl):
		return anteroom.Errorf(anteroom.Invalid, "contact is not one line of text")
	}
	return nil
}

// pushFailed says that a subscription could not be kept or removed.
func (x *exchange) pushFailed(err error) {
	if x.s.log != nil {
		x.s.log.Warn("a subscription to web push could not be changed", "room", x.room.Name, "error", err)
	}
	x.g.refuse(x.w, x.r, refusal{http.StatusServiceUnavailable, "Notifications cannot be switched on or off just now", false})
}

// comeBack is a visitor who has pressed a notification. Cookies of waiting visitors may have ended long before their turn, so that the
// link brings the ticket. One with an earlier place than the link's keeps that, and so does everybody with a place where the link's is none
// any more: it is that of an earlier visit, or somebody else has sent it.
func (x *exchange) comeBack(v anteroom.Visit) {
	x.spareBody()
	h := x.neverStored()
	t, ok := x.openLink(linkBack, x.givenLink(linkBack), &v)
	better := v.Fresh || !v.Ticket.Accepted() && v.Ticket.ID != t.ID && t.Arrival < v.Ticket.Arrival
	if ok && better && !v.Fresh {
		_, ok = x.look(&t, &v)
	}
	if ok && better && !x.leftBehind(&t) {
		h["Set-Cookie"] = []string{x.setCookie(t)}
	}
	x.back()
}

// look is the decision about a ticket, of which nothing comes, and whether there is a place for it.
func (x *exchange) look(t *anteroom.Ticket, v *anteroom.Visit) (d anteroom.Decision, waits bool) {
	d = x.room.door.Decide(x.r.Context(), anteroom.Visit{Ticket: *t, NewID: v.NewID, NoJoin: true, NoClaim: true, NoHold: true})
	return d, d.Verdict == anteroom.Wait && d.Ticket.ID == t.ID
}
