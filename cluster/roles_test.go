package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// troupe is the nodes of a site that share roles, with a record of who held what.
type troupe struct {
	t     *testing.T
	world *memlink.World
	names []string // roles

	mu     sync.Mutex
	latest map[string]uint64 // highest epoch by role
	actors map[string]*actor
	boots  int
	behind string // a node whose member cannot write from its start
}

type actor struct {
	*cluster.Roles
	link  cluster.Link
	space *stuck
	stop  context.CancelFunc
	ended chan error
	held  map[string]uint64 // guarded by troupe.mu
	cut   bool              // out of touch: it may take itself for a holder
	lost  func(role string)
	got   func(role string) // nil: nothing
	ready func(ctx context.Context, role string)
}

// stuck is a space whose leases hang while it is told so, as those of a paused process, or that takes
// no updates, as that of a node whose store has yet to catch up.
type stuck struct {
	cluster.Space
	mu     sync.Mutex
	hang   bool
	behind atomic.Bool
	kept   map[string]cluster.Change // what a watch of members holds back, of each key the newest; nil: nothing
	told   map[string]cluster.Entry  // what it told last
	tell   func(cluster.Change)
}

func (s *stuck) Watch(ctx context.Context, prefix string, fn func(cluster.Change)) error {
	return s.Space.Watch(ctx, prefix, func(c cluster.Change) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.kept != nil && prefix == "members." {
			s.kept[c.Key], s.tell = c, fn
			return
		}
		if s.told == nil {
			s.told = map[string]cluster.Entry{}
		}
		s.told[c.Key] = c.Entry
		fn(c)
	})
}

// Get knows no more than a watch that holds something back: a replica that lags.
func (s *stuck) Get(ctx context.Context, key string) (cluster.Entry, error) {
	s.mu.Lock()
	e, known := s.told[key]
	lags := s.kept != nil && known
	s.mu.Unlock()
	if lags {
		return e, nil
	}
	return s.Space.Get(ctx, key)
}

// hold keeps back what is told of members; release tells the newest of each key, the own one some time before the others.
func (s *stuck) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = map[string]cluster.Change{}
}

func (s *stuck) release(own string) {
	s.mu.Lock()
	s.tell(s.kept[own])
	delete(s.kept, own)
	s.mu.Unlock()
	time.Sleep(400 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.kept {
		s.tell(c)
	}
	s.kept = nil
}

func (s *stuck) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if s.behind.Load() {
		return 0, cluster.ErrUnavailable
	}
	return s.Space.Update(ctx, key, value, revision)
}

func (s *stuck) set(hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hang = hang
}

func (s *stuck) Lease(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return s.Space.Lease(ctx, key, value, revision, ttl)
}

func newTroupe(t *testing.T, roles int) *troupe {
	x := &troupe{t: t, world: memlink.NewWorld(), latest: map[string]uint64{}, actors: map[string]*actor{}}
	for i := range roles {
		x.names = append(x.names, fmt.Sprintf("site.%02d", i))
	}
	return x
}

