package page

import (
	"math"
	"strconv"
	"time"

	"github.com/anteroom/anteroom"
)

// AppendJSON appends the published object for apps: one member, cfWaitingRoom, with its 25
// fields in their published order. Fields that are not valid are 0, false or "unavailable".
func AppendJSON(dst []byte, v *View) []byte {
	d := &v.Decision
	p := publish(v)
	dst = append(dst, `{"cfWaitingRoom":{"inWaitingRoom":true,"waitTimeKnown":`...)
	dst = strconv.AppendBool(dst, p.known)
	dst = appendField(dst, `,"waitTime":`, p.wait)
	dst = appendField(dst, `,"waitTime25Percentile":`, p.p25)
	dst = appendField(dst, `,"waitTime50Percentile":`, p.p50)
	dst = appendField(dst, `,"waitTime75Percentile":`, p.p75)
	dst = append(dst, `,"waitTimeFormatted":"`...)
	dst = p.appendFormatted(dst)
	dst = append(dst, `","queueIsFull":`...)
	dst = strconv.AppendBool(dst, d.QueueIsFull)
	dst = append(dst, `,"queueAll":`...)
	dst = strconv.AppendBool(dst, d.QueueAll)
	dst = append(dst, `,"lastUpdated":"`...)
	dst = appendISO(dst, v.updated())
	dst = appendField(dst, `","refreshIntervalSeconds":`, int64(intervalSeconds(d)))
	dst = append(dst, `,"queueingMethod":"`...)
	dst = append(dst, p.method...)
	dst = append(dst, `","isFIFOQueue":`...)
	dst = strconv.AppendBool(dst, p.method == anteroom.FIFO)
	dst = append(dst, `,"isRandomQueue":`...)
	dst = strconv.AppendBool(dst, p.method == anteroom.Random)
	dst = append(dst, `,"isPassthroughQueue":`...)
	dst = strconv.AppendBool(dst, p.passthrough)
	dst = append(dst, `,"isRejectQueue":`...)
	dst = strconv.AppendBool(dst, p.reject)
	dst = append(dst, `,"isEventActive":`...)
	dst = strconv.AppendBool(dst, p.active)
	dst = append(dst, `,"isEventPrequeueing":`...)
	dst = strconv.AppendBool(dst, p.prequeueing)
	dst = appendField(dst, `,"timeUntilEventStart":`, p.untilStart)
	dst = append(dst, `,"timeUntilEventStartFormatted":"`...)
	dst = appendEnglishSpan(dst, p.prequeueing, p.untilStart)
	dst = appendField(dst, `","timeUntilEventEnd":`, p.untilEnd)
	dst = append(dst, `,"timeUntilEventEndFormatted":"`...)
	dst = appendEnglishSpan(dst, p.active, p.untilEnd)
	dst = append(dst, `","shuffleAtEventStart":`...)
	dst = strconv.AppendBool(dst, p.shuffle)
	dst = append(dst, `,"turnstile":"`...)
	dst = appendQuotable(dst, string(v.Challenge))
	dst = append(dst, `","infiniteQueue":`...)
	dst = strconv.AppendBool(dst, v.Infinite)
	return append(appendLane(dst, v), `}}`...)
}

