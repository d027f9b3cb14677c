// Package lottery decides which visitors a room admits that has no queue: each has a chance, again and again, and nothing is
// kept about any of them. All that a decision depends on is in the visitor's ticket, so every process decides alike, and one
// that has just started knows as much as one that has run for days.
//
// Time is cut into rounds. A ticket that is given in a round matures at the end of the next one (matures), and carries its
// chance. Then a keyed hash over visitor and round says whether it wins (wins): the same for each request, whatever happens
// in between. A visitor who does not win gets another ticket; one who returns too late does as well.
//
// The package is pure: it has no clock and keeps nothing, apart from [Control], which counts what one process sees.
package lottery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/anteroom/anteroom"
)

// matures returns when a ticket that is given now can win: at the end of the next full round, one to two rounds from now.
// Rounds begin at multiples of their length since 1970, so all tickets of a round mature together. The length must not be
// zero.
func matures(now anteroom.Time, round time.Duration) anteroom.Time {
	length := anteroom.Time(round / time.Microsecond)
	return now - now%length + 2*length
}

// wins reports whether a visitor wins in the round in which the ticket matures, with a chance of 0 to 1. The hash makes a
// number of 53 bits, all that a float64 in [0, 1) can hold; the visitor wins if it is below the chance. Nobody without the key
// can tell it beforehand.
func wins(key [32]byte, room anteroom.RoomID, visitor []byte, matures anteroom.Time, chance float64) bool {
	mac := hmac.New(sha256.New, key[:])
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(matures)))
	mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(room))))
	mac.Write([]byte(room))
	mac.Write(visitor)
	number := binary.BigEndian.Uint64(mac.Sum(nil)) >> 11
	return float64(number)/(1<<53) < chance
}

// chance returns the chance of a ticket that matures at a moment, from what the room gives to each (0 to 1). With a longest
// wait, above 0, it rises evenly with the time since the arrival, and is 1 in the last round that matures within it.
func chance(base float64, arrival, matures anteroom.Time, round, longest time.Duration) float64 {
	if longest <= 0 {
		return base
	}
	age := matures.Sub(arrival)
	if age+2*round > longest {
		return 1
	}
	return base + (1-base)*max(0, float64(age)/float64(longest))
}

// Lottery is that of one room.
type Lottery struct {
	Room anteroom.RoomID
	// Key makes the numbers. No rotation changes it, or the tickets that visitors hold would have other ones.
	Key [32]byte
	// Rules are those of the room.
	Rules anteroom.Lottery
}

// Decide answers a visit under the settings in force, with the chance that the room gives to each new ticket (0 to 1). Moments
// are room time. The lottery knows no wait: a decision to wait has a ticket with a chance, and the moment at which
// it applies.
func (l *Lottery) Decide(now anteroom.Time, v anteroom.Visit, s *anteroom.Settings, base float64) anteroom.Decision {
	d := anteroom.Decision{At: now, Ticket: v.Ticket, Method: anteroom.ByLottery, QueueAll: s.QueueAll}
	t, anew := &d.Ticket, anteroom.ReasonNone
	switch {
	case s.Suspended:
		return anteroom.Decision{Verdict: anteroom.Pass, Reason: anteroom.ReasonSuspended, At: now}
	case v.Fresh:
		anew = anteroom.ReasonFull
	case v.Bind != 0 && t.Bind != 0 && v.Bind != t.Bind:
		anew = anteroom.ReasonBound
	case t.Accepted():
		if now < sessionEnd(t, s) {
			return renewed(d, s)
		}
		anew = anteroom.ReasonSessionOver
	case now > t.Next.Add(s.PlaceHold), t.Arrival < s.ResetAt:
		anew = anteroom.ReasonPlaceLost
	}
	switch {
	case s.Draining && anew != anteroom.ReasonNone:
		return refused(now, anteroom.ReasonReject) // whose page speaks of no line
	case s.QueueAll:
	case s.QueueingMethod == anteroom.Reject:
		return refused(now, anteroom.ReasonReject)
	}
	if anew != anteroom.ReasonNone {
		if v.NoJoin || v.NoClaim {
			return refused(now, anteroom.ReasonNotJoining)
		}
		*t = anteroom.Ticket{ID: t.ID, Arrival: now, Bind: v.Bind}
		if !v.Fresh {
			t.ID = v.NewID
		}
		if base >= 1 && !s.QueueAll {
			return admitted(d, anteroom.ReasonFreeSlot)
		}
		return l.again(d, base, anew, s.PlaceHold)
	}
	switch {
	case now < t.Next:
		d.Reason = anteroom.ReasonEarly
		return l.waits(d, s.PlaceHold)
	case v.NoClaim: // a visitor who has asked for nothing yet
		return refused(now, anteroom.ReasonNotJoining)
	case s.QueueAll:
		return l.again(d, base, anteroom.ReasonQueueAll, s.PlaceHold)
	case wins(l.Key, l.Room, visitor(t), t.Next, t.Chance()):
		return admitted(d, anteroom.ReasonTurn)
	}
	return l.again(d, base, anteroom.ReasonWaiting, s.PlaceHold)
}

