package engine

import (
	"reflect"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

var open = anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 100, SessionDuration: 5 * time.Minute}

func stateTo(out []ToSite, site SiteKey) *State {
	for _, m := range out {
		if m.Site == site && m.State != nil {
			return m.State
		}
	}
	return nil
}

// What is reserved ahead for a site that is silent because nobody is there must not be missing
// after a change of coordinators.
func TestASilentSiteIsAskedForWhatWasReserved(t *testing.T) {
	t.Parallel()
	now, quiet := anteroom.Time(1e15), SiteKey{Name: "quiet", Incarnation: 1}
	c := NewCoordinator(now, open, LedgerRecord{Epoch: 3, Sites: []ReservedUnits{{Site: quiet, Reserved: Units{500, 500}, Returned: Units{2, 2}}}}, nil)
	c.Take() // lost
	for range 9 {
		now = now.Add(100 * time.Millisecond)
		c.Tick(now)
	}
	if out := c.Take(); len(out) != 0 {
		t.Errorf("%d messages within a second", len(out))
	}
	now = now.Add(100 * time.Millisecond)
	c.Tick(now)
	if m := stateTo(c.Take(), quiet); m == nil || m.Granted != (Units{500, 500}) || m.Heard != (Units{2, 2}) {
		t.Fatalf("told: %+v", m)
	}
	c.Receive(now, Report{From: quiet, Epoch: 4, Seq: 1, Sent: now, Full: true, Returned: Units{500, 500}})
	c.Take()
	now = now.Add(2 * time.Second)
	c.Tick(now)
	if out := c.Take(); len(out) != 0 {
		t.Errorf("a site that has given all back is told %+v", out)
	}
}

func TestACoordinatorRestsWithoutReserves(t *testing.T) {
	t.Parallel()
	now, site := anteroom.Time(1e15), SiteKey{Name: "a", Incarnation: 1}
	c := NewCoordinator(now, open, LedgerRecord{}, nil)
	c.Receive(now, Report{From: site, Seq: 1, Sent: now, Full: true, Want: 5})
	rec, _ := c.Needs()
	c.Stored(now, rec)
	c.Take()
	if _, ok := c.Rest(now.Add(RestAfter - time.Second)); ok {
		t.Error("it rests while somebody may be there")
	}
	rest, ok := c.Rest(now.Add(RestAfter))
	if !ok || rest.Epoch != 1 || len(rest.Sites) != 1 || rest.Sites[0].Reserved != c.ledger.accounts[site].Granted || rest.Sites[0].Reserved == rec.Sites[0].Reserved {
		t.Errorf("%+v, %v", rest, ok)
	}
	c.Receive(now, Report{From: site, Seq: 2, Sent: now, Arrivals: []Arrival{{ID: anteroom.ID{1}, Key: now, Stream: true}}})
	c.Take()
	if _, ok := c.Rest(now.Add(RestAfter)); ok {
		t.Error("it rests with somebody in line")
	}
}

func TestALineIsGatheredFromThoseInTouch(t *testing.T) {
	t.Parallel()
	now := anteroom.Time(1e15)
	a, b := SiteKey{Name: "a", Incarnation: 1}, SiteKey{Name: "b", Incarnation: 1}
	c := NewCoordinator(now, prequeue, LedgerRecord{}, nil)
	for _, key := range []SiteKey{a, b} {
		c.Receive(now, Report{From: key, Seq: 1, Sent: now, Full: true})
	}
	before := now.Add(-time.Millisecond)
	c.Take()
	c.Gather(now)
	out := c.Take()
	if s := stateTo(out, a); s == nil || !s.Resync {
		t.Fatalf("the site is told %+v", s)
	}
	c.Receive(now, Report{From: a, Seq: 2, Sent: before, Full: true}) // was under way
	if s := stateTo(c.Take(), a); c.Gathered(now) || s == nil || !s.Resync {
		t.Errorf("what was sent before is taken for all: %+v", s)
	}
	c.Receive(now, Report{From: a, Seq: 3, Sent: now, Full: true})
	if c.Gathered(now) {
		t.Error("one site is missing")
	}
	if now = now.Add(DeadAfter); !c.Gathered(now) {
		t.Error("a site that does not answer is waited for")
	}
}