func (x *troupe) start(node string) *actor {
	x.boots++
	link := x.world.Join("dublin", node)
	a := &actor{link: link, space: &stuck{Space: link.Site()}, ended: make(chan error, 1), held: map[string]uint64{}, lost: func(string) {}, ready: func(context.Context, string) {}}
	var err error
	a.Roles, err = cluster.NewRoles(cluster.RolesConfig{
		Space: a.space,
		Self:  cluster.Member{Node: node, Boot: fmt.Sprint("boot", x.boots), Site: "dublin", Started: time.Now()},
		Roles: x.names,
		Gained: func(role string, epoch uint64) {
			x.mu.Lock()
			defer x.mu.Unlock()
			if epoch <= x.latest[role] {
				x.t.Errorf("%s: %s gains it at epoch %d, and %d was there", role, node, epoch, x.latest[role])
			}
			x.latest[role] = epoch
			if a.held[role] != 0 {
				x.t.Errorf("%s: %s gains it twice", role, node)
			}
			a.held[role] = epoch
			if a.got != nil {
				a.got(role)
			}
		},
		Prepare: func(ctx context.Context, role string) {
			x.mu.Lock()
			ready := a.ready
			x.mu.Unlock()
			ready(ctx, role)
		},
		Lost: func(role string) {
			a.lost(role)
			x.mu.Lock()
			defer x.mu.Unlock()
			if a.held[role] == 0 {
				x.t.Errorf("%s: %s loses what it does not have", role, node)
			}
			delete(a.held, role)
		},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	a.space.behind.Store(node == x.behind)
	x.actors[node] = a
	go func() { a.ended <- a.Run(ctx) }()
	return a
}

// pass lets time go by and looks all the while that nobody in touch holds what another holds.
func (x *troupe) pass(d time.Duration) {
	x.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait() // a role that moves at this instant could be seen at both
		for _, role := range x.names {
			var holders []string
			for node, a := range x.actors {
				if _, ok := a.Held(role); ok && !a.cut {
					holders = append(holders, node)
				}
			}
			if len(holders) > 1 {
				x.t.Errorf("%s: held by %v at once", role, holders)
			}
		}
	}
}

// shares returns how many roles each node holds; all must be held, and every node must know
// by whom.
func (x *troupe) shares(nodes ...string) (n []int) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	sum := 0
	for _, node := range nodes {
		n = append(n, len(x.actors[node].held))
		sum += len(x.actors[node].held)
		for role := range x.actors[node].held {
			for _, other := range nodes {
				if who, ok := x.actors[other].Holder(role); !ok || who != node {
					x.t.Errorf("%s believes that %s is held by %q, it is by %s", other, role, who, node)
				}
			}
		}
	}
	if sum != len(x.names) {
		x.t.Errorf("%v hold %v of %d roles", nodes, n, len(x.names))
	}
	return n
}

func (x *troupe) balanced(nodes ...string) {
	x.t.Helper()
	n := x.shares(nodes...)
	for i := range n {
		for j := range n {
			if n[i] > n[j]+1 {
				x.t.Fatalf("%v hold %v", nodes, n)
			}
		}
	}
}

func (x *troupe) end() {
	for _, a := range x.actors {
		a.stop()
		<-a.ended
		a.link.Close()
	}
}

func TestRolesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 32)
		defer x.end()
		x.start("a")
		x.start("b")
		x.pass(100 * time.Millisecond)
		x.start("c")
		x.pass(1500 * time.Millisecond)
		x.balanced("a", "b", "c")
		if m := x.actors["c"].Members(); len(m) != 3 || m[0].Node != "a" || !m[0].Hosts || m[2].Boot != "boot3" || m[1].Offset.Abs() > time.Second {
			t.Errorf("%+v", m)
		}
		// A fourth gets its share, one role after the other, and none that has moved just now.
		x.start("d")
		x.pass(20 * time.Second)
		x.balanced("a", "b", "c", "d")
	})
}

func TestRolesAreTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 32)
		defer x.end()
		for _, node := range []string{"a", "b", "c"} {
			x.start(node)
		}
		x.pass(3 * time.Second)
		x.actors["b"].link.Close() // kill -9
		if err := <-x.actors["b"].ended; !errors.Is(err, cluster.ErrClosed) {
			t.Errorf("Run of the killed: %v", err)
		}
		x.actors["b"].ended <- nil
		x.pass(cluster.MemberTTL + 300*time.Millisecond)
		x.balanced("a", "c")
		// The same node comes back as another process: what it had then is not its own. Nothing moves for the balance
		// right after a fault.
		x.start("b")
		x.pass(6 * time.Second)
		if n := x.shares("a", "b", "c"); n[1] != 0 {
			t.Errorf("who came back has %d roles already", n[1])
		}
		x.pass(16 * time.Second)
		x.balanced("a", "b", "c")
	})
}

