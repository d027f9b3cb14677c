package sim

import (
	"encoding/binary"
	"time"

	"github.com/anteroom/anteroom"
)

// person is one visitor: what a browser holds, and what its owner is about to do. What a
// check-in needs comes first, in two lines of the processor's cache: of a million people
// nobody is in it when the turn comes.
type person struct {
	ticket   anteroom.Ticket // the cookie
	entered  anteroom.Time   // first admission
	answered anteroom.Time   // the last page
	expected anteroom.Time   // when the room expects the next check-in; 0 when it does not
	stream   anteroom.Time   // open since; 0 when there is none
	tellAt   anteroom.Time
	node     int32 // of the stream
	site     int16
	requests uint16
	gen      uint16
	habits   habits
	marks    marks
	pending  uint8
	state    personState
	lane     uint8

	arrived anteroom.Time
	left    anteroom.Time
	stays   anteroom.Time // inside until
	told    time.Duration
	told25  time.Duration
	told75  time.Duration
	_       [2]uint64 // three lines in all
}

type personState uint8

const (
	coming personState = iota // its first request has no answer yet
	waiting
	inside
	gone
)

type habits uint16

const (
	streams habits = 1 << iota
	parallel
	tabs
	reloads
	early
	sleeps
	roams
	replays
	noCookies
	clones // another client will use its cookie
	clone  // is that client
	bare   // loads nothing but the page
	returns
	freezes
	quits
	logsOut
)

type marks uint32

const (
	shown       marks = 1 << iota // has seen the waiting page
	asleep                        // its phone sleeps
	released                      // its turn has been given and not been lost
	overtaken                     // by somebody who came more than a second later
	sentBack                      // was shown the page within its session
	muted                         // found no room for a stream; does not try again
	inLine                        // counts as waiting
	listening                     // its stream is open
	won                           // the draw has fallen on it
	anew                          // has lost its first place: its arrival is not what counts
	shared                        // another client has its cookie, or will
	reloading                     // will reload the page
	refused                       // was told to go before it was let in
	undated                       // came to a site that did not know the time yet
	proven                        // has come back with the ticket
	forgetful                     // a cookie of it was lost
	interrupted                   // has left because the origin failed
	mayQuit                       // will give up its place, perhaps when its turn is told
)

// request is one on its way.
type request struct {
	person  int32
	node    int32
	at      anteroom.Time
	visit   anteroom.Visit
	primary bool // its answer decides what the person does next
	opens   bool // a stream
}

// rateWindow is the published unit of the rate.
const rateWindow = time.Minute

// checksAgain is when a page with a stream asks all the same, for only answers renew the cookie: halfway to the moment until which the place
// is kept, and each minute.
func (w *world) checksAgain(p *person) time.Duration {
	return min(2*time.Minute, p.ticket.Refresh+w.judge.set.PlaceHold) / 2
}

const retryAfter = 2 * time.Second // after no answer

// arrive lets the next visitor come.
func (w *world) arrive() {
	a := w.arrivals[w.arrived]
	w.arrived++
	v := w.sc.Visitors
	p := person{arrived: w.now, site: a.site, lane: w.belongs()}
	for _, h := range [...]struct {
		share float64
		habit habits
	}{{v.Streams, streams}, {v.Parallel, parallel}, {v.Tabs, tabs}, {v.Reloads, reloads}, {v.Early, early},
		{v.Sleeps, sleeps}, {v.Roams, roams}, {v.Replays, replays}, {v.NoCookies, noCookies}, {v.Clones, clones}, {v.Bare, bare}, {v.Returns, returns}, {v.Freezes, freezes}, {v.Quits, quits}, {v.LogsOut, logsOut}} {
		if h.share > 0 && w.crowd.Float64() < h.share {
			p.habits |= h.habit
		}
	}
	if p.habits&noCookies != 0 {
		p.habits = noCookies
	}
	who := int32(len(w.people))
	w.people = append(w.people, p)
	w.judge.came(who)
	if p.habits&roams != 0 {
		w.after(w.between(5*time.Second, 4*time.Minute), evRoam, who, 0)
	}
	w.send(who, true)
}

