package anteroom

import "time"

// Verdict is the outcome of a decision.
type Verdict uint8

const (
	// Wait shows the waiting page. It is the zero value: nothing admits by default.
	Wait Verdict = iota
	// Admit lets the request through to the origin within a session.
	Admit
	// Refuse shows the page of a room that admits nobody; it refreshes for visitors with a place only.
	Refuse
	// Pass lets the request through untouched and uncounted.
	Pass
)

// String returns the verdict's lower-case word.
func (v Verdict) String() string {
	switch v {
	case Wait:
		return "wait"
	case Admit:
		return "admit"
	case Refuse:
		return "refuse"
	case Pass:
		return "pass"
	}
	return "invalid"
}

// Reason says why a decision fell as it did. Every reason is reached by a scenario in
// engine/testdata.
type Reason uint8

const (
	// ReasonNone is the zero value and never part of a decision.
	ReasonNone Reason = iota
	// ReasonSuspended: the room is switched off. Pass.
	ReasonSuspended
	// ReasonSession: the ticket has a session. Admit.
	ReasonSession
	// ReasonFreeSlot: a newcomer found a free slot. Admit.
	ReasonFreeSlot
	// ReasonTurn: the visitor's turn in the line had come. Admit.
	ReasonTurn
	// ReasonReopened: the line was gone when a waiting visitor came back. Admit.
	ReasonReopened
	// ReasonPassthrough: the method admits everybody. Admit.
	ReasonPassthrough
	// ReasonAdopted: an accepted ticket that a lost memory did not know. Admit.
	ReasonAdopted
	// ReasonFull: a newcomer found no free slot. Wait.
	ReasonFull
	// ReasonLine: a newcomer found others waiting. Wait.
	ReasonLine
	// ReasonWaiting: a check-in that counted; the turn has not come. Wait.
	ReasonWaiting
	// ReasonEarly: a check-in before its time; nothing changed. Wait.
	ReasonEarly
	// ReasonQueueAll: the operator holds everybody. Wait.
	ReasonQueueAll
	// ReasonPlaceLost: the place had lapsed; the visitor is new again, at the back. Wait.
	ReasonPlaceLost
	// ReasonSessionOver: the session had ended; the visitor is new again. Wait.
	ReasonSessionOver
	// ReasonUsed: the ticket has already been used for a session; a new one was issued. Wait.
	ReasonUsed
	// ReasonBound: the ticket belongs to another client; a new one was issued. Wait.
	ReasonBound
	// ReasonReject: the method admits nobody. Refuse.
	ReasonReject
	// ReasonNotJoining: a request that may not take a place (a sub-resource or prefetch
	// without a session). Refuse.
	ReasonNotJoining
	// ReasonLineFull: the line is at its bound; no place was given. Wait.
	ReasonLineFull
	// ReasonPrequeue: an event is about to start and holds everybody. Wait.
	ReasonPrequeue
	// ReasonDraining: the operator lets nobody new into the line. Refuse.
	ReasonDraining
	// ReasonOrigin: no origin is healthy, and the room protects it. Wait.
	ReasonOrigin
	// ReasonLeft: the visitor gave up the place. Refuse.
	ReasonLeft
	reasonCount
)

var reasonWords = [...]string{"none", "suspended", "session", "free_slot", "turn", "reopened",
	"passthrough", "adopted", "full", "line", "waiting", "early", "queue_all", "place_lost",
	"session_over", "used", "bound", "reject", "not_joining", "line_full",
	"prequeue", "draining", "origin", "left"}

// String returns the reason's word, as it stands in metrics and logs.
func (r Reason) String() string {
	if int(r) < len(reasonWords) {
		return reasonWords[r]
	}
	return "invalid"
}

