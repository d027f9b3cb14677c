package natslink

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// space is the shared one: reads are of the copy, writes go to the hub.
type space struct {
	messages
	hub  *store
	copy *keysCopy
}

func (s *space) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if err := cluster.CheckKey(key); err != nil {
		return cluster.Entry{}, err
	}
	_, cancel, err := s.j.begin(ctx)
	if err != nil {
		return cluster.Entry{}, err
	}
	cancel()
	return s.copy.get(key)
}

func (s *space) Keys(ctx context.Context, prefix string) ([]string, error) {
	_, cancel, err := s.j.begin(ctx)
	if err != nil {
		return nil, err
	}
	cancel()
	return s.copy.list(prefix), nil
}

func (s *space) Watch(ctx context.Context, prefix string, fn func(cluster.Change)) error {
	if err := cluster.CheckPrefix(prefix); err != nil {
		return err
	}
	_, cancel, err := s.j.begin(ctx)
	if err != nil {
		return err
	}
	cancel()
	return s.copy.watch(ctx, s.j.ctx.Done(), prefix, fn)
}

// learn puts a write, or what was found instead of it, into the copy.
func (s *space) learn(r row) {
	if r.seq > 0 {
		s.copy.heard(r, false)
	}
}

// change writes and learns. put says that it does not matter what the key holds.
func (s *space) change(ctx context.Context, c change, put bool) (uint64, error) {
	if err := check(c); err != nil {
		return 0, err
	}
	own, cancel, err := s.j.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer cancel()
	if err := s.copy.foreign(); err != nil {
		return 0, err
	}
	c.value = slices.Clone(c.value)
	if put || c.expect == 0 {
		c.expect = s.copy.last(c.key, put)
	}
	seq, err := s.hub.write(own, c, put, s.learn)
	return seq, s.j.ended(ctx, err)
}

func check(c change) error {
	if err := cluster.CheckKey(c.key); err != nil {
		return err
	}
	return cluster.CheckValue(c.value)
}

func (s *space) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return s.change(ctx, change{key: key, kind: kindValue, value: value}, true)
}

func (s *space) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return s.change(ctx, change{key: key, kind: kindValue, value: value, expect: revision}, false)
}

func (s *space) Lease(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if err := cluster.CheckLease(ttl); err != nil {
		return 0, err
	}
	return s.change(ctx, change{key: key, kind: kindValue, value: value, expect: revision, ttl: ttl}, false)
}

func (s *space) Delete(ctx context.Context, key string) error {
	_, err := s.change(ctx, change{key: key, kind: kindDeleted}, true)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}
