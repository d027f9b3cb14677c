package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/gateway"
)

// Bounds of what is traced.
const (
	spanText     = 256 // bytes of a value of a span; the rest is cut off
	spansWaiting = 2048
	spansAtOnce  = 512 // in one message
	spansEvery   = 2 * time.Second
	traceStop    = 3 * time.Second  // for the last spans to leave
	traceTimeout = 10 * time.Second // for the receiver's answer
	traceKeep    = time.Minute      // for a receiver that cannot be reached or is busy
	traceLogs    = time.Minute      // between two lines about a receiver that does not take them
	traceAnswer  = 64 << 10         // bytes of the receiver's answer that are read
)

// tracer sends traces to the receiver of a configuration, by OTLP over HTTP. Nothing of it runs before the first
// request is traced, so that one that is never put in force costs nothing.
type tracer struct {
	cfg     config.Traces
	version string
	log     *slog.Logger
	failed  *atomic.Uint64

	begin sync.Once
	spans chan []byte        // that ended, encoded; nil while nothing runs
	flush chan chan struct{} // closed once all spans that ended before have been sent
	end   chan struct{}      // closed to end
	ended chan struct{}      // closed at the end
	said  time.Time          // the last line about the receiver
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
	t.spans, t.flush, t.end, t.ended = make(chan []byte, spansWaiting), make(chan chan struct{}), make(chan struct{}), make(chan struct{})
	go t.run()
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
	if t.spans == nil {
		return
	}
	close(t.end)
	<-t.ended
}

// run sends spans until the tracer is stopped.
func (t *tracer) run() {
	defer close(t.ended)
	client := &http.Client{Timeout: traceTimeout, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-t.end
		select {
		case <-time.After(traceStop):
			cancel()
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(spansEvery)
	defer tick.Stop()
	var batch [][]byte
	var since time.Time // of the first attempt to send the batch
	send := func() {
		if len(batch) == 0 {
			return
		}
		if since.IsZero() {
			since = time.Now()
		}
		again, err := t.send(ctx, client, batch)
		if err != nil && again && time.Since(since) < traceKeep {
			return
		}
		if err != nil {
			t.fail(len(batch), err)
		}
		batch, since = nil, time.Time{}
	}
	// rest sends everything that has ended, or as much as the receiver takes.
	rest := func() {
		for {
			select {
			case span := <-t.spans:
				if batch = append(batch, span); len(batch) >= spansAtOnce {
					if send(); batch != nil {
						return
					}
				}
				continue
			default:
			}
			send()
			return
		}
	}
	for {
		spans := t.spans
		if len(batch) >= spansAtOnce {
			spans = nil // until the receiver takes those
		}
		select {
		case span := <-spans:
			if batch = append(batch, span); len(batch) >= spansAtOnce {
				send()
			}
		case <-tick.C:
			send()
		case done := <-t.flush:
			rest()
			close(done)
		case <-t.end:
			if rest(); batch != nil {
				t.fail(len(batch), errors.New("there was no time to send the last ones again"))
			}
			return
		}
	}
}

// send sends one message. It reports whether an error is one that may go away.
func (t *tracer) send(ctx context.Context, client *http.Client, batch [][]byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.address(), bytes.NewReader(exportRequest(t.version, batch)))
	if err != nil {
		return false, err
	}
	r.Header = traceHeaders()
	r.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := client.Do(r)
	if err != nil {
		return true, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, traceAnswer)) // so that the connection can be used again
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	if answer.StatusCode/100 != 2 {
		return again, fmt.Errorf("it answers %s", answer.Status)
	}
	return false, nil
}

// traceHeaders are the fields that the environment has for the receiver, as OpenTelemetry says it: name=value, with commas between
// them and values encoded as in an address. Parts of any other form are left out.
func traceHeaders() http.Header {
	list := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS"), os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"))
	h := http.Header{}
	for one := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(one, "=")
		if value, err := url.PathUnescape(strings.TrimSpace(value)); err == nil && strings.TrimSpace(name) != "" {
			h.Set(strings.TrimSpace(name), value)
		}
	}
	return h
}

// fail counts a batch that was not taken, and says so now and then. Nothing is kept of it.
func (t *tracer) fail(spans int, err error) {
	t.failed.Add(1)
	if time.Since(t.said) >= traceLogs {
		t.said = time.Now()
		t.log.Warn("the receiver of traces does not accept them", "receiver", t.cfg.Endpoint, "spans", spans, "error", err)
	}
}

// Start implements gateway.Tracer. A traceparent from the internet says which trace a request belongs to, but not
// whether we trace it: otherwise anyone could flood the receiver.
func (t *tracer) Start(r *http.Request, trusted bool, at time.Time) gateway.Span {
	parent, sampled, ok := parentOf(r.Header)
	if trusted && ok {
		if !sampled {
			return nil
		}
	} else if mathrand.Float64() >= t.cfg.Sample {
		return nil
	}
	if t.begin.Do(t.start); t.spans == nil { // it has been stopped
		return nil
	}
	s := &requestSpan{of: t, trace: parent.trace, parent: parent.span, state: parent.state, name: "request", kind: kindServer, start: at}
	if !ok {
		rand.Read(s.trace[:])
	}
	rand.Read(s.id[:])
	s.Set("http.request.method", r.Method)
	s.Set("server.address", r.Host)
	s.Set("url.path", r.URL.EscapedPath())
	return s
}

