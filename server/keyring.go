package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/ticket"
)

// sharedRing is the ring of a cluster, which all nodes take from its store. Cores keep it sealed with the secret of the cluster, and
// a copy sealed with what edges share, for those that have secrets of their own.
type sharedRing struct {
	space    cluster.Space
	owner    string   // the cluster's name
	edge     bool     // this node reads the copy, and writes nothing
	key      string   // ringKey, or edgeRingKey
	secrets  []string // the one that seals first
	forEdges string   // seals the copy
	log      *slog.Logger
	used     atomic.Uint64 // revision of the ring that was loaded last
}

const (
	ringKey     = "keys.ring"
	edgeRingKey = "keys.edges"
)

// newSharedRing returns that of a node with these secrets; the second one may be empty.
func newSharedRing(space cluster.Space, owner string, secrets []string, log *slog.Logger) (*sharedRing, error) {
	r := &sharedRing{space: space, owner: owner, key: ringKey, edge: natslink.IsEdgeSecret(secrets[0]), log: log}
	for i, secret := range secrets {
		if secret == "" {
			continue
		}
		shared, err := natslink.EdgeKey(secret, owner)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			r.forEdges = shared
		}
		if r.edge {
			secret = shared
		}
		r.secrets = append(r.secrets, secret)
	}
	if r.edge {
		r.key = edgeRingKey
	}
	return r, nil
}

// promoteAfter is how long a new key is known everywhere, as far as anybody can be reached,
// before tickets are sealed with it: a node that did not know it would take whoever comes with
// such a ticket for new.
const promoteAfter = 10 * time.Second

// ringTries bounds how often a change is tried when other nodes change the ring meanwhile.
const ringTries = 10

func (r *sharedRing) open(e cluster.Entry) (*ticket.Keyring, error) {
	return ticket.OpenRing(e.Value, r.owner, r.secrets...)
}

// load returns the ring, and makes it of the node's own when the cluster has none.
func (r *sharedRing) load(ctx context.Context, own func() (*ticket.Keyring, error)) (*ticket.Keyring, error) {
	for tries := 0; tries < ringTries; tries++ {
		e, err := r.space.Get(ctx, r.key)
		if err == nil {
			ring, err := r.open(e)
			if err == nil {
				r.used.Store(e.Revision)
				r.copy(ctx, ring)
			}
			return ring, err
		}
		if !errors.Is(err, cluster.ErrNotFound) {
			return nil, err
		}
		if r.edge {
			r.log.Info("waiting for a core that gives this edge the ticket keys")
			r.await(ctx)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			tries--
			continue
		}
		ring, err := own()
		if err != nil {
			return nil, err
		}
		revision, err := r.space.Update(ctx, ringKey, ring.Sealed(r.secrets[0], r.owner), 0)
		if err == nil {
			r.used.Store(revision)
			r.copy(ctx, ring)
			return ring, nil
		}
		switch {
		case errors.Is(err, cluster.ErrRevision):
		case errors.Is(err, cluster.ErrUnavailable) && ctx.Err() == nil: // cores that start elect their leader
			tries--
		default:
			return nil, err
		}
		r.await(ctx) // another node's, which has to come here
	}
	return nil, errRingContended
}

// await waits some seconds for a ring to be there.
func (r *sharedRing) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r.space.Watch(ctx, r.key, func(c cluster.Change) {
		if c.Key == r.key && !c.Gone {
			cancel()
		}
	})
}

var errRingContended = anteroom.Errorf(anteroom.Conflict, "other nodes are changing the ticket keys; try again")

var errOfCore = anteroom.Errorf(anteroom.Elsewhere, "the ticket keys belong to the cores of the cluster, and this node is an edge: send the request to the admin address of a core")

