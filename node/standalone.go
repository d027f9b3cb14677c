package node

// A standalone process: it has one journal for all rooms, and decides about all of them.

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator"
	"github.com/anteroom/anteroom/internal/walltime"
)

// standalone is the part of a node that is alone.
type standalone struct {
	*Node
	journal *journal
	beaten  anteroom.Time // when the journal got its last mark
	// until is the time up to which the journal records everything, as far as it knows.
	until anteroom.Time
	// forgot: there may be sessions that no node knows; see Config.Forgot. Guarded by apply.
	forgot bool
	// broken: the previous process did not stop in order. Its sessions may have been in use until now, without a record
	// of it.
	broken bool
	ahead  time.Duration // of the wall clock at the start: room time, which never goes back
}

// newStandalone reads how far the journal had come to set the clock: room time never goes back, not even over a restart.
func newStandalone(ctx context.Context, n *Node) (*standalone, error) {
	own, err := n.cfg.Link.Journal(ctx, "")
	if err != nil {
		return nil, err
	}
	_, last, err := readHistory(ctx, own, func(anteroom.RoomID) bool { return false })
	if err != nil {
		return nil, err
	}
	// The rooms' events are read by open, which knows which rooms there are. Here only the time of the newest one counts.
	var shift time.Duration
	n.clock, shift = startClock(last)
	// Where an earlier process had a clock that was ahead, room time stays ahead. Figures have the time of now.
	ahead := n.clock.now().Sub(anteroom.TimeOf(walltime.Now()))
	n.figures.ahead = ahead.Truncate(time.Minute)
	// The journal was dropped by a process that did not live to start all rooms: they still have to start as new
	// incarnations.
	if _, err = n.cfg.Link.Get(ctx, forgottenKey); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return nil, err
	}
	s := &standalone{Node: n, journal: newJournal(own, n.clock.now, n.log), broken: last.at != 0 && !last.ended, until: last.newest, ahead: ahead,
		forgot: n.cfg.Forgot || err == nil}
	// The start is recorded before any event of this process. Events from before it are moved by the part of the
	// interruption that cannot be known to have passed, so that sessions last longer, never shorter.
	return s, s.journal.start(ctx, shift)
}

// forgottenKey exists from the moment a journal is given up until all rooms have started as new incarnations.
const forgottenKey = "forgotten"

// Forget notes in a store that its journal cannot be trusted, before the journal is dropped: the next node on this
// store starts as with [Config.Forgot].
func Forget(ctx context.Context, store cluster.Space) error {
	_, err := store.Put(ctx, forgottenKey, []byte(time.Now().UTC().Format(time.RFC3339)))
	return err
}

// open opens rooms from their ledger records and their events.
func (s *standalone) open(ctx context.Context, rooms []*anteroom.Room) (opened []*Room, err error) {
	// Events that are still in memory would be missing in the history read below.
	within, cancel := context.WithTimeout(ctx, syncWithin)
	err = s.journal.sync(within)
	cancel()
	if err != nil {
		return nil, err
	}
	fresh := map[anteroom.RoomID]bool{}
	for _, r := range rooms {
		fresh[r.ID] = true
	}
	// One pass over the journal for all rooms: reading it once per room would take minutes in a large installation.
	past, _, err := readHistory(ctx, s.journal.to, func(id anteroom.RoomID) bool { return fresh[id] })
	if err != nil {
		return nil, err
	}
	kept, err := s.shuffles.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, plan := range rooms {
		r, err := s.openNear(ctx, plan, past[plan.ID], kept)
		if err != nil {
			return nil, err
		}
		opened = append(opened, r)
	}
	if s.forgot { // all rooms have started as new incarnations
		return opened, s.cfg.Link.Delete(ctx, forgottenKey)
	}
	return opened, nil
}

// outdated restarts all rooms after a cookie has proved that the journal is older than what happened. They are charged
// for every session that may exist, and take sessions over from cookies. It returns when all have restarted.
func (s *standalone) outdated(ctx context.Context) error {
	// The request that found this may be gone before the rooms are back; the work goes on for all others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	s.Node.apply.Lock()
	defer s.Node.apply.Unlock()
	if s.forgot { // another request was first
		return nil
	}
	s.log.Error("a visitor's cookie proves that the data directory is outdated (was a snapshot restored?): recovering sessions and places from the visitors' cookies, " +
		"and admitting no new visitor until every session that may exist has come back or expired")
	// First on record: a crash half-way would otherwise start the remaining rooms from the outdated journal.
	if err := Forget(ctx, s.cfg.Link); err != nil {
		return err
	}
	s.mu.RLock()
	rooms := slices.Collect(maps.Values(s.rooms))
	s.mu.RUnlock()
	goOn := func(rooms []*Room) {
		for _, r := range rooms {
			r.decider.(*near).storesNothing(false)
		}
	}
	// A write in progress belongs to the old machine and would overwrite what the new one starts from.
	for i, r := range rooms {
		if !r.decider.(*near).storesNothing(true) {
			goOn(rooms[:i])
			return errStoring
		}
	}
	for i, r := range rooms {
		if err := r.decider.(*near).anew(ctx); err != nil {
			goOn(rooms[i+1:])
			return err
		}
	}
	s.forgot = true
	return s.cfg.Link.Delete(ctx, forgottenKey)
}

// errStoring: a room's ledger record is being stored; the next request tries again.
var errStoring = errors.New("node: a ledger record is being stored")

// run writes the journal until ctx ends. Before the last flush the rooms stop deciding, so that nothing is decided which is not
// written.
func (s *standalone) run(ctx context.Context) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		s.releaseRooms()
		stop()
	})()
	return s.journal.run(working)
}

// tick marks in the journal until when this process lived. Without that, an idle minute would count as an interruption.
func (s *standalone) tick(now anteroom.Time, active bool) {
	if active && now.Sub(s.beaten) >= beatEvery {
		s.beaten = now
		s.journal.beat()
	}
}

func (s *standalone) keep(ctx context.Context, d time.Duration) error {
	return s.cfg.Link.Retain(ctx, d)
}

// bequeath: nobody else takes what a standalone process has.
func (s *standalone) bequeath(context.Context) {}

func (s *standalone) release() { s.releaseRooms() }

func (s *standalone) stalled() bool { return s.journal.stalled() }

func (s *standalone) journalStats() JournalStats { return s.journal.stats() }

// skew is how far the wall clock has been set back since the start.
func (s *standalone) skew() time.Duration {
	return s.Now().Sub(anteroom.TimeOf(walltime.Now())) - s.ahead
}

func (s *standalone) known(r *Room) (anteroom.Status, bool) { return r.Status(), true }

func (s *standalone) forgetSite(context.Context, string, func() error) (coordinator.Forgotten, error) {
	return coordinator.Forgotten{}, anteroom.Errorf(anteroom.Invalid, "this process is standalone: there is no site to forget")
}

// What is always so in a standalone process.

func (s *standalone) configure(*anteroom.Room)                         {}
func (s *standalone) forget(anteroom.RoomID)                           {}
func (s *standalone) cutOff() bool                                     { return false }
func (s *standalone) roomTime(anteroom.RoomID) func() anteroom.Time    { return s.clock.now }
func (s *standalone) shares() bool                                     { return false }
func (s *standalone) share([]*analytics.Minute)                        {}
func (s *standalone) leases(func(Lease))                               {}
func (s *standalone) status(context.Context) (_ ClusterStatus, _ bool) { return }
func (s *standalone) decided(context.Context) bool                     { return true }
