package engine

import (
	"time"

	"github.com/anteroom/anteroom"
)

// SiteKey names a site (a data centre or a single machine) and its incarnation: the number
// of times that it has lost its memory.
type SiteKey struct {
	Name        string
	Incarnation uint64
}

// Mode is what a room does with newcomers.
type Mode uint8

const (
	// Queue: somebody waits, or it is not known yet; only offers admit.
	Queue Mode = iota
	// Open: nobody waits; free permits at a site are spent without asking.
	Open
	// Cut: a site has no answer from the coordinator and serves its own line from its own
	// units. Never sent, only entered.
	Cut
)

func (m Mode) String() string { return [...]string{"queue", "open", "cut"}[m] }

// Arrival tells the coordinator that a waiting ticket is here: joins and check-ins.
type Arrival struct {
	ID   anteroom.ID
	Key  anteroom.Time
	Lane uint8
	// Shown: the visitor has seen the waiting page (or was told to come back).
	Shown bool
	// Stream: an open stream; else Due is the moment of the next expected check-in.
	Stream bool
	Due    anteroom.Time
	// Unheard: the site knows the place from its journal only, and not whether the visitor is here.
	Unheard bool
	// Unproven: the visitor has not come back with the ticket yet. See [FirstInterval].
	Unproven bool
}

// Why a ticket left the line.
type Why uint8

const (
	Admitted Why = iota + 1 // took its turn, or was let in when nobody waited
	Left                    // said goodbye, or its place lapsed at the site
	NoShow                  // did not take its turn: keeps its key, dormant until it returns
	Declined                // the site could not make the offer: back in order
)

// Standing is what a site knows of a ticket.
type Standing uint8

const (
	Unknown Standing = iota
	Waiting          // in line
	Seated           // has a session
	Used             // had its session
)

// Ask is a question about a ticket that turned up at a site: to the coordinator, and from there to
// other sites.
type Ask struct {
	ID anteroom.ID
	// Home is the site that is asked, as a ticket names it; 0: every site, as the ticket waits.
	Home uint32
	// Seen is the visitor's last request, which renews a session; 0: there was none.
	Seen anteroom.Time
	// Accepted is when the session began, by the cookie: a home that has lost its memory adopts
	// it. 0 if the cookie has run out, or the ticket waits.
	Accepted anteroom.Time
	// Over: the session ends at once.
	Over bool
}

// Finding is what became of a ticket that a site was asked about.
type Finding struct {
	ID       anteroom.ID
	Standing Standing
	// Waiting: its key and lane, of the place that was given up.
	Key  anteroom.Time
	Lane uint8
	// Seated: its session, and where it is, as a ticket names the site. A home that says so of a
	// Used ticket has ended the session by itself: all sites are to know.
	Accepted anteroom.Time
	Last     anteroom.Time
	Home     uint32
}

// Departure tells the coordinator what became of a ticket.
type Departure struct {
	ID  anteroom.ID
	Why Why
}

// AgeCount is a number of sessions of an age, in forecast steps.
type AgeCount struct {
	Age   uint16
	Count uint32
}

// Report is what a site tells the coordinator. Cumulative members may be lost, repeated or
// reordered; the lists need an ordered stream, and a gap in Seq makes the coordinator ask
// for everything again (State.Resync).
type Report struct {
	From  SiteKey
	Epoch uint64 // the newest heard
	Seq   uint64 // 1, 2, 3 …
	Sent  anteroom.Time

	Returned  Units
	Used      Units
	Adopted   uint64 // sessions adopted, ever
	Idle      uint64 // free permits here
	Newcomers uint32 // since the last report
	Want      uint32 // permits asked for held newcomers
	Ask       bool   // an answer is wanted
	Full      bool   // Arrivals is everything that waits here, or a Part of it

	// Trip is the shortest round trip to the coordinator measured lately; 0 when unknown.
	Trip time.Duration

	Departures []Departure // of before the arrivals
	Arrivals   []Arrival
	// Asks are about tickets of this room that turned up here and are not known here, and tell
	// the homes of guests of their requests. Answered with Findings.
	Asks []Ask
	// Found answers an Inquiry.
	Found    []Finding
	Admitted uint32     // since the last report
	Ends     []AgeCount // since the last report
	Ages     []AgeCount // with Full: the sessions here by age

	// Term is the epoch of the site's role, of which each holder has a higher one: reports of an
	// older one come from a process that is not the site any more. 0 where sites have no roles.
	Term uint64
	// Part numbers the reports of one Full whose Arrivals are too many for one message: 1, 2, 3 …;
	// Last is set in the last. Both are zero in other reports.
	Part uint32
	Last bool
	// Weight is the site's share of what is idle, in relation to those of the others; 0 is 1.
	Weight uint32
	// LostFor repeats that of the first State which told of a lost incarnation.
	LostFor time.Duration
	// Origin is what the doors here saw of the origin; zero in rooms that do not protect theirs.
	Origin OriginFacts
	// Gathered: every door that the site's process can hear has told it who is here (see FromDoor.Told), and the
	// coordinator has been told by this report or one before.
	Gathered bool
	// Lanes is what their visitors use of the limits here, in a room that has lanes.
	Lanes []LaneUse
	// Timed: a door has said about the time that this site's clock shows, and was told it by an earlier
	// process of the site.
	Timed bool
	// Coming is how many units in use here come free within callAhead, if nothing is heard of their sessions. It
	// promises nothing: a unit is granted again only when it was returned.
	Coming Units
}

