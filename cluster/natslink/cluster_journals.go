package natslink

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/wire"
)

// A record of a journal begins with its writer and its kind; the rest is the caller's.
const (
	bookHandle = 8 // bytes
	bookHeader = bookHandle + 1

	bookRecord = 0
	bookTaken  = 1 // the journal was taken over here
)

// books are the journals of a site: subjects of one stream.
type books struct {
	j     *joined
	store *store
	wake  chan struct{} // check for old records now

	mu     sync.Mutex
	opened map[string]bool // by subject
}

// book is one handle of a journal. It expects its own record to be the last one of the subject, so a record of another
// handle ends it.
type book struct {
	b       *books
	name    string
	subject string
	handle  uint64
	taken   uint64 // number of the message that took it over

	busy   chan struct{} // room for one; guards the fields below
	last   uint64        // number of the subject's last message
	number uint64        // of the record in the journal, without gaps
	at     int64         // when it was appended, ns since the Unix epoch
	fenced bool
}

func (b *books) subject(name string) string {
	if name == "" {
		return b.store.subjects + "~alone"
	}
	return b.store.subjects + name
}

// page is an opened record.
type page struct {
	envelope
	handle uint64
	what   byte
	data   []byte
}

func (b *books) page(name string, r row) (page, error) {
	e, err := unseal(r.subject, r.data)
	in := wire.Read(e.data)
	p := page{envelope: e, handle: in.Big64(), what: in.Byte(), data: in.Rest()}
	if err == nil && (e.kind != kindRecord || in.Err() != nil || p.what > bookTaken) {
		err = errors.New("it is of another kind")
	}
	if err != nil {
		return page{}, &cluster.DamagedError{What: fmt.Sprintf("journal %q, message %d", name, r.seq), Err: err}
	}
	return p, nil
}

func (k *book) seal(what byte, number uint64, data []byte) (sealed []byte, at int64) {
	b := make([]byte, 0, bookHeader+len(data))
	b = binary.BigEndian.AppendUint64(b, k.handle)
	b = append(append(b, what), data...)
	// Time does not go back in a journal, even if the clock does.
	at = max(time.Now().UnixNano(), k.at)
	return envelope{number: number, extra: uint64(at), kind: kindRecord, data: b}.seal(k.subject), at
}

// take opens the journal and takes it over.
func (b *books) take(ctx context.Context, name string) (cluster.Journal, error) {
	if err := cluster.CheckJournal(name); err != nil {
		return nil, err
	}
	own, cancel, err := b.j.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	var handle [bookHandle]byte
	rand.Read(handle[:])
	k := &book{b: b, name: name, subject: b.subject(name), handle: binary.BigEndian.Uint64(handle[:]), busy: make(chan struct{}, 1)}
	if err := k.find(own); err != nil {
		return nil, b.j.ended(ctx, err)
	}
	// Another handle may write in between again and again, but not forever.
	if err := k.write(own, bookTaken, nil); err != nil {
		return nil, b.j.ended(ctx, err)
	}
	k.taken = k.last
	b.mu.Lock()
	b.opened[k.subject] = true
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return k, nil
}

// find positions the handle after the subject's last record.
func (k *book) find(ctx context.Context) error {
	own, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		r, err := k.b.store.last(own, k.subject)
		if errors.Is(err, errMissing) {
			k.last, k.number, k.at = 0, 0, 0
			return nil
		}
		if err == nil {
			var p page
			if p, err = k.b.page(k.name, r); err != nil {
				if r, err = k.b.intact(own, k.name, r); err != nil {
					return err
				}
				if p, err = k.b.page(k.name, r); err != nil {
					return err
				}
			}
			k.last, k.number, k.at = r.seq, p.number, int64(p.extra)
			return nil
		}
		if !errors.Is(err, cluster.ErrUnavailable) || !pause(own, wait) {
			return err
		}
	}
}

// intact asks other replicas for a record that is damaged here: one bad disk must not stop the journal.
func (b *books) intact(ctx context.Context, name string, r row) (row, error) {
	_, err := b.page(name, r)
	for try := 0; err != nil && try < repairTries; try++ {
		again, derr := b.store.direct(ctx, map[string]any{"seq": r.seq})
		if derr != nil {
			break
		}
		if _, perr := b.page(name, again); perr == nil && again.seq == r.seq {
			return again, nil
		}
	}
	return r, err
}

// Append adds a record after this handle's last one.
func (k *book) Append(ctx context.Context, data []byte) error {
	if err := cluster.CheckValue(data); err != nil {
		return err
	}
	own, cancel, err := k.b.j.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	select {
	case k.busy <- struct{}{}:
	case <-own.Done():
		return k.b.j.ended(ctx, own.Err())
	}
	defer func() { <-k.busy }()
	if k.fenced {
		return cluster.ErrFenced
	}
	return k.b.j.ended(ctx, k.write(own, bookRecord, data))
}

