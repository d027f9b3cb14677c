package queueit

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge"
	"github.com/anteroom/anteroom/gateway"
)

const (
	// maxReturns bounds how often a visitor is sent back to the application within returnsWithin, before a page breaks the loop.
	maxReturns    = 5
	returnsWithin = time.Minute
	// returnsCookie counts them in the visitor's browser, which alone would be harmed by a false number.
	returnsCookie = "queue-it-returns"
	// againParameter marks the request by which a browser shows that it keeps cookies.
	againParameter = "again"
)

// serveRoom lets the room decide about a visitor.
func (b *Bridge) serveRoom(e *Event, w http.ResponseWriter, r *http.Request) {
	room, live := e.Room()
	short := b.cfg.Gateway().Bounded(w, r) // the room's answer may be a stream
	if room == nil || live == nil {
		say(short, http.StatusServiceUnavailable, "The waiting room is starting", r.URL.RequestURI())
		return
	}
	if t := r.URL.Query().Get("t"); t != "" { // before it takes a place
		if _, ok := e.target(t); !ok {
			say(short, http.StatusBadRequest, badTarget, "")
			return
		}
	}
	if !b.invited(e, room, live, short, r) {
		return
	}
	b.cfg.Gateway().Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.back(e, room, live, w, r) })).ServeHTTP(w, r)
}

// back redirects a visitor who was admitted, or whom the room does not count, to the application.
func (b *Bridge) back(e *Event, room *anteroom.Room, live Live, w http.ResponseWriter, r *http.Request) {
	q, now, a := r.URL.Query(), time.Now(), gateway.AdmissionOf(w)
	w = b.cfg.Gateway().Bounded(w, r)
	target, ok := e.target(q.Get("t"))
	if !ok {
		say(w, http.StatusBadRequest, badTarget, "")
		return
	}
	n, since, counted := returns(r, now)
	if n >= maxReturns {
		b.warn("a connector keeps sending its visitors back: check its secret and its clock", "event", e.ID)
		say(w, http.StatusTooManyRequests, "The website has sent you back several times. Please try again in a minute", target)
		return
	}
	t, redeem := token{event: e.ID, minutes: 1, why: byBypass}, e.Redeem
	switch a.Verdict {
	case anteroom.Admit:
		if !a.Settled {
			// Without a second request the session ends soon, and the seat with it (ADR 0025).
			b.askAgain(e, counted, now, w, r)
			return
		}
		if redeem, t.minutes = lives(live.Settings(), a.Decision); t.minutes == 0 {
			w.Header().Set("Refresh", "5")
			say(w, http.StatusTooManyRequests, "Your session is about to end. You can join again in a moment", r.URL.RequestURI())
			return
		}
		t.queueID, t.why = b.queueID(a.Ticket.ID), why(room, a.Decision)
	case anteroom.Pass:
		t.why = byDisabled
	case anteroom.Wait, anteroom.Refuse: // nobody decided: the request bypasses the room
	}
	if t.queueID == "" { // nobody is counted, so this is asked anew after a minute
		var id [16]byte
		rand.Read(id[:])
		t.queueID = bridge.UUID(id)
	}
	if room.Bind == anteroom.BindIPPrefix {
		t.client = b.cfg.Gateway().Client(r).String()
	}
	t.until = now.Add(redeem).Unix()
	e.setReturns(w, n+1, since)
	redirect(w, withToken(target, t.sign(e.Secret)))
}

// askAgain sends a browser here once more, with its cookies.
func (b *Bridge) askAgain(e *Event, counted bool, now time.Time, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Has(againParameter) && !counted {
		q.Del(againParameter)
		say(w, http.StatusForbidden, "Your browser does not keep cookies. Please allow them for this website", e.path()+"?"+q.Encode())
		return
	}
	q.Set(againParameter, "1")
	if !counted {
		e.setReturns(w, 0, now)
	}
	redirect(w, e.path()+"?"+q.Encode())
}

