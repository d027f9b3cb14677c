package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/cluster/memlink"
)

// preparing has an actor take so long to prepare for a role, and notes for which it has.
func (x *troupe) preparing(a *actor, d time.Duration) (ready map[string]bool) {
	ready = map[string]bool{}
	x.mu.Lock()
	defer x.mu.Unlock()
	a.ready = func(ctx context.Context, role string) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		ready[role] = true
	}
	return ready
}

// bequeath has an actor stop as a process does: it names heirs and waits for them, at most so long. It returns how long
// that took.
func (x *troupe) bequeath(a *actor, most time.Duration) (took time.Duration) {
	ctx, cancel := context.WithTimeout(x.t.Context(), most)
	defer cancel()
	began := time.Now()
	done := make(chan struct{})
	go func() { defer close(done); a.Bequeath(ctx) }()
	for ended := false; !ended; {
		x.pass(10 * time.Millisecond)
		select {
		case <-done:
			ended = true
		default:
		}
	}
	return time.Since(began)
}

// gaining has an actor say what it gains from now on.
func (x *troupe) gaining(a *actor, got func(role string)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a.got = got
}

// careless has nobody look who gains what from now on.
func (x *troupe) careless() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, a := range x.actors {
		a.got = nil
	}
}

// A member that stops keeps its roles until those who are to have them are prepared, and then each role is where it was
// prepared, at once.
func TestHeirsArePrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 32)
		defer x.end()
		for _, node := range []string{"a", "b", "c"} {
			x.start(node)
		}
		x.pass(3 * time.Second)
		b := x.actors["b"]
		for _, node := range []string{"a", "c"} {
			heir := x.actors[node]
			ready := x.preparing(heir, 700*time.Millisecond)
			x.gaining(heir, func(role string) {
				if !ready[role] {
					t.Errorf("%s gains %s, for which it did not prepare", node, role)
				}
			})
		}
		held := x.shares("a", "b", "c")
		if took := x.bequeath(b, 5*time.Second); took < 700*time.Millisecond || took > 900*time.Millisecond {
			t.Errorf("naming heirs took %v", took)
		}
		if n := x.shares("a", "b", "c"); n[1] != held[1] {
			t.Errorf("%v hold roles before the work for them has ended, held were %v", n, held)
		}
		b.stop()
		x.pass(100 * time.Millisecond)
		x.balanced("a", "c")
		x.careless()
	})
}

// Heirs that hang, or do not live any more, are not waited for for ever, and what they do not take others have.
func TestHeirsThatDoNotPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 32)
		defer x.end()
		for _, node := range []string{"a", "b", "c", "d"} {
			x.start(node)
		}
		x.pass(3 * time.Second)
		x.preparing(x.actors["a"], time.Hour)
		if took := x.bequeath(x.actors["b"], 2*time.Second); took < 2*time.Second || took > 2100*time.Millisecond {
			t.Errorf("waiting for an heir that hangs took %v", took)
		}
		x.actors["b"].stop()
		x.pass(100 * time.Millisecond)
		x.balanced("a", "c", "d")

		x.preparing(x.actors["a"], 0)
		x.world.CutNode("c", memlink.Both)
		x.actors["c"].cut = true
		if took := x.bequeath(x.actors["a"], 10*time.Second); took > 4*time.Second {
			t.Errorf("waiting for an heir that is silent took %v", took)
		}
		x.actors["a"].stop()
		x.pass(4 * time.Second)
		if n := x.shares("d"); n[0] != 32 {
			t.Errorf("the only one left holds %d roles", n[0])
		}
	})
}

// Nobody is left who could have the roles: nobody is waited for.
func TestNoHeirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 4)
		defer x.end()
		x.start("a")
		x.pass(3 * time.Second)
		if took := x.bequeath(x.actors["a"], time.Minute); took > 20*time.Millisecond {
			t.Errorf("it waited %v for nobody", took)
		}
	})
}

// A role that is given away for the balance moves when its receiver is prepared, or after a while.
func TestRolesForTheBalanceArePrepared(t *testing.T) {
	for _, takes := range []time.Duration{300 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			x := newTroupe(t, 8)
			defer x.end()
			x.start("a")
			x.pass(20 * time.Second)
			b := x.start("b")
			ready := x.preparing(b, takes)
			x.gaining(b, func(role string) {
				if !ready[role] && takes < time.Minute {
					t.Errorf("%s is gained, for which it did not prepare", role)
				}
			})
			x.pass(30 * time.Second)
			x.balanced("a", "b")
			x.careless()
		})
	}
}