// A site that is down when the coordinator ends must not keep everybody else out.
func TestNothingIsReservedForASilentSite(t *testing.T) {
	t.Parallel()
	now, up, down := anteroom.Time(1e15), SiteKey{Name: "up", Incarnation: 1}, SiteKey{Name: "down", Incarnation: 1}
	c := NewCoordinator(now, open, LedgerRecord{}, nil)
	store := func() (rec LedgerRecord) {
		for {
			next, ok := c.Needs()
			if !ok {
				return rec
			}
			rec = next
			c.Stored(now, rec)
			c.Take()
		}
	}
	reserved := func(rec LedgerRecord, site SiteKey) Units {
		for _, r := range rec.Sites {
			if r.Site == site {
				return r.Reserved
			}
		}
		t.Fatalf("%v is not in %+v", site, rec)
		return Units{}
	}
	seq, returned := map[SiteKey]uint64{}, Units{}
	hear := func(site SiteKey, want uint32) {
		seq[site]++
		c.Receive(now, Report{From: site, Epoch: c.Epoch(), Seq: seq[site], Sent: now, Full: true, Ask: true, Want: want, Returned: returned})
	}
	hear(up, 3)
	hear(down, 2)
	rec := store()
	if got := reserved(rec, down); got[Seat] <= 2 {
		t.Fatalf("reserved for a site that is there: %v", got)
	}
	for range 40 {
		now = now.Add(100 * time.Millisecond)
		hear(up, 0)
		c.Tick(now)
		if next := store(); next.Epoch != 0 {
			rec = next
		}
	}
	granted := c.ledger.accounts[down].Granted
	if got := reserved(rec, down); got != granted {
		t.Errorf("%v is reserved for a site that is silent, and %v granted", got, granted)
	}

	c = NewCoordinator(now, open, rec, nil)
	store()
	seq[up], returned = 0, c.ledger.accounts[up].Granted // of which it says it has nothing left
	hear(up, 1)
	store()
	for range 50 {
		now = now.Add(100 * time.Millisecond)
		hear(up, 1)
		c.Tick(now)
		store()
	}
	if pool := c.ledger.Pool(Seat); pool < 0 || c.ledger.accounts[up].Granted[Seat] == 0 && pool == 0 {
		t.Errorf("nobody gets in while the other site is down: pool %d", pool)
	}

	// Once it speaks, it gets nothing before more is reserved for it.
	before := c.ledger.accounts[down].Reserved
	if before != c.ledger.accounts[down].Granted {
		t.Errorf("%v is reserved after the start, %v granted", before, c.ledger.accounts[down].Granted)
	}
}

// A room that nobody has visited has no machine; its live numbers are those that one would have.
func TestLiveNumbersOfARoomThatNobodyHasVisited(t *testing.T) {
	for name, s := range map[string]anteroom.Settings{
		"limits":      {TotalActiveUsers: 20, NewUsersPerMinute: 300},
		"queue all":   {TotalActiveUsers: 20, NewUsersPerMinute: 300, QueueAll: true},
		"prequeue":    {TotalActiveUsers: 20, NewUsersPerMinute: 300, Prequeueing: true},
		"reject":      {TotalActiveUsers: 20, NewUsersPerMinute: 300, QueueingMethod: anteroom.Reject},
		"passthrough": {TotalActiveUsers: 20, NewUsersPerMinute: 300, QueueingMethod: anteroom.Passthrough},
		"suspended":   {TotalActiveUsers: 20, NewUsersPerMinute: 300, Suspended: true},
		"one":         {TotalActiveUsers: 1, NewUsersPerMinute: 1},
		"nobody":      {NewUsersPerMinute: 300},
		"no pace":     {TotalActiveUsers: 20},
	} {
		now := anteroom.TimeOf(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
		x := NewSingle(now, hereKey, s, LedgerRecord{}, []byte("seed"), nil, 0, 0)
		if got, want := Unvisited(now, s), x.Status(now); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", name, got, want)
		}
	}
}
