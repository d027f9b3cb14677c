package natslink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// keysCopy is this process's copy of the shared keys, in memory and in a file: the last
// good state that was heard of. Reads never leave it.
type keysCopy struct {
	log      *slog.Logger
	subjects string // begins the keys' subjects

	mu      sync.Mutex
	file    *copyFile
	fileErr error // why the file was not written last
	store   string
	keys    map[string]copied
	size    int64 // what the file needs
	gone    int   // deleted keys still in keys
	// pos: every change up to this number is in the copy. Own writes are in it before that.
	pos      uint64
	moved    chan struct{} // closed and made anew when pos grows
	watchers map[*copyWatcher]struct{}
	damage   int   // keys that are damaged now
	other    error // what is at the hub is not what this is a copy of
}

// copied is one key in the copy.
type copied struct {
	revision uint64
	envelope []byte // as it is in the store
	value    []byte // part of the envelope
	gone     bool   // deleted or expired; kept until pos has passed it
	damaged  error
	due      time.Time // a lease: when it must have been heard of again
}

// openCopy reads the file in dir. Damaged records are as if they had never been heard of,
// except that their keys answer so if they can be read.
func openCopy(dir, subjects string, log *slog.Logger) (*keysCopy, error) {
	file, b, err := openCopyFile(dir)
	if err != nil {
		return nil, err
	}
	c := &keysCopy{
		log: log, subjects: subjects, file: file, keys: map[string]copied{},
		moved: make(chan struct{}), watchers: map[*copyWatcher]struct{}{},
	}
	whole := true
	broken := readCopy(b, func(r copyRecord) {
		if r.key == "" {
			if e, err := unseal("", r.envelope); err == nil {
				c.store = string(e.data)
			}
			return
		}
		if c.apply(r.key, r.revision, r.envelope, false) != nil {
			whole = false
		}
		c.pos = max(c.pos, r.pos)
	})
	if broken || !whole || c.store == "" {
		if len(b) > 0 {
			log.Warn("the copy of the shared keys on this machine is damaged; what is good of it is used, and all of it is fetched again", "file", file.path)
		}
		c.pos = 0
	}
	if c.store == "" {
		clear(c.keys) // nobody knows what they are of
		c.size, c.gone, c.damage = 0, 0, 0
	}
	return c, nil
}

// empty says whether there is nothing to start with.
func (c *keysCopy) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store == ""
}

// follows says whose copy it is. It fails when the store is another one than before, or less
// of it than is here: one that was begun anew would take every room with it.
func (c *keysCopy) follows(store string, last uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == "" {
		c.store = store
		c.rewrite()
	}
	c.other = nil
	if c.store != store || last < c.pos {
		c.other = fmt.Errorf("%w: the shared keys at the hub are not what the copy in %s is of: were they begun anew, or restored from an older state? "+
			"Restore them as they were, or stop the node, move that file elsewhere (it may be the only copy of the configuration), and start it to take what is there now", cluster.ErrUnavailable, c.file.path)
	}
	return c.other
}

// foreign returns what follows returned last.
func (c *keysCopy) foreign() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.other
}

// entry opens a record of the store.
func (c *keysCopy) entry(key string, revision uint64, sealed []byte) copied {
	e := copied{revision: revision, envelope: sealed}
	env, err := unseal(c.subjects+key, sealed)
	switch {
	case err == nil && env.kind == kindValue:
		e.value = env.data
	case err == nil && env.kind == kindDeleted:
		e.gone = true
	case err == nil:
		err = errors.New("it is of another kind")
	}
	if err != nil {
		e.damaged = &cluster.DamagedError{What: "key " + key, Err: err}
		e.envelope = nil
	}
	return e
}

// apply takes over a key's record, unless a newer one is there. It returns the damage that
// it found.
func (c *keysCopy) apply(key string, revision uint64, sealed []byte, write bool) error {
	return c.put(key, c.entry(key, revision, sealed), write)
}

