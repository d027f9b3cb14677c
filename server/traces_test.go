package server

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	otlpcollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/anteroom/anteroom/config"
)

// receiver takes traces by OTLP over HTTP, as any other would.
type receiver struct {
	*httptest.Server
	headers chan http.Header

	mu    sync.Mutex
	spans []*otlp.Span
	of    map[string]string // of the resource
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{headers: make(chan http.Header, 100), of: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := io.Reader(req.Body)
		if req.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(req.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		b, err := io.ReadAll(body)
		var m otlpcollector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(b, &m)
		}
		if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%v: %s %s", err, req.URL, req.Header)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, of := range m.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				r.of[a.Key] = a.Value.GetStringValue()
			}
			for _, scope := range of.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		r.headers <- req.Header
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

// all are the spans that have come, when the server has sent what it had.
func (r *receiver) all(t *testing.T, s *Server) []*otlp.Span {
	t.Helper()
	if now := s.tracing.Load(); now.spans != nil {
		done := make(chan struct{})
		now.flush <- done
		<-done
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans
}

// named returns the spans with a name.
func named(spans []*otlp.Span, name string) (out []*otlp.Span) {
	for _, s := range spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

func said(s *otlp.Span) map[string]string {
	m := map[string]string{}
	for _, a := range s.Attributes {
		m[a.Key] = a.Value.GetStringValue()
	}
	return m
}

// tracing starts a server that traces all requests, with an origin that tells what it is sent.
func tracing(t *testing.T, yaml string) (*running, *receiver, chan http.Header) {
	t.Helper()
	to, sent := startReceiver(t), make(chan http.Header, 100)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { sent <- r.Header }))
	t.Cleanup(origin.Close)
	return startServer(t, "traces: {endpoint: \""+to.URL+"\", sample: 100%}\nsites: [{hosts: \"*\", origins: \""+origin.URL+"\"}]\n"+yaml), to, sent
}

const (
	someTrace  = "0af7651916cd43dd8448eb211c80319c"
	someParent = "00-" + someTrace + "-b7ad6b7169203331-01"
)

func TestTracesReachTheReceiver(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20collector")
	r, to, sent := tracing(t, oneRoom)
	r.admin("GET", "/-/live") // operators are not traced
	a := r.visitWith("/basket?card=visa-4111-1111", "Traceparent", someParent, "Tracestate", "rojo=1", "Baggage", "user=alice")
	if a.StatusCode != 200 {
		t.Fatal(a.StatusCode)
	}
	spans := waitSpans(t, r, to, 3)
	request, gate, origin := named(spans, "request")[0], named(spans, "gate")[0], named(spans, "origin")[0]
	for _, s := range spans {
		if hex.EncodeToString(s.TraceId) != someTrace {
			t.Errorf("%s belongs to the trace %x", s.Name, s.TraceId)
		}
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.GetStringValue(), "visa-4111") {
				t.Errorf("%s tells the query: %s", s.Name, a)
			}
		}
		if s.StartTimeUnixNano >= s.EndTimeUnixNano || time.Since(time.Unix(0, int64(s.EndTimeUnixNano))) > patience {
			t.Errorf("%s from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
	}
	if hex.EncodeToString(request.ParentSpanId) != "b7ad6b7169203331" || string(gate.ParentSpanId) != string(request.SpanId) || string(origin.ParentSpanId) != string(request.SpanId) {
		t.Error("the spans do not hang together")
	}
	if request.Kind != otlp.Span_SPAN_KIND_SERVER || origin.Kind != otlp.Span_SPAN_KIND_CLIENT {
		t.Error(request.Kind, origin.Kind)
	}
	if got := said(request); got["url.path"] != "/basket" || got["http.request.method"] != "GET" {
		t.Error(got)
	}
	if got := said(gate); got["anteroom.verdict"] != "admit" || got["anteroom.reason"] != "free_slot" || len(got["anteroom.room"]) != 32 {
		t.Error(got)
	}
	if got := said(origin); got["http.response.status_code"] != "200" {
		t.Error(got)
	}
	if to.of["service.name"] != "anteroom" || to.of["service.version"] != "test" {
		t.Error(to.of)
	}
	if h := <-to.headers; h.Get("Authorization") != "Bearer collector" {
		t.Error(h)
	}
	h := <-sent
	if want := "00-" + someTrace + "-" + hex.EncodeToString(origin.SpanId) + "-01"; h.Get("Traceparent") != want || h.Get("Tracestate") != "rojo=1" || h["Baggage"] != nil {
		t.Errorf("the origin got %s", h)
	}
	if line := r.log.String(); !strings.Contains(line, "trace_id="+someTrace) {
		t.Error("the access log does not name the trace")
	}
	if m := r.admin("GET", "/metrics", "Accept", "application/openmetrics-text"); !strings.Contains(m.body, `# {trace_id="`+someTrace+`"}`) {
		t.Error("no histogram has the trace as an example")
	}
}

// waitSpans waits until so many spans have come.
func waitSpans(t *testing.T, r *running, to *receiver, n int) []*otlp.Span {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if spans := to.all(t, r.s); len(spans) >= n {
			return spans
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("there are not %d spans", n)
		}
	}
}

