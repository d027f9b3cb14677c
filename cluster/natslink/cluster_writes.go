package natslink

import (
	"context"
	"errors"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// writes are what changes a key, over the one way in which a space does that. put says that it
// does not matter what the key holds.
type writes struct {
	change func(ctx context.Context, c change, put bool) (uint64, error)
}

func (w writes) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return w.change(ctx, change{key: key, kind: kindValue, value: value}, true)
}

func (w writes) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return w.change(ctx, change{key: key, kind: kindValue, value: value, expect: revision}, false)
}

func (w writes) Lease(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if err := cluster.CheckLease(ttl); err != nil {
		return 0, err
	}
	return w.change(ctx, change{key: key, kind: kindValue, value: value, expect: revision, ttl: ttl}, false)
}

func (w writes) Remove(ctx context.Context, key string, revision uint64) error {
	if revision == 0 {
		return cluster.ErrRevision
	}
	_, err := w.change(ctx, change{key: key, kind: kindDeleted, expect: revision}, false)
	if errors.Is(err, errUnchanged) {
		return cluster.ErrRevision
	}
	return err
}

func (w writes) Delete(ctx context.Context, key string) error {
	_, err := w.change(ctx, change{key: key, kind: kindDeleted}, true)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}
