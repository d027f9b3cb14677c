package server

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/gateway"
)

// Bounds of what is traced.
const (
	spanText     = 256 // bytes of a value of a span; the rest is cut off
	spansWaiting = 2048
	spansEvery   = 2 * time.Second
	traceStop    = 3 * time.Second // for the last spans to leave
	traceLogs    = time.Minute     // between two lines about a receiver that does not take them
)

// tracer sends traces to the receiver of a configuration. Nothing of it runs before the first
// request is traced, so that one that is never put in force costs nothing.
type tracer struct {
	cfg     config.Traces
	version string
	log     *slog.Logger
	failed  *atomic.Uint64

	begin    sync.Once
	provider *sdktrace.TracerProvider
	spans    trace.Tracer
}

// tracerOf returns the tracer for a configuration: the one in force if that is the same; nil without an endpoint.
func (s *Server) tracerOf(cfg config.Traces) *tracer {
	if cfg.Endpoint == "" {
		return nil
	}
	if now := s.tracing.Load(); now != nil && now.cfg == cfg {
		return now
	}
	return &tracer{cfg: cfg, version: s.opts.Version, log: s.log, failed: &s.traceFailures}
}

// trace puts a tracer in force. What the one before has left is sent.
func (s *Server) trace(t *tracer) {
	if before := s.tracing.Swap(t); before != nil && before != t {
		go before.stop()
	}
}

func (t *tracer) start() {
	exporter := otlptracehttp.NewUnstarted(otlptracehttp.WithEndpointURL(t.address()))
	if err := exporter.Start(context.Background()); err != nil {
		t.log.Error("traces cannot be sent", "receiver", t.cfg.Endpoint, "error", err)
	}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // who is traced has been decided then
		sdktrace.WithBatcher(&counting{SpanExporter: exporter, tracer: t}, sdktrace.WithMaxQueueSize(spansWaiting), sdktrace.WithBatchTimeout(spansEvery)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "anteroom"), attribute.String("service.version", t.version))),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeValueLengthLimit: spanText, AttributeCountLimit: 32, EventCountLimit: 8, LinkCountLimit: 1}))
	t.spans = t.provider.Tracer("github.com/anteroom/anteroom/gateway")
}

// address is the receiver's, with the path that the protocol has when none is given.
func (t *tracer) address() string {
	u, err := url.Parse(t.cfg.Endpoint)
	if err == nil && (u.Path == "" || u.Path == "/") {
		u.Path = "/v1/traces"
		return u.String()
	}
	return t.cfg.Endpoint
}

// stop sends what is left, for a few seconds at most.
func (t *tracer) stop() {
	t.begin.Do(func() {}) // nothing begins any more
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), traceStop)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces were not sent", "receiver", t.cfg.Endpoint, "error", err)
	}
}

// Start implements gateway.Tracer. A traceparent from the internet says which trace a request belongs to, but not
// whether we trace it: otherwise anyone could flood the receiver.
func (t *tracer) Start(r *http.Request, trusted bool, at time.Time) gateway.Span {
	var parent trace.SpanContext
	given := len(r.Header["Traceparent"]) > 0
	if given && trusted {
		parent = spanContext(r.Header)
	}
	if parent.IsValid() {
		if !parent.IsSampled() {
			return nil
		}
	} else if rand.Float64() >= t.cfg.Sample {
		return nil
	} else if given {
		parent = spanContext(r.Header)
	}
	if t.begin.Do(t.start); t.spans == nil { // it has been stopped
		return nil
	}
	ctx, span := t.spans.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), "request", trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("server.address", valid(r.Host)), attribute.String("url.path", valid(r.URL.EscapedPath()))))
	return &requestSpan{t, ctx, span}
}

// spanContext reads traceparent and tracestate; the zero one when they are not valid.
func spanContext(h http.Header) trace.SpanContext {
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(h)))
}

// valid is a text that can be sent: one that is not UTF-8 would take its whole batch with it.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// requestSpan implements gateway.Span.
type requestSpan struct {
	of   *tracer
	ctx  context.Context
	span trace.Span
}

func (s *requestSpan) Child(name string, outward bool, at time.Time) gateway.Span {
	kind := trace.SpanKindInternal
	if outward {
		kind = trace.SpanKindClient
	}
	ctx, span := s.of.spans.Start(s.ctx, name, trace.WithTimestamp(at), trace.WithSpanKind(kind))
	return &requestSpan{s.of, ctx, span}
}

func (s *requestSpan) Set(key, value string) {
	s.span.SetAttributes(attribute.String(key, valid(value)))
}

func (s *requestSpan) Fail(why string)  { s.span.SetStatus(codes.Error, why) }
func (s *requestSpan) TraceID() string  { return s.span.SpanContext().TraceID().String() }
func (s *requestSpan) End(at time.Time) { s.span.End(trace.WithTimestamp(at)) }

func (s *requestSpan) Traceparent() string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(s.ctx, carrier)
	return carrier["traceparent"]
}

// counting counts batches that were not taken, and says so now and then. Nothing is kept of them.
type counting struct {
	sdktrace.SpanExporter
	tracer *tracer
	said   time.Time // one batch is exported at a time
}

func (c *counting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		c.tracer.failed.Add(1)
		if time.Since(c.said) >= traceLogs {
			c.said = time.Now()
			c.tracer.log.Warn("the receiver of traces does not accept them", "receiver", c.tracer.cfg.Endpoint, "spans", len(spans), "error", err)
		}
	}
	return nil
}
