// Package judge says whether a waiting room kept its promises, from what the origin saw and
// from what the visitors were told. It knows nothing of how the room works.
//
// What is judged, and how exactly:
//
//   - Active sessions. A session is active from the moment the origin sees a request of it
//     until the session duration has passed since the visitor sent his last one. The gateway
//     decides somewhere between the visitor's sending and the origin's seeing; counted is
//     only what was active whatever the moment in between. So a count above the limit is a
//     proof, and no tolerance is needed.
//   - New sessions in any 60 s. A session began between the sending and the seeing of its
//     first request; a window holds those that began in it for certain.
//   - Order. See [Case.Visitors] and order.go: nobody who was in touch is passed by somebody
//     who came more than a second later.
//   - Place. A place that a visitor was shown never gets worse, no place is lost, also not
//     when the gateway is killed.
//   - Sessions. Nobody gets the waiting page within the session duration of his last request.
//   - Tickets. A session belongs to one visitor, a visitor who keeps his cookies has one
//     session, and a session that has ended does not come back.
//   - Gate. Every request that the origin sees belongs to a session.
//   - Answers. Every request gets a proper answer while the gateway runs.
//
// Requests without a time of sending count as sent when they were seen: the strictest
// reading of the origin's log alone.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/sim/demo/crowd"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

// Case is what there is to judge. All times are microseconds of one clock.
type Case struct {
	Active          int           // limit of sessions at once
	PerMinute       int           // limit of new sessions in any 60 s
	SessionDuration time.Duration // after the last request
	Changes         []Change      // of the limits, ascending
	Requests        []shop.Request
	// Visitors are those that the crowd recorded. Order is judged among patient visitors;
	// all others can be passed but not pass.
	Visitors []crowd.Visitor
	Failures []crowd.Failure
	// Outages are the times when the gateway was down on purpose.
	Outages []Outage
}

// Outage is a time without a gateway: killed at From, ready again at Until. To says which
// of several, as [crowd.Failure] does; empty means all.
type Outage struct {
	From, Until int64
	To          string
}

// Change puts other limits in force. Lower ones let nobody in until they hold; who is inside
// stays.
type Change struct {
	At                int64
	Active, PerMinute int
}

// settles is how long after a change the limits of before may still be used.
const settles = 2 * time.Second

// limits returns what may be used at a moment.
func (c *Case) limits(at int64) (active, perMinute int) {
	active, perMinute = c.Active, c.PerMinute
	for _, ch := range c.Changes {
		switch {
		case ch.At > at:
			return active, perMinute
		case ch.At+settles.Microseconds() > at:
			active, perMinute = max(active, ch.Active), max(perMinute, ch.PerMinute)
		default:
			active, perMinute = ch.Active, ch.PerMinute
		}
	}
	return active, perMinute
}

// Finding is one rule and what became of it.
type Finding struct {
	Rule       string
	Bound      string // what is allowed
	Seen       string // what happened
	Violations int
	Examples   []string // at most five
}

// Report is the verdict.
type Report struct {
	Findings []Finding
	Facts    []Fact
	Passed   []Passed // the violations of the rule "order"
	active   []point  // over time, for the figure
	minute   []point
	c        *Case
}

// Passed is somebody who was let in after somebody who came later. Lead is by how much he
// had come earlier, in µs.
type Passed struct {
	Visitor, By int
	At, Lead    int64
}

// Fact is worth knowing and breaks no rule.
type Fact struct{ What, Value string }

// point is a count that holds from a moment on.
type point struct {
	at int64
	n  int
}

// OK reports whether every rule was kept.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Violations > 0 })
}

// afterwards is how long after the gateway is ready again a failed request is still blamed
// on the outage: clients had connections and requests under way.
const afterwards = time.Second

// endless is how long after its end a session's request still counts as the old session's
// and not as its return: the gateway may keep a seat a little longer than promised.
const endless = time.Second

// Judge judges.
func (c Case) Judge() Report {
	r := Report{c: &c}
	sessions := c.sessions()
	r.judgeActive(sessions)
	r.judgeRate(sessions)
	r.judgeOrder(sessions)
	r.judgePlaces()
	r.judgeThrown()
	r.judgeTickets(sessions)
	r.judgeGate()
	r.judgeAnswers()
	r.facts(sessions)
	return r
}

// session is what the origin saw of one session, in the order in which it saw it.
type session struct {
	id       string
	requests []shop.Request
	first    shop.Request
}

// sessions are sorted by their first request. Requests without a proof are judged by
// judgeGate; where the gateway sends none at all, the visitor's number stands for the session.
func (c *Case) sessions() []*session {
	proofs := c.hasProofs()
	byID := map[string]*session{}
	var out []*session
	for _, q := range c.Requests {
		id := q.Session
		if !proofs {
			id = q.Visitor
		}
		if id == "" {
			continue
		}
		q.Sent = cmp.Or(q.Sent, q.Seen)
		s := byID[id]
		if s == nil {
			s = &session{id: id}
			byID[id] = s
			out = append(out, s)
		}
		s.requests = append(s.requests, q)
	}
	for _, s := range out {
		slices.SortStableFunc(s.requests, func(a, b shop.Request) int { return cmp.Compare(a.Seen, b.Seen) })
		s.first = s.requests[0]
	}
	slices.SortStableFunc(out, func(a, b *session) int { return cmp.Compare(a.first.Seen, b.first.Seen) })
	return out
}

func (c *Case) hasProofs() bool {
	return slices.ContainsFunc(c.Requests, func(q shop.Request) bool { return q.Session != "" })
}

func (f *Finding) violation(format string, args ...any) {
	f.Violations++
	if len(f.Examples) < 5 {
		f.Examples = append(f.Examples, fmt.Sprintf(format, args...))
	}
}

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }

// clock writes a moment as seconds.
func clock(us int64) string { return fmt.Sprintf("%.3f s", float64(us)/1e6) }
