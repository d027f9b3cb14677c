package gateway

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/account"
	"github.com/anteroom/anteroom/ticket/invite"
)

const (
	// accountTime is how long a visitor waits for the store, at most.
	accountTime = 2 * time.Second
	// accountMemory is how long the store knows the place of an account at least, and is told again before.
	accountMemory = 6 * time.Hour
	// accountTokens bounds the cookies of one name that are looked at: a browser sends one for each domain and path.
	accountTokens = 4
)

// accounts are what a room needs whose visitors are accounts.
type accounts struct {
	anteroom.Accounts
	lanes    []anteroom.Lane
	mark     account.Mark
	verifier *account.Verifier
}

// accountsOf returns nil for a room that asks nobody. What has not changed stays, with what it remembers.
func (s *setup) accountsOf(r *room) *accounts {
	switch was := r.accounts; {
	case r.AccountIssuer == "":
		return nil
	case was != nil && was.Accounts == r.Accounts && slices.Equal(was.lanes, r.Lanes):
		return was
	}
	a := &accounts{Accounts: r.Accounts, lanes: r.Lanes, mark: account.MarkOf(s.Keys.Fixed(ticket.PurposeAccount), r.ID)}
	keys := new(account.Keys)
	if u := r.AccountKeysURL(); u == "" {
		if fixed, err := account.Fixed(r.AccountKeys); err == nil { // it was checked
			keys = fixed
		}
	} else if s.AccountKeys != nil {
		keys = s.AccountKeys.Of(u)
	}
	a.verifier = account.NewVerifier(account.Rules{Issuer: r.AccountIssuer, Audience: r.AccountAudience, Claim: r.AccountClaim, LaneClaim: r.AccountLaneClaim, Lanes: r.Lanes}, a.mark, keys)
	return a
}

// signed is the account that a request comes with.
type signed struct {
	account account.ID
	is      bool
	place   account.Place   // as it is known
	former  anteroom.Ticket // a place in the room that the account has not got; zero: none
}

// verify returns the account of the request's token, and its lane. Of several cookies the best counts.
func (x *exchange) verify() (who account.ID, lane uint8, worth account.Result) {
	a, tried := x.room.accounts, 0
	try := func(token string) {
		if tried++; tried > accountTokens || worth == account.Valid {
			return
		}
		if w, l, is := a.verifier.Verify(token, x.start); is > worth {
			who, lane, worth = w, l, is
		}
	}
	if a.AccountCookie != "" {
		eachCookie(x.cookies, a.AccountCookie, try)
	}
	if lines := x.r.Header.Values(a.AccountHeader); tried == 0 && len(lines) == 1 {
		token := lines[0]
		if kind, rest, two := strings.Cut(token, " "); two && strings.EqualFold(kind, "Bearer") {
			token = strings.Trim(rest, " ")
		}
		try(token)
	}
	return who, lane, worth
}