// between is a moment drawn evenly.
func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.crowd.Float64()*float64(most-least))
}

func (w *world) spread(s Spread) time.Duration {
	return max(s.Least, time.Duration(w.crowd.ExpFloat64()*float64(s.Mean)))
}

func (w *world) nodeOf(site int16) int32 {
	k := 0
	if len(w.loads[site]) > 1 {
		k = pick(w.loads[site], w.crowd.Float64())
	}
	return w.firstOf[site] + int32(k)
}

// send makes a person's browser load the page: one request, or six at once.
func (w *world) send(who int32, primary bool) {
	p := &w.people[who]
	if p.stream != 0 && primary { // the page with the stream goes when another loads
		w.closeStream(who)
	}
	v := w.visitOf(p)
	w.post(who, v, primary, false)
	if w.people[who].habits&parallel != 0 && primary {
		for range 5 {
			again := v
			again.NewID = w.newID()
			w.post(who, again, false, false)
		}
	}
}

func (w *world) visitOf(p *person) anteroom.Visit {
	v := anteroom.Visit{NewID: w.newID(), Ticket: p.ticket, Lane: p.lane}
	if p.ticket.ID.IsZero() {
		v.Fresh, v.Ticket = true, anteroom.Ticket{ID: v.NewID}
		v.Networks[0] = binary.BigEndian.Uint32(v.NewID[:]) | 1 // all are from somewhere else
	}
	return v
}

func (w *world) post(who int32, v anteroom.Visit, primary, opens bool) {
	p := &w.people[who]
	if p.entered == 0 {
		p.requests++ // until it is inside
	}
	p.pending++
	node := w.nodeOf(p.site)
	if opens {
		node = p.node
	}
	r := w.newRequest()
	w.requests[r] = request{person: who, node: node, at: w.now, visit: v, primary: primary, opens: opens}
	if len(w.sc.Lanes) > 0 {
		w.lanes[v.NewID] = max(p.lane, p.ticket.Lane)
	}
	if v.Fresh && p.habits&(noCookies|clone) == 0 {
		w.byID[v.Ticket.ID] = who
	}
	if v.Fresh && primary && p.marks&forgetful != 0 { // nothing is left of the first visit
		w.judge.comesLate(who)
	}
	if primary {
		p.gen++ // whatever was planned is off until the answer
	}
	w.system.request(r)
}

func (w *world) newRequest() uint32 {
	if n := len(w.spare); n > 0 {
		r := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return r
	}
	w.requests = append(w.requests, request{})
	return uint32(len(w.requests) - 1)
}

// failed: a request has found nobody who answers. The browser shows an error and its owner
// tries again.
func (w *world) failed(r uint32) {
	q := w.requests[r]
	w.spare = append(w.spare, r)
	p := &w.people[q.person]
	p.pending--
	p.expected = 0
	if p.state == gone {
		return
	}
	if p.state == coming && p.ticket.ID.IsZero() { // nobody knows that it was here
		w.judge.comesLate(q.person)
	}
	if q.opens {
		w.silence(p)
		w.plan(q.person, retryAfter)
	} else if q.primary {
		w.plan(q.person, w.between(retryAfter, 2*retryAfter))
	}
}

// plan has the person do what is next after d.
func (w *world) plan(who int32, d time.Duration) {
	p := &w.people[who]
	p.gen++
	w.after(d, evWake, who, uint32(p.gen))
}

