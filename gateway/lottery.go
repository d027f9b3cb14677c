package gateway

import (
	"context"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/lottery"
)

// byLottery stands in front of the door of a room without a queue and decides in its place, from the ticket alone
// ([lottery.Lottery]). The node, its journal and its cluster know nothing of the room's visitors.
type byLottery struct {
	door    // what the room has beside decisions: settings, records
	room    anteroom.Room
	rules   lottery.Lottery
	control *lottery.Control // nil: the chance does not follow the limits
	now     func() anteroom.Time
}

// byLottery returns the door and the sealer of a room. Tickets of a lottery are nothing to the room's queue: the engine would take
// their sessions for some that its journal has lost, and admit them beyond the limits.
func (s *setup) byLottery(r *room) (door, *ticket.Sealer) {
	inner, control := r.door, (*lottery.Control)(nil)
	was, ok := inner.(*byLottery)
	if ok {
		inner, control = was.door, was.control
	}
	if r.LotteryPercent == 0 {
		if !ok && r.sealer != nil { // connections remember what it has opened
			return inner, r.sealer
		}
		return inner, s.Keys.Sealer(r.Zone, r.ID, r.scope.Name)
	}
	if !r.LotteryFollow {
		control = nil
	} else if control == nil {
		control = new(lottery.Control)
	}
	rules := lottery.Lottery{Room: r.ID, Key: s.Keys.Fixed(ticket.PurposeLottery), Rules: r.Lottery}
	return &byLottery{door: inner, room: *r.Room, rules: rules, control: control, now: s.now}, s.Keys.Sealer(r.Zone, r.ID, r.scope.Name+"\x00lottery")
}

// Decide implements door.
func (l *byLottery) Decide(_ context.Context, v anteroom.Visit) anteroom.Decision {
	now := l.now()
	f := l.room.At(now)
	f.Challenge = false // nothing depends on it here
	base := float64(l.room.LotteryPercent) / 100
	if l.control != nil {
		base = l.control.Base(now, &f.Settings, l.room.LotteryRound, base)
	}
	d := l.rules.Decide(now, v, &f.Settings, base)
	if l.control != nil {
		l.control.Seen(&d)
	}
	d.InForce = f
	l.Recorder().Decided(&d, &v.Ticket)
	return d
}

// Best implements door.
func (l *byLottery) Best(tickets []anteroom.Ticket) int {
	best := 0
	for i := range tickets {
		if lottery.Better(&tickets[i], &tickets[best]) {
			best = i
		}
	}
	return best
}

// Watch implements door. There are no streams: nothing happens before the ticket has matured.
func (l *byLottery) Watch(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
	return l.Decide(ctx, v), nil
}

// Touch implements door. What long requests do is not known: the session lasts by its cookie.
func (l *byLottery) Touch(anteroom.ID) bool { return true }

// Reported implements door, likewise.
func (l *byLottery) Reported(anteroom.Ticket) bool { return true }

// Revoke implements door. A session cannot be ended.
func (l *byLottery) Revoke(anteroom.ID) bool { return false }

// Revoked implements door.
func (l *byLottery) Revoked(context.Context) ([]anteroom.ID, bool) { return nil, true }

// Ended implements door. Long requests and connections go on when the session is over.
func (l *byLottery) Ended(context.Context, anteroom.ID) <-chan struct{} { return nil }