// State is the coordinator's answer to a report, and its word to all when the mode changes.
type State struct {
	Epoch   uint64
	Now     anteroom.Time // coordinator time
	Echo    anteroom.Time // Sent of the report that this answers; 0 when unasked
	Granted Units
	Heard   Units // the highest Returned heard: a site that forgot its own takes it
	Adopted uint64
	Lost    bool // a lost incarnation of this site is still charged: unknown sessions may be its
	// LostFor is how long processes of this site that have ended have adopted sessions of that one: it
	// is taken from how long this one does.
	LostFor time.Duration
	Silent  bool // some site is not heard: visitors may be there of whom nobody knows
	Guessed bool // nobody knew the room time when this coordinator began, see RoomTime
	Mode    Mode
	Target  uint64 // idle permits that the site may keep
	Rates   uint64 // idle rate slots that it may keep for its sessions' seats, so that a cut leaves it both
	Figures *Figures
	Resync  bool
	Sites   int // that the room has: with more than one, a ticket unknown here may live elsewhere
}

// Inquiry asks a site about tickets that have turned up at another. A session stays, and is
// renewed. A place in line is given up, so that nobody stands at two sites: an offer that it had is
// withdrawn. The site answers with Report.Found, and the same for a while when asked again.
type Inquiry struct {
	Epoch uint64
	Asks  []Ask
}

// Findings answer Report.Asks.
type Findings struct {
	Epoch uint64
	Found []Finding
}

// Offers are turns: the permits are in Granted. They take effect everywhere at the same
// moment, so that a faster link overtakes nobody.
type Offers struct {
	Epoch   uint64
	Granted Units
	Adopted uint64 // as in State
	At      anteroom.Time
	// ByHand: the operator gave these turns; they count while the room is held, too.
	ByHand bool
	IDs    []anteroom.ID
	// Ahead are called for units that are about to come free, and are not in Granted yet. Each is among IDs later, when it
	// is.
	Ahead []anteroom.ID
	// Expected is a moment soon after the room was opened: a turn stands until its visitor is due, if that is by then. Zero:
	// the room was not opened lately.
	Expected anteroom.Time
}

// Keys gives places in line another key: by a shuffle, or because the site has missed one.
type Keys struct {
	Epoch    uint64
	Shuffled anteroom.Time // as in Figures
	Places   []Placed
}

// Placed is a ticket's key in the order of the line.
type Placed struct {
	ID  anteroom.ID
	Key anteroom.Time
}

// ToSite is one message from the coordinator to a site. Exactly one of its pointers is set.
type ToSite struct {
	Site     SiteKey
	State    *State
	Offers   *Offers
	Inquiry  *Inquiry
	Findings *Findings
	Keys     *Keys
	Term     uint64 // that of the site's reports: a process with another one ignores the message
}

