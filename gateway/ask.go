package gateway

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

// heartbeat is the longest silence of a stream: shorter than what proxies cut off after. The page opens another stream after two of
// them. It is an event, because scripts do not see comments, and has a name and JSON like the others, so that clients who do not
// know it pass over it.
const heartbeat = 15 * time.Second

// answerAsk answers the waiting page's own questions. They never reach an origin, whatever
// the decision. Forgetful says that the page has a place, and that its ticket did not come along: the
// browser keeps no cookies. It gets no further place with each question, behind its own.
func (x *exchange) answerAsk(ask int, v anteroom.Visit, forgetful bool) {
	if !x.readsAsk(ask) {
		return
	}
	// The page asks by fetch and EventSource; what it asks for is its own place.
	v.NoJoin, v.NoClaim = forgetful, forgetful
	v.NoHold = true
	switch ask {
	case askStatus:
		x.decide(v)
		x.status()
	case askStream:
		x.openStream(v)
	case askHold:
		switch x.decide(v).Verdict {
		case anteroom.Admit, anteroom.Pass:
			// The turn has come: to the address without the question.
			x.goOn()
		default:
			x.turnAway(x.room, true)
		}
	case askReceipt:
		x.receipt()
	case askLanguages:
		x.languages()
	case askLanguage:
		x.chooseLanguage()
	case askLeave:
		x.leave(v)
	case askLeft:
		x.writeNotice(http.StatusOK, page.AppendLeft)
	case askInvite:
		x.invite(v)
	case askMove:
		x.move(v)
	case askPush:
		x.push(v)
	case askBack:
		x.comeBack(v)
	default:
		x.refuseAsk()
	}
}

// readsAsk refuses a question that is not asked with GET. To leave, to enter a code, to continue on another device, or to be notified, a
// visitor posts.
func (x *exchange) readsAsk(ask int) bool {
	if x.r.Method == http.MethodGet || x.r.Method == http.MethodHead || x.r.Method == http.MethodPost && (ask == askLeave || ask == askInvite || ask == askMove || ask == askPush) {
		return true
	}
	x.w.Header()["Allow"] = valueAllowRead
	x.g.refuse(x.w, x.r, refusal{http.StatusMethodNotAllowed, "Ask with GET", true})
	return false
}

func (x *exchange) refuseAsk() {
	x.g.refuse(x.w, x.r, refusal{http.StatusBadRequest, "The parameter " + reservedParam + " is status, stream, hold, receipt, languages, language, leave, left, invite, move, push or back", false})
}

// languageCookie holds the language that the visitor has chosen on the page.
const languageCookie = "__anteroom_language"

// languages shows the languages of the page.
func (x *exchange) languages() {
	h := x.neverStored()
	h["Content-Type"] = valueTextHTML
	h["X-Robots-Tag"] = valueNoindex
	h["Content-Security-Policy"] = []string{page.LeavePolicy(page.View{})}
	x.buf = page.AppendLanguages(x.buf[:0], x.query())
	x.write(http.StatusOK, x.buf)
}

// chooseLanguage remembers a language of the page for a year and goes back to the address.
func (x *exchange) chooseLanguage() {
	_, name, _ := strings.Cut(x.r.URL.RawQuery, page.LanguageQuery)
	name, _, _ = strings.Cut(name, "&")
	if !page.IsLanguage(name) {
		x.refuseAsk()
		return
	}
	c := http.Cookie{Name: languageCookie, Value: name, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, Secure: x.https, SameSite: http.SameSiteLaxMode}
	x.neverStored()["Set-Cookie"] = []string{c.String()}
	x.back()
}

// language is that of the built-in page.
func (x *exchange) language() string {
	chosen := ""
	eachCookie(x.cookies, languageCookie, func(value string) { chosen = value })
	accept := ""
	if lines := x.r.Header["Accept-Language"]; len(lines) > 0 {
		accept = lines[0]
	}
	return page.Negotiate(chosen, accept, string(x.room.DefaultTemplateLanguage))
}

// status answers with the place as the page's script reads it.
func (x *exchange) status() {
	h := x.neverStored()
	x.conn.waits(true)
	x.giveTicket(h)
	h["Content-Type"] = valueJSON
	view := x.view(false)
	if x.room.isUninvited(&view.Decision) {
		view.Decision.Verdict = anteroom.Pass // the page goes to its address, which asks for a code
	}
	x.buf = page.AppendStatus(x.buf[:0], &view)
	x.write(http.StatusOK, x.buf)
}

// giveTicket sets the cookie when the decision wants it.
func (x *exchange) giveTicket(h http.Header) {
	if x.decision.SetCookie || (x.stale || x.solved) && !x.decision.Ticket.ID.IsZero() {
		h["Set-Cookie"] = x.value(x.setCookie(x.decision.Ticket))
	}
}

// goOn sends a visitor who has paused the page and whose turn has come to the address
// itself: the same path and query without our parameter. The Location is relative, so that
// no host can be smuggled into it.
func (x *exchange) goOn() {
	x.giveTicket(x.neverStored())
	x.back()
}

// back goes to the same path and query.
func (x *exchange) back() {
	x.w.Header()["Location"] = []string{"?" + x.query()}
	x.write(http.StatusSeeOther, nil)
}

// query is that of the page on which the visitor waits. Its links replace the query: what it was is in the Referer.
func (x *exchange) query() string {
	query := withoutAsk(x.r.URL.RawQuery)
	if query != "" {
		return query
	}
	from, err := url.Parse(x.r.Header.Get("Referer"))
	if err != nil || from.Host != x.r.Host || from.EscapedPath() != x.r.URL.EscapedPath() {
		return ""
	}
	return withoutAsk(from.RawQuery)
}