// visitWith is a visitor's request with headers.
func (r *running) visitWith(path string, header ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest("GET", "http://"+r.s.Addresses().Visitors[0]+path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return r.do(req, err)
}

func TestOriginThatFailsIsAFailedSpan(t *testing.T) {
	to := startReceiver(t)
	r := startServer(t, "traces: {endpoint: \""+to.URL+"/v1/traces\", sample: 1}\nsites: [{hosts: \"*\", origins: \"http://127.0.0.1:1\"}]\n")
	if a := r.visit("/"); a.StatusCode != 502 {
		t.Fatal(a.StatusCode)
	}
	origin := named(waitSpans(t, r, to, 2), "origin")
	if len(origin) != 1 || origin[0].Status.Code != otlp.Status_STATUS_CODE_ERROR || origin[0].Status.Message != "unreachable" {
		t.Error(origin)
	}
}

// TestWhoIsTraced: strangers say to which trace a request belongs, trusted proxies also whether it is traced.
func TestWhoIsTraced(t *testing.T) {
	unsampled := strings.TrimSuffix(someParent, "1") + "0"
	for _, c := range []struct {
		sample  float64
		trusted bool
		parent  string
		traced  bool
		in      string // the trace; empty: any
	}{
		{0, false, "", false, ""},
		{0, false, someParent, false, ""},
		{0, true, someParent, true, someTrace},
		{1, true, unsampled, false, ""},
		{1, false, unsampled, true, someTrace},
		{1, true, "nonsense", true, ""},
		{1, false, "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", true, ""},
		{0, true, "nonsense", false, ""},
		{1, false, "", true, ""},
	} {
		to := startReceiver(t)
		x := &tracer{cfg: config.Traces{Endpoint: to.URL, Sample: c.sample}, log: slog.New(slog.DiscardHandler), failed: &atomic.Uint64{}}
		req := httptest.NewRequest("GET", "/", nil)
		if c.parent != "" {
			req.Header.Set("Traceparent", c.parent)
		}
		span := x.Start(req, c.trusted, time.Now())
		if (span != nil) != c.traced {
			t.Errorf("%+v: traced %v", c, span != nil)
		}
		if span != nil && (c.in != "" && span.TraceID() != c.in || c.in == "" && span.TraceID() == someTrace || len(span.Traceparent()) != 55) {
			t.Errorf("%+v: %s, %s", c, span.TraceID(), span.Traceparent())
		}
		x.stop()
		if x.Start(req, c.trusted, time.Now()) != nil && x.spans == nil {
			t.Error("it begins after its end")
		}
	}
}

// TestWhoIsNotTracedIsLeftAlone: the headers of a request that is not traced pass, baggage aside; with
// traces off that too.
func TestWhoIsNotTracedIsLeftAlone(t *testing.T) {
	sent := make(chan http.Header, 1)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { sent <- r.Header }))
	defer origin.Close()
	for yaml, baggage := range map[string]string{"": "user=alice", "traces: {endpoint: \"http://127.0.0.1:1\", sample: 0}\n": ""} {
		r := startServer(t, yaml+"sites: [{hosts: \"*\", origins: \""+origin.URL+"\"}]\n")
		r.visitWith("/", "Traceparent", someParent, "Tracestate", "rojo=1", "Baggage", "user=alice")
		if h := <-sent; h.Get("Traceparent") != someParent || h.Get("Tracestate") != "rojo=1" || h.Get("Baggage") != baggage {
			t.Errorf("%s: %s", yaml, h)
		}
	}
}

// TestReceiverThatRefuses: it costs a line in the log and a count, and visitors nothing.
func TestReceiverThatRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer full.Close()
	r := startServer(t, "traces: {endpoint: \""+full.URL+"\", sample: 1}\n")
	if a := r.visit("/"); !a.isIn() {
		t.Fatal(a.StatusCode)
	}
	r.log.await(t, 0, "the receiver of traces does not accept them")
	if m := r.admin("GET", "/metrics"); !strings.Contains(m.body, "anteroom_trace_exports_failed_total 1\n") {
		t.Error("the failure is not counted")
	}
}

// TestTracesOnReload: another receiver is taken on, the one before gets what was for it, and none is one.
func TestTracesOnReload(t *testing.T) {
	r, first, _ := tracing(t, "")
	r.visit("/")
	waitSpans(t, r, first, 2)
	second := startReceiver(t)
	r.mustReload("traces: {endpoint: \"" + second.URL + "\", sample: 1}\n")
	before := r.s.tracing.Load()
	r.mustReload("traces: {endpoint: \"" + second.URL + "\", sample: 1}\n")
	if r.s.tracing.Load() != before {
		t.Error("the same receiver was begun again")
	}
	r.visit("/")
	waitSpans(t, r, second, 2)
	r.mustReload("")
	if r.s.tracing.Load() != nil {
		t.Error("there is still one")
	}
	r.visit("/")
}

