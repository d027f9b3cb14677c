package natslink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/anteroom/anteroom/cluster"
)

// loadJournal checks that the journal has the numbers that it must have. The contents of records are checked when they
// are replayed. A damaged journal does not keep the link from opening, because the keys are intact.
func (l *link) loadJournal(ctx context.Context) error {
	if l.eng.noJournal {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.journalDamaged = &cluster.DamagedError{What: "the journal", Err: fmt.Errorf("JetStream does not find its stream %s; restore the data directory from a backup, or begin a new journal", journalStream)}
		return nil
	}
	state, err := l.eng.state(ctx, journalStream)
	if err != nil {
		return err
	}
	m := l.mark.now
	damage := func(format string, args ...any) error {
		return &cluster.DamagedError{What: "the journal", Err: fmt.Errorf(format+"; restore the data directory from a backup, or begin a new journal", args...)}
	}
	var damaged error
	l.appended = 0
	switch {
	case state.LastSeq < m.journalLast:
		// An acknowledged record is gone: its visitor has been admitted, and a restart would give the seat to another.
		damaged = damage("record %d was acknowledged and the last one there is %d", m.journalLast, state.LastSeq)
	case m.journalFirst > state.LastSeq: // new and empty
	case state.Msgs == 0 || state.FirstSeq > m.journalFirst:
		damaged = damage("its first record is %d instead of %d", state.FirstSeq, m.journalFirst)
	case state.Msgs != state.LastSeq-state.FirstSeq+1:
		damaged = damage("%d records are missing between %d and %d", state.LastSeq-state.FirstSeq+1-state.Msgs, state.FirstSeq, state.LastSeq)
	default:
		// The newest record says when it was appended, and time in the journal must not go back.
		e, err := l.eng.record(ctx, state.LastSeq)
		if err != nil && !errors.As(err, new(*cluster.DamagedError)) {
			return err
		}
		damaged, l.appended = err, int64(e.extra)
	}
	l.journal = state.LastSeq
	// What happened after the copy was made is in no record. Visitors' cookies know it, so the journal must not be
	// trusted over them.
	if damaged == nil && l.copy && state.Msgs > 0 {
		damaged = &cluster.DamagedError{What: "the journal", Copy: true,
			Err: fmt.Errorf("%s is a copy: it does not know what happened after it was made", l.cfg.Dir)}
	}
	if damaged != nil && l.cfg.NewJournal {
		// The numbers continue after those of the dropped records: a record of the old journal that turns up later can
		// then be told from new ones.
		if damaged = nil; state.Msgs > 0 {
			if err := l.eng.purge(ctx, journalStream, state.LastSeq+1); err != nil {
				return err
			}
		}
		l.mark.now.journalFirst, l.mark.now.journalLast = l.journal+1, l.journal
	}
	l.mu.Lock()
	l.first, l.acked, l.journalDamaged = l.mark.now.journalFirst, l.journal, damaged
	l.mu.Unlock()
	return nil
}

// record returns one record of the journal.
func (e *engine) record(ctx context.Context, number uint64) (envelope, error) {
	what := fmt.Sprintf("journal record %d", number)
	data, err := e.get(ctx, journalStream, number)
	if errors.Is(err, errMissing) {
		return envelope{}, &cluster.DamagedError{What: what, Err: err}
	}
	if err != nil {
		return envelope{}, err
	}
	return openRecord(data, number)
}

func openRecord(data []byte, number uint64) (envelope, error) {
	e, err := unseal(journalSubject, data)
	switch {
	case err != nil:
	case e.kind != kindRecord && e.kind != kindNamed:
		err = errors.New("it is of another kind")
	case e.number != number:
		err = fmt.Errorf("record %d is in its place", e.number)
	default:
		return e, nil
	}
	return envelope{}, &cluster.DamagedError{What: fmt.Sprintf("journal record %d", number), Err: err}
}

func (l *link) journalDamage() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.journalDamaged
}

// handle is one opened journal. All journals share the stream and its numbers.
type handle struct {
	*link
	name  string
	owner uint64
}