// Verdict is that of every decision with the reason.
func (r Reason) Verdict() Verdict {
	switch r {
	case ReasonSuspended:
		return Pass
	case ReasonSession, ReasonFreeSlot, ReasonTurn, ReasonReopened, ReasonPassthrough, ReasonAdopted:
		return Admit
	case ReasonReject, ReasonNotJoining, ReasonDraining, ReasonLeft:
		return Refuse
	case ReasonNone, ReasonFull, ReasonLine, ReasonWaiting, ReasonEarly, ReasonQueueAll, ReasonPlaceLost, ReasonSessionOver,
		ReasonUsed, ReasonBound, ReasonLineFull, ReasonPrequeue, ReasonOrigin:
		return Wait
	}
	return Wait // a number that is no reason admits nobody
}

// Reasons returns every reason a decision can have.
func Reasons() []Reason {
	out := make([]Reason, 0, reasonCount-1)
	for r := ReasonNone + 1; r < reasonCount; r++ {
		out = append(out, r)
	}
	return out
}

// Decision is the answer to one request, in full. It is a value: whoever says it to the
// client (page, JSON, verdict to a proxy) needs nothing else.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	// SetCookie says that Ticket differs from what was presented in a way that the
	// client must learn.
	SetCookie bool
	// Stream says that the visitor may hold a stream open.
	Stream bool
	// QueueIsFull: the forecast exceeds a day, or the line is at its bound.
	QueueIsFull bool
	// AheadKnown and WaitKnown say that Ahead and WaitTime are valid.
	AheadKnown, WaitKnown bool
	QueueAll              bool
	Method                QueueingMethod // the method in force
	// Ticket is what the visitor holds from now on; the zero ticket when it holds none.
	Ticket Ticket
	// At is the moment of the decision.
	At Time

	// The members below describe the wait, like the method and what is known; they are zero unless Verdict is Wait or Refuse.

	// InForce is the room's state at the moment, with the active event; nil says nothing of it.
	InForce *InForce
	// Ahead is the number of people before the visitor; never known for Random, where there is no order.
	Ahead   int
	Waiting int // people in line
	// WaitTime is the forecast; for Random the median.
	WaitTime time.Duration
	// Wait25 and Wait75 are quartiles for Random. In an order they are what the limits alone say while
	// there is no forecast: at least, and at most; 0 is no bound.
	Wait25, Wait75 time.Duration
	// Refresh is when the page comes back; zero means never.
	Refresh time.Duration
	// KeptUntil is the moment up to which the place is kept if nothing is heard.
	KeptUntil Time
}

// Networks are keyed hashes of the networks that a client is in, from its address (of IPv6: the /64) to wider ones (the /24;
// the /56 and the /48). A network that is not known is zero.
type Networks [3]uint32

// Visit is one request as admission sees it. The gateway makes it; the engine reads it.
type Visit struct {
	// Ticket is what the visitor presented and the seal confirmed. When there is none,
	// Ticket holds only a fresh ID (and Bind) and Fresh is set.
	Ticket Ticket
	Fresh  bool
	// NewID replaces the ticket's ID when the visitor has to start anew. Random bits.
	NewID ID
	// Bind is the tag of the client that sends the request; zero when the room binds nothing.
	Bind uint16
	// Networks are those that a request without a session came from; zero when nobody knows, or there is a session.
	Networks Networks
	// Unsolved says that the visitor was asked to solve a challenge, and has not. It matters where
	// [Settings.InfiniteQueue] is in force.
	Unsolved bool
	// Uninvited says that the ticket was not made for an invitation. It matters where [Settings.InviteOnly] is in force.
	Uninvited bool
	// Lane is the priority of the lane to which the visitor belongs by this request. A place in a lower one moves up; none moves down.
	Lane uint8
	// NoJoin forbids taking a place in line: sub-resources.
	NoJoin bool
	// NoClaim forbids taking a slot and a place: prefetches. A session still passes.
	NoClaim bool
	// NoHold forbids holding the request for a slot about to come free.
	NoHold bool
	// Stream says that the request is the visitor's stream being opened.
	Stream bool
	// Leave gives up the visitor's place in line, with NoJoin and NoClaim. A session stays. A ticket without a place or a
	// session is refused like any other that may not take one.
	Leave bool
}
