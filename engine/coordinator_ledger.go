package engine

import "fmt"

// The two units of admission.
const (
	Seat     = 0 // held until the session ends
	RateSlot = 1 // held RateHold from admission
	units    = 2
)

// Units counts both units. Counters of units only grow.
type Units [units]uint64

func (u *Units) raise(v Units) {
	for k := range u {
		u[k] = max(u[k], v[k])
	}
}

// Account is what the coordinator knows of one site's units.
type Account struct {
	Granted  Units // G: ever granted; what the site may have heard
	Reserved Units // the durable bound of Granted; Granted never exceeds it
	Returned Units // RS: the highest "ever returned" that was heard
}

func (a *Account) charged(k int) int64 {
	return int64(a.Granted[k] - a.Returned[k])
}

// Ledger is the coordinator's account of both units over all sites. Its one rule: grants
// keep every pool at or above zero. The sum of what sites use then never exceeds the
// limits, whatever is lost, repeated, delayed or reordered (doc.go has the proof).
type Ledger struct {
	Limit    [units]int64
	accounts map[SiteKey]*Account
	// sum of charged units over all accounts, kept so that a pool is a subtraction
	charged [units]int64
}

func newLedger() Ledger { return Ledger{accounts: map[SiteKey]*Account{}} }

// Pool is what may still be granted of unit k; negative after a limit was lowered below
// what is out.
func (l *Ledger) Pool(k int) int64 { return l.Limit[k] - l.charged[k] }

// Permits is the number of whole permits (one of each unit) in the pools, at least 0.
func (l *Ledger) Permits() int64 { return max(0, min(l.Pool(Seat), l.Pool(RateSlot))) }

// Open adds a site whose durable bound is reserved and which has returned so much. What is
// between counts as granted until the site's own figures release it.
func (l *Ledger) Open(site SiteKey, reserved, returned Units) *Account {
	for k := range returned {
		returned[k] = min(returned[k], reserved[k])
	}
	a := &Account{Granted: reserved, Reserved: reserved, Returned: returned}
	l.accounts[site] = a
	for k := range units {
		l.charged[k] += a.charged(k)
	}
	return a
}

// Close writes a site off: nothing that it holds is charged any longer.
func (l *Ledger) Close(site SiteKey) {
	if a := l.accounts[site]; a != nil {
		for k := range units {
			l.charged[k] -= a.charged(k)
		}
		delete(l.accounts, site)
	}
}

// Grant raises G of the site by n of each unit. It refuses, changing nothing, when a pool
// does not hold n or the durable bound is in the way.
func (l *Ledger) Grant(site SiteKey, n uint64) bool {
	a := l.accounts[site]
	if a == nil || l.Permits() < int64(n) {
		return false
	}
	for k := range units {
		if a.Granted[k]+n > a.Reserved[k] {
			return false
		}
	}
	for k := range units {
		a.Granted[k] += n
		l.charged[k] += int64(n)
	}
	return true
}

// GrantRates raises G of the site by n rate slots alone, as far as the pool and the durable bound reach, and returns by how many.
func (l *Ledger) GrantRates(site SiteKey, n int64) int64 {
	a := l.accounts[site]
	if a == nil {
		return 0
	}
	n = max(0, min(n, l.Pool(RateSlot), int64(a.Reserved[RateSlot])-int64(a.Granted[RateSlot])))
	a.Granted[RateSlot] += uint64(n)
	l.charged[RateSlot] += n
	return n
}

// Heard takes a site's "ever returned". Older and repeated figures change nothing. A site
// cannot return more than it was granted: such a figure is refused as a whole.
func (l *Ledger) Heard(site SiteKey, returned Units) error {
	a := l.accounts[site]
	if a == nil {
		return fmt.Errorf("engine: no account for site %v", site)
	}
	for k := range units {
		if returned[k] > a.Granted[k] {
			return fmt.Errorf("engine: site %v says it returned %d of unit %d and was granted %d", site, returned[k], k, a.Granted[k])
		}
	}
	for k := range units {
		if returned[k] > a.Returned[k] {
			l.charged[k] -= int64(returned[k] - a.Returned[k])
			a.Returned[k] = returned[k]
		}
	}
	return nil
}

// Concede raises G of the site to cover what it says it owns, which is what it uses and
// what it has returned, of one and the same moment: with the passthrough method sites admit
// without asking. The pools may become negative.
func (l *Ledger) Concede(site SiteKey, owned Units) {
	a := l.accounts[site]
	if a == nil {
		return
	}
	for k := range units {
		if need := owned[k]; need > a.Granted[k] {
			l.charged[k] += int64(need - a.Granted[k])
			a.Granted[k] = need
			a.Reserved[k] = max(a.Reserved[k], need)
		}
	}
}

// Move hands n seats from a lost site to a living one that adopted its sessions. What the
// lost site is not charged for any more is conceded: the sessions are there.
func (l *Ledger) Move(from, to SiteKey, n uint64) {
	t := l.accounts[to]
	if t == nil {
		return
	}
	if f := l.accounts[from]; f != nil {
		m := min(n, uint64(max(0, f.charged(Seat))))
		f.Returned[Seat] += m
		l.charged[Seat] -= int64(m)
	}
	t.Granted[Seat] += n
	t.Reserved[Seat] = max(t.Reserved[Seat], t.Granted[Seat])
	l.charged[Seat] += int64(n)
}

// Balance is a site's own side of the ledger.
type Balance struct {
	Granted  Units // g: the highest G heard
	Returned Units // ret: ever returned
	Used     Units
	Offers   uint64 // permits set aside for tickets that were offered a turn
	// Debt counts seats of sessions that were adopted and which the coordinator has not granted
	// yet; the account of the lost site covers them.
	Debt uint64
}

// Free is the number of units of k that nobody uses and nobody was offered.
func (b *Balance) Free(k int) int64 {
	f := int64(b.Granted[k]) - int64(b.Returned[k]) - int64(b.Used[k]) - int64(b.Offers)
	if k == Seat {
		f += int64(b.Debt)
	}
	return f
}

// committed is what is used or set aside for offers.
func (b *Balance) committed() Units {
	u := b.Used
	for k := range u {
		u[k] += b.Offers
	}
	return u
}

// Permits is the number of whole free permits, at least 0.
func (b *Balance) Permits() int64 { return max(0, min(b.Free(Seat), b.Free(RateSlot))) }

// Return gives back every free unit beyond what is kept of it and reports whether there were any.
func (b *Balance) Return(keep [units]int64) bool {
	any := false
	for k := range units {
		if n := b.Free(k) - keep[k]; n > 0 {
			b.Returned[k] += uint64(n)
			any = true
		}
	}
	return any
}