// account makes the visit that of an account, whatever ticket the visitor has brought. It answers the request itself if the visitor is not
// signed in, or has a session.
//
// A ticket of an account counts only with that account's token, which may have expired since: the waiting page cannot renew it. A session
// of nobody's account is from before the room asked for one, and goes on.
func (x *exchange) account(v *anteroom.Visit, ask int) (answered bool) {
	rm, a := x.room, x.room.accounts
	if in := rm.door.Settings(); in.Suspended || in.QueueingMethod == anteroom.Passthrough {
		return false
	}
	who, lane, worth := x.verify()
	x.g.count.tokens[worth].Add(1)
	of, number, marked := a.mark.Read(v.Ticket.ID)
	own := marked && worth >= account.Expired && of == who
	if marked && !own {
		x.presentAnew(v, anteroom.Ticket{})
	}
	if own {
		x.signed = signed{account: who, is: true, place: account.Place{Number: number, Arrival: v.Ticket.Arrival}}
		v.NewID = a.mark.Ticket(who, number+1)
	}
	known := own || worth == account.Valid
	if v.Ticket.Accepted() || !known && !v.Fresh {
		still := *v
		still.NoJoin, still.NoClaim = true, true
		if verdict := x.decide(still).Verdict; verdict == anteroom.Admit || verdict == anteroom.Pass {
			if ask == askNone {
				x.forward()
			}
			return ask == askNone
		}
	}
	if !known {
		return x.unknown(ask, worth)
	}
	v.Lane = lane
	ctx, cancel := context.WithTimeout(x.r.Context(), accountTime)
	defer cancel()
	place, err := x.s.Accounts.Get(ctx, rm.ID, who)
	switch {
	case err != nil && own: // the ticket knows the place
		x.accountFailed(err)
		return false
	case err != nil:
		x.accountFailed(err)
		return x.unknown(ask, account.Unchecked)
	}
	former := anteroom.Ticket{}
	if own && number >= place.Number {
		x.signed.place = place
		return false
	}
	if !v.Fresh && !v.Ticket.Accepted() && rm.door.Best([]anteroom.Ticket{v.Ticket}) >= 0 {
		former = v.Ticket
	}
	x.signed = signed{account: who, is: true, place: place, former: former}
	v.NewID = a.mark.Ticket(who, place.Number+1)
	x.presentAnew(v, x.ticketOf(who, place))
	return false
}

// ticketOf returns the ticket for the place of an account as the store knows it, or the zero one. If the site knows the place, what it
// knows counts. Otherwise the place is worth as much as that of a visitor who has not come back since joining.
func (x *exchange) ticketOf(who account.ID, p account.Place) (t anteroom.Ticket) {
	if p.Number == 0 {
		return t
	}
	t = anteroom.Ticket{ID: x.room.accounts.mark.Ticket(who, p.Number), Arrival: p.Arrival, LastCheckIn: p.Arrival}
	t.Next = min(x.s.now(), p.Arrival.Add(max(engine.MaxInterval, x.room.Refresh)))
	return t
}

// isAnothers reports whether a ticket is that of an account with whose token the request has not come.
func (x *exchange) isAnothers(t *anteroom.Ticket) bool {
	if x.room.accounts == nil {
		return false
	}
	of, _, marked := x.room.accounts.mark.Read(t.ID)
	if !marked {
		return false
	}
	who, _, worth := x.verify()
	return worth < account.Expired || of != who
}

// presentAnew replaces what the visitor has brought: by a ticket, or by nothing and an id to begin with.
func (x *exchange) presentAnew(v *anteroom.Visit, t anteroom.Ticket) {
	x.presented, x.stale = t, false
	if v.Fresh = t.ID.IsZero(); v.Fresh {
		t = anteroom.Ticket{ID: v.NewID}
	}
	t.Bind, v.Ticket, v.Networks = v.Bind, t, x.networks()
	x.askedOf(v)
}

// keepPlace tells the store of another place of the account, or of the same one before it forgets it.
func (x *exchange) keepPlace() {
	if !x.signed.is {
		return
	}
	d, s := &x.decision, &x.signed
	of, number, ok := x.room.accounts.mark.Read(d.Ticket.ID)
	if !ok || of != s.account {
		return
	}
	keep := max(accountMemory, 4*x.seatDuration())
	// Not everybody at the same moment.
	phase := time.Duration(binary.BigEndian.Uint16(of[:])) * (keep / 2 >> 16)
	period := func(t anteroom.Time) anteroom.Time { return t.Add(phase) / anteroom.Time(keep/2/time.Microsecond) }
	again := x.presented.ID == d.Ticket.ID && d.SetCookie && period(x.presented.LastCheckIn) != period(d.Ticket.LastCheckIn)
	if number <= s.place.Number && !again {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), accountTime)
	defer cancel()
	place, err := x.s.Accounts.Raise(ctx, x.room.ID, of, account.Place{Number: number, Arrival: d.Ticket.Arrival}, keep)
	if err != nil {
		x.accountFailed(err) // the next request of the place tries again
		return
	}
	s.place = place
}

