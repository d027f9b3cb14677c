package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/anteroom/anteroom"
)

// Bounds of the access log.
const (
	linesPerSecond = 200
	oneRepeatIn    = 100 // of decisions that tell nothing new
	logPathBytes   = 256
	logIDBytes     = 64
)

// logBound holds the access log to linesPerSecond.
type logBound struct {
	second  atomic.Int64
	lines   atomic.Int64
	repeats atomic.Uint64
}

func (b *logBound) allow(at anteroom.Time) bool {
	second := int64(at / 1e6)
	if old := b.second.Load(); old != second && b.second.CompareAndSwap(old, second) {
		b.lines.Store(0)
	}
	return b.lines.Add(1) <= linesPerSecond
}

// isRepeat reports whether the decision confirms what was so before.
func isRepeat(d *anteroom.Decision) bool {
	switch d.Reason {
	case anteroom.ReasonSession, anteroom.ReasonWaiting, anteroom.ReasonEarly, anteroom.ReasonSuspended, anteroom.ReasonNotJoining:
		return true
	default:
		return false
	}
}

// logDecision writes the access log's line: who (by reference code), where, what and why.
// Never a ticket, cookie, token or query; the path as it came, escaped, cut.
func (x *exchange) logDecision() {
	log, d := x.s.log, &x.decision
	if log == nil || !log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	if isRepeat(d) && x.g.lines.repeats.Add(1)%oneRepeatIn != 1 {
		return
	}
	if !x.g.lines.allow(x.s.now()) {
		x.g.count.logSuppressed.Add(1)
		return
	}
	path := x.r.URL.EscapedPath()
	if len(path) > logPathBytes {
		path = path[:logPathBytes]
	}
	line := [11]slog.Attr{
		slog.String("room", x.room.Name),
		slog.String("room_id", string(x.room.ID)),
		slog.String("verdict", d.Verdict.String()),
		slog.String("reason", d.Reason.String()),
		slog.String("visitor", d.Ticket.ID.Reference()),
		slog.String("client", addrString(x.client)),
		slog.String("method", x.r.Method),
		slog.String("host", x.r.Host),
		slog.String("path", path),
	}
	attrs := line[:9]
	if id := requestID(x.r.Header); id != "" {
		attrs = append(attrs, slog.String("request_id", id))
	}
	if x.span != nil {
		attrs = append(attrs, slog.String("trace_id", x.span.TraceID()))
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, "decision", attrs...)
}

// requestID is what a proxy or the client calls the request, when it is such a name: others know it
// by that, and nothing here relies on it.
func requestID(h http.Header) string {
	v := h["X-Request-Id"]
	if len(v) != 1 || len(v[0]) > logIDBytes || strings.Trim(v[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return ""
	}
	return v[0]
}

func (x *exchange) logOrigin(kind int, err error) {
	log := x.s.log
	if log == nil || !x.g.lines.allow(x.s.now()) {
		return
	}
	log.LogAttrs(context.Background(), slog.LevelWarn, "origin",
		slog.String("origin", x.origin.url.Host),
		slog.String("problem", OriginErrorWords[kind]),
		slog.String("error", err.Error()),
	)
}

func (x *exchange) logProof(err error) {
	if log := x.s.log; log != nil && x.g.lines.allow(x.s.now()) {
		log.LogAttrs(context.Background(), slog.LevelError, "proof", slog.String("room", x.room.Name), slog.String("error", err.Error()))
	}
}

// logToken says that nobody could say whether a token is good.
func (x *exchange) logToken(came result, why string) {
	if log := x.s.log; log != nil && x.g.lines.allow(x.s.now()) {
		log.Warn("a token could not be verified", "url", x.s.challenge.VerifyURL, "error", why, "solved", came == waived)
	}
}