// Better reports whether ticket a is worth more than b, to choose among several that a client sent: a session, and the longest
// among those; then the earliest arrival.
func Better(a, b *anteroom.Ticket) bool {
	switch {
	case a.Accepted() != b.Accepted():
		return a.Accepted()
	case a.Accepted():
		return a.LastCheckIn > b.LastCheckIn
	}
	return a.Arrival < b.Arrival
}

// visitor is who shares an outcome: all that hold a copy of the ticket, or, where tickets are bound to networks, the network.
func visitor(t *anteroom.Ticket) []byte {
	if t.Bind != 0 {
		return binary.BigEndian.AppendUint16(nil, t.Bind)
	}
	return t.ID[:]
}

func sessionEnd(t *anteroom.Ticket, s *anteroom.Settings) anteroom.Time {
	if s.DisableSessionRenewal {
		return s.SessionEnd(t.AcceptedAt)
	}
	return t.LastCheckIn.Add(s.SessionDuration)
}

// renewed admits within a session. The cookie says when it was last renewed, so it is renewed from an eighth of the session on:
// a session ends up to that much earlier than its duration after the last request.
func renewed(d anteroom.Decision, s *anteroom.Settings) anteroom.Decision {
	d.Verdict, d.Reason = anteroom.Admit, anteroom.ReasonSession
	if d.At.Sub(d.Ticket.LastCheckIn) >= s.SessionDuration/8 && !s.DisableSessionRenewal {
		d.Ticket.LastCheckIn, d.SetCookie = d.At, true
	}
	return d
}

func admitted(d anteroom.Decision, why anteroom.Reason) anteroom.Decision {
	d.Verdict, d.Reason, d.SetCookie = anteroom.Admit, why, true
	t := &d.Ticket
	*t = anteroom.Ticket{ID: t.ID, Arrival: t.Arrival, AcceptedAt: d.At, LastCheckIn: d.At, Bind: t.Bind}
	return d
}

func refused(now anteroom.Time, why anteroom.Reason) anteroom.Decision {
	d := anteroom.Decision{Verdict: anteroom.Refuse, Reason: why, At: now}
	if why == anteroom.ReasonReject {
		d.Method = anteroom.Reject
	}
	return d
}

// again gives a ticket for a round to come.
func (l *Lottery) again(d anteroom.Decision, base float64, why anteroom.Reason, kept time.Duration) anteroom.Decision {
	t := &d.Ticket
	t.LastCheckIn, t.Next = d.At, matures(d.At, l.Rules.LotteryRound)
	t.Told = uint32(anteroom.ChanceOfOne * chance(base, t.Arrival, t.Next, l.Rules.LotteryRound, l.Rules.LotteryMaxWait))
	t.Refresh = t.Next.Sub(d.At)
	d.Reason, d.SetCookie = why, true
	return l.waits(d, kept)
}

// waits tells when to come back: when the ticket has matured, and up to a quarter of a round later, or all would come in the same
// moment. Nobody gains by coming first.
func (l *Lottery) waits(d anteroom.Decision, kept time.Duration) anteroom.Decision {
	t := &d.Ticket
	spread := time.Duration(t.ID[len(t.ID)-1]) * (l.Rules.LotteryRound / 4) / 256
	d.Refresh, d.KeptUntil = t.Next.Sub(d.At)+spread, t.Next.Add(kept)
	return d
}
