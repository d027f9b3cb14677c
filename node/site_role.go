package node

// The site role of a shard: its holder decides for the rooms of the shard in this data center. The journal is the
// fence: nothing leaves before what it relies on is recorded, and only the newest handle of the journal can record.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/internal/walltime"
)

const (
	// endWait bounds the last writes of a role that is handed over: the successor is waiting.
	endWait = time.Second
	// againMin and againMax bound the wait before another attempt to take the journal over.
	againMin = 100 * time.Millisecond
	againMax = 5 * time.Second
	// restartBits of a term count how often the holder of the role has started again, so that each start has a term of
	// its own.
	restartBits = 8
)

// siteRole is the role as held. It takes the journal over, and again if it was fenced off although it still has the
// role: the last attempt of a former holder may come late.
type siteRole struct {
	member *member
	shard  int
	epoch  uint64
	stop   context.CancelFunc
	done   chan struct{}
	now    atomic.Pointer[siteShard] // nil while the journal is being taken over
	broken atomic.Pointer[string]    // why that does not succeed
}

// newSiteRole starts to hold the role. The caller holds the member's lock.
func (x *member) newSiteRole(number int, epoch uint64) *siteRole {
	ctx, stop := context.WithCancel(context.Background())
	r := &siteRole{member: x, shard: number, epoch: epoch, stop: stop, done: make(chan struct{})}
	go r.run(ctx)
	return r
}

func (r *siteRole) run(ctx context.Context) {
	defer close(r.done)
	wait := againMin
	for restart := uint64(0); ctx.Err() == nil; restart++ {
		began := time.Now()
		// A shard that ends is started again and again: as long as this node has the role, no other node serves the
		// rooms.
		err := r.serve(ctx, r.epoch<<restartBits+restart)
		if ctx.Err() != nil {
			return
		}
		text := err.Error()
		r.broken.Store(&text)
		r.member.log.Error("this node cannot serve the rooms of a shard; retrying", "shard", r.shard, "error", err)
		// A failure long after the start is a new one.
		if wait = min(2*wait, againMax); time.Since(began) > 2*againMax {
			wait = againMin
		}
		walltime.Sleep(ctx, wait)
	}
}

// end hands the role over: what is in progress is recorded and sent, and nothing more is accepted.
func (r *siteRole) end() {
	if s := r.now.Load(); s != nil {
		ctx, cancel := context.WithTimeout(context.Background(), endWait)
		s.finish(ctx)
		cancel()
	}
	r.stop()
	<-r.done
}

// configure puts the plan of a room in force.
func (r *siteRole) configure(id anteroom.RoomID) {
	if s := r.now.Load(); s != nil {
		s.configure(id)
	}
}

