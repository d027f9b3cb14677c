package gateway

import (
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
)

// Stats are a gateway's figures since it was made. Everything but InFlight, Streams and Tunnels only
// grows.
type Stats struct {
	// Decisions by verdict and reason; index with the anteroom constants.
	Decisions [Verdicts][Reasons]uint64
	// Tickets by what opening them said; index with ticket.Result.
	Tickets [TicketResults]uint64
	// Refused requests by the status they got; index with RefusedStatus.
	Refused [len(refusedStatus)]uint64
	// OriginErrors by what went wrong; index with the OriginError constants.
	OriginErrors [OriginErrorKinds]uint64

	// Bypassed are requests that no room saw, by why; index with the Bypass constants.
	Bypassed [BypassReasons]uint64

	// RulesExhausted are requests for which rules did not match because they would have taken
	// too long.
	RulesExhausted uint64

	Uncovered     uint64 // requests outside every room
	Preflights    uint64 // CORS preflights, uncounted by the rooms
	Revoked       uint64 // sessions ended by an origin command
	ForeignHops   uint64 // forwarding headers from peers that are not trusted, ignored
	Requests      uint64
	InFlight      int64     // requests being served, streams and tunnels included
	Streams       int64     // waiting pages with an open stream
	Tunnels       int64     // WebSocket connections
	Gate          Histogram // seconds from the request's start to its decision, covered paths only
	LogSuppressed uint64    // access log lines that the bound held back
}

// Sizes of the arrays in Stats, with room to grow.
const (
	Verdicts      = 4
	Reasons       = 32
	TicketResults = 16
)

// What can go wrong with an origin.
const (
	OriginUnreachable = iota // no connection: refused, no route, no name
	OriginTimeout            // connected and did not answer in time
	OriginBroken             // the answer broke off or was none
	ClientGone               // the visitor left first
	OriginErrorKinds
)

// OriginErrorWords name the kinds in metrics and logs.
var OriginErrorWords = [OriginErrorKinds]string{"unreachable", "timeout", "broken", "client_gone"}

// refusedStatus are the statuses of refusals.
var refusedStatus = [...]int{0, 400, 405, 413, 414, 421, 429, 431, 503, 508}

// RefusedStatus returns the status counted at an index of Stats.Refused; 0 counts all others.
func RefusedStatus(i int) int { return refusedStatus[i] }

// HistogramBounds are the upper bounds of the buckets of a Histogram, in seconds; the last
// bucket has none.
var HistogramBounds = [...]float64{0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1}

// Histogram counts durations.
type Histogram struct {
	Counts [len(HistogramBounds) + 1]uint64 // by bucket, not cumulated
	Sum    float64                          // seconds
}

type counters struct {
	decisions    [Verdicts][Reasons]atomic.Uint64
	tickets      [TicketResults]atomic.Uint64
	refused      [len(refusedStatus)]atomic.Uint64
	originErrors [OriginErrorKinds]atomic.Uint64
	bypassed     [BypassReasons]atomic.Uint64

	uncovered, preflights, revoked, foreignHops, requests, logSuppressed, rulesExhausted atomic.Uint64
	inFlight, streams, tunnels                                                           atomic.Int64

	gate    [len(HistogramBounds) + 1]atomic.Uint64
	gateSum atomic.Int64 // nanoseconds
}

func (c *counters) decided(d anteroom.Decision, took time.Duration) {
	if int(d.Verdict) < Verdicts && int(d.Reason) < Reasons {
		c.decisions[d.Verdict][d.Reason].Add(1)
	}
	i := 0
	for i < len(HistogramBounds) && took > time.Duration(HistogramBounds[i]*1e9) {
		i++
	}
	c.gate[i].Add(1)
	c.gateSum.Add(int64(took))
}

func (c *counters) refuse(status int) {
	for i, s := range refusedStatus {
		if s == status {
			c.refused[i].Add(1)
			return
		}
	}
	c.refused[0].Add(1)
}

// Stats returns the figures.
func (g *Gateway) Stats() Stats {
	c := &g.count
	s := Stats{
		Uncovered: c.uncovered.Load(), Preflights: c.preflights.Load(), Revoked: c.revoked.Load(),
		ForeignHops: c.foreignHops.Load(), Requests: c.requests.Load(), LogSuppressed: c.logSuppressed.Load(), RulesExhausted: c.rulesExhausted.Load(),
		InFlight: c.inFlight.Load(), Streams: c.streams.Load(), Tunnels: c.tunnels.Load(),
	}
	for v := range c.decisions {
		for r := range c.decisions[v] {
			s.Decisions[v][r] = c.decisions[v][r].Load()
		}
	}
	for i := range c.tickets {
		s.Tickets[i] = c.tickets[i].Load()
	}
	for i := range c.refused {
		s.Refused[i] = c.refused[i].Load()
	}
	for i := range c.originErrors {
		s.OriginErrors[i] = c.originErrors[i].Load()
	}
	for i := range c.bypassed {
		s.Bypassed[i] = c.bypassed[i].Load()
	}
	for i := range c.gate {
		s.Gate.Counts[i] = c.gate[i].Load()
	}
	s.Gate.Sum = time.Duration(c.gateSum.Load()).Seconds()
	return s
}