// TestRolesOfARestart: the roles of a process that died are free as soon as its node runs again.
func TestRolesOfARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 8)
		defer x.end()
		x.start("a")
		x.pass(3 * time.Second)
		x.shares("a")
		x.actors["a"].link.Close()
		<-x.actors["a"].ended
		x.start("a")
		x.pass(1200 * time.Millisecond)
		x.shares("a")
	})
}

func TestRolesOfThePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 32)
		defer x.end()
		x.start("a")
		x.start("b")
		x.pass(3 * time.Second)
		x.actors["a"].space.set(true)
		x.actors["a"].cut = true
		x.pass(cluster.MemberTTL + 800*time.Millisecond)
		x.shares("b")
		if n := x.shares("b", "a"); n[1] != 0 {
			t.Errorf("the paused holds %d", n[1])
		}
		x.actors["a"].space.set(false)
		x.actors["a"].cut = false
		x.pass(30 * time.Second)
		x.balanced("a", "b")
	})
}

// TestRolesOfAWatchThatGoesOn: a member hears nothing for a while, though its own renewals are written. What it hears
// then is the newest value of each key, its own first: it takes nobody for silent.
func TestRolesOfAWatchThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 32)
		defer x.end()
		a := x.start("a")
		b := x.start("b")
		x.pass(3 * time.Second)
		x.balanced("a", "b")
		b.lost = func(role string) { t.Errorf("b loses %s", role) }
		a.space.hold()
		x.pass(8 * time.Second)
		a.space.release("members.a")
		x.pass(5 * time.Second)
		x.balanced("a", "b")
		b.lost = func(string) {}
	})
}

// TestHeard: who is cut off does not tell of the others for ever, but still of itself.
func TestHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 2)
		defer x.end()
		a := x.start("a")
		x.start("b")
		x.pass(3 * time.Second)
		if n := len(a.Heard()); n != 2 {
			t.Errorf("%d are heard, want 2", n)
		}
		x.world.CutNode("a", memlink.Both)
		a.cut = true
		x.pass(2*cluster.MemberTTL + time.Second)
		if all := a.Heard(); len(all) != 1 || all[0].Node != "a" {
			t.Errorf("heard while cut off: %v", all)
		}
		x.world.CutNode("a", memlink.None)
		a.cut = false
		x.pass(5 * time.Second)
		if n := len(a.Heard()); n != 2 {
			t.Errorf("%d are heard after the cut, want 2", n)
		}
	})
}

func TestRolesOfTheCut(t *testing.T) {
	for _, cut := range []memlink.Cut{memlink.Both, memlink.In, memlink.Out} {
		synctest.Test(t, func(t *testing.T) {
			x := newTroupe(t, 32)
			defer x.end()
			for _, node := range []string{"a", "b", "c"} {
				x.start(node)
			}
			x.pass(3 * time.Second)
			x.world.CutNode("a", cut)
			x.actors["a"].cut = true
			x.pass(10 * time.Second)
			x.mu.Lock()
			if n := len(x.actors["a"].held); n != 0 {
				t.Errorf("it holds %d without touch", n)
			}
			x.mu.Unlock()
			x.actors["a"].cut = false
			if cut != memlink.In { // else what it renews arrives, and it is believed to be alive
				x.balanced("b", "c")
			}
			x.world.CutNode("a", memlink.None)
			x.pass(30 * time.Second)
			x.balanced("a", "b", "c")
		})
	}
}

func TestRolesAreHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 32)
		defer x.end()
		for _, node := range []string{"a", "b", "c"} {
			x.start(node)
		}
		x.pass(3 * time.Second)
		working := make(chan struct{})
		x.actors["b"].lost = func(string) { <-working }
		x.actors["b"].stop()
		x.pass(time.Second) // what it does for them has not ended
		if n := x.shares("a", "b", "c"); n[1] < 10 {
			t.Errorf("%v hold roles while the work for them goes on", n)
		}
		close(working)
		x.pass(200 * time.Millisecond)
		x.balanced("a", "c")
		if err := <-x.actors["b"].ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		x.actors["b"].ended <- nil
		if m := x.actors["a"].Members(); len(m) != 2 {
			t.Errorf("members after the farewell: %v", m)
		}
	})
}