func (l *link) Journal(ctx context.Context, name string) (cluster.Journal, error) {
	if err := cluster.CheckJournal(name); err != nil {
		return nil, err
	}
	h := make(chan *handle, 1)
	// Through the writer: whatever an older handle is writing is complete when this one begins.
	err := l.write(ctx, func(context.Context) error {
		l.owners[name]++
		h <- &handle{link: l, name: name, owner: l.owners[name]}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return <-h, nil
}

// named returns the data if e is a record of the journal, and whether it is.
func (e envelope) named(journal string) ([]byte, bool) {
	if e.kind == kindRecord {
		return e.data, journal == ""
	}
	n := int(e.data[0])
	return e.data[1+n:], string(e.data[1:1+n]) == journal
}

func (h *handle) Append(ctx context.Context, record []byte) error {
	if err := cluster.CheckValue(record); err != nil {
		return err
	}
	// The caller may reuse its slice as soon as Append returns, and that may be before the write ends.
	record, urgent := slices.Clone(record), cluster.IsUrgent(ctx)
	l := h.link
	return l.write(ctx, func(ctx context.Context) error {
		// Another process, or another part of this one, has taken the journal over since.
		if l.owners[h.name] != h.owner {
			return cluster.ErrFenced
		}
		if err := l.journalDamage(); err != nil {
			return err
		}
		number := l.journal + 1
		// Time does not go back in the journal, so that the oldest records are the first ones.
		appended := max(time.Now().UnixNano(), l.appended)
		env := envelope{number: number, extra: uint64(appended), kind: kindRecord, data: record}
		if h.name != "" {
			env.kind = kindNamed
			env.data = append(append([]byte{byte(len(h.name))}, h.name...), record...)
		}
		if err := l.publish(ctx, journalSubject, env.seal(journalSubject), l.journal, urgent); err != nil {
			if errors.Is(err, errNoSpaceInStream) {
				return fmt.Errorf("%w: the journal takes its %d bytes; shorten the retention or raise MaxJournal", cluster.ErrFull, l.cfg.MaxJournal)
			}
			return fmt.Errorf("journal: %w", err)
		}
		l.journal, l.appended = number, appended
		m := l.mark.now
		m.journalLast = number
		// Without the mark on disk, a lost tail would go unnoticed, so the record does not count as acknowledged.
		if err := l.mark.write(m, false); err != nil {
			l.suspect = true
			return err
		}
		l.mu.Lock()
		l.acked = number
		l.mu.Unlock()
		return nil
	})
}

func (h *handle) Replay(ctx context.Context, fn func(appended time.Time, record []byte) error) error {
	return h.ReplayFrom(ctx, cluster.Place{}, fn)
}

func (h *handle) ReplayFrom(ctx context.Context, from cluster.Place, fn func(appended time.Time, record []byte) error) error {
	_, err := h.link.replay(ctx, h.name, from, fn)
	return err
}

func (l *link) Look(ctx context.Context, name string, from cluster.Place, fn func(appended time.Time, record []byte) error) (cluster.Place, error) {
	if err := cluster.CheckJournal(name); err != nil {
		return cluster.Place{}, err
	}
	return l.replay(ctx, name, from, fn)
}

// replay calls fn with the records of a journal from a place on, and returns the place after them.
func (l *link) replay(ctx context.Context, name string, from cluster.Place, fn func(appended time.Time, record []byte) error) (cluster.Place, error) {
	eng, err := l.engine(ctx)
	if err != nil {
		return from, err
	}
	// Only what was acknowledged before the call: records that arrive meanwhile would make the replay endless.
	l.mu.Lock()
	last, damaged := l.acked, l.journalDamaged
	l.mu.Unlock()
	if damaged != nil {
		return from, damaged
	}
	if last == 0 {
		return from, nil
	}
	r, err := eng.reader(journalStream, false)
	if err != nil {
		return from, l.ended(ctx, err)
	}
	defer r.close()
	next, err := l.firstRecord(ctx)
	if err != nil {
		return from, err
	}
	next = max(next, from.Next)
	for next <= last {
		limit := int(min(batchRecords, last-next+1))
		err := r.read(ctx, next, limit, func(m *nats.Msg) error {
			if err := l.ended(ctx, nil); err != nil {
				return err
			}
			e, err := openRecord(m.Data, next)
			if err != nil {
				return err
			}
			if data, ok := e.named(name); !ok {
			} else if err := fn(time.Unix(0, int64(e.extra)), data); err != nil {
				return fnError{err}
			}
			next++
			return nil
		})
		if err == nil {
			continue
		}
		if own, ok := err.(fnError); ok {
			return from, own.error
		}
		if ended := l.ended(ctx, nil); ended != nil {
			return from, ended
		}
		// Records may have been purged in the meantime: these are older than the retention, so skipping them is right.
		if errors.Is(err, errMissing) || errors.As(err, new(*cluster.DamagedError)) {
			first, ferr := l.firstRecord(ctx)
			if ferr != nil {
				return from, ferr
			}
			if first > next {
				next = first
				continue
			}
			if errors.Is(err, errMissing) {
				err = &cluster.DamagedError{What: fmt.Sprintf("journal record %d", next), Err: err}
			}
		}
		return from, err
	}
	return cluster.Place{Next: next}, nil
}

// fnError marks the error of the caller's function, which is returned unchanged.
type fnError struct{ error }

// firstRecord returns the number of the first record that must exist.
func (l *link) firstRecord(ctx context.Context) (uint64, error) {
	if err := l.ended(ctx, nil); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first, nil
}

func (l *link) Retain(ctx context.Context, d time.Duration) error {
	if err := cluster.CheckRetention(d); err != nil {
		return err
	}
	return l.write(ctx, func(context.Context) error {
		m := l.mark.now
		m.retention = d
		if err := l.mark.write(m, true); err != nil {
			return err
		}
		select {
		case l.retention <- struct{}{}:
		default:
		}
		return nil
	})
}

const (
	// keepParts is how many times within a retention old records are purged: the journal holds up to one part more than
	// it must.
	keepParts   = 8
	minKeepStep = time.Second
	maxKeepStep = 10 * time.Minute
)

// keep purges old records until the link closes.
func (l *link) keep() {
	for {
		step := maxKeepStep
		ctx, cancel := context.WithCancel(context.Background())
		err := l.write(ctx, func(ctx context.Context) error {
			retention := l.mark.now.retention
			step = min(max(retention/keepParts, minKeepStep), maxKeepStep)
			keepReserve(l.cfg.Dir, reserveSize, l.cfg.MinFree)
			return l.forget(ctx, time.Now().Add(-retention))
		})
		cancel()
		if errors.Is(err, cluster.ErrClosed) {
			return
		}
		if err != nil {
			l.cfg.Log.Warn("old journal records could not be purged", "error", err)
		}
		select {
		case <-time.After(step):
		case <-l.retention:
		case <-l.done:
			return
		}
	}
}

// forget purges the records appended before the given time, except the newest: it remembers the numbering.
func (l *link) forget(ctx context.Context, before time.Time) error {
	if l.journalDamage() != nil || l.journal == 0 {
		return nil
	}
	m := l.mark.now
	// The first record to keep is in lo … hi. Records are in the order of time, so few reads find it.
	lo, hi := m.journalFirst, l.journal
	for lo < hi {
		mid := lo + (hi-lo)/2
		e, err := l.eng.record(ctx, mid)
		if err != nil {
			return err
		}
		if int64(e.extra) < before.UnixNano() {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == m.journalFirst {
		return nil
	}
	m.journalFirst = lo
	// The mark first: records that are gone but still expected would look like damage.
	if err := l.mark.write(m, true); err != nil {
		return err
	}
	l.mu.Lock()
	l.first = lo
	l.mu.Unlock()
	return l.eng.purge(ctx, journalStream, lo)
}
