package natslink

import (
	"context"

	"github.com/anteroom/anteroom/cluster"
)

// space is the shared one: reads are of the copy, writes go to the hub.
type space struct {
	messages
	cluster.Writes
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

// change writes and learns.
func (s *space) change(ctx context.Context, w cluster.Write) (uint64, error) {
	own, cancel, err := s.j.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer cancel()
	if err := s.copy.foreign(); err != nil {
		return 0, err
	}
	seq, err := s.hub.write(own, w, s.copy.last(w.Key, w.Any), s.learn)
	return seq, s.j.ended(ctx, err)
}
