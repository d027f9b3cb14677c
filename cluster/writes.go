package cluster

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Write is one change of a key.
type Write struct {
	Key    string
	Value  []byte // the receiver's own
	Delete bool   // else Value is set
	Any    bool   // it does not matter what the key holds
	Expect uint64 // else its revision; 0: it holds nothing
	TTL    time.Duration
}

// ErrUnchanged is what the function of [Writes] returns when there is nothing to delete.
var ErrUnchanged = errors.New("cluster: nothing to delete")

// Writes are what changes a key of a [Space], over the one function that does it: it returns the new revision, or
// ErrRevision when the key does not hold what is expected.
type Writes func(ctx context.Context, w Write) (uint64, error)

func (do Writes) checked(ctx context.Context, w Write) (uint64, error) {
	if err := CheckKey(w.Key); err != nil {
		return 0, err
	}
	if err := CheckValue(w.Value); err != nil {
		return 0, err
	}
	w.Value = slices.Clone(w.Value)
	return do(ctx, w)
}

// Put is as in [Space], and so are the others.
func (do Writes) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return do.checked(ctx, Write{Key: key, Value: value, Any: true})
}

// Update is as in [Space].
func (do Writes) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return do.checked(ctx, Write{Key: key, Value: value, Expect: revision})
}

// Lease is as in [Space].
func (do Writes) Lease(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if err := CheckLease(ttl); err != nil {
		return 0, err
	}
	return do.checked(ctx, Write{Key: key, Value: value, Expect: revision, TTL: ttl})
}

// Remove is as in [Space].
func (do Writes) Remove(ctx context.Context, key string, revision uint64) error {
	if revision == 0 {
		return ErrRevision
	}
	_, err := do.checked(ctx, Write{Key: key, Delete: true, Expect: revision})
	if errors.Is(err, ErrUnchanged) {
		return ErrRevision
	}
	return err
}

// Delete is as in [Space].
func (do Writes) Delete(ctx context.Context, key string) error {
	_, err := do.checked(ctx, Write{Key: key, Delete: true, Any: true})
	if errors.Is(err, ErrUnchanged) {
		return nil
	}
	return err
}
