package page

import (
	"strconv"
	"time"

	"github.com/anteroom/anteroom"
)

// happening is what a page tells of an event. The zero value is no event.
type happening struct {
	active      bool // from the prequeue on
	prequeueing bool
	shuffle     bool
	start, end  time.Time // by the wall clock, as events are; zero when there is none to tell
}

func happeningOf(d *anteroom.Decision) happening {
	f := d.InForce
	if f == nil || f.Event == nil || f.Phase == anteroom.NoEvent {
		return happening{prequeueing: d.Reason == anteroom.ReasonPrequeue}
	}
	h := happening{active: true, prequeueing: f.Phase == anteroom.Prequeueing, shuffle: f.Event.ShuffleAtStart}
	h.end = f.End
	if h.prequeueing {
		h.start = f.Start
	}
	return h
}

// messageOf returns what the operator says to everybody who waits; empty means nothing.
func messageOf(d *anteroom.Decision) string {
	if d.InForce == nil {
		return ""
	}
	return d.InForce.Message
}

// appendEscaped writes text into HTML.
func appendEscaped(dst []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; c {
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '&':
			dst = append(dst, "&amp;"...)
		case '"':
			dst = append(dst, "&#34;"...)
		case '\'':
			dst = append(dst, "&#39;"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// appendQuotable writes text into a JSON string that may stand inside of HTML.
func appendQuotable(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c == '<' || c == '>' || c == '&':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// wall is the wall clock at the decision.
func (v *View) wall() time.Time {
	if v.Now.IsZero() {
		return v.Decision.At.Std()
	}
	return v.Now
}

// until is the time from a decision to a moment; zero when there is none or it has passed.
func (v *View) until(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return min(max(t.Sub(v.wall()), 0), maxUntil)
}

// maxUntil keeps what is told of hostile numbers within reason.
const maxUntil = 100 * 365 * 24 * time.Hour

// seconds rounds up.
func seconds(d time.Duration) int64 {
	return int64((max(d, 0) + time.Second - 1) / time.Second)
}

// appendEnglishSpan writes a countdown: unlike a forecast it is exact to the minute.
func appendEnglishSpan(dst []byte, known bool, minutes int64) []byte {
	if !known {
		return append(dst, "unavailable"...)
	}
	if hours := minutes / 60; hours > 0 {
		dst = appendCount(dst, hours, " hour")
		if minutes %= 60; minutes == 0 {
			return dst
		}
		dst = append(dst, ' ')
	}
	return appendCount(dst, minutes, " minute")
}

func appendCount(dst []byte, n int64, unit string) []byte {
	dst = strconv.AppendInt(dst, n, 10)
	dst = append(dst, unit...)
	if n != 1 {
		dst = append(dst, 's')
	}
	return dst
}

// aheadKnown reports whether the place can be shown: while an order is still to be drawn it
// would mean nothing.
func aheadKnown(d *anteroom.Decision) bool {
	h := happeningOf(d)
	return d.AheadKnown && !(h.prequeueing && h.shuffle)
}