// answered is the answer to a request. outside says whether its site had to ask elsewhere.
func (w *world) answered(r uint32, d anteroom.Decision, outside bool) {
	q := w.requests[r]
	w.spare = append(w.spare, r)
	who := q.person
	w.judge.decided(who, &q, &d, outside)
	w.edges.issue(w, &q, &d)
	p := &w.people[who]
	p.pending--
	switch {
	case !d.SetCookie || p.habits&noCookies != 0:
	case w.sc.Visitors.LostCookies > 0 && w.crowd.Float64() < w.sc.Visitors.LostCookies:
		p.marks |= forgetful
	default:
		w.keep(who, d.Ticket)
	}
	if p.state == gone {
		return
	}
	switch d.Verdict {
	case anteroom.Admit, anteroom.Pass:
		w.emptyAt = w.now // a clone is no visitor, but goes on with the session
		w.enter(who, &q)
	case anteroom.Refuse:
		if q.opens { // no stream is to be had: the page asks again
			w.silence(p)
			w.plan(who, retryAfter)
		}
		if d.Reason == anteroom.ReasonLeft {
			w.later(w.between(time.Second, 40*time.Second), func() { w.copied(who, q.visit.Ticket) })
		}
		if q.primary {
			if p.entered == 0 && d.Reason != anteroom.ReasonLeft {
				p.marks |= refused
			}
			w.leave(who)
		}
	default:
		w.wait(who, &q, &d)
	}
}

// keep stores a cookie: in the browser, and in its twin's, whose jar it is not.
func (w *world) keep(who int32, t anteroom.Ticket) {
	p := &w.people[who]
	if !p.ticket.ID.IsZero() && p.ticket.ID != t.ID {
		delete(w.byID, p.ticket.ID)
	}
	if p.habits&replays != 0 && !t.Accepted() {
		w.kept[who] = t
	}
	if p.ticket.ID != t.ID && p.state != inside && !t.Accepted() && p.habits&clone == 0 {
		w.byID[t.ID] = who
	}
	p.ticket = t
}

// wait is the waiting page.
func (w *world) wait(who int32, q *request, d *anteroom.Decision) {
	p := &w.people[who]
	if p.state == inside && !q.primary { // the page itself decides what its owner sees
		return
	}
	if p.state == coming || p.state == inside {
		first := p.state == coming
		p.state = waiting
		if !p.ticket.ID.IsZero() && p.habits&clone == 0 { // a session that was interrupted has another ticket, too
			w.byID[p.ticket.ID] = who
		}
		if first || p.marks&shown == 0 {
			w.patience(who)
		}
	}
	p.marks |= shown
	if p.habits&quits != 0 && p.habits&clone == 0 {
		p.habits &^= quits
		p.marks |= mayQuit
		w.after(w.between(time.Second, time.Minute), evQuit, who, 0)
	}
	if p.habits&noCookies != 0 {
		// A client without memory: every request is somebody new. It gives up after three.
		if p.requests >= 3 {
			w.leave(who)
		} else if q.primary {
			w.plan(who, max(time.Second, d.Refresh))
		}
		return
	}
	if p.habits&clones != 0 && p.marks&shared == 0 {
		p.marks |= shared
		w.after(w.between(time.Second, 20*time.Second), evClone, who, 0)
	}
	if q.opens {
		if !d.Stream {
			w.closeStream(who)
			p.marks |= muted
			w.plan(who, max(time.Second, d.Refresh))
		} else if p.stream != 0 && p.marks&listening == 0 && p.habits&(clones|clone) == 0 {
			p.marks |= listening
			w.judge.listens(true)
		}
		if drops := w.sc.Visitors.Drops; p.stream != 0 && drops > 0 && w.crowd.Float64() < drops {
			w.after(w.between(time.Second, 20*time.Second), evDrop, who, uint32(p.gen))
		}
		if p.stream != 0 && w.turnedAt != 0 && w.now.Sub(w.turnedAt) < turning { // perhaps the door had not heard of it
			w.plan(who, w.between(turning/3, turning))
		}
		return
	}
	if !q.primary {
		p.expected = max(p.expected, w.now.Add(d.Refresh)) // the room does not know which tab comes next, and goes by the last
		return
	}
	next := max(100*time.Millisecond, d.Refresh) + w.between(0, 200*time.Millisecond)
	p.answered, p.expected = w.now, w.now.Add(d.Refresh)
	if p.habits&early != 0 {
		next = max(500*time.Millisecond, next/2)
	}
	w.plan(who, next)
	if p.habits&streams != 0 && d.Stream && p.stream == 0 && p.marks&(muted|asleep) == 0 && !p.ticket.ID.IsZero() {
		w.after(w.between(50*time.Millisecond, 250*time.Millisecond), evStream, who, uint32(p.gen))
	}
	if p.habits&reloads != 0 && p.marks&reloading == 0 {
		p.marks |= reloading
		w.after(w.between(10*time.Second, 30*time.Second), evExtra, who, 0)
	}
	if p.habits&tabs != 0 {
		for range 2 {
			w.after(w.between(0, max(next, time.Second)), evExtra, who, 1)
		}
	}
	if p.habits&sleeps != 0 && p.marks&asleep == 0 {
		p.habits &^= sleeps
		w.after(w.between(2*time.Second, time.Minute), evSleep, who, 0)
	}
}