// A member that comes back gets its share one by one, and none of the roles is without a holder for long: what is meant
// for it, it takes at once.
func TestRolesAreTakenAtOnceByWhomTheyAreGivenTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 32)
		defer x.end()
		for _, node := range []string{"a", "b"} {
			x.start(node)
		}
		x.pass(12 * time.Second)
		x.start("c")
		without := map[string]time.Duration{}
		for range 300 {
			x.pass(50 * time.Millisecond)
			held := map[string]bool{}
			for _, a := range x.actors {
				for _, role := range x.names {
					if _, ok := a.Held(role); ok {
						held[role] = true
					}
				}
			}
			for _, role := range x.names {
				if without[role] += 50 * time.Millisecond; held[role] {
					without[role] = 0
				} else if without[role] > 100*time.Millisecond {
					t.Fatalf("nobody holds %s for %v", role, without[role])
				}
			}
		}
		x.balanced("a", "b", "c")
	})
}

// TestRolesWithoutAStore: all lose them when nobody reaches the store, and have them again after.
func TestRolesWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 8)
		defer x.end()
		x.start("a")
		x.start("b")
		x.pass(3 * time.Second)
		for _, node := range []string{"a", "b"} {
			x.world.CutNode(node, memlink.Both)
		}
		x.pass(7 * time.Second)
		for node, a := range x.actors {
			if len(a.held) != 0 {
				t.Errorf("%s holds %v", node, a.held)
			}
		}
		for _, node := range []string{"a", "b"} {
			x.world.CutNode(node, memlink.None)
		}
		x.pass(3 * time.Second)
		x.balanced("a", "b")
	})
}

// TestRolesThroughAPause: nobody can be heard while the store takes no writes, and nothing moves.
func TestRolesThroughAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 8)
		defer x.end()
		for _, node := range []string{"a", "b", "c"} {
			x.start(node)
		}
		x.pass(3 * time.Second)
		before := maps.Clone(x.latest)
		for _, a := range x.actors {
			a.space.set(true)
		}
		x.pass(4 * time.Second)
		for _, node := range []string{"c", "b", "a"} { // not all at once
			x.actors[node].space.set(false)
			x.pass(100 * time.Millisecond)
		}
		x.pass(5 * time.Second)
		if !maps.Equal(before, x.latest) {
			t.Errorf("roles have moved: %v, before %v", x.latest, before)
		}
		x.balanced("a", "b", "c")
	})
}

// TestRolesGoToWhoCanTakeThem: a member that cannot write is tried once in a while, and whoever gave it a
// role has that again soon.
func TestRolesGoToWhoCanTakeThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 8)
		defer x.end()
		x.start("a")
		x.pass(15 * time.Second)
		began := x.latest["site.00"]
		for _, epoch := range x.latest {
			began = max(began, epoch)
		}
		x.behind = "b"
		x.start("b")
		x.pass(10 * time.Second)
		moved := 0
		for _, epoch := range x.latest {
			if epoch > began {
				moved++
			}
		}
		if n := x.shares("a", "b"); n[0] != 8 || moved != 1 {
			t.Errorf("%v hold roles, %d have moved", n, moved)
		}
		x.actors["b"].space.mu.Lock()
		x.actors["b"].space.behind.Store(false)
		x.actors["b"].space.mu.Unlock()
		x.pass(60 * time.Second)
		x.balanced("a", "b")
	})
}