// parent is the span of another server in which a request was made.
type parent struct {
	trace [16]byte
	span  [8]byte
	state string
}

// maxTraceState is how much of tracestate a trace has, in bytes: what the standard asks for at least.
const maxTraceState = 512

// parentOf reads traceparent and tracestate (W3C Trace Context).
func parentOf(h http.Header) (p parent, sampled, ok bool) {
	fields := h["Traceparent"]
	if len(fields) != 1 {
		return p, false, false
	}
	f := fields[0]
	var version, flags [1]byte
	if len(f) < 55 || f[2] != '-' || f[35] != '-' || f[52] != '-' || f != strings.ToLower(f) || len(f) > 55 && (f[:2] == "00" || f[55] != '-') {
		return p, false, false
	}
	for _, part := range []struct {
		to   []byte
		text string
	}{{version[:], f[:2]}, {p.trace[:], f[3:35]}, {p.span[:], f[36:52]}, {flags[:], f[53:55]}} {
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil {
			return parent{}, false, false
		}
	}
	if version[0] == 0xff || p.trace == [16]byte{} || p.span == [8]byte{} {
		return parent{}, false, false
	}
	if state := strings.Join(h["Tracestate"], ","); len(state) <= maxTraceState {
		p.state = state
	}
	return p, flags[0]&1 != 0, true
}

// requestSpan implements gateway.Span. It is used by one goroutine at a time, and by none after its end.
type requestSpan struct {
	of         *tracer
	trace      [16]byte
	id, parent [8]byte
	state      string
	name       string
	kind       uint64
	start      time.Time
	attributes []byte // encoded
	failure    string // empty for a span that succeeded
}

func (s *requestSpan) Child(name string, outward bool, at time.Time) gateway.Span {
	child := &requestSpan{of: s.of, trace: s.trace, parent: s.id, state: s.state, name: name, kind: kindInternal, start: at}
	if outward {
		child.kind = kindClient
	}
	rand.Read(child.id[:])
	return child
}

func (s *requestSpan) Set(key, value string) {
	s.attributes = appendField(s.attributes, spanAttributes, attribute(key, value))
}

func (s *requestSpan) Fail(why string) { s.failure = why }
func (s *requestSpan) TraceID() string { return hex.EncodeToString(s.trace[:]) }

func (s *requestSpan) Traceparent() string {
	return "00-" + s.TraceID() + "-" + hex.EncodeToString(s.id[:]) + "-01"
}

// End leaves the span to be sent; if too many wait, it is dropped.
func (s *requestSpan) End(at time.Time) {
	select {
	case s.of.spans <- s.encode(at):
	default:
	}
}

// The numbers of fields and kinds in https://github.com/open-telemetry/opentelemetry-proto/tree/main/opentelemetry/proto.
const (
	kindInternal, kindServer, kindClient = 1, 2, 3

	spanAttributes = 9
	statusError    = 2
	isRemoteKnown  = 0x100 // a flag: whether the parent is another server's is known
	isRemote       = 0x200
)

func appendField(dst []byte, field protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), b)
}

func appendFixed(dst []byte, field protowire.Number, at time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, field, protowire.Fixed64Type), uint64(at.UnixNano()))
}

// valid is a text that can be sent: one that is not UTF-8 would take its whole batch with it.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// attribute is a text with its key.
func attribute(key, value string) []byte {
	value = valid(value)
	if len(value) > spanText {
		value = strings.ToValidUTF8(value[:spanText], "") // a character that is cut in two
	}
	return appendField(appendField(nil, 1, []byte(key)), 2, appendField(nil, 1, []byte(value)))
}

// encode is the span as a message.
func (s *requestSpan) encode(end time.Time) []byte {
	b := appendField(make([]byte, 0, 256+len(s.attributes)), 1, s.trace[:])
	b = appendField(b, 2, s.id[:])
	if s.state != "" {
		b = appendField(b, 3, []byte(valid(s.state)))
	}
	flags := uint32(1 | isRemoteKnown)
	if s.parent != [8]byte{} {
		b = appendField(b, 4, s.parent[:])
		if s.kind == kindServer {
			flags |= isRemote
		}
	}
	b = appendField(b, 5, []byte(s.name))
	b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), s.kind)
	b = appendFixed(appendFixed(b, 7, s.start), 8, end)
	b = append(b, s.attributes...)
	if s.failure != "" {
		status := appendField(nil, 2, []byte(valid(s.failure)))
		b = appendField(b, 15, protowire.AppendVarint(protowire.AppendTag(status, 3, protowire.VarintType), statusError))
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), flags)
}

// exportRequest is the message with spans.
func exportRequest(version string, spans [][]byte) []byte {
	resource := appendField(appendField(nil, 1, attribute("service.name", "anteroom")), 1, attribute("service.version", version))
	scope := appendField(nil, 1, appendField(nil, 1, []byte("github.com/anteroom/anteroom/gateway")))
	for _, s := range spans {
		scope = appendField(scope, 2, s)
	}
	return appendField(nil, 1, appendField(appendField(nil, 1, resource), 2, scope))
}
