// Package natslink is the durable [cluster.Link]: NATS with JetStream inside the process,
// without a listener, in one directory. It is the only package that knows NATS.
//
// # Where to look
//
// Files are named after what needs them: standalone_… a process by itself ([Open]), cluster_… a node of several ([Join]:
// keys, roles, journals, messages), server_… the NATS server inside the process and how several form a cluster. envelope.go
// seals every stored value; server_resize.go makes one core several, and several one.
//
// # What is in the directory
//
//	anteroom-store   which layout this is, and the checkpoint (see below)
//	anteroom-born    when this file was made: it reveals a copy of the directory, whose journal is not
//	                 trusted, because it does not know what happened since
//	reserve          space for what has to be written when the disk is full
//	lock             held while a process has the directory open
//	jetstream/       NATS: a key-value bucket for the keys, one stream for the journal
//
// # Why NATS is not trusted
//
// When JetStream opens a store and finds a record that fails its checksum, it truncates the
// file there: everything after it in the same file is silently lost, too. So every value and
// record has an envelope of our own (checksum, number, kind), and:
//
//   - Journal records are numbered without a gap. Only records that were
//     purged on purpose may be missing, and the checkpoint says up to where.
//   - Each change of a key carries a digest of all keys and their revisions after it, so
//     that a lost or resurrected key does not go unnoticed.
//   - The checkpoint, a line in a separate file, says which number each of the two had
//     reached when a write was last acknowledged, so that a lost tail is noticed, too.
//
// A mismatch ends in a [cluster.DamagedError]: keys when the link opens, the
// journal when it is replayed or appended to. Nothing is repaired.
//
// # How a write goes
//
// Writes happen one at a time: number the record, publish it (JetStream syncs the file before
// it acknowledges), note it in the checkpoint, return. The writer is a goroutine of its own,
// so that a caller who stops waiting does not leave an outcome unknown. If an outcome is
// still unknown (the disk failed), the embedded server is restarted before the next write,
// and everything is checked as on opening.
package natslink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// Config says where the store is and how much space it may take.
type Config struct {
	// Dir is the directory; it is created (0700) if it does not exist. Required.
	Dir string
	// LockWait is how long Open waits for another process to release the directory, as in a restart with socket
	// handover. Zero means not at all.
	LockWait time.Duration
	// MaxKeys is the space of all keys and values in bytes, at least 2 MiB. Zero means
	// 256 MiB.
	MaxKeys int64
	// MaxJournal is the space of the journal in bytes, at least 4 MiB. Zero means 8 GiB.
	// Appends beyond it fail with cluster.ErrFull until the retention frees space.
	MaxJournal int64
	// MinFree is the space in bytes that appends leave free on the file system; below it, they fail with
	// cluster.ErrFull. Keys and urgent appends (see cluster.Urgent) may use it up to the last MiB, and 16 MiB that are
	// reserved for them. Zero means 64 MiB.
	MinFree int64
	// NewJournal drops a damaged journal when the link opens and starts an empty one; an intact journal stays. It is
	// for operators who have seen the DamagedError and would rather lose sessions and places than restore a backup.
	NewJournal bool
	// Log receives the messages of the embedded server; nil means none.
	Log *slog.Logger
}

const (
	defaultMaxKeys    = 256 << 20
	defaultMaxJournal = 8 << 30
	defaultMinFree    = 64 << 20
	minMaxKeys        = 2 << 20
	minMaxJournal     = 4 << 20

	// restartPause is the shortest time between two restarts of the embedded server.
	restartPause = 200 * time.Millisecond

	// writeTimeout is when a write without an answer from JetStream counts as failed.
	writeTimeout = 20 * time.Second
)

type link struct {
	cluster.Writes

	cfg  Config
	lock *dirLock
	done chan struct{} // closed by Close

	// writing has room for one: the goroutine that puts something in may write. It guards the fields below it, up to
	// mu.
	writing   chan struct{}
	mark      *markFile
	copy      bool      // the directory is a copy, and its journal has not been dropped yet
	suspect   bool      // the last write's outcome is unknown
	restarted time.Time // when suspect last caused a restart
	keysLast  uint64    // number of the newest record of each stream
	journal   uint64
	appended  int64             // when the newest record was appended, ns since the Unix epoch
	owners    map[string]uint64 // how often each journal was opened
	retention chan struct{}

	bus      cluster.Bus
	watchers cluster.Watchers

	mu             sync.Mutex
	eng            *engine
	revisions      map[string]uint64 // of the keys that have a value
	leases         map[string]lease  // of those, the leased ones
	digest         uint64            // of revisions
	first, acked   uint64            // journal records: purged up to first, acknowledged up to acked
	journalDamaged error

	close    sync.Once
	closeErr error
	keeper   sync.WaitGroup
}