// patience draws when somebody who waits gives up.
func (w *world) patience(who int32) {
	if rate := w.sc.Visitors.LeavePerMinute; rate > 0 {
		w.after(time.Duration(w.crowd.ExpFloat64()/rate*float64(time.Minute)), evLeave, who, 0)
	}
}

// enter is the way to the origin.
func (w *world) enter(who int32, q *request) {
	p := &w.people[who]
	anew := p.state != inside
	if anew {
		if p.stream != 0 {
			w.closeStream(who)
		}
		if id := q.visit.Ticket.ID; w.byID[id] == who {
			delete(w.byID, id)
		}
		p.state = inside
		p.marks &^= released
		if p.entered == 0 {
			p.entered = max(w.now, p.arrived+1)
			p.stays = w.now.Add(w.spread(w.sc.Visitors.Browsing))
		}
		if p.habits&(bare|noCookies|clone) == 0 {
			w.after(w.between(50*time.Millisecond, 800*time.Millisecond), evParts, who, 0)
		}
		w.judge.entered(who)
		if p.marks&interrupted != 0 {
			p.stays = w.now.Add(w.spread(w.sc.Visitors.Browsing))
			p.marks &^= interrupted // the credit is used
			w.origin.back(who)
		}
	}
	if w.origin != nil {
		if anew && p.entered == w.now {
			w.origin.entered()
		}
		if _, ok := w.origin.serve(q.node); !ok && (anew || q.primary) && w.now < p.stays {
			if p.habits&returns != 0 {
				w.goAway(who)
				return
			}
			w.plan(who, w.between(retryLeast, retryMost)) // the page tries again by itself, or its visitor does
			return
		}
	}
	if anew || q.primary {
		w.think(who)
	}
}

// goAway has a visitor close the page, because of an error, and come back when the session is over.
func (w *world) goAway(who int32) {
	p := &w.people[who]
	p.habits &^= returns
	if what, _ := w.origin.now(); what != "slow" { // no reason for credit
		p.marks |= interrupted
	}
	away := w.sc.settingsAt(w.since(w.now)).SeatDuration() + w.between(10*time.Second, 2*time.Minute)
	p.stays = w.now.Add(away + time.Second)
	w.plan(who, away)
}

func (w *world) think(who int32) {
	p := &w.people[who]
	if w.now >= p.stays {
		w.leave(who)
		return
	}
	w.plan(who, min(w.spread(w.sc.Visitors.Think), p.stays.Sub(w.now)))
}

// leave ends the visitor's story; the session, if there is one, ends by itself.
func (w *world) leave(who int32) {
	w.logOut(who)
	p := &w.people[who]
	if p.stream != 0 {
		w.closeStream(who)
	}
	if !p.ticket.ID.IsZero() && w.byID[p.ticket.ID] == who {
		delete(w.byID, p.ticket.ID)
	}
	was := p.state
	p.state, p.left = gone, w.now
	w.judge.went(who, was)
	p.gen++
	if _, kept := w.kept[who]; kept && p.entered != 0 {
		w.after(w.sc.settingsAt(w.since(w.now)).SessionDuration+w.between(time.Second, time.Minute), evReplay, who, 0)
	}
}