// write adds a record, and retries until the outcome is known. If the subject's last message is not the one that this
// handle expects, it is either this record, from an attempt without an answer; or an earlier one of this handle, whose
// Append gave up; or another handle's.
func (k *book) write(ctx context.Context, what byte, data []byte) error {
	own, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	sealed, at := k.seal(what, k.number+1, data)
	done := func(seq uint64, number uint64, at int64) {
		k.last, k.number, k.at = seq, number, at
	}
	var failed error
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		seq, err := k.b.store.publish(own, k.subject, sealed, k.last, 0)
		if err == nil {
			done(seq, k.number+1, at)
			return nil
		}
		if errors.Is(err, errWrongLast) {
			var r row
			r, err = k.b.store.last(own, k.subject)
			switch {
			case errors.Is(err, errMissing):
				// All records were older than the retention, and another process purged them.
				k.fenced = true
				return cluster.ErrFenced
			case err != nil:
			case string(r.data) == string(sealed):
				done(r.seq, k.number+1, at)
				return nil
			case r.seq <= k.last:
				// Or the server that answered does not know yet that it is no longer the leader.
				err = k.b.store.unreachable(errors.New("a write is under way"))
			default:
				p, perr := k.b.page(k.name, r)
				if perr == nil && p.handle != k.handle && what == bookTaken {
					// Somebody else took it over or appended meanwhile: we are later.
					done(r.seq, p.number, int64(p.extra))
					sealed, at = k.seal(what, k.number+1, data)
					if own.Err() == nil {
						continue
					}
				}
				if perr != nil || p.handle != k.handle {
					k.fenced = true
					return cluster.ErrFenced
				}
				done(r.seq, p.number, int64(p.extra))
				sealed, at = k.seal(what, k.number+1, data)
				wait = minBackoff
				if own.Err() == nil {
					continue
				}
			}
		}
		if err == nil {
			err = k.b.store.unreachable(own.Err())
		} else if !errors.Is(err, cluster.ErrUnavailable) {
			return err
		}
		failed = cmp.Or(failed, err)
		if !pause(own, wait) {
			return failed
		}
	}
}

// Replay reads the records up to the newest one that there is when it is called.
func (k *book) Replay(ctx context.Context, fn func(appended time.Time, record []byte) error) error {
	return k.ReplayFrom(ctx, cluster.Place{}, fn)
}

func (k *book) ReplayFrom(ctx context.Context, from cluster.Place, fn func(appended time.Time, record []byte) error) error {
	// What was there when it was taken over is there, whoever answers now.
	_, err := k.b.replay(ctx, k.name, from, k.taken, fn)
	return err
}

// look reads the records of a journal that somebody else has.
func (b *books) look(ctx context.Context, name string, from cluster.Place, fn func(appended time.Time, record []byte) error) (cluster.Place, error) {
	if err := cluster.CheckJournal(name); err != nil {
		return cluster.Place{}, err
	}
	return b.replay(ctx, name, from, 0, fn)
}

// replay calls fn with the records from a place on, up to the newest that there is and at least up to a message, and
// returns the place after them.
func (b *books) replay(ctx context.Context, name string, from cluster.Place, least uint64, fn func(appended time.Time, record []byte) error) (cluster.Place, error) {
	own, cancel, err := b.j.begin(ctx)
	if err != nil {
		return from, err
	}
	defer cancel()
	end := book{b: b, name: name, subject: b.subject(name)}
	if err := end.find(own); err != nil {
		return from, b.j.ended(ctx, err)
	}
	last := max(end.last, least)
	number, next := from.Record, max(from.Next, 1)
	for tries := 0; next <= last; {
		records, err := b.store.batch(own, map[string]any{"seq": next, "next_by_subj": end.subject})
		if len(records) == 0 && err == nil {
			// The replica may lag; the leader does not.
			var r row
			if r, err = b.store.get(own, map[string]any{"seq": next, "next_by_subj": end.subject}); err == nil {
				records = []row{r}
			}
		}
		for _, r := range records {
			if err := own.Err(); err != nil {
				return from, b.j.ended(ctx, err)
			}
			r, err := b.intact(own, name, r)
			if err != nil {
				return from, b.j.ended(ctx, err)
			}
			p, err := b.page(name, r)
			if err != nil {
				return from, err
			}
			if number != 0 && p.number != number+1 && !end.begins(own, r) {
				return from, &cluster.DamagedError{What: fmt.Sprintf("journal %q", name), Err: fmt.Errorf("record %d comes after record %d", p.number, number)}
			}
			number, next = p.number, r.seq+1
			if p.what == bookRecord {
				if err := fn(time.Unix(0, int64(p.extra)), p.data); err != nil {
					return from, err
				}
			}
			if next > last {
				break
			}
		}
		if err == nil {
			tries = 0
			continue
		}
		missing := errors.Is(err, errMissing)
		if tries++; !missing && !errors.Is(err, cluster.ErrUnavailable) || tries > replayTries || !pause(own, maxBackoff) {
			if missing {
				err = &cluster.DamagedError{What: fmt.Sprintf("journal %q, message %d", name, last), Err: err}
			}
			return from, b.j.ended(ctx, err)
		}
	}
	return cluster.Place{Next: next, Record: number}, nil
}