// TestRolesOfTwoWithOneName: the one that started later has the name and the roles, every node knows of the other one, and that one
// goes on when the name is free: at once if the later one says that it ends, else when its key has expired.
func TestRolesOfTwoWithOneName(t *testing.T) {
	for _, c := range []struct {
		how   string
		end   func(second *actor)
		after time.Duration
	}{
		{"stopped", func(second *actor) { second.stop() }, 6 * time.Second},
		{"killed", func(second *actor) { second.link.Close() }, 36 * time.Second},
	} {
		t.Run(c.how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTroupe(t, 8)
				defer x.end()
				namesakes := func(want ...string) {
					t.Helper()
					for node, a := range x.actors {
						if got, err := a.Namesakes(t.Context()); err != nil || !slices.Equal(got, want) {
							t.Errorf("%s knows of namesakes of %v, %v; want %v", node, got, err, want)
						}
					}
				}
				other := x.start("b")
				first := x.start("a")
				x.pass(30 * time.Second)
				x.balanced("a", "b")
				namesakes()
				second := x.start("a")
				x.actors["first"] = first
				x.pass(600 * time.Millisecond)
				namesakes("a")
				x.pass(60 * time.Second)
				namesakes("a")
				if len(first.held) != 0 || len(second.held) != 4 || len(first.Heard()) != 2 {
					t.Errorf("the first holds %v, the second %v; the first hears %d members", first.held, second.held, len(first.Heard()))
				}
				c.end(second)
				<-second.ended
				delete(x.actors, "first")
				x.actors["a"] = first
				x.pass(c.after)
				namesakes()
				x.pass(30 * time.Second)
				x.balanced("a", "b")
				if len(other.Heard()) != 2 {
					t.Errorf("the other hears %d members", len(other.Heard()))
				}
				second.link.Close()
			})
		})
	}
}

// TestOneNameIsNotFoughtFor: of three, the one that started last has the name, and when it ends one of the two that wait.
func TestOneNameIsNotFoughtFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 8)
		defer x.end()
		var all []*actor
		for i := range 3 {
			all = append(all, x.start("a"))
			delete(x.actors, "a")
			x.actors[fmt.Sprint("a", i)] = all[i]
			x.pass(600 * time.Millisecond)
			if i > 0 && len(all[i-1].held) != 0 {
				t.Errorf("the one before still holds %v", all[i-1].held)
			}
			x.pass(5 * time.Second)
		}
		has := func() (has []int) {
			for i, a := range all {
				if len(a.held) > 0 {
					has = append(has, i)
				}
			}
			return has
		}
		moved := 0
		for range 60 {
			x.pass(time.Second)
			if !slices.Equal(has(), []int{2}) {
				moved++
			}
		}
		if moved > 0 {
			t.Errorf("the last did not have the roles alone at %d of 60 moments", moved)
		}
		all[2].stop()
		<-all[2].ended
		delete(x.actors, "a2")
		x.pass(10 * time.Second)
		now := has()
		for range 60 {
			x.pass(time.Second)
			if len(now) != 1 || !slices.Equal(has(), now) {
				t.Fatalf("%v have the roles, then %v", now, has())
			}
		}
		all[2].link.Close()
	})
}

// TestMemberWithoutRoles: it is seen, holds nothing and has no share.
func TestMemberWithoutRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTroupe(t, 8)
		defer x.end()
		x.start("a")
		names := x.names
		x.names = nil
		x.start("edge")
		x.names = names
		x.pass(10 * time.Second)
		if n := x.shares("a", "edge"); n[1] != 0 || len(x.actors["a"].Members()) != 2 {
			t.Errorf("%v", n)
		}
	})
}

func TestNewRolesRefuses(t *testing.T) {
	link := memlink.New()
	for name, cfg := range map[string]cluster.RolesConfig{
		"no space":        {Self: cluster.Member{Node: "a", Boot: "1"}},
		"no node":         {Space: link, Self: cluster.Member{Boot: "1"}},
		"no boot":         {Space: link, Self: cluster.Member{Node: "a"}},
		"node with a dot": {Space: link, Self: cluster.Member{Node: "a.b", Boot: "1"}},
		"bad role":        {Space: link, Self: cluster.Member{Node: "a", Boot: "1"}, Roles: []string{"*"}},
	} {
		if _, err := cluster.NewRoles(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
