package engine

import (
	"time"

	"github.com/anteroom/anteroom"
)

// Whoever has sent one request only is on probation: how many such visitors may enter at once is bounded for each network
// and for all together, and their sessions are short, so that requests nobody stands behind take few seats and not for
// long. Beyond the bound a visitor gets the waiting page, and enters by coming back.

// probation counts the visitors who were let in at their first request, or held for it, and have not sent a second one.
type probation struct {
	first  map[anteroom.ID]firstRequest
	order  []recentMark
	counts map[uint32]int // by network
}

type firstRequest struct {
	networks anteroom.Networks
	until    anteroom.Time
}

const (
	// probationFor is how long a first request counts. It is the published unit of the rate, so that the bounds are shares
	// of both limits.
	probationFor = time.Minute
	// probationFew is the least that any network may have, so that small rooms work as anybody expects.
	probationFew = 10
	// maxProbation bounds what a site remembers.
	maxProbation = 100_000
)

// probationShares are the parts of the lower limit that may be on probation: of one address, of the wider networks around
// it, and of all together.
var probationShares = [...]int{8, 4, 3}

const probationAll = 2

// trusts says that a first request may be answered with a session at once, and counts it. One whose network nobody knows,
// as behind a proxy that tells no addresses, always is.
func (s *Site) trusts(now anteroom.Time, v *anteroom.Visit, id anteroom.ID) bool {
	if v.Networks == (anteroom.Networks{}) {
		return true
	}
	p := &s.probation
	p.expire(now)
	if _, counted := p.first[id]; counted {
		return true
	}
	least := min(s.settings.TotalActiveUsers, s.settings.NewUsersPerMinute) / max(1, s.sites)
	if n := len(p.first); n >= max(probationFew, least/probationAll) || n >= maxProbation || len(p.order) >= 2*maxProbation {
		return false
	}
	for i, network := range v.Networks {
		if network != 0 && p.counts[network] >= max(probationFew, least/probationShares[i]) {
			return false
		}
	}
	p.begin(id, v.Networks, now.Add(probationFor))
	return true
}

func (p *probation) begin(id anteroom.ID, networks anteroom.Networks, until anteroom.Time) {
	if p.first == nil {
		p.first, p.counts = map[anteroom.ID]firstRequest{}, map[uint32]int{}
	}
	p.first[id] = firstRequest{networks, until}
	p.order = append(p.order, recentMark{id, until})
	for _, network := range networks {
		if network != 0 {
			p.counts[network]++
		}
	}
}

// passed says that the visitor has sent a second request.
func (p *probation) passed(id anteroom.ID) {
	one, ok := p.first[id]
	if !ok {
		return
	}
	delete(p.first, id)
	for _, network := range one.networks {
		if network == 0 {
			continue
		}
		if p.counts[network]--; p.counts[network] == 0 {
			delete(p.counts, network)
		}
	}
}

// expire forgets the requests of more than probationFor ago.
func (p *probation) expire(now anteroom.Time) {
	n := 0
	for n < len(p.order) && p.order[n].until <= now {
		if one, ok := p.first[p.order[n].id]; ok && one.until == p.order[n].until {
			p.passed(p.order[n].id)
		}
		n++
	}
	if p.order = p.order[n:]; len(p.order) == 0 {
		*p = probation{}
	}
}

// short is how long before its admission a session on probation counts as seen last. It ends so much earlier everywhere, for
// whoever may let it in, the cookie included, knows the moment it was seen last; and the second request makes it like any other.
func (s *Site) short() time.Duration {
	if s.settings.DisableSessionRenewal {
		return 0 // such sessions last from their admission, seen or not
	}
	return max(0, s.settings.SessionDuration-s.settings.FirstSession)
}

// onProbation says that the session ends earlier than others: its visitor has sent one request.
func (st *seat) onProbation() bool { return st.last < st.accepted }

// second notes a request within a session.
func (s *Site) second(slot uint32) {
	if st := s.seats.at(slot); st.once {
		st.once = false
		s.probation.passed(s.seats.id(slot))
	}
}

// proves notes that a visitor who waits has come back, or holds a stream.
func (s *Site) proves(slot uint32) {
	if w := s.here.at(slot); w.flags&hereCame == 0 {
		w.flags |= hereCame
		s.probation.passed(s.here.id(slot))
	}
}
