package manage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

const (
	// followAtOnce is how many records are put in force together when many have come.
	followAtOnce = 256
	// followAgain is how soon a record is tried again that could not be put in force.
	followAgain = time.Second
	// arrival is how long a change waits for the record of another node that was faster.
	arrival = 5 * time.Second
	// sweepEvery is how often what nobody needs is looked for; it has been so for that long.
	// Longer than storeTime: a change that was under way then is done or was given up.
	sweepEvery = time.Minute
)

// Follow puts in force what other processes change, until ctx ends: the audit record of a change holds its writes. It
// returns ctx's error, or the link's error when that closes. If a change cannot be put in force here, the state stays
// as it is, the log says why, and Follow tries again.
func (m *Manager) Follow(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	anchor := make(chan struct{}, 1)
	go m.cfg.Link.Watch(inner, anchorKey, func(cluster.Change) {
		select {
		case anchor <- struct{}{}:
		default:
		}
	})
	for swept := time.Now(); ; {
		until := swept.Add(sweepEvery)
		if m.fromCopy(inner) {
			until = time.Now().Add(followAgain)
		}
		err := m.awaitRecord(inner, m.State().seq+1, anchor, until)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, cluster.ErrClosed) {
			return err
		}
		for told := false; ; told = true {
			if err = m.catchUpNow(inner); err == nil || ctx.Err() != nil {
				break
			}
			if !told {
				m.log.Error("a change made at another node cannot be applied here; the previous state stays in force", "audit", m.State().seq+1, "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(followAgain):
			}
		}
		if time.Since(swept) >= sweepEvery && ctx.Err() == nil {
			swept = time.Now()
			m.sweepNow(inner)
		}
	}
}