func (c *keysCopy) put(key string, e copied, write bool) error {
	old, there := c.keys[key]
	if there && (old.revision > e.revision || old.revision == e.revision && (old.damaged == nil || e.damaged != nil)) {
		return nil
	}
	if there {
		c.forget(key, old)
	}
	c.keys[key] = e
	c.size += int64(copyHeader + len(key) + len(e.envelope))
	switch {
	case e.damaged != nil:
		c.damage++
		return e.damaged
	case e.gone:
		c.gone++
	}
	if write && e.envelope != nil {
		c.write(copyRecord{key: key, revision: e.revision, pos: c.pos, envelope: e.envelope})
	}
	for w := range c.watchers {
		w.dirty(key)
	}
	return nil
}

func (c *keysCopy) forget(key string, e copied) {
	c.size -= int64(copyHeader + len(key) + len(e.envelope))
	if e.gone {
		c.gone--
	}
	if e.damaged != nil {
		c.damage--
	}
	delete(c.keys, key)
}

// leaseSlack is how long after its time a lease that nobody spoke of is asked for.
const leaseSlack = 2 * time.Second

// heard takes over what a stream of the keys said, or the answer to a write or question.
// inOrder says that everything up to it was heard before.
func (c *keysCopy) heard(r row, inOrder bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	key, ok := strings.CutPrefix(r.subject, c.subjects)
	// What is not newer than pos is known, or was deleted since and is forgotten.
	if ok && cluster.CheckKey(key) == nil && (r.seq > c.pos || c.keys[key].damaged != nil) {
		deleted := func() []byte {
			return envelope{extra: uint64(r.stored.UnixNano()), kind: kindDeleted}.seal(r.subject)
		}
		switch {
		case r.marker:
			// Its like in the file, so that the key is gone after a restart too.
			err = c.apply(key, r.seq, deleted(), true)
		case r.ttl > 0:
			// Not in the file: who starts again hears of a lease or there is none.
			c.write(copyRecord{key: key, revision: r.seq, pos: c.pos, envelope: deleted()})
			e := c.entry(key, r.seq, r.data)
			e.due = time.Now().Add(r.ttl + leaseSlack)
			err = c.put(key, e, false)
		default:
			err = c.apply(key, r.seq, r.data, true)
		}
	}
	if inOrder && r.seq > c.pos {
		c.pos = r.seq
		c.progress()
	}
	return err
}

// reached says that there is no change between what was heard and pos.
func (c *keysCopy) reached(pos uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pos > c.pos {
		c.pos = pos
		c.progress()
	}
}

// progress tells who waits for pos, and forgets deleted keys that it has passed.
func (c *keysCopy) progress() {
	close(c.moved)
	c.moved = make(chan struct{})
	const many = 64
	if c.gone > many && c.gone > len(c.keys)/8 {
		for key, e := range c.keys {
			if e.gone && e.revision <= c.pos {
				c.forget(key, e)
			}
		}
	}
}

// position returns pos, and a channel that is closed when it grows.
func (c *keysCopy) position() (uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pos, c.moved
}

// write adds a record to the file, or writes it anew when it has grown too much. The
// copy in memory is good in any case.
func (c *keysCopy) write(r copyRecord) {
	if c.file.f == nil || c.file.size > 2*c.size+copySlack {
		c.rewrite()
		return
	}
	c.wrote(c.file.append(r.append(nil)))
}

func (c *keysCopy) rewrite() {
	b := copyRecord{envelope: envelope{kind: kindValue, data: []byte(c.store)}.seal("")}.append(nil)
	for key, e := range c.keys {
		if e.damaged == nil && !e.gone && e.due.IsZero() {
			b = copyRecord{key: key, revision: e.revision, pos: c.pos, envelope: e.envelope}.append(b)
		}
	}
	c.wrote(c.file.rewrite(b))
}

func (c *keysCopy) wrote(err error) {
	if err != nil {
		c.file.close() // so that it is written anew, whole
		if c.fileErr == nil {
			c.log.Error("the copy of the shared keys on this machine cannot be written; the node works, but must reach others when it starts again", "error", err)
		}
	}
	c.fileErr = err
}

// close writes the file anew if that saves something, and ends.
func (c *keysCopy) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store != "" && c.file.f != nil {
		c.rewrite()
	}
	return errors.Join(c.fileErr, c.file.close())
}