func TestValuesOfSpansCanBeSent(t *testing.T) {
	if got := valid("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("%q", got)
	}
}

// TestHoldIsInTheTrace: who comes to a short line is held for a turn that may come at once.
func TestHoldIsInTheTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r, to, _ := tracing(t, oneRoom)
	for range 3 { // inside, in line, held
		r.visit("/")
	}
	spans := waitSpans(t, r, to, 8)
	holds := named(spans, "hold")
	if len(holds) == 0 {
		t.Fatal("nobody was held")
	}
	for _, h := range holds {
		gate := named(spans, "gate")
		within := slices.ContainsFunc(gate, func(g *otlp.Span) bool {
			return string(g.SpanId) == string(h.ParentSpanId) && g.StartTimeUnixNano <= h.StartTimeUnixNano && g.EndTimeUnixNano >= h.EndTimeUnixNano
		})
		if !within || h.StartTimeUnixNano >= h.EndTimeUnixNano {
			t.Errorf("a hold outside of its gate: %v", h)
		}
	}
}

// TestReceiverThatIsBusy: a batch is sent again until the receiver takes it, and nothing is counted as lost.
func TestReceiverThatIsBusy(t *testing.T) {
	var busy atomic.Bool
	busy.Store(true)
	to := startReceiver(t)
	behind := to.Config.Handler
	to.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if busy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		behind.ServeHTTP(w, r)
	})
	x := &tracer{cfg: config.Traces{Endpoint: to.URL, Sample: 1}, version: "test", log: slog.New(slog.DiscardHandler), failed: &atomic.Uint64{}}
	flush := func() {
		done := make(chan struct{})
		x.flush <- done
		<-done
	}
	span := x.Start(httptest.NewRequest("GET", "/", nil), false, time.Now())
	span.Set("long", strings.Repeat("é", spanText))
	span.End(time.Now())
	flush()
	if len(to.spans) != 0 || x.failed.Load() != 0 {
		t.Fatalf("%d spans, %d failures", len(to.spans), x.failed.Load())
	}
	busy.Store(false)
	flush()
	x.stop()
	if len(to.spans) != 1 || x.failed.Load() != 0 {
		t.Fatalf("%d spans, %d failures", len(to.spans), x.failed.Load())
	}
	if got := said(to.spans[0])["long"]; got != strings.Repeat("é", spanText/2) {
		t.Errorf("%d bytes of a long value", len(got))
	}
}

// TestTooManySpans: what the receiver does not take in time is dropped, and no request waits.
func TestTooManySpans(t *testing.T) {
	x := &tracer{spans: make(chan []byte, 1)}
	for range 3 {
		(&requestSpan{of: x}).End(time.Now())
	}
	if len(x.spans) != 1 {
		t.Error(len(x.spans))
	}
}

// TestParentOf: what is not of the standard's form is no parent.
func TestParentOf(t *testing.T) {
	for f, want := range map[string]bool{
		someParent: true, strings.Replace(someParent, "00-", "01-", 1): true, strings.Replace(someParent, "00-", "cc-", 1) + "-more": true,
		strings.Replace(someParent, "00-", "ff-", 1): false, someParent + "-more": false, strings.Replace(someParent, "00-", "cc-", 1) + ".more": false,
		strings.ToUpper(someParent): false, someParent[:54]: false, someParent + " ": false, "": false, strings.ReplaceAll(someParent, "-", "_"): false,
		"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01": false, "00-" + someTrace + "-0000000000000000-01": false,
		strings.Replace(someParent, "0af", "0ag", 1): false, someParent[:53] + "zz": false,
	} {
		p, sampled, ok := parentOf(http.Header{"Traceparent": {f}, "Tracestate": {"a=1", "b=2"}})
		if ok != want || sampled != want || want != (p.state == "a=1,b=2") {
			t.Errorf("%q: %v, %v, %+v", f, ok, sampled, p)
		}
	}
	if _, _, ok := parentOf(http.Header{"Traceparent": {someParent, someParent}}); ok {
		t.Error("two parents")
	}
	if p, _, _ := parentOf(http.Header{"Traceparent": {someParent}, "Tracestate": {strings.Repeat("x", maxTraceState+1)}}); p.state != "" {
		t.Error("a long state is kept")
	}
}

func TestHeadersForTheReceiver(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20a%2Cb, x-scope = one ,=2,bad=%zz")
	h := traceHeaders()
	if len(h) != 2 || h.Get("Authorization") != "Bearer a,b" || h.Get("X-Scope") != "one" {
		t.Error(h)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=b")
	if h := traceHeaders(); len(h) != 1 || h.Get("A") != "b" {
		t.Error(h)
	}
}