func (w *world) closeStream(who int32) {
	p := &w.people[who]
	w.silence(p)
	w.system.closed(p.node, who)
}

// silence: the stream is no more.
func (w *world) silence(p *person) {
	p.stream = 0
	if p.marks&listening != 0 {
		p.marks &^= listening
		w.judge.listens(false)
	}
}

// dropped: the node that held a person's stream is no more, or has ended it. The browser connects again
// within two seconds.
func (w *world) dropped(who int32) {
	p := &w.people[who]
	if p.stream == 0 || p.state != waiting {
		return
	}
	w.silence(p)
	p.expected = 0
	w.plan(who, w.between(0, 2*time.Second))
}

// turned: the page says something else from now on. Whoever has a stream hears of it and
// loads the page again; the others find out with their next check-in.
func (w *world) turned() {
	w.turnedAt = w.now
	for i := range w.people {
		if p := &w.people[i]; p.state == waiting && p.stream != 0 {
			w.plan(int32(i), w.between(turning/3, turning)) // not at once: until every door knows
		}
	}
}

// turning is how long it takes until the last stream has said so.
const turning = 3 * time.Second

// called: the stream says that the turn has come.
func (w *world) called(who int32) {
	p := &w.people[who]
	if p.state == waiting && p.stream != 0 {
		w.judge.tells(who)
		if p.habits&freezes != 0 {
			p.habits &^= freezes
			w.freeze(who)
			return
		}
		if p.marks&mayQuit != 0 {
			w.quit(who)
			return
		}
		w.plan(who, w.between(30*time.Millisecond, 200*time.Millisecond))
	}
}

// freeze stops the script of a page for some minutes. Its stream stays open.
func (w *world) freeze(who int32) {
	p := &w.people[who]
	if p.marks&listening != 0 { // nobody hears what it says
		p.marks &^= listening
		w.judge.listens(false)
	}
	w.rest(who)
}

// rest: a page that waits does nothing for some minutes.
func (w *world) rest(who int32) {
	p := &w.people[who]
	p.marks |= asleep
	p.expected = 0
	p.gen++
	w.judge.slept(who)
	w.after(w.between(30*time.Second, 4*time.Minute), evSleep, who, 1)
}