// serve decides for the shard with one handle of its journal, until ctx ends or the handle is fenced off.
func (r *siteRole) serve(ctx context.Context, term uint64) error {
	x := r.member
	name := journalOf(r.shard)
	ahead := x.takeAhead(r.shard)
	var stands standing
	var unknown error
	found := make(chan struct{})
	// A journal that has records is not lost: what the store knows about it can be asked for meanwhile.
	early := ahead.finished()
	if early {
		go func() { defer close(found); stands, unknown = x.standing(ctx, r.shard, false) }()
		defer func() { <-found }()
	}
	own, err := x.link.Journal(ctx, name)
	if err != nil {
		return fmt.Errorf("node: the journal %s cannot be taken over: %w", name, err)
	}
	past, last, err := ahead.complete(ctx, own)
	if err != nil {
		return fmt.Errorf("node: the journal %s cannot be read: %w (to continue without it, start the site once with --new-journal: sessions are then recovered from the visitors' cookies, and admissions stay within the limits)", name, err)
	}
	if early {
		<-found
	} else {
		stands, unknown = x.standing(ctx, r.shard, last.at == 0)
	}
	if unknown != nil {
		return unknown
	}
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := newSiteShard(x, r.shard, term, engine.SiteKey{Name: x.cfg.Site, Incarnation: stands.Incarnation}, last, past)
	s.journal = newJournal(own, s.clock.now, x.log)
	s.journal.post = s.post
	s.journal.fenced = func() { stop(cluster.ErrFenced) }
	// The start is recorded first, so that a journal without any record is one that was lost.
	if err := s.journal.start(serving, 0); err != nil {
		return fmt.Errorf("node: the journal %s cannot be written: %w", name, err)
	}
	if stands.Begun { // before any visitor is admitted
		stands.Begun = false
		if err := x.stand(ctx, r.shard, &stands); err != nil {
			return err
		}
	}
	var stops []func()
	defer func() {
		// The listeners end before the journal: a message accepted after that would be answered, but not recorded.
		s.drop()
		for _, one := range stops {
			one()
		}
	}()
	type listener struct {
		space   cluster.Space
		subject string
		fn      func(cluster.Message)
	}
	listeners := []listener{
		{x.link.Site(), toSiteSubject(r.shard), s.fromDoors},
		{x.link, fromCoordinator(x.cfg.Site, r.shard), s.fromCoordinator},
		{x.link.Site(), askSiteSubject(r.shard), s.asked},
		{x.link, askThatSite(x.cfg.Site, r.shard), s.asked},
	}
	// Sites do not know each other. The hub passes operators' questions on.
	if x.cfg.Hub {
		listeners = append(listeners, listener{x.link, askViaHub(r.shard), s.askedVia})
	}
	for _, l := range listeners {
		one, err := l.space.Subscribe(l.subject, l.fn)
		if err != nil {
			return fmt.Errorf("node: cannot subscribe to %s: %w", l.subject, err)
		}
		stops = append(stops, one)
	}
	// Only now do doors hear of this process: they ask again at once, and nobody would hear that before. A room that a
	// message comes for meanwhile knows its past as well.
	s.restore()
	var writing sync.WaitGroup
	writing.Go(func() { s.journal.run(serving) })
	defer writing.Wait()
	// The journal is stopped before it is waited for, however serve ends.
	defer stop(nil)
	r.broken.Store(nil)
	r.now.Store(s)
	defer r.now.Store(nil)
	s.run(serving)
	return context.Cause(serving)
}

func journalOf(shard int) string { return fmt.Sprintf("%s%02d", siteRolePrefix, shard) }

// readAhead is a journal that is read, or was, before the role is gained.
type readAhead struct {
	past *history
	to   cluster.Place // up to here
	err  error
	done chan struct{} // closed when the fields above are set
}

// keepAhead is how long such a reading is kept for a role that does not come.
const keepAhead = 30 * time.Second

// smallRest is how long the last part of such a reading takes at most, if that can be.
const smallRest = 20 * time.Millisecond

func newReadAhead() *readAhead {
	// All rooms, also those without a plan: it may arrive later, and the journal is read only once.
	return &readAhead{past: newHistory(func(anteroom.RoomID) bool { return true }), done: make(chan struct{})}
}

// prepare reads the journal of a site role that its holder is about to give up for this node: what is left to read once
// it is gained is what was written since, and visitors wait for that only.
func (x *member) prepare(ctx context.Context, role string) {
	site, shard, ok := roleOf(role)
	switch {
	case !ok:
		return
	case !site:
		x.learnTime(ctx, shard)
		return
	}
	ahead := newReadAhead()
	x.mu.Lock()
	x.ahead[shard] = ahead
	x.mu.Unlock()
	// What was written while it read is read at once, until that is little.
	for took := time.Duration(math.MaxInt64); ahead.err == nil && took > smallRest; {
		began := time.Now()
		ahead.to, ahead.err = x.link.Look(ctx, journalOf(shard), ahead.to, ahead.past.add)
		last := took
		if took = time.Since(began); took > last/2 {
			break // as much is written as can be read
		}
	}
	close(ahead.done)
	time.AfterFunc(keepAhead, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.ahead[shard] == ahead {
			x.ahead[shard] = nil
		}
	})
}

