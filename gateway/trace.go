package gateway

import (
	"net/http"
	"strconv"
	"time"
)

// Tracer records traces of requests (W3C Trace Context). Safe for concurrent use.
type Tracer interface {
	// Start begins the span of a request, or returns nil if it is not traced. Trusted says that the headers come from
	// one of the operator's proxies. The request must not be kept.
	Start(r *http.Request, trusted bool, at time.Time) Span
}

// Span is a part of a trace that is going on. Not safe for concurrent use.
type Span interface {
	// Child begins a span within this one. Outward says that it is a request to another server.
	Child(name string, outward bool, at time.Time) Span
	// Set says something of the span. Keys are few, values of any length.
	Set(key, value string)
	// Fail says that the span did not succeed, and why.
	Fail(why string)
	// Traceparent is the value of the header that makes what another server does a part of the span.
	Traceparent() string
	// TraceID names the trace.
	TraceID() string
	End(at time.Time)
}

// trace begins the request's trace. Where traces are recorded no baggage passes: the operator
// has not asked for what strangers would write into the traces of every service behind us.
func (x *exchange) trace() {
	delete(x.r.Header, "Baggage")
	x.span = x.s.Tracer.Start(x.r, x.trusted, x.start)
}

// traceGate records what led to the decision: the gate, and in it the hold, when the request
// had to wait for a slot or for its site.
func (x *exchange) traceGate(took time.Duration) {
	d, end := &x.decision, x.start.Add(took)
	gate := x.span.Child("gate", false, x.start)
	if x.held > 0 {
		gate.Child("hold", false, end.Add(-x.held)).End(end)
	}
	gate.Set("anteroom.room", string(x.room.ID))
	gate.Set("anteroom.verdict", d.Verdict.String())
	gate.Set("anteroom.reason", d.Reason.String())
	gate.End(end)
	x.g.count.gateExample.Store(&Example{took, end, x.span.TraceID()})
}

// traceOrigin begins the span of the request to the origin, whose headers are h.
func (x *exchange) traceOrigin(h http.Header) {
	x.ask = x.span.Child("origin", true, time.Now())
	if x.origin != nil {
		x.ask.Set("server.address", x.origin.url.Host)
	}
	h["Traceparent"] = []string{x.ask.Traceparent()}
}

// traceAnswer ends it when the headers of the answer, or none, have come.
func (x *exchange) traceAnswer(took time.Duration, res *http.Response, err error) {
	now := time.Now()
	if err != nil {
		x.ask.Fail(OriginErrorWords[kindOf(x.r.Context(), err)])
	} else {
		x.ask.Set("http.response.status_code", strconv.Itoa(res.StatusCode))
		x.g.count.originExample.Store(&Example{took, now, x.ask.TraceID()})
	}
	x.ask.End(now)
}