// begins says whether the record is the first one left: those before it were purged while
// they were read.
func (k *book) begins(ctx context.Context, r row) bool {
	first, err := k.b.store.get(ctx, map[string]any{"seq": 1, "next_by_subj": k.subject})
	return err == nil && first.seq == r.seq
}

// replayTries is how often a batch is asked for in vain, which takes a second each; choosing a leader
// takes some.
const replayTries = 8

// retain notes the retention in the stream's metadata.
func (b *books) retain(ctx context.Context, d time.Duration) error {
	if err := cluster.CheckRetention(d); err != nil {
		return err
	}
	own, cancel, err := b.j.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	own, cancel = context.WithTimeout(own, callBound)
	defer cancel()
	err = b.setRetention(own, d)
	for wait := minBackoff; err != nil && pause(own, wait); wait = min(2*wait, maxBackoff) {
		err = b.setRetention(own, d)
	}
	if err != nil {
		return b.j.ended(ctx, b.store.unreachable(err))
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return nil
}

func (b *books) setRetention(ctx context.Context, d time.Duration) error {
	s, err := b.stream(ctx)
	if err != nil {
		return err
	}
	config := s.CachedInfo().Config
	if config.Metadata[metaRetention] == d.String() {
		return nil
	}
	if config.Metadata == nil {
		config.Metadata = map[string]string{}
	}
	config.Metadata[metaRetention] = d.String()
	js, err := jetstream.New(b.store.nc)
	if err == nil {
		_, err = js.UpdateStream(ctx, config)
	}
	return err
}

// stream asks JetStream for the stream of the journals.
func (b *books) stream(ctx context.Context) (jetstream.Stream, error) {
	js, err := jetstream.New(b.store.nc)
	if err != nil {
		return nil, err
	}
	s, err := js.Stream(ctx, b.store.stream)
	if err != nil {
		return nil, fmt.Errorf("natslink: stream %s: %w", b.store.stream, err)
	}
	return s, nil
}

// purgeSlack is how much longer records are kept than the retention, at most: the clocks of
// this process and of the store's leader may differ.
const purgeSlack = time.Minute

// keep purges old records of the journals that are open here, until the link closes.
func (b *books) keep() {
	for {
		step, err := b.purge(b.j.ctx)
		if b.j.ctx.Err() != nil {
			return
		}
		if err != nil {
			b.j.log.Warn("old journal records could not be purged", "error", err)
		}
		select {
		case <-time.After(step):
		case <-b.wake:
		case <-b.j.ctx.Done():
		}
	}
}

// purge purges what is older than the retention, and returns when to do so again.
func (b *books) purge(ctx context.Context) (step time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callBound)
	defer cancel()
	s, err := b.stream(ctx)
	if err != nil {
		return minKeepStep, err
	}
	retention, err := time.ParseDuration(s.CachedInfo().Config.Metadata[metaRetention])
	if err != nil || cluster.CheckRetention(retention) != nil {
		retention = cluster.DefaultRetention
	}
	step = min(max(retention/keepParts, minKeepStep), maxKeepStep)
	before := time.Now().Add(-retention - min(retention, purgeSlack))
	b.mu.Lock()
	var subjects []string
	for subject := range b.opened {
		subjects = append(subjects, subject)
	}
	b.mu.Unlock()
	var failed error
	for _, subject := range subjects {
		failed = errors.Join(failed, b.forget(ctx, s, subject, before))
	}
	return step, failed
}

// forget purges a journal's records stored before the moment, except the newest: it
// remembers the numbering and who has the journal.
func (b *books) forget(ctx context.Context, s jetstream.Stream, subject string, before time.Time) error {
	r, err := b.store.direct(ctx, map[string]any{"start_time": before.UTC(), "next_by_subj": subject})
	if errors.Is(err, errMissing) {
		r, err = b.store.last(ctx, subject)
	}
	if errors.Is(err, errMissing) {
		return nil
	}
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(r.seq))
	}
	if err != nil {
		return fmt.Errorf("natslink: purge of %s: %w", subject, err)
	}
	return nil
}
