package memlink

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// store is the keys of one space. The world's mutex guards it.
type store struct {
	world    *World
	entries  map[string]cluster.Entry
	leases   map[string]*time.Timer
	size     int // bytes of entries
	revision uint64
	most     int // bytes
}

func newStore(w *World, most int) *store {
	return &store{world: w, entries: map[string]cluster.Entry{}, leases: map[string]*time.Timer{}, most: most}
}

// change does one change of a key.
func (s *store) change(w cluster.Write) (uint64, error) {
	key := w.Key
	old, held := s.entries[key]
	switch {
	case w.Delete && !held:
		return 0, cluster.ErrUnchanged
	case !w.Any && old.Revision != w.Expect:
		return 0, cluster.ErrRevision
	case w.Delete:
		s.remove(key)
		return 0, nil
	}
	size := s.size + len(w.Value) - len(old.Value)
	if !held {
		size += len(key) + overhead
	}
	if size > s.most {
		return 0, fmt.Errorf("%w: keys in memory are limited to %d bytes; delete some, or run with a data directory", cluster.ErrFull, s.most)
	}
	s.size = size
	s.revision++
	revision := s.revision
	s.entries[key] = cluster.Entry{Key: key, Value: w.Value, Revision: revision}
	s.keep(key)
	if w.TTL > 0 {
		s.leases[key] = time.AfterFunc(w.TTL, func() {
			s.world.mu.Lock()
			defer s.world.mu.Unlock()
			if s.entries[key].Revision == revision {
				s.remove(key)
			}
		})
	}
	s.world.changed(s, key)
	return revision, nil
}

// keep makes a leased key stay.
func (s *store) keep(key string) {
	if t := s.leases[key]; t != nil {
		t.Stop()
		delete(s.leases, key)
	}
}

func (s *store) remove(key string) {
	s.keep(key)
	s.size -= len(key) + len(s.entries[key].Value) + overhead
	s.revision++
	delete(s.entries, key)
	s.world.changed(s, key)
}

// space is a store and the messages around it as one process has them.
type space struct {
	cluster.Writes

	link     *link
	store    *store
	shared   bool // by all sites
	bus      cluster.Bus
	watchers cluster.Watchers
}

// begin locks the world for one call that goes out; the caller unlocks when err is nil.
func (x *space) begin(ctx context.Context) error {
	x.link.world.mu.Lock()
	err := ctx.Err()
	select {
	case <-x.link.done:
		err = cluster.ErrClosed
	default:
	}
	if err == nil && x.cut()&Out != 0 {
		err = cluster.ErrUnavailable
	}
	if err != nil {
		x.link.world.mu.Unlock()
	}
	return err
}

// cut is what lies between the process and the store.
func (x *space) cut() Cut {
	c := x.link.world.cutNodes[x.link.node].cut
	if x.shared {
		c |= x.link.site.cut
	}
	return c
}

// reached returns ErrUnavailable when the answer to a call does not come back.
func (x *space) reached() error {
	if x.cut() != None {
		return cluster.ErrUnavailable
	}
	return nil
}

// entries is what a read sees: of the shared space, what the site has of it.
func (x *space) entries() (map[string]cluster.Entry, error) {
	switch {
	case x.link.world.cutNodes[x.link.node].cut != None:
		return nil, cluster.ErrUnavailable
	case x.shared && x.link.site.copied != nil:
		return x.link.site.copied, nil
	}
	return x.store.entries, nil
}

// read locks the world and returns the entries to read from; the caller unlocks when err is nil.
func (x *space) read(ctx context.Context) (map[string]cluster.Entry, error) {
	x.link.world.mu.Lock()
	err := ctx.Err()
	select {
	case <-x.link.done:
		err = cluster.ErrClosed
	default:
	}
	var entries map[string]cluster.Entry
	if err == nil {
		entries, err = x.entries()
	}
	if err != nil {
		x.link.world.mu.Unlock()
	}
	return entries, err
}

func (x *space) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if err := cluster.CheckKey(key); err != nil {
		return cluster.Entry{}, err
	}
	entries, err := x.read(ctx)
	if err != nil {
		return cluster.Entry{}, err
	}
	defer x.link.world.mu.Unlock()
	e, ok := entries[key]
	if !ok {
		return cluster.Entry{}, cluster.ErrNotFound
	}
	e.Value = slices.Clone(e.Value)
	return e, nil
}

func (x *space) Keys(ctx context.Context, prefix string) ([]string, error) {
	entries, err := x.read(ctx)
	if err != nil {
		return nil, err
	}
	defer x.link.world.mu.Unlock()
	var keys []string
	for k := range maps.Keys(entries) {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func (x *space) change(ctx context.Context, w cluster.Write) (uint64, error) {
	if err := x.begin(ctx); err != nil {
		return 0, err
	}
	defer x.link.world.mu.Unlock()
	revision, err := x.store.change(w)
	if lost := x.reached(); lost != nil {
		return 0, lost
	}
	return revision, err
}

func (x *space) Watch(ctx context.Context, prefix string, fn func(cluster.Change)) error {
	return x.watchers.Watch(ctx, x.link.done, prefix, fn, x.Get, x.Keys)
}

func (x *space) Publish(subject string, data []byte) error {
	_, err := x.deliver(subject, data, nil)
	return err
}

func (x *space) Subscribe(subject string, fn func(cluster.Message)) (func(), error) {
	return x.bus.Subscribe(subject, fn)
}

func (x *space) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	return cluster.Ask(ctx, x.link.done, func(reply func([]byte) error) (int, error) {
		return x.deliver(subject, data, reply)
	})
}

// deliver gives the message to all that it reaches. An answer comes back if the way back is
// open at that moment.
func (x *space) deliver(subject string, data []byte, reply func([]byte) error) (int, error) {
	if err := cluster.CheckMessage(subject, data); err != nil {
		return 0, err
	}
	w := x.link.world
	w.mu.Lock()
	select {
	case <-x.link.done:
		w.mu.Unlock()
		return 0, cluster.ErrClosed
	default:
	}
	to := w.reachable(x)
	w.mu.Unlock()
	n := 0
	for _, one := range to {
		back := reply
		if reply != nil {
			back = func(data []byte) error {
				w.mu.Lock()
				open := slices.Contains(w.reachable(one), x)
				w.mu.Unlock()
				if !open {
					return cluster.CheckMessage(subject, data)
				}
				return reply(data)
			}
		}
		// One that closes meanwhile hears nothing.
		got, _ := one.bus.Deliver(subject, data, back)
		n += got
	}
	return n, nil
}