// learnTime asks for the room time before the coordinators of a shard begin here: with it they answer the first report, without
// it they first listen to what sites say about it (see coordinator.Config).
func (x *member) learnTime(ctx context.Context, shard int) {
	clock := &x.shards[shard].clock
	asked := clock.now()
	if said, err := x.client.Time(ctx, shard); err == nil { // else nobody there needs it, or sites say it, as after a crash
		clock.hear(asked, said)
	}
}

// takeAhead returns the reading of a journal that has begun, if there is one, and gives it to one caller only.
func (x *member) takeAhead(shard int) *readAhead {
	x.mu.Lock()
	defer x.mu.Unlock()
	ahead := x.ahead[shard]
	x.ahead[shard] = nil
	return ahead
}

// finished reports whether the reading has ended and shows that the journal has records.
func (a *readAhead) finished() bool {
	if a == nil {
		return false
	}
	select {
	case <-a.done:
		return a.err == nil && a.past.last.at != 0
	default:
		return false
	}
}

// complete returns all that the journal says to one that has just taken it over.
func (a *readAhead) complete(ctx context.Context, own cluster.Journal) (events map[anteroom.RoomID][]engine.Event, last mark, err error) {
	if a != nil {
		select {
		case <-a.done: // it goes on where it is, which is sooner than from the beginning
		case <-ctx.Done():
			return nil, last, ctx.Err()
		}
	}
	if a == nil || a.err != nil {
		a = newReadAhead()
	}
	if err := own.ReplayFrom(ctx, a.to, a.past.add); err != nil {
		return nil, last, err
	}
	events, last = a.past.end()
	return events, last, nil
}

// standing is what the site's store knows about the memory of a shard.
type standing struct {
	Incarnation uint64    `json:"incarnation"` // how often the memory was lost, plus one
	Seen        time.Time `json:"seen"`        // when a holder last started; see beatIdle
	// Begun: a holder has started, but not reported its first record yet. No visitor was admitted in this incarnation.
	Begun bool `json:"begun,omitempty"`

	revision uint64
}

func standingKey(shard int) string { return fmt.Sprintf("standing.site.%02d", shard) }

// standing determines the incarnation of the shard's memory and stores it. If the journal has no records although a
// holder wrote some within the retention, it was lost: there may be sessions that no node knows, and the new
// incarnation is charged for them. A holder that was replaced before its first record has lost nothing.
func (x *member) standing(ctx context.Context, shard int, empty bool) (standing, error) {
	key := standingKey(shard)
	entry, err := x.link.Site().Get(ctx, key)
	known := standing{}
	switch {
	case errors.Is(err, cluster.ErrNotFound):
	case err != nil:
		return known, fmt.Errorf("node: %s cannot be read: %w", key, err)
	default:
		if err := json.Unmarshal(entry.Value, &known); err != nil {
			return known, fmt.Errorf("node: %s cannot be read: %w", key, err)
		}
	}
	x.mu.Lock()
	forgot := x.node.cfg.Forgot && !x.forgot[shard]
	keep := max(x.retain, cluster.DefaultRetention)
	x.mu.Unlock()
	next := standing{Incarnation: max(1, known.Incarnation), Seen: time.Now().UTC(), Begun: empty, revision: entry.Revision}
	// Older records than the retention may be gone in the ordinary course: that is no loss.
	if known.Incarnation > 0 && (forgot || empty && !known.Begun && time.Since(known.Seen) < keep) {
		next.Incarnation++
		x.log.Warn("the journal of a shard is gone: its sessions are recovered from the visitors' cookies", "shard", shard, "incarnation", next.Incarnation)
	}
	if err := x.stand(ctx, shard, &next); err != nil {
		return known, err
	}
	// Once per process: Forgot is about the journal as this process found it.
	x.mu.Lock()
	x.forgot[shard] = true
	x.mu.Unlock()
	return next, nil
}

// stand stores what is known about a shard's memory, unless another process has changed it since it was read.
func (x *member) stand(ctx context.Context, shard int, s *standing) error {
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if s.revision, err = x.link.Site().Update(ctx, standingKey(shard), value, s.revision); err != nil {
		return fmt.Errorf("node: %s cannot be written: %w", standingKey(shard), err)
	}
	return nil
}
