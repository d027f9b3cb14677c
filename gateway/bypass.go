package gateway

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/rules"
)

// Crawlers verifies search-engine crawlers.
type Crawlers interface {
	// Verified reports whether the address is known to belong to a crawler of the search engine that the user agent
	// names. It is called while a request waits, so it must not block.
	Verified(addr netip.Addr, userAgent string) bool
}

// passes reports whether the request bypasses its room, and why. The ask is the page's
// question that the request holds; the rules see the request without it.
//
// A room covers a request when any reading of its path lies inside. The exception has to hold
// for every reading: an origin may take any of them for what was meant.
func (x *exchange) passes(ask int) (reason analytics.Bypass, yes bool) {
	rm := x.room
	if rm.rules == nil && !rm.crawlers {
		return 0, false
	}
	crawler := x.isCrawler()
	if crawler && rm.crawlers {
		return analytics.ByCrawler, true
	}
	if rm.rules == nil {
		return 0, false
	}
	q := x.asRulesSee(ask, crawler)
	if q == nil {
		return 0, false
	}
	for _, q.Path = range x.readings {
		if !rm.rules.Bypass(q) {
			if q.Exhausted() {
				x.g.count.rulesExhausted.Add(1)
			}
			return 0, false
		}
	}
	return analytics.ByRule, true
}

// asRulesSee returns the request as expressions see it, for each of the readings of its path; nil if it has none.
func (x *exchange) asRulesSee(ask int, crawler bool) *rules.Request {
	s, r := x.s, x.r
	target := r.RequestURI
	if target == "" {
		target = r.URL.RequestURI()
	}
	readings, err := route.AppendInterpretations(x.readings[:0], target)
	if err != nil {
		readings = readings[:0]
	}
	if x.readings = readings; len(readings) == 0 {
		return nil
	}
	q := &x.tested
	q.Method, q.Version, q.Scheme, q.Port = r.Method, r.Proto, "http", localPort(r)
	q.Host, _ = route.Host(r.Host) // canonical, or SHOP.example. would pass a rule about shop.example; Lookup has seen errors
	if q.SSL = x.https; q.SSL {
		q.Scheme = "https"
	}
	q.Query, q.Header = r.URL.RawQuery, r.Header
	if ask != askNone {
		q.Query = withoutAsk(q.Query)
	}
	q.Client, q.Geo, q.VerifiedBot = x.client, s.Geo, crawler
	q.Time, q.Zone = x.start, x.room.Zone
	q.RawPath = readings[0]
	return q
}

func (x *exchange) isCrawler() bool {
	return x.s.Crawlers != nil && x.s.Crawlers.Verified(x.client, x.userAgent())
}

// laneOf returns the priority of the lane to which the request entitles by what it is: the highest whose expression it meets. Only
// requests of visitors who wait or join are looked at. What a session costs does not grow, and neither does what a page's parts cost.
func (x *exchange) laneOf(v *anteroom.Visit, ask int) uint8 {
	rm := x.room
	if rm.lanes == nil || v.Ticket.Accepted() && x.s.now() < v.Ticket.LastCheckIn.Add(rm.SessionDuration) {
		return 0
	}
	switch ask {
	case askNone:
		if v.NoJoin || v.NoClaim {
			return 0
		}
	case askStatus, askStream, askHold, askInvite, askMove:
	default: // it changes nothing about the place
		return 0
	}
	q := &x.tested
	if len(x.readings) == 0 { // else the rules have read it
		if q = x.asRulesSee(ask, x.isCrawler()); q == nil {
			return 0
		}
	}
	lane := rm.lanes.Of(q, x.readings)
	if q.Exhausted() && lane == 0 {
		x.g.count.rulesExhausted.Add(1)
	}
	return lane
}

// bypass sends the request on as if there were no room: no ticket is read or given, nothing is
// counted but the bypass itself, and there is no proof of an admission that was none.
func (x *exchange) bypass(reason analytics.Bypass) {
	x.room.door.Recorder().Bypassed(reason)
	if v := x.verdict(); v != nil {
		v.decided(anteroom.Pass) // whatever the room has decided
	}
	x.forward()
}

// answerPassing answers the waiting page's question for a visitor who does not have to wait
// any more: the next request passes. No stream is opened for that: the page asks again in its
// own time, so that a rule which holds for the question and not for the page makes nobody
// ask without a pause.
func (x *exchange) answerPassing(ask int) {
	if !x.readsAsk(ask) {
		return
	}
	x.decision = anteroom.Decision{Verdict: anteroom.Pass, At: x.s.now()}
	switch ask {
	case askStatus:
		x.status()
	case askStream:
		x.neverStored()
		x.write(http.StatusNoContent, nil)
	case askHold, askLeave, askLeft:
		x.goOn()
	default:
		x.refuseAsk()
	}
}

func (x *exchange) userAgent() string {
	if a := x.r.Header["User-Agent"]; len(a) > 0 {
		return a[0]
	}
	return ""
}

// localPort is the port that the request came in by. What the Host header says of it, the
// client could make up.
func localPort(r *http.Request) int {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}
