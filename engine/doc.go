// Package engine decides who is admitted. It is arithmetic over messages and time: no
// goroutine, no clock, no I/O, the standard library only.
//
// # Where to look
//
// Files are named after the machine that they belong to, then after what they decide:
//
//	door                 a room at one node: lets in the visitors it knows
//	doorway_…            a door and its way to the site; _alone is what it decides while the site does not answer
//	desk                 a site and its doors
//	site_…               a room on one machine or in one data center: _visits (newcomers and check-ins), _turns (the visitors
//	                     who were called), _sessions, _passes (what edges let in), _holding (requests that wait for a seat), _roaming and _guests
//	                     (visitors who change sites), _cut (without a coordinator), _witness (doors that fell silent), _restore
//	coordinator_…        the room as a whole: _line and _calls (who is called next), _ledger (what each site may use),
//	                     _shuffle and _draw, _moves (a place that changes sites), _figures (what sites hear of it)
//	messages_…           what travels between them, its bytes, and what is sent again
//	estimate_…           the estimated wait
//	role_…               changes of processes: takeovers, and clocks compared
//	origin               how admission follows the health of the origin
//	single               all of them in one process
//	data_…               rings, heaps and tables without meaning of their own
//
// # Units and rules
//
// A limit is a number of units. There are two: a seat, used until the session ends
// ([Seat]; [anteroom.Settings].TotalActiveUsers of them), and a rate slot, used for
// [RateHold] from the admission ([RateSlot]; NewUsersPerMinute of them), or from when the visitor came in
// if the answer was lost or late (EventCame). One of each is a
// permit; whoever enters uses one. A [Coordinator] is the one authority of a room and
// grants permits to sites; a [Site] admits from its own. Each keeps counters that only
// grow, for each unit k and site i:
//
//		G[i]     ever granted, at the coordinator (Account.Granted); g at the site: the highest heard
//		ret[i]   ever returned, at the site (Balance.Returned); RS at the coordinator: the highest heard
//		used[i]  in use at the site; offers[i]: set aside for tickets whose turn has come
//		debt[i]  sessions that it has adopted, whose seats are not in g yet
//
//		pool = limit - sum over sites (G - RS)
//		free = g + debt - ret - used - offers
//
//	 1. The coordinator raises G only while every pool stays at or above 0.
//	 2. A site admits, offers and returns only from free units.
//	 3. Receivers take the maximum of what they have and what they hear.
//
// Whoever enters uses a permit, but its rate slot is free long before its seat. A site therefore keeps idle rate slots beside its seats, or
// gets them ([State].Rates): when it is cut off, the seat of a session that ends is worth nothing without one. They are taken from what is
// idle beyond half of the rate.
//
// # Why the limits hold
//
// T1: the units in use never exceed the limit. For the newest coordinator and each site, always:
//
//	inside  = used       at the process that has the journal: the journal comes first
//	used   <= g - ret    rule 2
//	g      <= G          the record in the store bounds what any older coordinator grants
//	ret    >= RS         a return counts once, see Changes of processes
//
// So inside <= G - RS, and by rule 1 the sum is at most limit - pool. A new coordinator starts with G at
// the stored bound ([LedgerRecord]), so its pool may be negative. While it is, sites hold: they return what
// is free, and the older pool bounds the rest. Messages may be lost, repeated, late or out of order, and
// processes may stop. "make model" checks this; lab/model/README.md says where the engine is less strict than the model.
//
// A site that lost its memory comes back under a new incarnation and adopts each visitor of its own that it hears
// of within a session duration. The lost account covers their debt: it stays charged until that time has
// passed by the site's own clock and the coordinator knows what was adopted; the time
// that several processes of a site spend on that adds up ([State].LostFor). Nobody compares wall clocks.
//
// A session uses one seat, at one site, for as long as the origin may see it (see T3). A door lets a session in
// without its site for sureFor after the last request that the site has confirmed, and for [AloneFor] while it does
// not hear the site. The site holds the seats of those whom a door that is silent, or has ended, may have let in since
// its last word, unless that was that it lets nobody in any more ([Doorway.End]).
//
// T2: no more than the rate enter in any 60 s. Whoever entered in (t-60 s, t] has a rate
// slot in use at t; T1 bounds them. One mechanism serves both limits, and a sliding minute
// has no turn at which two budgets meet.
//
// T4: while the links are up, nobody is called before somebody of the same lane who arrived more than a
// second earlier and is here, nor before somebody of a higher lane who is here, but for what the lane has earned by its share
// and what is reserved for it (coordinator_lanes.go). Newcomers enter directly only in mode [Open], which one
// process decides and which means that nobody is known to wait. In mode [Queue] only offers
// admit; they are cut from one order for each lane (arrival, id) and take effect everywhere at the
// same moment, so a faster link overtakes nobody; the mode returns to Open only after the
// last offer has taken effect. "Here" is an open stream, or a check-in that is due within
// claimHorizon: whoever is neither is passed over without losing the key, and is first on
// return. When a room that was shut opens, or its limits are raised, those who wait have been told to come back later than
// their turns come: for openedFor, whoever is due by its end counts as here, and the turn stands until then. After a restart
// that lost touch with a line, nobody is called for claimHorizon, so that those in front can come back first.
//
// Visitors are called ahead of units that come free within callAhead unless their sessions are renewed
// ([Report].Coming): as many as those, in the same order, so that they are here in time ([Offers].Ahead). Such a turn sets
// nothing aside. Whoever comes is held, and enters by the unit that the coordinator has granted to this turn since, the
// first called by the first, unless somebody further in front is here again. Who has waited for that for [HoldSoon] is shown
// the page with the same place, and called again when the unit is there; if it is not in claimStream, the visitor is in order again.
//
// T3: one ticket has at most one session, and one place. A site admits a request whose id has a
// seat by that seat, answers all held requests of an id alike, and remembers an id whose session
// has ended as used for as long as a cookie of it could be shown, together with the one ticket under
// which requests with that cookie continue.
//
// With several sites, a session stays at the site that admitted it: its home, which the cookie
// names (homeOf). Elsewhere the visitor is a guest and uses no unit. The other site holds the
// first request and asks home through the coordinator ([Report].Asks, [Inquiry], [Findings]); the
// question renews the session, and the answer says when home last saw the visitor. For sureFor
// from that moment the other site and its doors admit the guest without waiting. They report each
// such request within TouchDelay, again until home confirms it, and home allows for the way. If
// home does not answer, a guest is admitted until awayMargin before the confirmed moment is a
// session duration old. By then home knows that it cannot hear the other site, because its reports
// are not answered ([Site] is apart) or because the coordinator says that a site is silent
// ([State].Silent, also when another process has begun there meanwhile), and keeps the seat for
// another session duration. So the seat outlasts what the origin sees, and no other site needs one.
// A visitor whom the other site does not know is not admitted by the cookie alone, because
// a home that does not know of the visit would free the seat. That visitor is admitted as a new visitor if nobody waits, and otherwise keeps the cookie until
// the session must be over, and then gets the place of the first arrival. If home says that the
// session has ended, it ends everywhere; a revocation goes to home first, and home tells the
// others. Only home adopts a session, and only after it lost its memory.
//
// A place in line is at one site too, and moves. The coordinator makes the site that has it give it
// up before it tells the asker. If nobody answers in time, the visitor takes a place here with the
// old arrival, and is called only after the question was answered.
//
// The draw ([anteroom.Random]) is uniform over everybody in line, by a keyed sequence. A
// draw stands: a winner who is away keeps the win and enters on return, before later
// winners; so it does not matter who asks how often. At most as many wins are set aside as
// are released in 1.3 drawInterval, and winners who have gone do not count.
//
// T5: where the room issues passes ([anteroom.Settings].Pass), never more passes are valid than sessions may be, and a session
// lasts its duration after the last request that the origin has seen, although edges let in whoever has a pass and tell nobody.
// A pass is issued with a request within a session, past probation, and lives for P by the wall clock; an edge's clock may be
// behind by S ([anteroom.PassSkew]). So the last request that it lets in comes within P + S of one that is known here, and
// sessions simply last P + S longer everywhere ([anteroom.Settings.SeatDuration], inForce): whatever T1 and T3 say of a session
// and its seat then holds for the passes as well, over the loss of messages, doors and processes. Without passes nothing is
// different. What ends a session by something else than time has to wait for the passes:
//
//   - A session that is revoked is over at once, and its seat comes free P + S later. (As with the session itself, a door that
//     has not heard of it may issue another pass.)
//   - When settings change so that sessions end sooner, the passes of before count as long as they live. That the room issues
//     passes is on record, for a process that begins with other settings.
//   - Sessions that are not renewed end when they are to end, and so do their passes, S earlier.
//
// Where every edge reports whom it has let in ([anteroom.Settings].PassReported), sessions do not last longer for the pass. A report is a
// request with the visitor's ticket that tells nobody the answer ([anteroom.Visit] with NoClaim): it renews a session that there is, at the
// moment it comes, at most R ([anteroom.MaxTouchAge]) after the request, and does nothing else. No limit depends on reports: P is at
// most half of a session, so a seat is held until P + S after the last request known here if it is held for max(D, P + S + R), whoever
// reports or does not. That also leaves the last report of a pass the time to come. Without it only the other half of the promise fails:
// the session lasts D from the last request that is known, and its visitor is a newcomer after that. When settings change, passes of
// before hold their seats to their end, and for no session after it.
//
// The token of a bridge ([anteroom.Settings].Redeem) is a pass for all of the session: an application redeems it within R and then
// lets the visitor in for D, so P is R + D, and the session ends with its last token, P + S after the last request known here. It
// is not revoked, except when the application says that it does not let the visitor in any more: then the seat is free at once.
//
// Not promised: that a visitor whose browser was never told of the admission, because the answer took
// longer than askFor, enters in the minute that counts it; fewer sessions than there are, at once, after a limit was lowered (nobody
// is thrown out, nobody enters until enough have left); order across a cut link; that
// passthrough respects a limit; a draw in which a stream, which is always present, does not
// enter sooner than a winner who is away; that every session of a site that lost its memory
// is believed, for a cookie can outlive its session by half of it: at most the limit are.
//
// # What holds the line
//
// Queue-all and an event's prequeue hold everybody without a session, whatever the method;
// places are given and kept as ever. Reject refuses those who wait at their check-ins, which
// keep their places and go on. When the method lets everybody in, or the room is switched off, streams
// are told at once. Draining refuses newcomers only. A reset of the line
// ([anteroom.Settings].ResetAt) makes every place of an earlier arrival void, wherever it is
// known from: a site's memory, the coordinator's line, the journal, a cookie.
//
// Turns that the operator gives ([Coordinator.AdmitNow], [Offers].ByHand) are the exception: they
// stand while the line is held, are not paced, and go to the next in line whether they are here
// or not. They are offers like any other, with a permit each, so T1 and T2 hold.
//
// When it is known when a prequeue ends ([Site.Expect]), whoever has no stream is told to come
// back then, the first in line first: those who are due within claimHorizon count as here, and
// who comes at the start does not overtake them.
//
// # Shuffle
//
// [Coordinator.Shuffle] gives everybody in line another key, here or away, called or not: the
// order is [Order] of the ids under [ShuffleKey] of the seed and the digest of the ids
// ([Entries]), so that anybody can recompute it, and the keys are spread evenly over the time
// before the shuffle, so that ranks by second of arrival stay fine. They are journaled between
// two marks, and who enters by them is recorded after the second: what a restart finds is the
// whole shuffle or none that anybody has seen, and then the same ids and seed give the same
// order again. Places told before do not count any more. Sites get the keys in messages of
// their own ([Keys]); where one is lost, the next check-in tells, for the coordinator's key
// wins. Cookies cannot be changed, so the moment of the shuffle is told with the figures: a
// cookie of before it, or of before the site or the door heard of it, says nothing of the
// order, and whoever has one and no place (it had lapsed before the shuffle) is behind
// everybody in the draw and before everybody who comes later.
//
// # Machines and messages
//
// [Door] is a room at one node: it lets in whom it knows and answers check-ins far from the
// front; the rest asks the site. [Site] is a room in one data centre or on one machine:
// units, sessions, the tickets that wait there, requests held for a slot about to come free
// (at most holdMax). [Coordinator] has the ledger, the order of everybody waiting, the
// pace and the forecast. A site sends a [Report] (counters, arrivals, departures, what it
// wants), the coordinator answers with a [State] (grants, mode, [Figures]) and sends
// [Offers]. Counters survive any fault; lists need order, and a gap in the sequence makes
// the coordinator ask for everything again. A door lets a session in alone while it is sure
// that the site holds it: from the last touch that the site has confirmed. [Single] holds one of each and hands messages
// over until nobody has anything to say: the same code with a latency of zero.
//
// Between a door and its site stand two more. [Doorway] is a Door that asks: requests have tokens,
// are asked again until they are answered and abandoned when nobody waits; touches, check-ins,
// closed streams and revocations are told from the oldest on until they are confirmed. [Desk] is
// a Site that answers: it takes each batch of a door once and in order, knows where every stream
// is and who asked what, and tells a door that is new, or was taken for dead, that it knows
// nothing of its streams ([ToDoor].Since). A visitor may hit any door at every request: sessions
// and places belong to tickets, so a request that comes twice is decided about twice and changes
// nothing twice.
// A stream keeps its visitor's place at its site: when the place has gone to another
// ([ToDoor].Parted), because somebody asked there or a check-in was told late, a stream that stays open
// claims it back.
//
// A door whose site has not answered for cutAfter decides alone. It admits nobody anew. It lets in
// whoever must have a session still: one that it knows, or that the cookie tells of, until a session
// duration, less 1.5 s, after the moment of the cookie. The site has confirmed that moment or made it
// itself, and so holds the session for longer; the 1.5 s are for a site that hears the door, although
// the door hears nothing, and has to hear of the request in time. Those who wait keep their places and
// see them; newcomers get one of now, or pass uncounted if the operator prefers that
// ([Doorway.OnFailure]). What was seen meanwhile is told when the site is back, and a site that was
// taken over ends no session before the doors had doorDead for that. Whoever has a session for
// certain is let in as soon as the site is late, and whoever may have one waits as long as a
// take-over takes. A cookie's moment is therefore renewed when more than half of the session has
// passed since, and earlier in sessions shorter than forty seconds: twenty are to be left, but it
// is not renewed more than once a second. A door that knows no later moment asks the site for one.
//
// Nobody is told a place before the line is known: a coordinator that begins gives no [Figures]
// before the sites of its predecessor have told who waits there (or are silent), a site and a door
// show no place before they have figures.
//
// Time is room time. The coordinator's process defines it, every other follows with a
// [Clock]: monotonic time and an offset that steps once and is then corrected by at most
// 1e-4, for which RateHold has a margin. A coordinator that starts continues the time that its
// sites have ([Clock.Follow]). Offers take effect after the slowest way to a site that
// answers, and requests are held for three round trips, at least holdMax and at most 2 s, or for
// findMax while other sites are asked about the ticket. A
// newcomer whose turn is due within [HoldSoon], and a visitor who was called ahead, is held for that long.
//
// The published words map so: a worker is a Door, a data centre's object and its counter
// are a Site, the global object is the Coordinator. A bucket is the minute of the arrival,
// which orders; "slots" are the permits in the pool, "reserved" are those that offers set
// aside. Free slots are min(L - active, R - admitted in the last minute), as published,
// except that the minute slides and both numbers are bounds.
//
// # Changes of processes
//
// The role of a site goes from process to process ([Site.SetTerm]); each begins from the journal,
// which only the newest can write. For a moment two may take themselves for the site. Both may
// spend the units that the journal's events leave free, but the older one's events are refused,
// and nobody is told of an admission before its event is durable: so nothing that it has spent is
// used. What it returns must count once at most: the coordinator ignores reports of a term older
// than the newest heard, messages carry the term that they are meant for, and a site spends
// nothing before a [State] has answered a report of its own, which brings all returns that were
// heard (State.Heard). Offers that the older process had are given again at once.
//
// A report of everything that waits may be too long for a message: it comes in parts, and only
// after the last of them, none missing, does what is not in it count as gone.
//
// # Forecast
//
// The coordinator knows the age of every session and how often sessions of an age end. It
// moves both limits forward from the moment of the forecast, in steps of five seconds (longer for
// long sessions): what ends frees a seat, what was admitted [RateHold] ago frees a rate slot (to the
// second, for a rush comes back as one), what enters begins a session. What sites hold beyond the
// sessions that they have reported counts as admitted just now. The curve of releases so made,
// corrected for those who leave the line, is read at a visitor's rank ([Figures.WaitOf]), which
// counts those who have joined elsewhere since the figures as well as can be estimated. No forecast is
// told before it is known: with queue-all, when nothing will come free, or until twenty sessions have
// ended. Until then the curve is that of the rate alone. For as many as seats are free it is the forecast;
// the others are told bounds ([Figures.Bounds]): not before the curve, and not after sessions that end
// by themselves have ended.
//
// # Where this differs from the reference
//
// Messages between releases: see the wire format in wire.go. Every message ends with tagged members
// that an older release skips.
//
// Algorithm D is described in the project's reference on admission; the numbers are its
// own. A room with one site reopens when a hundredth of the smaller limit is free, for
// nobody can race; with several, at a hundredth of the seats and at least two per site. A
// visitor whose stream broke is away at once and not only after the grace. Figures say when
// permits are left that nobody here could take ([Figures].Hot), also while nothing can be recorded,
// so that any check-in then asks and is held for a moment ([HoldSoon]). A rate slot is held a quarter of a second longer than a minute, as a
// seat is, because the origin sees admissions when they arrive there and not when they were
// decided. A door reports touches with every batch, not once a second, for the last request of
// a session counts. With the random method every check-in asks, for anybody may have won. A
// site that has asked about a session which nobody knows, while some site does not answer,
// gets no answer: it decides as if it were cut off itself.
package engine
