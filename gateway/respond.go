package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

// Bounds of answers that we write ourselves.
const (
	// answerTime is how long a visitor may take to receive an answer of ours, unless
	// Timeouts.Page says otherwise for the waiting page.
	answerTime = 10 * time.Second
	// bodyTime is how long the small body of a request that waits may take to arrive, or of one that is served beside the gateway.
	bodyTime = 10 * time.Second
	// lengthByServer is the size below which net/http finds the Content-Length itself. A
	// header less matters: up to eight, a header map is one small table.
	lengthByServer = 2048
)

// turnAway answers a request that is not admitted: the waiting page at the requested
// address, its JSON, or a few words to a sub-resource. Conditions and ranges of the request
// play no part: a waiting page is never 206 or 304.
func (x *exchange) turnAway(rm *room, hold bool) {
	r, d := x.r, x.decision
	h := x.neverStored()
	x.conn.waits(true)
	x.spareBody()
	if isSubresource(r) || x.websocket || d.Reason == anteroom.ReasonNotJoining {
		x.turnAwayPart(h)
		return
	}
	x.giveTicket(h)
	status := rm.QueueingStatusCode
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		// What was sent has not been done and will not be repeated for the visitor: no 2xx.
		status = http.StatusTooManyRequests
	}
	view := x.view(hold)
	x.challenge(&view)
	n := page.RefreshSeconds(&view)
	if d.Verdict == anteroom.Refuse && x.answersJSON() {
		n = 0 // as published, and as the object says
	}
	if n > 0 {
		seconds := x.value(strconv.Itoa(n))
		h["Refresh"] = seconds
		if status == http.StatusTooManyRequests {
			h["Retry-After"] = seconds
		}
	}
	if x.writeViewAsJSON(status, &view) {
		return
	}
	if back := x.unsent(&view); back != "" && n > 0 {
		h["Refresh"] = x.value(strconv.Itoa(n) + "; url=" + back)
	}
	x.writePage(h, status, &view)
}

// writePage sends the page of a view, in the room's style.
func (x *exchange) writePage(h http.Header, status int, view *page.View) {
	zip := acceptsGzip(x.r)
	x.buf = page.AppendPage(x.buf[:0], view, zip)
	h["Content-Type"] = valueTextHTML
	h["X-Robots-Tag"] = valueNoindex
	if zip {
		h["Content-Encoding"] = valueGzip
	}
	if view.Template == nil {
		h["Content-Security-Policy"] = x.s.policyOf(view)
	}
	x.write(status, x.buf)
}

// turnAwayPart answers an image, script, style or WebSocket: no page, and no cookie, whose
// late arrival could overwrite a better one.
func (x *exchange) turnAwayPart(h http.Header) {
	h["Content-Type"] = valueTextPlain
	view := x.view(false)
	seconds := max(page.RefreshSeconds(&view), 5)
	h["Retry-After"] = x.value(strconv.Itoa(seconds))
	x.write(http.StatusTooManyRequests, append(x.buf[:0], "The visitor is in the queue.\n"...))
}

// writeViewAsJSON answers with what the page would say, if the request prefers JSON and the room has it.
func (x *exchange) writeViewAsJSON(status int, view *page.View) bool {
	if !x.answersJSON() {
		return false
	}
	x.buf = page.AppendJSON(x.buf[:0], view)
	x.w.Header()["Content-Type"] = valueJSON
	x.write(status, x.buf)
	return true
}

func (x *exchange) answersJSON() bool {
	return x.room.JSONResponse && wantsJSON(x.r, x.room.JSONExact)
}

// view is what the page is made from.
func (x *exchange) view(hold bool) page.View {
	now := x.clock // not the start: the request may have been held
	if now.IsZero() {
		now = time.Now()
	}
	return page.View{
		Decision:  x.decision,
		Language:  x.language(),
		Template:  x.room.pageOf(&x.decision),
		Brand:     x.room.brand,
		Lane:      x.room.laneShown(&x.decision),
		Codes:     x.room.risesByCode(&x.decision) && x.s.LaneCodes != nil && x.s.LaneCodes(x.room.ID),
		Now:       now,
		Returning: len(x.tickets) > 0,
		Paused:    hold,
		Push:      x.offersPush(),
	}
}

// pageOf is the page of the active event, or else the room's; nil is the built-in page.
func (r *room) pageOf(d *anteroom.Decision) *page.Template {
	if f := d.InForce; f != nil && f.Event != nil && f.Event.CustomPageHTML != nil {
		if *f.Event.CustomPageHTML == "" {
			return nil
		}
		if t := r.events[f.Event.ID]; t != nil {
			return t
		}
	}
	return r.template
}

// value makes a header's value of s. The first few of an answer share one allocation; they
// are not reused, because whoever wraps us may look at the headers afterwards.
func (x *exchange) value(s string) []string {
	if len(x.values) == 0 {
		x.values = new([4]string)[:]
	}
	v := x.values[:1:1]
	x.values = x.values[1:]
	v[0] = s
	return v
}

// neverStored writes the headers that every answer of the gate has.
func (x *exchange) neverStored() http.Header {
	h := x.w.Header()
	h["Cache-Control"] = valueNoStore
	h["Cdn-Cache-Control"] = valueCDN
	h["Surrogate-Control"] = valueCDN
	h["Vary"] = valueVary
	h["X-Content-Type-Options"] = valueNosniff
	return h
}

// write sends a whole answer within Timeouts.Page.
func (x *exchange) write(status int, body []byte) {
	if len(body) >= lengthByServer || x.r.Method == http.MethodHead {
		x.w.Header()["Content-Length"] = x.value(strconv.Itoa(len(body)))
	}
	boundAnswer(x.w, x.r, x.conn, x.start.Add(x.s.Timeouts.Page))
	sent := x.r.Method != http.MethodHead && len(body) > 0
	x.w.WriteHeader(status)
	if sent {
		x.w.Write(body)
	}
}

// boundAnswer has the visitor receive by a moment an answer that is about to be written as a whole. In HTTP/1.1 the next request on
// the connection takes the bound back; in HTTP/2 it is the stream's, and would end an answer that goes on.
func boundAnswer(w http.ResponseWriter, r *http.Request, c *conn, by time.Time) {
	if r.ProtoMajor != 1 || !c.closeAt(by) {
		// A writer that knows no deadlines has its own, or none is wanted (tests, middleware).
		http.NewResponseController(w).SetWriteDeadline(by)
	}
}

// spareBody sees to the body of a request that will not be served. Up to MaxBodyUnadmitted
// bytes net/http reads it and keeps the connection. Beyond that, and when the length is
// not known, nothing is read and the connection ends with the answer; when the client waits
// for a 100, net/http does that itself (and HTTP/2 resets the stream).
func (x *exchange) spareBody() {
	r := x.r
	if r.ContentLength == 0 || r.Body == nil {
		return
	}
	if r.ProtoMajor == 1 {
		if r.ContentLength < 0 || r.ContentLength > anteroom.MaxBodyUnadmitted {
			x.w.Header()["Connection"] = valueClose
		}
	}
	http.NewResponseController(x.w).SetReadDeadline(x.start.Add(bodyTime))
}