// returns reads how often the visitor was sent back, since when, and whether anything was counted.
func returns(r *http.Request, now time.Time) (n int, since time.Time, counted bool) {
	c, err := r.Cookie(returnsCookie)
	if err != nil {
		return 0, now, false
	}
	number, at, _ := strings.Cut(c.Value, ".")
	n, bad := strconv.Atoi(number)
	seconds, err := strconv.ParseInt(at, 10, 64)
	since = time.Unix(seconds, 0)
	if age := now.Sub(since); bad != nil || err != nil || age < -time.Second || age >= returnsWithin || n < 0 {
		return 0, now, true
	}
	return n, since, true
}

func (e *Event) setReturns(w http.ResponseWriter, n int, since time.Time) {
	c := http.Cookie{Name: returnsCookie, Value: strconv.Itoa(n) + "." + strconv.FormatInt(since.Unix(), 10), Path: e.path(),
		MaxAge: int(returnsWithin / time.Second), HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: e.URL.Scheme == "https"}
	w.Header().Add("Set-Cookie", c.String())
}

// why names the way on which a visitor was admitted.
func why(room *anteroom.Room, d anteroom.Decision) string {
	if d.Ticket.AcceptedAt.Sub(d.Ticket.Arrival) >= time.Second {
		return byQueue
	}
	if in := room.At(d.At); len(room.Events) > 0 && in.Event == nil {
		if in.Until == 0 {
			return byAfterEvent
		}
		return byIdle
	}
	return bySafetyNet
}

// queueID is what connectors know a session by.
func (b *Bridge) queueID(id anteroom.ID) string {
	var out [16]byte
	b.names.Encrypt(out[:], id[:])
	return bridge.UUID(out)
}

// sessionOf returns the session of a queue id.
func (b *Bridge) sessionOf(queueID string) (id anteroom.ID, ok bool) {
	in, ok := bridge.ReadUUID(queueID)
	b.names.Decrypt(id[:], in[:])
	return id, ok
}

// cancel ends the sessions that a connector names, because it does not let their visitors in any more, and goes back. Both forms
// are served: /cancel/<customer>/<event>/<queue id> and /cancel/multiple/<customer>?wrl=<event>~<queue id>_<event>~<queue id>.
func (b *Bridge) cancel(w http.ResponseWriter, r *http.Request) {
	parts, q := strings.Split(strings.Trim(r.URL.Path, "/"), "/"), r.URL.Query()
	var names []string // of events, with "~" and the queue id
	customer := ""
	switch {
	case len(parts) == 3 && parts[1] == "multiple":
		customer, names = parts[2], strings.Split(q.Get("wrl"), "_")
	case len(parts) == 3 || len(parts) == 4:
		customer, names = parts[1], []string{strings.Join(parts[2:], "~")}
	}
	if len(names) == 0 || len(names) > maxCanceled {
		say(w, http.StatusNotFound, "There is no such page here", "")
		return
	}
	target := ""
	for _, name := range names {
		id, _, _ := strings.Cut(name, "~")
		e := b.named(r, customer, id)
		if e == nil {
			say(w, http.StatusNotFound, "There is no such event here", "")
			return
		}
		if to, ok := e.target(q.Get("r")); ok {
			target = to
		}
	}
	switch {
	case target == "":
		say(w, http.StatusBadRequest, badTarget, "")
		return
	case r.Method == http.MethodHead || isAhead(r): // nobody is there
		say(w, http.StatusForbidden, "This page cannot be prefetched", "")
		return
	case !b.cancels.Spend(b.cfg.Gateway().Networks(r), anteroom.TimeOf(time.Now())):
		say(w, http.StatusTooManyRequests, "Too many requests from your network", target)
		return
	}
	for _, name := range names {
		event, queueID, _ := strings.Cut(name, "~")
		e := b.named(r, customer, event)
		id, ok := b.sessionOf(queueID)
		if _, live := e.Room(); ok && live != nil && e.FreeCanceled {
			if _, err := live.EndSession(r.Context(), id); err != nil { // the seat comes free at its time
				b.warn("a session could not be canceled", "event", e.ID, "error", err)
			}
		}
	}
	redirect(w, target)
}

// maxCanceled bounds the events of one cancellation; a connector names those of one action.
const maxCanceled = 16

// isAhead reports whether a browser asks ahead of its visitor.
func isAhead(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Sec-Purpose")+r.Header.Get("Purpose")+r.Header.Get("X-Moz"), "pre")
}