// awaitRecord returns when the record is there, something comes on wake, or at the deadline.
func (m *Manager) awaitRecord(ctx context.Context, seq uint64, wake <-chan struct{}, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if wake != nil {
		go func() {
			select {
			case <-wake:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return m.cfg.Link.Watch(ctx, auditKey(seq), func(c cluster.Change) {
		if !c.Synced && !c.Gone {
			cancel()
		}
	})
}

func (m *Manager) catchUpNow(ctx context.Context) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	_, err := m.catchUp(ctx)
	return err
}

// fromCopy reports whether what is in force was read from a copy, and the store has not been reached since. Once it has, everything is
// read again if the copy had what is not in the store: no record says so.
func (m *Manager) fromCopy(ctx context.Context) bool {
	if m.lock(ctx) != nil {
		return true
	}
	defer m.unlock()
	if m.copied == nil {
		return false
	}
	if !m.cfg.Link.Health().Shared.OK {
		return true
	}
	held, err := m.cfg.Link.Keys(ctx, keyPrefix)
	if err != nil {
		return true
	}
	there := map[string]bool{}
	for _, key := range held {
		there[key] = true
	}
	if !slices.ContainsFunc(m.copied, func(key string) bool { return !there[key] }) {
		m.copied = nil
		return false
	}
	was := m.copied
	a, err := m.reload(ctx)
	if err == nil {
		var finish func(bool)
		if finish, err = m.prepare(ctx, a.next); err == nil {
			finish(true)
			m.put(a.next)
			m.pending = a.writes
		}
	}
	if err != nil {
		m.copied = was
		m.log.Error("what was deleted while this node was away stays in force until everything can be read again", "error", err)
	}
	return m.copied != nil
}

// catchUp puts the records in force that others have made, and reports whether there were any.
func (m *Manager) catchUp(ctx context.Context) (moved bool, err error) {
	for {
		a, err := m.ahead(ctx)
		if err != nil || a == nil {
			return moved, err
		}
		finish, err := m.prepare(ctx, a.next)
		if err != nil {
			return moved, unavailable(err)
		}
		finish(true)
		if a.anew {
			m.put(a.next)
		} else {
			m.take(a)
		}
		m.pending, moved = a.writes, true
	}
}

// take is put for what was applied to the state in force.
func (m *Manager) take(a *applying) {
	for _, c := range a.rooms {
		if c.before != nil {
			m.index.remove(&c.before.Room)
			m.countPages(c.before, -1)
		}
		if c.after != nil {
			m.index.add(&c.after.Room)
			m.countPages(c.after, 1)
		}
	}
	for _, c := range a.rooms {
		if c.before == nil {
			continue
		}
		for _, one := range c.before.pages { // who has changed the room removes them
			if m.pages[one.key].users <= 0 {
				delete(m.pages, one.key)
				delete(m.custom, one.html)
			}
		}
	}
	m.state.Store(a.next)
}

// ahead returns what the records after the one in force make, some of them at once; nil when
// there are none. Its writes are those of the last, which whoever made it may not have done.
func (m *Manager) ahead(ctx context.Context) (*applying, error) {
	a := &applying{m: m, ctx: ctx, next: m.State()}
	found := 0
	for ; found < followAtOnce; found++ {
		at := a.next
		key := auditKey(at.seq + 1)
		got, err := m.cfg.Link.Get(ctx, key)
		if errors.Is(err, cluster.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, readable(key, err)
		}
		e, err := unseal(key, got.Value)
		if err == nil && e.Prev != at.head {
			err = errors.New("it does not follow from the one before")
		}
		if err == nil {
			a.writes, err = m.staged(ctx, e)
		}
		if err == nil && e.Staged > 0 && a.writes == nil {
			err = errors.New("its staged documents are gone")
		}
		if err == nil {
			err = a.apply(e)
		}
		if err != nil {
			m.log.Info("reading everything again", "audit", e.Seq, "why", err)
			return m.reload(ctx)
		}
		r := &e.AuditRecord
		m.log.Info("changed by an operator at another node", "operation", r.Operation, "object", r.Object, "name", r.Name, "actor", r.Actor, "audit", r.Seq)
	}
	if found > 0 {
		if a.wide {
			return a, a.next.checkTogether()
		}
		return a, nil
	}
	// Nothing, or so much that the next record was dropped meanwhile.
	first, _, err := m.anchor(ctx)
	if err != nil || first <= a.next.seq+1 {
		return nil, err
	}
	return m.reload(ctx)
}

// reload is load for a process that has a state.
func (m *Manager) reload(ctx context.Context) (*applying, error) {
	s, err := m.load(ctx)
	if err != nil {
		return nil, err
	}
	return &applying{next: s, writes: m.pending, anew: true}, nil
}

// lost is called when another process made the record that a change wanted to make. It returns
// when the state has moved on, or all was read anew.
func (m *Manager) lost(ctx context.Context) error {
	seq := m.State().seq
	waiting, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	m.awaitRecord(waiting, seq+1, nil, time.Now().Add(arrival))
	moved, err := m.catchUp(ctx)
	if err != nil {
		return anteroom.Errorf(anteroom.Unavailable, "a change made at another node cannot be applied here: %w", err)
	}
	m.doubt = !moved
	return nil
}

// spare is a page that nobody names any more.
type spare struct {
	revision uint64
	since    time.Time
}

// sweepNow removes what nobody has needed for a while.
func (m *Manager) sweepNow(ctx context.Context) {
	if m.cfg.Edge || m.lock(ctx) != nil {
		return
	}
	defer m.unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	now := time.Now()
	for key, s := range m.spares {
		if m.pages[key].users > 0 {
			delete(m.spares, key)
			continue
		}
		if now.Sub(s.since) < sweepEvery {
			continue
		}
		// Whoever has stored the page again keeps it.
		err := m.cfg.Link.Remove(ctx, key, s.revision)
		if err != nil && !errors.Is(err, cluster.ErrRevision) {
			m.log.Warn("an unused custom page could not be deleted yet", "error", err)
			return
		}
		delete(m.spares, key)
	}
	for len(m.stages) > 0 && now.Sub(m.stages[0].since) >= sweepEvery {
		m.unstage(ctx, m.stages[0].entry)
		m.stages = m.stages[1:]
	}
}

// stagedSince is a record whose staged writes others may still be reading.
type stagedSince struct {
	entry entry
	since time.Time
}

// spareOne notes a page that nobody names any more.
func (m *Manager) spareOne(ctx context.Context, key string) {
	if _, known := m.spares[key]; known {
		return
	}
	got, err := m.cfg.Link.Get(ctx, key)
	if err == nil {
		m.spares[key] = spare{got.Revision, time.Now()}
	} else if !errors.Is(err, cluster.ErrNotFound) {
		m.log.Warn("an unused custom page could not be deleted before the next start", "error", err)
	}
}
