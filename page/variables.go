package page

import "github.com/anteroom/anteroom"

// variables are what an operator's template can show: the published fields and their
// template-only companions, then ours. Numbers, booleans and strings of a fixed form only;
// no word that came with a request.
func variables(v View) map[string]any {
	d := v.Decision
	p := publish(d)
	low, high, _ := waitRange(d)
	var kept int64
	if d.KeptUntil != 0 {
		kept = v.at(d.KeptUntil).UnixMilli()
	}
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
		"refreshIntervalSeconds": RefreshSeconds(v),
		"queueingMethod":         string(p.method),
		"isFIFOQueue":            p.method == anteroom.FIFO,
		"isRandomQueue":          p.method == anteroom.Random,
		"isPassthroughQueue":     p.method == anteroom.Passthrough,
		"isRejectQueue":          p.method == anteroom.Reject,

		"isEventActive":                  false,
		"isEventPrequeueing":             false,
		"timeUntilEventStart":            0,
		"timeUntilEventStartFormatted":   "unavailable",
		"timeUntilEventStartHours":       0,
		"timeUntilEventStartHourMinutes": 0,
		"timeUntilEventEnd":              0,
		"timeUntilEventEndFormatted":     "unavailable",
		"timeUntilEventEndHours":         0,
		"timeUntilEventEndHourMinutes":   0,
		"shuffleAtEventStart":            false,

		"turnstile":     "",
		"infiniteQueue": false,

		"ahead":              d.Ahead,
		"aheadKnown":         d.AheadKnown,
		"waitingUsers":       d.Waiting,
		"waitTimeLow":        low,  // minutes, as the built-in page shows them
		"waitTimeHigh":       high, // 0 when not known
		"reference":          string(appendReference(nil, d.Ticket.ID)),
		"keptUntil":          keptISO(v),
		"keptUntilUnixMilli": kept,
		"placeLost":          d.Reason == anteroom.ReasonPlaceLost,
		"sessionOver":        d.Reason == anteroom.ReasonSessionOver,
		"ticketUsed":         d.Reason == anteroom.ReasonUsed || d.Reason == anteroom.ReasonBound,
		"lineFull":           d.Reason == anteroom.ReasonLineFull,
		"isPaused":           v.Paused,
	}
}

func keptISO(v View) string {
	if v.Decision.KeptUntil == 0 {
		return ""
	}
	return string(appendISO(nil, v.at(v.Decision.KeptUntil)))
}