// Open opens the store in cfg.Dir, or creates it. It fails if another process has it open, if the directory holds
// something else, and with a *cluster.DamagedError if keys are damaged.
func Open(cfg Config) (cluster.Link, error) {
	cfg.MaxKeys = cmp.Or(cfg.MaxKeys, defaultMaxKeys)
	cfg.MaxJournal = cmp.Or(cfg.MaxJournal, defaultMaxJournal)
	cfg.MinFree = cmp.Or(cfg.MinFree, defaultMinFree)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	switch {
	case cfg.Dir == "":
		return nil, errors.New("natslink: no data directory given")
	case cfg.MaxKeys < minMaxKeys || cfg.MaxJournal < minMaxJournal || cfg.MinFree < 0:
		return nil, fmt.Errorf("natslink: MaxKeys %d, MaxJournal %d, MinFree %d: at least %d, %d and 0 bytes are needed",
			cfg.MaxKeys, cfg.MaxJournal, cfg.MinFree, minMaxKeys, minMaxJournal)
	}
	lock, err := lockDir(cfg.Dir, cfg.LockWait)
	if err != nil {
		return nil, err
	}
	l := &link{
		cfg:       cfg,
		lock:      lock,
		done:      make(chan struct{}),
		writing:   make(chan struct{}, 1),
		owners:    map[string]uint64{},
		retention: make(chan struct{}, 1),
		leases:    map[string]lease{},
	}
	l.Writes = l.change
	l.writing <- struct{}{} // leases may end while it opens: their deletions wait
	if err := l.open(); err != nil {
		close(l.done)
		if l.eng != nil {
			l.eng.stop()
		}
		if l.mark != nil {
			l.mark.close()
		}
		lock.release()
		return nil, err
	}
	<-l.writing
	keepReserve(l.cfg.Dir, reserveSize, l.cfg.MinFree)
	l.expireOld()
	l.keeper.Go(l.keep)
	return l, nil
}

func (l *link) open() error {
	fresh, err := checkLayout(l.cfg.Dir)
	if err != nil {
		return err
	}
	if fresh {
		if err := checkSpace(l.cfg.Dir, l.cfg.MinFree); err != nil {
			return err
		}
	}
	if l.mark, err = openMark(l.cfg.Dir, fresh); err != nil {
		return err
	}
	l.copy = isCopy(l.cfg.Dir)
	return l.start()
}

// start starts the embedded server and checks what it found against the checkpoint.
func (l *link) start() error {
	eng, err := startEngine(l.cfg, !l.mark.now.ready)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.eng = eng
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.loadKeys(ctx); err != nil {
		return err
	}
	if err := l.loadJournal(ctx); err != nil {
		return err
	}
	l.suspect = false
	m := l.mark.now
	m.ready, m.keys, m.journalLast = true, l.keysLast, max(m.journalLast, l.journal)
	if err := l.mark.write(m, true); err != nil || l.journalDamage() != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(l.cfg.Dir, bornName)); l.copy || errors.Is(err, fs.ErrNotExist) {
		if err := original(l.cfg.Dir); err != nil && (l.copy || !errors.Is(err, syscall.ENOSPC)) {
			return err
		}
		l.copy = false
	}
	return nil
}

// engine returns the embedded server in use, or ErrClosed, or ctx's error.
func (l *link) engine(ctx context.Context) (*engine, error) {
	select {
	case <-l.done:
		return nil, cluster.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.eng, nil
}

// ended returns what a call that failed with err returns: ErrClosed or ctx's error if that
// is why.
func (l *link) ended(ctx context.Context, err error) error {
	select {
	case <-l.done:
		return cluster.ErrClosed
	default:
	}
	if e := ctx.Err(); e != nil {
		return e
	}
	return err
}

// write runs fn as the only writer. It returns early when ctx ends or the link closes;
// fn then finishes by itself.
func (l *link) write(ctx context.Context, fn func(ctx context.Context) error) error {
	if _, err := l.engine(ctx); err != nil {
		return err
	}
	select {
	case l.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return cluster.ErrClosed
	}
	// Close takes the place of a writer for good: here it has not done so yet.
	result := make(chan error, 1)
	go func() {
		wctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		defer cancel()
		err := l.healthy()
		if err == nil {
			err = fn(wctx)
		}
		<-l.writing
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// healthy restarts the embedded server if the outcome of the last write is unknown; not
// more often than restartPause, which the write then waits.
func (l *link) healthy() error {
	if !l.suspect {
		return nil
	}
	if err := l.space(true); err != nil {
		return err
	}
	select {
	case <-time.After(restartPause - time.Since(l.restarted)):
	case <-l.done:
		return cluster.ErrClosed
	}
	l.restarted = time.Now()
	l.eng.stop()
	if err := l.start(); err != nil {
		return fmt.Errorf("natslink: the store failed and could not be opened again: %w", err)
	}
	return nil
}

// publish writes a record behind the last one of its stream and returns its number. One that is urgent
// may use the last of the disk.
func (l *link) publish(ctx context.Context, subject string, env []byte, last uint64, urgent bool) error {
	if err := l.space(urgent); err != nil {
		return err
	}
	err := l.eng.publish(ctx, subject, env, last)
	if err != nil && !errors.Is(err, errNoSpaceInStream) {
		l.suspect = true
	}
	return err
}

// Close waits for the write under way, then stops the embedded server: connections
// first, then the server, then the lock.
func (l *link) Close() error {
	l.close.Do(func() {
		close(l.done)
		l.bus.Close()
		l.writing <- struct{}{}
		l.mu.Lock()
		for _, one := range l.leases {
			one.timer.Stop()
		}
		l.mu.Unlock()
		l.keeper.Wait()
		l.eng.stop()
		l.closeErr = errors.Join(l.mark.close(), l.lock.release())
	})
	return l.closeErr
}
