package gateway

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
)

// modify is the origin's answer on its way back. A 101 that was not asked for, or for
// something else, is httputil.ReverseProxy's to refuse, and it does.
func (x *exchange) modify(res *http.Response) error {
	dropLength(res)
	x.finish(res.Header)
	return nil
}

// dropLength removes the length of an answer without a body. Over HTTP/1.1 the server does not send it; over HTTP/2 it would, and
// clients refuse the answer then, because no bytes follow.
func dropLength(res *http.Response) {
	if res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		delete(res.Header, "Content-Length")
	}
}

// finish adds the ticket to the headers of an answer, obeys the origin's command, and
// removes what is ours alone to say.
func (x *exchange) finish(h http.Header) {
	x.s.stripSetCookies(h)
	commands := h["Cf-Waiting-Room-Command"]
	delete(h, "Cf-Waiting-Room-Command")
	admitted := x.decision.Verdict == anteroom.Admit
	if x.room == nil || !admitted && !x.room.Shadow {
		return
	}
	if admitted && x.room.revoke && hasToken(commands, anteroom.CommandRevoke) {
		x.room.door.Revoke(x.decision.Ticket.ID)
		x.g.count.revoked.Add(1)
		h["Set-Cookie"] = append(h["Set-Cookie"], x.dropCookie())
		x.dropPass(h)
		keepPrivate(h)
		return
	}
	if admitted && x.room.passes != nil {
		x.offerPass(h)
	}
	if !x.decision.SetCookie && !(x.stale && admitted) || !admitted && !isNavigation(x.r) {
		return
	}
	// A cookie on an answer that others may be given hands them this visitor's seat. A new
	// session needs its cookie, and so does one whose cookie is about to lapse in the
	// browser (it lives for two session durations), or by a lottery, where nothing but the cookie says how long the session
	// lasts: then the answer becomes private.
	// Everything else is a renewal that can wait for a page that is not shared.
	t := x.presented
	urgent := !t.Accepted() || x.room.LotteryPercent > 0 && x.decision.At.Sub(t.LastCheckIn) > x.seatDuration()/2 || t.ID != x.decision.Ticket.ID || x.decision.At.Sub(t.LastCheckIn) > x.seatDuration()
	shared := isShared(h)
	if !urgent && (shared || !isNavigation(x.r)) {
		return
	}
	h["Set-Cookie"] = append(h["Set-Cookie"], x.setCookie(x.decision.Ticket))
	switch {
	case shared:
		keepPrivate(h)
	case len(h["Cache-Control"]) == 0:
		// Without a word about it, shared caches may guess (RFC 9111 §4.2.2).
		h["Cache-Control"] = valuePrivate
	}
}

// isShared reports whether a shared cache is invited to store the answer.
func isShared(h http.Header) bool {
	lasting, forbidden := len(h["Expires"]) > 0, false
	for _, name := range [...]string{"Cache-Control", "Cdn-Cache-Control", "Surrogate-Control"} {
		for _, line := range h[name] {
			for part := range strings.SplitSeq(line, ",") {
				word, value, _ := strings.Cut(strings.ToLower(textproto.TrimString(part)), "=")
				switch word {
				case "public", "s-maxage":
					return true
				case "max-age":
					// What is not a number lasts, to be safe.
					n, err := strconv.Atoi(strings.Trim(value, `"`))
					lasting = lasting || err != nil || n > 0
				case "private", "no-store", "no-cache":
					forbidden = forbidden || name == "Cache-Control"
				}
			}
		}
	}
	return lasting && !forbidden
}

// keepPrivate makes an answer nobody else's.
func keepPrivate(h http.Header) {
	h["Cache-Control"] = valuePrivateNoStore
	h["Cdn-Cache-Control"] = valueCDN
	h["Surrogate-Control"] = valueCDN
	delete(h, "Expires")
}