// get returns the key, or cluster.ErrNotFound, or its damage.
func (c *keysCopy) get(key string) (cluster.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.keys[key]
	switch {
	case !ok || e.gone:
		return cluster.Entry{}, cluster.ErrNotFound
	case e.damaged != nil:
		return cluster.Entry{}, e.damaged
	}
	return cluster.Entry{Key: key, Value: bytes.Clone(e.value), Revision: e.revision}, nil
}

// revision returns the number of the key's last message as far as known here, 0 for none.
func (c *keysCopy) revision(key string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys[key].revision
}

// last is revision for a write: of a key that holds something only if any is true.
func (c *keysCopy) last(key string, any bool) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.keys[key]; any || e.gone {
		return e.revision
	}
	return 0
}

func (c *keysCopy) list(prefix string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []string
	for key, e := range c.keys {
		if !e.gone && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// doubtful returns the keys that must be asked for: damaged ones, and leases that have not
// been heard of for too long.
func (c *keysCopy) doubtful(now time.Time) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []string
	for key, e := range c.keys {
		if e.damaged != nil || !e.due.IsZero() && !e.gone && now.After(e.due) {
			keys = append(keys, key)
		}
	}
	return keys
}

// expired drops a key that the store does not hold any more, unless it was heard of since.
func (c *keysCopy) expired(key string, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.keys[key]; ok && e.revision == revision && !e.gone {
		c.drop(key, e)
	}
}

func (c *keysCopy) drop(key string, e copied) {
	sealed := envelope{extra: uint64(time.Now().UnixNano()), kind: kindDeleted}.seal(c.subjects + key)
	c.forget(key, e)
	c.apply(key, e.revision, sealed, true)
}

// prune drops the keys that a store with every change up to the number last does not hold, and returns how many.
// What is newer than that the store may not have heard of.
func (c *keysCopy) prune(last uint64, held func(subject string) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for key, e := range c.keys {
		if !e.gone && e.revision <= last && !held(c.subjects+key) {
			c.drop(key, e)
			n++
		}
	}
	return n
}

func (c *keysCopy) counts() (keys, damaged int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.keys) - c.gone, c.damage
}

// copyWatcher gathers the keys that its Watch has to tell.
type copyWatcher struct {
	prefix string
	wake   chan struct{}

	// guarded by the copy's mu
	waiting map[string]bool
	order   []string
}

func (w *copyWatcher) dirty(key string) {
	if w.waiting[key] || !strings.HasPrefix(key, w.prefix) {
		return
	}
	w.waiting[key] = true
	w.order = append(w.order, key)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// watch is Watch of the space; done is closed when the link is.
func (c *keysCopy) watch(ctx context.Context, done <-chan struct{}, prefix string, fn func(cluster.Change)) error {
	w := &copyWatcher{prefix: prefix, wake: make(chan struct{}, 1), waiting: map[string]bool{}}
	c.mu.Lock()
	for key, e := range c.keys {
		if !e.gone {
			w.dirty(key)
		}
	}
	slices.Sort(w.order)
	c.watchers[w] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.watchers, w)
		c.mu.Unlock()
	}()
	told := map[string]uint64{}
	for synced := false; ; {
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-done:
				return cluster.ErrClosed
			default:
			}
			change, ok := c.next(w, told)
			if !ok {
				break
			}
			if change.Key != "" {
				fn(change)
			}
		}
		if !synced {
			synced = true
			fn(cluster.Change{Synced: true})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			return cluster.ErrClosed
		case <-w.wake:
		}
	}
}

// next returns what is to be told next; without a key when it was told before.
func (c *keysCopy) next(w *copyWatcher, told map[string]uint64) (cluster.Change, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(w.order) == 0 {
		w.order = nil
		return cluster.Change{}, false
	}
	key := w.order[0]
	w.order = w.order[1:]
	delete(w.waiting, key)
	e, ok := c.keys[key]
	switch {
	case !ok || e.gone:
		if told[key] == 0 {
			return cluster.Change{}, true
		}
		delete(told, key)
		return cluster.Change{Entry: cluster.Entry{Key: key}, Gone: true}, true
	case e.damaged != nil || told[key] == e.revision:
		return cluster.Change{}, true
	}
	told[key] = e.revision
	return cluster.Change{Entry: cluster.Entry{Key: key, Value: bytes.Clone(e.value), Revision: e.revision}}, true
}