// openStream begins to keep the visitor informed by server-sent events until the turn comes, which the stream goes on with
// when the exchange is over. Where no stream is to be had the answer is 204, at which an EventSource gives up and the page
// polls; the node bounds the number.
func (x *exchange) openStream(v anteroom.Visit) {
	g, w, r := x.g, x.w, x.r
	v.Stream = true
	if g.isDraining() || v.NoJoin {
		x.neverStored()
		x.write(http.StatusNoContent, nil)
		return
	}
	d, updates := x.room.door.Watch(r.Context(), v)
	x.decision = d
	x.keepMoved(&v)
	x.decided()
	h := x.neverStored()
	x.giveTicket(h)
	admitted := d.Verdict == anteroom.Admit || d.Verdict == anteroom.Pass
	if updates == nil && !admitted {
		x.write(http.StatusNoContent, nil)
		return
	}
	h["Content-Type"] = valueStream
	h["X-Accel-Buffering"] = valueNo // nginx would hold the events back
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	t := &stream{g: g, room: x.room, gone: r.Context().Done(), void: x.s.void, updates: updates, view: x.view(false),
		eventWriter: eventWriter{w: w, rc: http.NewResponseController(w), within: x.s.Timeouts.Page, lifts: r.ProtoMajor != 1}}
	if t.event(&d) && !admitted {
		t.span, x.span = x.span, nil
		x.stream = t
	}
}

// stream is an open stream of a visitor who waits. It is there for hours, and there are thousands: it keeps what it needs
// of its exchange, which is given back, and its goroutine's stack stays small.
type stream struct {
	eventWriter
	g       *Gateway
	room    *room
	gone    <-chan struct{} // the visitor has left
	void    <-chan struct{} // the ticket opens no more: the visitor has to come for another one, before others do
	updates <-chan *anteroom.Decision
	view    page.View // of the event before
	pulse   *time.Ticker
	span    Span // of the request; nil when it is not traced
}

// begin is called before the first step, end after the last one.
func (t *stream) begin() {
	t.g.count.streams.Add(1)
	t.pulse = time.NewTicker(heartbeat)
}

func (t *stream) end() {
	t.pulse.Stop()
	t.g.count.streams.Add(-1)
	if t.span != nil {
		t.span.End(time.Now())
	}
}

// step waits for one thing to happen and tells the visitor. It reports whether the stream goes on.
func (t *stream) step() bool {
	select {
	case d := <-t.updates:
		return t.changed(d)
	case <-t.pulse.C:
		return t.beat()
	case <-t.g.drain:
		t.again() // another process takes over in a moment
	case <-t.void:
		t.again()
	case <-t.gone:
	}
	return false
}

// changed takes an update; nil is the end of them: a reset, or another node serves the visitor better.
func (t *stream) changed(d *anteroom.Decision) bool {
	if d == nil {
		t.again()
		return false
	}
	return t.event(d) && d.Verdict != anteroom.Admit && d.Verdict != anteroom.Pass
}

func (t *stream) beat() bool {
	if s := t.g.live.Load(); t.room.shadowIn(s) { // since then
		t.event(&anteroom.Decision{Verdict: anteroom.Pass, At: s.now()})
		return false
	}
	return t.send([]byte("event: beat\ndata: {}\n\n"))
}

// event sends the decision as a server-sent event: "place", or "go" when the next request will be served. It reports whether
// the visitor is still there.
func (t *stream) event(d *anteroom.Decision) bool {
	buffer := t.g.buffers.Get()
	defer t.g.buffers.Put(buffer)
	if t.room.isUninvited(d) { // as in status
		gone := *d
		gone.Verdict = anteroom.Pass
		d = &gone
	}
	b := append(buffer[:0], "event: place\ndata: "...)
	if d.Verdict == anteroom.Admit || d.Verdict == anteroom.Pass {
		b = append(buffer[:0], "event: go\ndata: "...)
	}
	t.view.Decision, t.view.Template, t.view.Lane, t.view.Now, t.view.Countdown = *d, t.room.pageOf(d), t.room.laneShown(d), time.Now(), 0
	if d.Verdict == anteroom.Admit && d.Ticket.ID.IsZero() { // a turn, and no session yet
		t.view.Countdown = t.room.CountdownFor()
	}
	return t.send(append(page.AppendStatus(b, &t.view), "\n\n"...))
}

// eventWriter sends events, each within a time of its own.
type eventWriter struct {
	w  http.ResponseWriter
	rc *http.ResponseController

	within time.Duration
	// lifts says that the time has to be taken back: in HTTP/2 its end resets the stream, though nothing waits to be written. In
	// HTTP/1.1 it also bounds the end of the answer.
	lifts bool
}

// again tells the page to open another stream soon, but not everybody at once. It also renews the time in which the end of the
// answer may be written.
func (e *eventWriter) again() {
	e.send(append(strconv.AppendInt([]byte("retry: "), 1000+rand.Int64N(5000), 10), "\n\n"...))
}

func (e *eventWriter) send(b []byte) bool {
	e.rc.SetWriteDeadline(time.Now().Add(e.within))
	if _, err := e.w.Write(b); err != nil {
		return false
	}
	if e.rc.Flush() != nil {
		return false
	}
	if e.lifts {
		e.rc.SetWriteDeadline(time.Time{})
	}
	return true
}
