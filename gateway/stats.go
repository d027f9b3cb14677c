package gateway

import (
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/ticket/account"
)

// Stats are a gateway's figures since it was made; what it has decided, the recorders of its rooms count. Everything but InFlight, Waiting, Streams and Tunnels only
// grows.
type Stats struct {
	// Refused requests by the status they got; index with RefusedStatus.
	Refused [len(refusedStatus)]uint64
	// OriginErrors by what went wrong; index with the OriginError constants.
	OriginErrors [originErrorKinds]uint64

	// Invites are codes that visitors entered, by what came of it; index with the Invite constants.
	Invites [inviteResults]uint64
	// Moves are presses of the button that moves a place to another device, likewise.
	Moves [inviteResults]uint64
	// AccountTokens are requests in rooms with accounts, by what their token was worth; index with account.Result.
	AccountTokens [account.Results]uint64

	// SharedSessions were used from more networks than their room allows, by what was done about it; index with the Shared
	// constants.
	SharedSessions [sharedActions]uint64

	// RulesExhausted are requests for which rules did not match because they would have taken
	// too long.
	RulesExhausted uint64

	Uncovered  uint64 // requests outside every room
	Preflights uint64 // CORS preflights, uncounted by the rooms
	Revoked    uint64 // sessions ended by an origin command
	Passes     uint64 // issued

	// PassesShown are requests that came here with a pass, by how much of it was left; index with the Pass constants.
	PassesShown [passStates]uint64
	// Touches are requests that edges let in and reported, by what came of the report; index with the Touch constants.
	Touches [touchResults]uint64
	// Questions of proxies that keep the traffic, by their kind as EdgeKinds has it.
	Questions [len(EdgeKinds)]uint64

	ForeignHops   uint64 // forwarding headers from peers that are not trusted, ignored
	Requests      uint64
	InFlight      int64  // requests being served, streams and tunnels included
	Waiting       int64  // requests of active users that wait because too many are under way
	Streams       int64  // waiting pages with an open stream
	Tunnels       int64  // WebSocket connections
	LogSuppressed uint64 // access log lines that the bound held back

	Gate   analytics.BucketCounts // from the request's start to its decision, covered paths only
	Origin analytics.BucketCounts // from the request to an origin to the headers of its answer
	// GateExample and OriginExample are the newest of these that were traced; nil: none was.
	GateExample, OriginExample *Example
}

// Example is one duration of a distribution, with the trace that shows where it went.
type Example struct {
	Took    time.Duration
	At      time.Time
	TraceID string
}

// What is left of a pass that comes here.
const (
	PassFresh = iota // more than half: an edge that verifies passes would not send it here, but for what Anteroom has to see
	PassLate         // half or less: a page that is loaded to renew it
	PassOver         // nothing: it has ended, or is of another key or room
	passStates
)

// PassWords name the states in metrics.
var PassWords = [passStates]string{"fresh", "late", "over"}

// What can go wrong with an origin.
const (
	originUnreachable = iota // no connection: refused, no route, no name
	originTimeout            // connected and did not answer in time
	originBroken             // the answer broke off or was none
	clientGone               // the visitor left first
	originErrorKinds
)

// OriginErrorWords name the kinds in metrics and logs.
var OriginErrorWords = [originErrorKinds]string{"unreachable", "timeout", "broken", "client_gone"}

// refusedStatus are the statuses of refusals.
var refusedStatus = [...]int{0, 400, 405, 413, 414, 421, 429, 431, 503, 508}

// RefusedStatus returns the status counted at an index of Stats.Refused; 0 counts all others.
func RefusedStatus(i int) int { return refusedStatus[i] }

type counters struct {
	refused      [len(refusedStatus)]atomic.Uint64
	originErrors [originErrorKinds]atomic.Uint64
	shared       [sharedActions]atomic.Uint64
	passesShown  [passStates]atomic.Uint64
	touches      [touchResults]atomic.Uint64
	invites      [inviteResults]atomic.Uint64
	moves        [inviteResults]atomic.Uint64
	tokens       [account.Results]atomic.Uint64
	questions    [len(EdgeKinds)]atomic.Uint64

	uncovered, preflights, revoked, passes, foreignHops, requests, logSuppressed, rulesExhausted atomic.Uint64
	inFlight, waiting, streams, tunnels                                                          atomic.Int64

	gate, origin               analytics.Buckets
	gateExample, originExample atomic.Pointer[Example]
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
		Uncovered: c.uncovered.Load(), Preflights: c.preflights.Load(), Revoked: c.revoked.Load(), Passes: c.passes.Load(),
		ForeignHops: c.foreignHops.Load(), Requests: c.requests.Load(), LogSuppressed: c.logSuppressed.Load(), RulesExhausted: c.rulesExhausted.Load(),
		InFlight: c.inFlight.Load(), Waiting: c.waiting.Load(), Streams: c.streams.Load(), Tunnels: c.tunnels.Load(),
	}
	load(s.Refused[:], c.refused[:])
	load(s.OriginErrors[:], c.originErrors[:])
	load(s.SharedSessions[:], c.shared[:])
	load(s.PassesShown[:], c.passesShown[:])
	load(s.Touches[:], c.touches[:])
	load(s.Invites[:], c.invites[:])
	load(s.Moves[:], c.moves[:])
	load(s.AccountTokens[:], c.tokens[:])
	load(s.Questions[:], c.questions[:])
	s.Gate, s.Origin = c.gate.Counts(), c.origin.Counts()
	s.GateExample, s.OriginExample = c.gateExample.Load(), c.originExample.Load()
	return s
}

func load(to []uint64, from []atomic.Uint64) {
	for i := range from {
		to[i] = from[i].Load()
	}
}
