package engine

// Visitors whose session ended while the origin failed come back first (ProtectReturn). Their cookie says from when to when
// the session lasted at least, and the site remembers when its origin failed: nothing else is stored for it, and a ticket
// without a session in an outage gains nothing.

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	// maxOutages bounds the outages that a site remembers; an origin that flaps has many.
	maxOutages = 64
	// recordOutage is how often an outage that goes on is on record.
	recordOutage = 10 * time.Second
	// forgetAtOnce bounds the used tickets that are forgotten in one go, when many were kept for the time of an outage.
	forgetAtOnce = 4096
)

// outage is a time in which the origin failed the visitors here: none was healthy, or more requests failed than the operator
// allows.
type outage struct {
	from  anteroom.Time
	until anteroom.Time // as far as is known while it goes on
}

// outages are those after which visitors come back first.
type outages struct {
	list     []outage
	open     bool          // the last one goes on
	recorded anteroom.Time // when the one that goes on was put on record last
}

// watchOutages notes when the origin begins to fail and when it stops, and forgets outages that give no more credit.
func (s *Site) watchOutages(now anteroom.Time) {
	st, o := &s.settings, &s.outages
	if !st.Protect || st.ProtectReturn == 0 {
		*o = outages{}
		return
	}
	if !s.synced {
		return // the clock may be set
	}
	fails := s.origin.Down || exceeded(st, s.origin) == anteroom.PaceOriginErrors
	if fails && !o.open {
		o.list = append(o.list, outage{from: now, until: now})
		o.list = o.list[max(0, len(o.list)-maxOutages):]
	}
	if o.open || fails {
		last := &o.list[len(o.list)-1]
		last.until = max(last.until, now)
		if fails != o.open || now.Sub(o.recorded) >= recordOutage {
			o.recorded = now
			s.events = append(s.events, Event{Kind: EventOutage, At: now, Key: last.from})
		}
	}
	o.open = fails
	n := 0
	for n < len(o.list) && now.Sub(o.list[n].until) >= st.ProtectReturn {
		n++
	}
	if o.list = o.list[n:]; len(o.list) == 0 {
		o.list = nil
	}
}

// restore takes an outage from its record.
func (o *outages) restore(from, until anteroom.Time) {
	if n := len(o.list); n > 0 && o.list[n-1].from == from {
		o.list[n-1].until = until
		return
	}
	o.list = append(o.list, outage{from, until})
	o.list = o.list[max(0, len(o.list)-maxOutages):]
}

func (o *outages) stepped(by time.Duration) {
	for i := range o.list {
		o.list[i].from, o.list[i].until = o.list[i].from.Add(by), o.list[i].until.Add(by)
	}
}

// reentry is the arrival and the lane of a visitor whose session is over, by the ticket of the session: the old arrival for
// one whose session ended because there was no second request (see probation) and for one whose session was in an
// outage; 0 for anybody else. The cookie alone does not show it: it may be kept from a session that was ended.
func (s *Site) reentry(now anteroom.Time, t *anteroom.Ticket) (anteroom.Time, uint8) {
	if !t.Accepted() || void(&s.settings, t.Arrival) {
		return 0, 0
	}
	var was usedTicket
	if slot := s.used.find(&t.ID); slot != 0 {
		was = *s.used.at(slot)
	}
	switch {
	case s.inOutage(t) && t.Lane != anteroom.LaneBack && !was.revoked && (was.next.IsZero() || s.used.find(&was.next) == 0):
		return t.Arrival, anteroom.LaneBack // whose next session gives no more credit, or a visitor could stay at the front for as long as an origin fails
	case was.early && now < t.AcceptedAt.Add(s.settings.SessionDuration):
		return t.Arrival, t.Lane
	}
	return 0, 0
}

// inOutage says that the session of a ticket, which was here, lasted into an outage or began in one.
func (s *Site) inOutage(t *anteroom.Ticket) bool {
	end := lasts(&s.settings, t.AcceptedAt, t.LastCheckIn)
	return s.homely(t) && slices.ContainsFunc(s.outages.list, func(o outage) bool { return t.AcceptedAt <= o.until && end > o.from })
}
