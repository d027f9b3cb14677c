package page

import (
	"time"

	"github.com/anteroom/anteroom"
)

// variables are what an operator's template can show: the published fields and their
// template-only companions, then ours. Numbers, booleans, strings of a fixed form and what an
// operator says to the line; no word that came with a request.
func variables(v View) map[string]any {
	d := &v.Decision
	p := publish(&v)
	low, high, _ := waitRange(d)
	h := happeningOf(d)
	left, told := remaining(d, stateOf(d))
	return map[string]any{
		"inWaitingRoom":        true,
		"waitTimeKnown":        p.known,
		"waitTime":             p.wait,
		"waitTime25Percentile": p.p25,
		"waitTime50Percentile": p.p50,
		"waitTime75Percentile": p.p75,
		"waitTimeFormatted":    string(p.appendFormatted(nil)),
		"waitTimeHours":        p.wait / 60,
		"waitTimeHourMinutes":  p.wait % 60,

		"queueIsFull":            d.QueueIsFull,
		"queueAll":               d.QueueAll,
		"lastUpdated":            string(appendISO(nil, v.updated())),
		"refreshIntervalSeconds": interval(v),
		"queueingMethod":         string(p.method),
		"isFIFOQueue":            p.method == anteroom.FIFO,
		"isRandomQueue":          p.method == anteroom.Random,
		"isPassthroughQueue":     p.passthrough,
		"isRejectQueue":          p.reject,

		"isEventActive":                  p.active,
		"isEventPrequeueing":             p.prequeueing,
		"timeUntilEventStart":            p.untilStart,
		"timeUntilEventStartFormatted":   string(appendEnglishSpan(nil, p.prequeueing, p.untilStart)),
		"timeUntilEventStartHours":       p.untilStart / 60,
		"timeUntilEventStartHourMinutes": p.untilStart % 60,
		"timeUntilEventEnd":              p.untilEnd,
		"timeUntilEventEndFormatted":     string(appendEnglishSpan(nil, p.active, p.untilEnd)),
		"timeUntilEventEndHours":         p.untilEnd / 60,
		"timeUntilEventEndHourMinutes":   p.untilEnd % 60,
		"shuffleAtEventStart":            p.shuffle,

		"status":        string(AppendStatus(nil, &v)), // as the script at LivePath reads it
		"turnstile":     string(v.Challenge),
		"infiniteQueue": v.Infinite,

		"ahead":              d.Ahead,
		"aheadKnown":         aheadKnown(d),
		"waitingUsers":       d.Waiting,
		"waitTimeLow":        low,  // minutes, as the built-in page shows them
		"waitTimeHigh":       high, // 0 when not known; with a low it is at least that
		"reference":          string(appendReference(nil, d.Ticket.ID)),
		"keptUntil":          keptISO(v),
		"keptUntilUnixMilli": momentMilli(&v, d.KeptUntil),
		"placeLost":          d.Reason == anteroom.ReasonPlaceLost,
		"sessionOver":        d.Reason == anteroom.ReasonSessionOver,
		"ticketUsed":         d.Reason == anteroom.ReasonUsed || d.Reason == anteroom.ReasonBound,
		"lineFull":           d.Reason == anteroom.ReasonLineFull,
		"laneName":           v.Lane, // empty without one
		"isPaused":           v.Paused,
		"isFormUnsent":       v.Unsent,
		"isDraining":         d.Reason == anteroom.ReasonDraining,
		"isOriginDown":       d.Reason == anteroom.ReasonOrigin,
		"isAdmitted":         stateOf(d) == broken,
		"remaining":          left, // 0 when not told
		"remainingKnown":     told,
		"isUnlikely":         told && unlikely(d, left),
		"isSoldOut":          stateOf(d) == soldOut,
		"message":            messageOf(d), // an operator's words, empty without any

		"eventStartUnixMilli": unixMilli(h.start), // 0 when not prequeueing
		"eventEndUnixMilli":   unixMilli(h.end),   // 0 without an event
	}
}

func keptISO(v View) string {
	if v.Decision.KeptUntil == 0 {
		return ""
	}
	return string(appendISO(nil, v.at(v.Decision.KeptUntil)))
}

// momentMilli returns a moment in milliseconds since 1970; 0 for none.
func momentMilli(v *View, t anteroom.Time) int64 {
	if t == 0 {
		return 0
	}
	return v.at(t).UnixMilli()
}

// unixMilli is likewise for a moment of the wall clock.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// interval is what the page says about its refreshing; that of a preview is made up. As published, a page that rejects has none.
func interval(v View) int {
	if v.Decision.Verdict == anteroom.Refuse {
		return 0
	}
	v.Preview = false
	return RefreshSeconds(&v)
}
