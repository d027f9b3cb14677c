package engine

// Seats of sessions whose visitors have passes: edges let them in, and nobody here hears of it (T5 in doc.go).

import (
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// inForce returns settings as the machines follow them: complete, and with sessions that last for as long as they hold their
// seats.
func inForce(s anteroom.Settings) anteroom.Settings {
	s = s.WithDefaults()
	s.Pass = s.PassLife()
	s.SessionDuration = s.SeatDuration()
	return s
}

// passes is what a site knows of passes beside the settings.
type passes struct {
	// Passes of at most this life were issued until a moment, by settings that are not in force any more, or perhaps were
	// changed while no process ran.
	life  time.Duration
	until anteroom.Time
	// ends are when the seats of sessions come free that were revoked while passes of theirs may be valid, ascending.
	ends ring
	// revoked are these sessions, in the order of ends.
	revoked  []anteroom.ID
	recorded anteroom.Time // when it was put on record last that the room issues passes
}

// issued notes that passes of a life may have been issued until a moment.
func (p *passes) issued(life time.Duration, until anteroom.Time) {
	p.life, p.until = max(p.life, life), max(p.until, until)
}

// over is when the last pass is over everywhere that was issued by former settings to a session seen last at a moment; 0 if there
// was none.
func (p *passes) over(last anteroom.Time) anteroom.Time {
	if p.life == 0 {
		return 0
	}
	return min(last, p.until).Add(p.life + anteroom.PassSkew)
}

// heldForPass is until when a session that was seen last at a moment holds its seat for a pass of former settings.
func (s *Site) heldForPass(last anteroom.Time) anteroom.Time {
	at := s.passes.over(last)
	if at == 0 || s.settings.DisableSessionRenewal || s.settings.PassReported { // edges have said whom they saw since
		return at
	}
	session := s.settings.SessionDuration
	if s.settings.Pass > 0 {
		session -= s.settings.Pass + anteroom.PassSkew
	}
	return at.Add(session)
}

// keepSeat holds the seat of the session of id, which has just been revoked, until its passes are over at every edge. It returns when
// that is, 0 if there are none. Of a session by the token of a bridge, only the application says that it has ended.
func (s *Site) keepSeat(now anteroom.Time, id anteroom.ID) anteroom.Time {
	if s.settings.Redeem > 0 {
		return 0
	}
	until := s.passes.over(now)
	if life := s.settings.Pass; life > 0 {
		until = max(until, now.Add(life+anteroom.PassSkew))
	}
	if until <= now {
		return 0
	}
	s.takeSeat(until, id)
	return until
}

// takeSeat holds a seat until a moment, for a session that is over.
func (s *Site) takeSeat(until anteroom.Time, id anteroom.ID) {
	s.balance.Used[Seat]++
	s.passes.ends.push(until)
	s.passes.revoked = append(s.passes.revoked, id)
}

// freeSeats frees the seats of revoked sessions whose passes are over.
func (s *Site) freeSeats(now anteroom.Time) {
	for s.passes.ends.len() > 0 && s.passes.ends.first() <= now {
		s.passes.ends.pop()
		s.passes.revoked = s.passes.revoked[1:]
		s.balance.Used[Seat]--
	}
}

// MaxRevoked bounds a list of revoked sessions.
const MaxRevoked = 10_000

// Revoked returns the revoked sessions whose passes may be valid still, the newest first, and whether these are all. Edges may refuse
// such passes; no limit depends on it, for their seats are held until the passes are over.
func (s *Site) Revoked() (ids []anteroom.ID, complete bool) {
	for _, id := range slices.Backward(s.passes.revoked) {
		if len(ids) == MaxRevoked {
			return ids, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// Revoked returns the revoked sessions whose passes may be valid still (see Site.Revoked).
func (x *Single) Revoked() (ids []anteroom.ID, complete bool) { return x.site.Revoked() }

// recordPasses puts on record that the room issues passes: for a process that begins with other settings.
func (s *Site) recordPasses(now anteroom.Time) {
	if s.settings.Pass > 0 && s.seats.len() > 0 && (s.passes.recorded == 0 || now.Sub(s.passes.recorded) >= recordDoor) {
		s.passes.recorded = now
		s.events = append(s.events, Event{Kind: EventPasses, At: now, Key: anteroom.Time(s.settings.Pass / time.Microsecond)})
	}
}