// FromDoor is what a door tells its site, in batches. Visits are repeated until they are
// answered and everything else until it is confirmed, from the oldest on, so that a message that
// is lost or overtaken by a later one is not missed.
type FromDoor struct {
	Door uint64 // the process: a new one after each start
	// Sent is the door's room time, which the site sends back (ToDoor.Echo).
	Sent anteroom.Time
	// Known is Sent again when the sender has been told the room time; else zero: Sent is a guess then.
	Known anteroom.Time
	// Batch numbers the door's messages: 1, 2, 3 … The site takes none that is not newer than the
	// last, and confirms: a door counts on a session only from the last touch confirmed.
	Batch uint64
	// Visits ask for decisions; Token is the door's.
	Visits    []Asked
	Abandoned []uint64      // tokens whose visitor is gone
	Closed    []anteroom.ID // tickets that have no stream at this door any more
	Touches   []anteroom.ID // sessions that the door let through alone
	// Ages is how long ago each of them was seen, if that is more than TouchEvery for one: what is
	// told again to a site that was silent is of before.
	Ages    []time.Duration
	Polls   []Poll
	Revokes []anteroom.ID // sessions that end at once, by the operator's word
	// Figures is Figures.At of those that the door has; 0 when it has none.
	Figures anteroom.Time
	// Node is the same after each start of the process: a process that speaks for the node says that
	// the one before is over. 0: not known.
	Node uint64
	// Origin is what the node's gateway saw of the origin; zero in rooms that do not protect theirs.
	Origin OriginFacts
	// Empty: the door knows no session and holds no request, so that it lets nobody in unasked.
	Empty bool
	// Told is the term of the site's process to which the door has told all that a new one has to hear: who has a stream
	// here, and who is due. 0: to none.
	Told uint64
	// Late are sessions whose visitors the door has let in for the first time, as far as it knows, later than the site said
	// so: the answer was long on its way, or reached the door and not the visitor.
	Late []anteroom.ID
}

// Asked is one visit that a door could not decide alone.
type Asked struct {
	Token uint64
	Visit anteroom.Visit
	// Waited is how long ago the request came to the door.
	Waited time.Duration
}

// ToDoor is what a site tells a door, or all of its doors.
type ToDoor struct {
	Site      SiteKey
	Answers   []Answer // with the door's tokens
	Pushes    []anteroom.ID
	Ended     []anteroom.ID // sessions that are no more, or were never known
	Confirmed uint64        // the newest batch taken; 0 in a message to all
	Mode      Mode
	Figures   *Figures // nil: as before
	// Now is the site's room time, and Echo is Sent of the newest batch taken; 0 in a message to
	// all.
	Now, Echo anteroom.Time
	// Since is the first batch that this Desk took of the door: another one than before says that
	// nothing is known of the door's streams any more. 0 in a message to all.
	Since uint64
	// Term is that of the site's process (see Site.SetTerm): a door that hears another for the first
	// time tells it who is here, and listens to no process of an older one.
	Term uint64
	// Parted are tickets with a stream at the door whose place has gone to another site: where the
	// visitor is now, or where a late word of him came from. A stream that stays open claims the
	// place back.
	Parted []anteroom.ID
}

// Parameters of algorithm D (reference: its section 2.12). They are not settings: changing
// one changes what the proofs and the measured goals were made for.
const (
	heartbeatOpen  = time.Second
	HeartbeatQueue = 500 * time.Millisecond
	flushEvery     = 100 * time.Millisecond
	cutAfter       = 3 * time.Second
	DeadAfter      = 2500 * time.Millisecond // must be less than cutAfter
	holdMax        = 500 * time.Millisecond
	findMax        = 2 * time.Second       // for a ticket that the other sites are asked about
	EffectMargin   = 30 * time.Millisecond // with several sites
	// callAhead is how long before a unit comes free the next visitor may be called to it: a heartbeat, by which the
	// coordinator hears of it, and the time that the turn and the visitor take to arrive.
	callAhead    = HeartbeatQueue + 250*time.Millisecond
	claimStream  = 3 * time.Second
	claimPoll    = time.Second // after the check-in was due
	claimHorizon = 4 * time.Second
	Grace        = 10 * time.Second // a missed check-in
	streamGrace  = 5 * time.Second  // a broken stream
	offerLost    = 30 * time.Second
	RateHold     = 60*time.Second + 10*time.Millisecond + TouchDelay // a clock drift of 1e-4, and uneven ways to the origin
	TouchEvery   = time.Second
	TouchDelay   = 250 * time.Millisecond // the longest way of a touch to the site
	// A place is proven when its visitor comes back with the ticket or opens a stream. Until then nobody is called to
	// it, so that requests without cookies hold up nobody. The first check-in is therefore soon: after FirstInterval,
	// or FirstSoon while permits are free. ProveBy later the place is forgotten; its ticket still has it.
	FirstInterval = 5 * time.Second
	FirstSoon     = time.Second
	ProveBy       = time.Second
	// settling is how long after an arrival there may be people ahead who never come back: they are forgotten by then, and the
	// figures say so. A visitor who was sent away by their number would stay away while nobody is ahead.
	settling     = FirstInterval + ProveBy + 2*time.Second
	MinInterval  = 2 * time.Second
	MaxInterval  = 120 * time.Second
	drawInterval = 20 * time.Second
	StreamNear   = 20 * time.Second // a turn that comes sooner is near
	holdLine     = 10               // a line this short holds requests
	nearFront    = 2 * time.Second
)