// AppendStatus appends what the page's script works with, at most 350 bytes beside the message and the lane:
//
//	admitted  the next request of the page's own URL passes
//	ahead     people before the visitor, or null
//	wait      forecast in seconds, or null
//	lo, hi    the range that is shown, in seconds; 0 when there is none. Only lo: at least
//	refresh   seconds after which to ask again; 0 means never
//	kept      milliseconds since 1970 until which the place is kept; 0 means no place
//	stream    a stream may be opened
//	reason    word of [anteroom.Reason]
//	at        milliseconds since 1970 of the last counted attempt
//	state     line, draw, held, long, full, closed, prequeue, shuffle, drained, origin, sold, lottery or rejected
//	start     seconds until the event starts, in the states prequeue and shuffle; else 0
//	end       seconds until the event that has started ends; 0 without one
//	ref       reference code, empty without a place
//	offer     seconds that a page in the background counts down before it takes this turn; left out when a session has begun
//	left      how many are left of what the visitor waits for; left out when nobody has said
//	chance    in the state lottery: the chance in percent, rounded down to tenths, as the page shows it behind the moment
//	next      likewise: milliseconds since 1970 at which it applies
//	push      1: the page may offer web push; left out otherwise
//	message   what the operator says to everybody who waits; left out when there is nothing
func AppendStatus(dst []byte, v *View) []byte {
	d := &v.Decision
	dst = append(dst, `{"admitted":`...)
	dst = strconv.AppendBool(dst, d.Verdict == anteroom.Admit || d.Verdict == anteroom.Pass)
	if aheadKnown(d) {
		dst = appendField(dst, `,"ahead":`, int64(d.Ahead))
	} else {
		dst = append(dst, `,"ahead":null`...)
	}
	low, high, known := waitRange(d)
	if known && d.WaitKnown {
		dst = appendField(dst, `,"wait":`, int64(d.WaitTime/time.Second))
	} else {
		dst = append(dst, `,"wait":null`...)
	}
	dst = appendField(dst, `,"lo":`, low*60)
	dst = appendField(dst, `,"hi":`, high*60)
	refresh := int64(refreshSeconds(d))
	if v.Preview {
		refresh = 0
	}
	dst = appendField(dst, `,"refresh":`, refresh)
	dst = appendField(dst, `,"kept":`, momentMilli(v, d.KeptUntil))
	dst = append(dst, `,"stream":`...)
	dst = strconv.AppendBool(dst, d.Stream)
	dst = append(dst, `,"reason":"`...)
	dst = append(dst, d.Reason.String()...)
	dst = appendField(dst, `","at":`, v.updated().UnixMilli())
	dst = append(dst, `,"state":"`...)
	st := stateOf(d)
	dst = append(dst, stateWords[st]...)
	start, end := countdowns(v, st)
	dst = appendField(dst, `","start":`, seconds(start))
	dst = appendField(dst, `,"end":`, seconds(end))
	dst = append(dst, `,"ref":"`...)
	dst = appendReference(dst, d.Ticket.ID)
	dst = append(dst, '"')
	if v.Countdown > 0 {
		dst = appendField(dst, `,"offer":`, seconds(v.Countdown))
	}
	if left, told := remaining(d, st); told {
		dst = appendField(dst, `,"left":`, int64(left))
	}
	if st == chances {
		dst = appendPercent(append(dst, `,"chance":" · `...), chanceOf(d))
		dst = appendField(dst, `","next":`, momentMilli(v, d.Ticket.Next))
	}
	dst = appendLane(dst, v)
	if v.Push {
		dst = append(dst, `,"push":1`...)
	}
	if m := messageOf(d); m != "" {
		dst = append(dst, `,"message":"`...)
		dst = appendQuotable(dst, m)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// appendLane appends the name of the visitor's lane, which the published object has not; nothing without one.
func appendLane(dst []byte, v *View) []byte {
	if v.Lane == "" {
		return dst
	}
	return append(appendQuotable(append(dst, `,"lane":"`...), v.Lane), '"')
}

// chanceOf is the chance that the page shows: none while the operator admits no one.
func chanceOf(d *anteroom.Decision) float64 {
	if d.QueueAll {
		return 0
	}
	return d.Ticket.Chance()
}

// appendPercent writes a chance of 0 to 1 in percent, and never more than it is.
func appendPercent(dst []byte, chance float64) []byte {
	return append(strconv.AppendFloat(dst, math.Floor(chance*1000+1e-6)/10, 'f', -1, 64), '%')
}

// countdowns returns how long it is until the start, where a page waits for it, and until the
// end of an event that has started.
func countdowns(v *View, st state) (start, end time.Duration) {
	h := happeningOf(&v.Decision)
	switch {
	case st.waitsForStart():
		// Never 0, which would say that there is nothing to wait for.
		return max(v.until(h.start), time.Second), 0
	case h.active && !h.prequeueing:
		return 0, v.until(h.end)
	}
	return 0, 0
}

// published holds a decision as the published interface tells it: whole minutes, rounded up.
type published struct {
	method              anteroom.QueueingMethod
	known               bool
	wait, p25, p50, p75 int64

	// passthrough is true only while somebody can see it: with the line held. reject says that
	// the page is static: while the line is held it is not.
	passthrough, reject bool

	active, prequeueing, shuffle bool
	untilStart, untilEnd         int64
}

func publish(v *View) published {
	d := &v.Decision
	h := happeningOf(d)
	holding := d.QueueAll || h.prequeueing
	p := published{
		method: d.Method, known: d.WaitKnown && !holding && !d.QueueIsFull && d.Verdict != anteroom.Refuse,
		active: h.active, prequeueing: h.active && h.prequeueing, shuffle: h.active && h.shuffle,
		untilStart: minutes(v.until(h.start)), untilEnd: minutes(v.until(h.end)),
	}
	switch {
	case d.Reason == anteroom.ReasonDraining:
		p.method = anteroom.Reject // for those who come now it is nothing else
	case p.method == anteroom.ByLottery: // the published word that is nearest: there is no order
		p.method = anteroom.Random
	case p.method == "":
		p.method = anteroom.FIFO
	}
	p.passthrough = holding && p.method == anteroom.Passthrough
	p.reject = !holding && p.method == anteroom.Reject
	if !p.known {
		return p
	}
	p.wait = minutes(d.WaitTime)
	if p.method == anteroom.Random {
		p.p25, p.p50, p.p75 = minutes(d.Wait25), p.wait, minutes(d.Wait75)
	}
	return p
}

// appendFormatted writes waitTimeFormatted, which is English in every language.
func (p published) appendFormatted(dst []byte) []byte {
	switch {
	case !p.known:
		return append(dst, "unavailable"...)
	case p.method == anteroom.Random:
		dst = appendEnglish(dst, p.p25)
		dst = append(dst, " to "...)
		return appendEnglish(dst, p.p75)
	}
	return appendEnglish(dst, p.wait)
}

func appendEnglish(dst []byte, minutes int64) []byte {
	unit := " minute"
	switch {
	case minutes > oneDay:
		return append(dst, "More than a day"...)
	case minutes >= 60:
		dst = append(dst, "More than "...)
		minutes /= 60
		unit = " hour"
	}
	dst = strconv.AppendInt(dst, minutes, 10)
	dst = append(dst, unit...)
	if minutes != 1 {
		dst = append(dst, 's')
	}
	return dst
}

func appendField(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}

func appendISO(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(dst, time.RFC3339) // three times as fast as a layout of one's own
	ms := t.Nanosecond() / 1e6
	return append(dst[:len(dst)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// appendReference writes what [anteroom.ID.Reference] returns, and nothing for no ticket.
func appendReference(dst []byte, id anteroom.ID) []byte {
	if id.IsZero() {
		return dst
	}
	const digits = "0123456789abcdef"
	for i, b := range id[:5] {
		dst = append(dst, digits[b>>4])
		if i == 2 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[b&15])
	}
	return dst
}