// copy gives edges the ring. What fails is done again by the next node, or at the next change.
func (r *sharedRing) copy(ctx context.Context, ring *ticket.Keyring) {
	if r.edge {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	e, err := r.space.Get(ctx, edgeRingKey)
	if err == nil {
		if there, err := ticket.OpenRing(e.Value, r.owner, r.forEdges); err == nil && bytes.Equal(there.Export(), ring.Export()) {
			return
		}
	}
	if err == nil || errors.Is(err, cluster.ErrNotFound) {
		_, err = r.space.Update(ctx, edgeRingKey, ring.Sealed(r.forEdges, r.owner), e.Revision)
	}
	if err != nil && !errors.Is(err, cluster.ErrRevision) {
		r.log.Warn("the ticket keys could not be given to edges yet", "error", err)
	}
}

// copyTime bounds copy: a start does not wait longer for it.
const copyTime = 2 * time.Second

// change replaces the ring by what fn makes of it.
func (r *sharedRing) change(ctx context.Context, fn func(*ticket.Keyring) (*ticket.Keyring, error)) error {
	if r.edge {
		return errOfCore
	}
	for range ringTries {
		e, err := r.space.Get(ctx, ringKey)
		if err != nil {
			return err
		}
		ring, err := r.open(e)
		if err != nil {
			return err
		}
		next, err := fn(ring)
		if err != nil || next == ring {
			return err
		}
		_, err = r.space.Update(ctx, ringKey, next.Sealed(r.secrets[0], r.owner), e.Revision)
		if !errors.Is(err, cluster.ErrRevision) {
			return err
		}
	}
	return errRingContended
}

// rotate makes a key that will seal in promoteAfter, when every node knows it. With forget, it seals at once, and no earlier
// key opens: those that nodes give tickets under meanwhile are void, too.
func (r *sharedRing) rotate(ctx context.Context, forget bool) error {
	return r.change(ctx, func(k *ticket.Keyring) (_ *ticket.Keyring, err error) {
		now := time.Now()
		if !forget {
			return k.Prepare(now)
		}
		if hasNext(k) { // whoever has read the ring has read this one, too
			if k, err = k.Promote(now, -1); err != nil {
				return nil, err
			}
		}
		return k.Rotate(now, -1)
	})
}

// follow calls changed whenever the ring is another one, and lets a new key seal when every
// node has had the time to hear of it; it returns when ctx ends.
func (r *sharedRing) follow(ctx context.Context, changed func()) {
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	moved := make(chan struct{}, 1)
	go r.space.Watch(ctx, r.key, func(c cluster.Change) {
		if c.Key == r.key && !c.Gone {
			poke(moved)
		}
	})
	var seen uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-moved:
			e, err := r.space.Get(ctx, r.key)
			if err != nil {
				if ctx.Err() == nil {
					r.log.Warn("the ticket keys of the cluster cannot be read; retrying", "error", err)
					time.AfterFunc(time.Second, func() { poke(moved) })
				}
				continue
			}
			if e.Revision == seen {
				continue
			}
			ring, err := r.open(e)
			if err != nil {
				r.log.Error("the ticket keys of the cluster cannot be read; the previous keys stay in use", "error", err)
				continue
			}
			seen = e.Revision
			r.copy(ctx, ring)
			if seen != r.used.Load() {
				changed()
			}
			if hasNext(ring) && !r.edge {
				due.Reset(promoteAfter)
			}
		case <-due.C:
			err := r.change(ctx, func(k *ticket.Keyring) (*ticket.Keyring, error) {
				if !hasNext(k) {
					return k, nil // another node was first
				}
				return k.Promote(time.Now(), 0)
			})
			if err != nil && ctx.Err() == nil {
				r.log.Warn("a new ticket key cannot be used yet; retrying", "error", err)
				due.Reset(promoteAfter)
			}
		}
	}
}

func poke(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func hasNext(k *ticket.Keyring) bool {
	for _, one := range k.Keys() {
		if one.State == ticket.Next {
			return true
		}
	}
	return false
}

// export returns the ring as a key file has it.
func (r *sharedRing) export() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if r.edge {
		return nil, errOfCore
	}
	e, err := r.space.Get(ctx, ringKey)
	if err != nil {
		return nil, err
	}
	ring, err := r.open(e)
	if err != nil {
		return nil, err
	}
	return ring.Export(), nil
}

// restore is [ticket.Keyring.Restore] for the cluster's ring.
func (r *sharedRing) restore(ctx context.Context, exported []byte) error {
	copied, err := ticket.FromExport(exported)
	if err != nil {
		return err
	}
	return r.change(ctx, func(k *ticket.Keyring) (*ticket.Keyring, error) { return k.Restore(copied, time.Now()), nil })
}