// act is what people do by themselves.
func (w *world) act(e event) {
	p := &w.people[e.who]
	switch e.kind {
	case evWake:
		if p.gen != uint16(e.arg) || p.marks&asleep != 0 {
			return
		}
		switch p.state {
		case inside:
			if w.now >= p.stays {
				w.leave(e.who)
				return
			}
			if w.byEdge(e.who, true) {
				w.think(e.who)
				return
			}
			fallthrough
		case coming, waiting:
			w.send(e.who, true)
		}
	case evLeave:
		if p.state == waiting {
			w.leave(e.who)
		}
	case evExtra:
		if e.arg == 0 {
			p.marks &^= reloading
		}
		if p.state != waiting || p.marks&asleep != 0 || p.ticket.ID.IsZero() {
			return
		}
		if e.arg == 0 && p.pending == 0 { // the page with the stream goes, and the answer says when the next time is
			w.send(e.who, true)
		} else if e.arg == 1 {
			w.post(e.who, w.visitOf(p), false, false)
		}
	case evParts:
		if p.state == inside && p.marks&asleep == 0 && !w.byEdge(e.who, false) {
			w.post(e.who, w.visitOf(p), false, false)
		}
	case evStream:
		if p.state != waiting || p.gen != uint16(e.arg) || p.stream != 0 || p.marks&asleep != 0 {
			return
		}
		p.gen++
		p.stream, p.node = w.now, w.nodeOf(p.site)
		v := w.visitOf(p)
		v.Stream = true
		w.after(w.checksAgain(p), evCheck, e.who, uint32(p.gen))
		w.post(e.who, v, false, true)
	case evCheck:
		if p.stream != 0 && p.gen == uint16(e.arg) && p.state == waiting && p.marks&asleep == 0 {
			w.after(w.checksAgain(p), evCheck, e.who, e.arg)
			w.post(e.who, w.visitOf(p), false, false)
		}
	case evDrop:
		if p.stream != 0 && p.gen == uint16(e.arg) && p.marks&asleep == 0 {
			w.closeStream(e.who)
			p.expected = 0
			w.after(w.between(10*time.Millisecond, time.Second), evStream, e.who, e.arg)
		}
	case evSleep:
		switch {
		case p.state == inside && p.marks&asleep != 0: // it fell asleep while its request was held
			p.marks &^= asleep
			w.think(e.who)
		case p.state != waiting:
			p.marks &^= asleep
		case e.arg == 0:
			if p.stream != 0 {
				w.closeStream(e.who)
			}
			w.rest(e.who)
		default:
			if p.stream != 0 && p.habits&(clones|clone) == 0 && p.ticket.Arrival >= w.judge.set.ResetAt && w.judge.flows() {
				w.judge.hasPlace(e.who)
			}
			p.marks &^= asleep
			w.judge.woke(e.who)
			w.send(e.who, true)
		}
	case evRoam:
		if p.state != waiting && p.state != inside || len(w.sc.Sites) < 2 {
			return
		}
		if p.stream != 0 {
			w.closeStream(e.who)
		}
		to := int16(w.crowd.IntN(len(w.sc.Sites) - 1))
		if to >= p.site {
			to++
		}
		p.site, p.expected = to, 0
		if p.state == waiting && p.marks&asleep == 0 || p.state == inside && p.pending == 0 {
			w.plan(e.who, w.between(0, time.Second))
		}
	case evQuit:
		if p.state == waiting && p.marks&(asleep|mayQuit) == mayQuit && !p.ticket.ID.IsZero() && !p.ticket.Accepted() {
			w.quit(e.who)
		}
	case evClone:
		if p.state != waiting || p.ticket.ID.IsZero() {
			return
		}
		w.cloned(e.who)
	case evReplay:
		w.replayed(e.who)
	}
}

// quit gives up a place by the page's button.
func (w *world) quit(who int32) {
	p := &w.people[who]
	p.marks &^= mayQuit
	if p.stream != 0 { // the page with the stream goes
		w.closeStream(who)
	}
	v := w.visitOf(p)
	v.Leave, v.NoJoin, v.NoClaim = true, true, true
	w.post(who, v, true, false)
}

// cloned lets a second client use the person's cookie, at any site. It is no visitor of its
// own: the id counts once.
func (w *world) cloned(of int32) {
	p := w.people[of]
	c := person{ticket: p.ticket, arrived: p.arrived, site: int16(w.crowd.IntN(len(w.sc.Sites))), state: waiting, habits: clone, marks: shown}
	who := int32(len(w.people))
	w.people = append(w.people, c)
	w.patience(who)
	w.send(who, true)
}

// copied lets a ticket be used again, once, whose visitor has given up its place, or ended its session.
func (w *world) copied(of int32, t anteroom.Ticket) {
	if w.copies[t.ID] {
		return // where it was used is known by now, and what it has become is somebody's place
	}
	w.copies[t.ID] = true
	who, p := int32(len(w.people)), &w.people[of]
	w.people = append(w.people, person{ticket: t, arrived: p.arrived, site: int16(w.crowd.IntN(len(w.sc.Sites))), habits: p.habits & (streams | clones), marks: p.marks & shared})
	w.judge.came(who)
	w.judge.comesLate(who) // not before somebody says that the place is no more
	w.send(who, true)
}

// replayed lets the person come back with the waiting cookie of before its session.
func (w *world) replayed(of int32) {
	p, kept := &w.people[of], w.kept[of]
	if _, used := w.judge.used[kept.ID]; !used {
		return // that cookie still waits
	}
	// Where a second client has the cookie, the two share what follows it as well.
	c := person{ticket: kept, arrived: w.now, site: p.site, habits: p.habits & (streams | clones), marks: p.marks & shared}
	who := int32(len(w.people))
	w.people = append(w.people, c)
	w.judge.came(who)
	w.send(who, true)
}
