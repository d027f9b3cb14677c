package natslink

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A try that is under way when the leader changes ends at once, and those after it are short for a while.
func TestTriesEndWithTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := func(e *elections, want time.Duration) {
			t.Helper()
			began := time.Now()
			ctx, cancel := e.try(t.Context())
			defer cancel()
			<-ctx.Done()
			if took := time.Since(began); took != want {
				t.Errorf("a try ends after %v, want %v", took, want)
			}
		}
		ends(nil, soonBound)
		e := &elections{}
		ends(e, soonBound)
		over, cancel := e.try(t.Context())
		cancel()
		time.AfterFunc(40*time.Millisecond, e.elected)
		ends(e, 40*time.Millisecond)
		ends(e, electedBound)
		if len(e.tries) > 0 || !errors.Is(over.Err(), context.Canceled) {
			t.Errorf("%d tries are left", len(e.tries))
		}
		time.Sleep(electedFor)
		ends(e, soonBound)
	})
}

// Cores and edges hear when the stores of their site get another leader.
func TestElectionsAreHeard(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cores := members(t, "dublin")
	links := joinAll(t, append(cores, edgeOf(t, cores[0]))...)
	for _, of := range []func(*joined) *store{func(j *joined) *store { return j.books.store }, func(j *joined) *store { return j.site.keys }} {
		stream := of(links[0]).stream
		began := time.Now()
		within(t, 20*time.Second, func(ctx context.Context) error {
			for pause(ctx, minBackoff) { // it is elected perhaps, still
				for _, l := range links[:3] {
					if l.att.server.srv().JetStreamIsStreamLeader(accountSite, stream) {
						StepAside(ctx, l)
						return ctx.Err()
					}
				}
			}
			return errors.New("nobody leads " + stream)
		})
		for _, l := range links {
			within(t, 10*time.Second, func(ctx context.Context) error {
				heard := func() bool {
					e := of(l).elections
					e.mu.Lock()
					defer e.mu.Unlock()
					return e.last.After(began)
				}
				for !heard() {
					if !pause(ctx, minBackoff) {
						return errors.New(l.att.cfg.Node + " has not heard of the new leader of " + stream)
					}
				}
				return nil
			})
		}
	}
}