func (x *exchange) accountFailed(err error) {
	if x.s.log != nil && x.g.lines.allow(x.s.now()) {
		x.s.log.Warn("the place of an account cannot be read or stored", "room", x.room.Name, "error", err)
	}
}

// merge gives the account the earlier of two places: its own, and one that the visitor had before in this browser. The other one is given
// up, so that nobody has two. The former place is for one account only. It is called if there is one.
func (x *exchange) merge(v anteroom.Visit) {
	former, d, rm := x.signed.former, x.decision, x.room
	leave := func(t anteroom.Ticket) bool {
		return rm.door.Decide(x.r.Context(), anteroom.Visit{Ticket: t, NewID: x.ids.Next(), Leave: true, NoJoin: true, NoClaim: true, NoHold: true}).Reason == anteroom.ReasonLeft
	}
	who := x.signed.account
	of, number, ok := rm.accounts.mark.Read(d.Ticket.ID)
	if ok && of == who && d.Verdict == anteroom.Wait && former.Arrival < d.Ticket.Arrival {
		ctx, cancel := context.WithTimeout(x.r.Context(), accountTime)
		defer cancel()
		err := invite.Spend(ctx, x.s.Accounts.Space, invite.Use{Key: account.MergedKey(rm.ID, former.ID), Most: 1,
			Until: x.start.Add(accountMemory), By: hex.EncodeToString(who[:]), Now: x.start})
		if err != nil && err != invite.ErrSpent {
			x.accountFailed(err)
			return // it is there still when the visitor comes again
		}
		if err == nil && leave(d.Ticket) { // otherwise it is the account's turn elsewhere
			v.Ticket, v.Fresh = former, false
			v.Ticket.ID, v.NewID = rm.accounts.mark.Ticket(who, number+1), rm.accounts.mark.Ticket(who, number+2)
			v.Ticket.LastCheckIn, v.Ticket.Next = former.Arrival, min(former.Next, x.s.now())
			x.presented = v.Ticket
			x.decide(v)
		}
	}
	leave(former)
}

// unknown answers a request of a visitor who is not signed in. It takes no place and no seat.
func (x *exchange) unknown(ask int, worth account.Result) (answered bool) {
	switch ask {
	case askNone:
		if x.room.Shadow {
			x.bypass(analytics.InShadow)
			return true
		}
		x.turnAwayUnknown(worth)
		return true
	case askStatus, askStream, askHold, askInvite:
	default:
		return false // nobody joins by them
	}
	if !x.readsAsk(ask) {
		return true
	}
	x.decision = anteroom.Decision{Verdict: anteroom.Pass, At: x.s.now()} // the page goes to its address, which asks for an account
	switch ask {
	case askStatus:
		x.status()
	case askStream:
		x.neverStored()
		x.write(http.StatusNoContent, nil)
	default:
		x.spareBody()
		x.goOn()
	}
	return true
}

// turnAwayUnknown asks to sign in.
func (x *exchange) turnAwayUnknown(worth account.Result) {
	x.decision = anteroom.Decision{Verdict: anteroom.Wait, At: x.s.now(), Method: x.room.QueueingMethod}
	if v := x.verdict(); v != nil {
		v.decided(anteroom.Wait)
	}
	h := x.neverStored()
	x.conn.waits(true)
	x.spareBody()
	status := http.StatusUnauthorized
	if worth == account.Unchecked {
		status = http.StatusServiceUnavailable
		h["Retry-After"], h["Refresh"] = []string{"30"}, []string{"30"}
	} else {
		h["Www-Authenticate"] = []string{"Bearer"} // RFC 9110, section 11.6.1
	}
	if isSubresource(x.r) || x.websocket {
		h["Content-Type"] = valueTextPlain
		x.write(status, append(x.buf[:0], "The visitor is not signed in.\n"...))
		return
	}
	if view := x.view(false); x.writeViewAsJSON(status, &view) {
		return
	}
	x.writeNotice(status, func(dst []byte, view page.View, _ string) []byte {
		return page.AppendSignIn(dst, view, x.room.AccountSignIn, worth == account.Unchecked)
	})
}
