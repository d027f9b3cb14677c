//go:build unix

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
		deaf := func() string {
			for _, l := range links {
				e := of(l).elections
				e.mu.Lock()
				last := e.last
				e.mu.Unlock()
				if !last.After(began) {
					return l.att.cfg.Node
				}
			}
			return ""
		}
		// Nobody may be able to take over at once, so that the leader is asked again.
		within(t, 40*time.Second, func(ctx context.Context) error {
			for pause(ctx, minBackoff) {
				for _, l := range links[:3] {
					if l.att.server.srv().JetStreamIsStreamLeader(accountSite, stream) {
						soon, cancel := context.WithTimeout(ctx, time.Second)
						StepAside(soon, l)
						cancel()
						break
					}
				}
				for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && pause(ctx, minBackoff); {
					if deaf() == "" {
						return nil
					}
				}
			}
			return errors.New(deaf() + " has not heard of a new leader of " + stream)
		})
	}
}
