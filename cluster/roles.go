package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Of every member there is one key that it renews. A role's key names its holder, and the role is
// free when the holder's member key has not changed for MemberTTL. So the writes do not grow with the
// number of roles.
//
// That time is measured by whoever looks, with a monotonic clock, and only while its own renewals come
// back through the same watch: whatever was written before them has come, too. While the store takes
// no writes nobody is silent, for nobody can be heard, and for a moment after that.
//
// A holder stops holdsFor after its last renewal: later than others may take the role, so that a pause of
// the store moves none. Two may hold a role at once; the later has the greater epoch, and what they do
// must go by that.
const (
	memberPrefix = "members."
	rolePrefix   = "roles."

	// MemberTTL is how long a member that is not heard of counts as alive.
	MemberTTL = 2500 * time.Millisecond

	// keyTTL is after how long the store forgets the key of a member that has ended.
	keyTTL      = 30 * time.Second
	renewEvery  = MemberTTL / 5
	renewWithin = 600 * time.Millisecond // an attempt, which hangs where the store has just lost its leader
	renewAgain  = 100 * time.Millisecond // after one that has failed
	holdsFor    = 6 * time.Second
	// slowAfter is how many attempts fail before they get slowWithin: the store is slow.
	slowAfter  = 10
	slowWithin = 2 * time.Second

	// pauseMost is the longest between two renewals that have come back, else the store has paused. After
	// a pause the others have regain to renew theirs.
	pauseMost = 3 * renewEvery
	regain    = renewWithin + 2*renewAgain

	// takeStep is how much later than the first each next member takes a free role.
	takeStep = 150 * time.Millisecond
	// settle is how long a member that comes, or comes back, leaves free roles alone, so that
	// those who start together share them.
	settle = time.Second
	// handEvery is the least time between two roles that a member gives away because it has
	// more than its share, and handAgain that until a role may be given away once more. The member for
	// whom it is has handWithin to take it, and is given none for handShun if it does not.
	handEvery  = time.Second
	handAgain  = 10 * time.Second
	handWithin = time.Second
	handShun   = 30 * time.Second
	// maxRenewals is how many renewals may be under way back; of more, the oldest are not waited for.
	maxRenewals = 100
	// farewell is how long a member that ends tries to say so.
	farewell = 2 * time.Second
)

// ErrReplaced: another process runs with this one's node name and started later.
var ErrReplaced = errors.New("cluster: another process of the same node has started")

// Member is what a process tells the others of its site, as JSON in its key. Of another
// version's, unknown members are ignored.
type Member struct {
	Node    string    `json:"node"` // a key's part: no dots
	Boot    string    `json:"boot"` // other at every start of the process
	Site    string    `json:"site"`
	Version string    `json:"version"`
	Wire    [2]int    `json:"wire"`            // oldest and newest message encodings that it reads
	Core    bool      `json:"core,omitempty"`  // it keeps a part of the store
	Hosts   bool      `json:"hosts,omitempty"` // it takes roles; NewRoles sets it
	Address string    `json:"address,omitempty"`
	State   string    `json:"state,omitempty"` // what it has of the configuration, to be compared
	Started time.Time `json:"started"`
	Clock   time.Time `json:"clock"` // its own, when it last renewed; set by Roles

	// Seen is when this process last heard of it, Offset how far its clock was ahead then,
	// less the time that the news took.
	Seen   time.Time     `json:"-"`
	Offset time.Duration `json:"-"`

	revision uint64
}

// RolesConfig says who takes part and in what.
type RolesConfig struct {
	// Space is where members and roles are kept, a site's. Required.
	Space Space
	// Self is this process. Node and Boot are required.
	Self Member
	// Describe, if set, may change what is told of this process before each renewal, except
	// Node, Boot and Hosts.
	Describe func(*Member)
	// Roles are those that this process may hold. All processes of a space that have any have
	// the same.
	Roles []string
	// Gained is called when this process holds the role from now on. The epoch is greater
	// than that of every holder before, this process included. It must return at once.
	Gained func(role string, epoch uint64)
	// Lost is called when this process holds the role no more, or shall give it up. What it
	// did for the role must have ended when Lost returns, within a second or so; only then is
	// the role given to others, if there is the time. It may be called for several roles at once,
	// and is called for each role that was gained, also when Run ends.
	Lost func(role string)
	// Log; nil means none.
	Log *slog.Logger
}

// Roles is a process's part in a site: it says that the process is alive, knows who else is,
// and takes roles so that each of them has one holder and each member its share.
type Roles struct {
	cfg  RolesConfig
	log  *slog.Logger
	wake chan struct{} // of decide
	kick chan struct{} // of renew

	mu       sync.Mutex
	members  map[string]Member // by node
	roles    map[string]holding
	synced   [2]bool              // members, roles: heard of all
	held     map[string]uint64    // epoch by role
	until    time.Time            // roles are held no longer than this
	joined   time.Time            // since when it has been renewed in time; zero: never
	revision uint64               // of the own key
	renewals []renewal            // of the own key that have not come back
	current  time.Time            // all that was written before is known here; zero: nothing is
	steady   time.Time            // since when its own renewals come back without a pause
	handed   time.Time            // when a role was last given away
	shunned  map[string]time.Time // when a node did not take what was given up for it
	leaving  bool                 // it takes no roles any more
}

// renewal is one of the own key that was written.
type renewal struct {
	revision uint64
	sent     time.Time
}

// holding is a role's key.
type holding struct {
	Node string `json:"node,omitempty"` // "": given up
	Boot string `json:"boot,omitempty"`
	For  string `json:"for,omitempty"` // of one that was given up: the node that is to take it

	revision uint64
	freed    time.Time // when it was first seen to be free; zero: it is not
	since    time.Time // when it was first seen to be this holder's
}

// NewRoles returns what takes part when Run is called.
func NewRoles(cfg RolesConfig) (*Roles, error) {
	switch {
	case cfg.Space == nil || cfg.Self.Boot == "":
		return nil, errors.New("cluster: roles need a space, and a member with a node and a boot")
	case strings.Contains(cfg.Self.Node, "."):
		return nil, fmt.Errorf("cluster: node %q: dots are not allowed", cfg.Self.Node)
	}
	if err := CheckKey(memberPrefix + cfg.Self.Node); err != nil {
		return nil, err
	}
	for _, role := range cfg.Roles {
		if err := CheckKey(rolePrefix + role); err != nil {
			return nil, err
		}
	}
	cfg.Roles = slices.Compact(slices.Sorted(slices.Values(cfg.Roles)))
	cfg.Self.Hosts = len(cfg.Roles) > 0
	r := &Roles{cfg: cfg, log: cfg.Log, wake: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		members: map[string]Member{}, roles: map[string]holding{}, held: map[string]uint64{}, shunned: map[string]time.Time{}}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	return r, nil
}

// Members returns who is alive as far as this process has heard, sorted by node.
func (r *Roles) Members() []Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Member
	for _, node := range slices.Sorted(maps.Keys(r.members)) {
		if m := r.members[node]; !r.silent(m, time.Now()) {
			all = append(all, m)
		}
	}
	return all
}

// Heard returns those of Members of whom this process has heard within twice MemberTTL, and itself.
// Without touch with the site's store nobody is heard to be gone; Members keeps them all then.
func (r *Roles) Heard() []Member {
	return slices.DeleteFunc(r.Members(), func(m Member) bool {
		return m.Node != r.cfg.Self.Node && time.Since(m.Seen) > 2*MemberTTL
	})
}

// Holder returns who holds the role, if a member that is alive does.
func (r *Roles) Holder(role string) (node string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.roles[role]
	return h.Node, r.alive(h, time.Now())
}

// Held returns the epoch at which this process holds the role now.
func (r *Roles) Held(role string) (epoch uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	epoch, ok = r.held[role]
	return epoch, ok && time.Now().Before(r.until)
}

// alive reports whether the holder is a member that is heard; r.mu is held.
func (r *Roles) alive(h holding, now time.Time) bool {
	m, known := r.members[h.Node]
	return known && m.Boot == h.Boot && !r.silent(m, now)
}

// silent says that a member has not renewed its key for MemberTTL, as far as this process can tell by its
// own renewals that have come back since; r.mu is held.
func (r *Roles) silent(m Member, now time.Time) bool {
	return m.Node != r.cfg.Self.Node && now.Sub(m.Seen) >= MemberTTL &&
		r.current.Sub(m.Seen) >= MemberTTL-regain && r.current.Sub(r.steady) >= regain
}

// knows says that this process knows what was written a moment ago; r.mu is held.
func (r *Roles) knows(now time.Time) bool { return now.Sub(r.current) < 2*pauseMost }

// cameBack notes which of its own renewals were told; r.mu is held.
func (r *Roles) cameBack() {
	told := r.members[r.cfg.Self.Node].revision
	for len(r.renewals) > 0 && r.renewals[0].revision <= told {
		sent := r.renewals[0].sent
		if sent.Sub(r.current) > pauseMost {
			r.steady = sent
		}
		r.current, r.renewals = sent, r.renewals[1:]
	}
}

func poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Run takes part until ctx ends, then gives up what is held, says farewell, and returns ctx's
// error. It returns ErrReplaced or ErrClosed before that when it cannot go on; roles are then lost
// as well.
func (r *Roles) Run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var once sync.Once
	var failed error
	fail := func(err error) {
		once.Do(func() {
			r.mu.Lock()
			failed = err
			r.mu.Unlock()
			cancel()
		})
	}
	// The key goes on being renewed while roles are given up.
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	all.Go(func() { r.watch(inner, memberPrefix, 0, r.onMember, fail) })
	all.Go(func() { r.watch(inner, rolePrefix, 1, r.onRole, fail) })
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		r.renew(renewing, fail)
	}()
	for {
		next := r.decide(inner)
		timer := time.NewTimer(time.Until(next))
		select {
		case <-inner.Done():
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
		if inner.Err() != nil {
			break
		}
	}
	all.Wait()
	bye, end := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer end()
	r.mu.Lock()
	mine := slices.Sorted(maps.Keys(r.held))
	r.leaving = true
	release := failed == nil
	r.mu.Unlock()
	poke(r.kick)
	r.drop(bye, mine, release, "")
	stop()
	<-renewed
	cancel()
	if failed != nil {
		return failed
	}
	r.leave(bye)
	return ctx.Err()
}

// watch hears of the keys under prefix.
func (r *Roles) watch(ctx context.Context, prefix string, which int, on func(name string, c Change), fail func(error)) {
	err := r.cfg.Space.Watch(ctx, prefix, func(c Change) {
		r.mu.Lock()
		if c.Synced {
			r.synced[which] = true
		} else {
			on(strings.TrimPrefix(c.Key, prefix), c)
		}
		r.mu.Unlock()
		poke(r.wake)
	})
	if ctx.Err() == nil {
		fail(err)
	}
}

// onMember takes news of a member's key; r.mu is held.
func (r *Roles) onMember(node string, c Change) {
	if c.Gone {
		delete(r.members, node)
		return
	}
	var m Member
	if err := json.Unmarshal(c.Value, &m); err != nil || m.Node != node {
		r.log.Warn("a member's key cannot be read", "key", c.Key, "error", err)
		return
	}
	if c.Revision <= r.members[node].revision {
		return // told once more
	}
	m.Seen, m.revision = time.Now(), c.Revision
	m.Offset = m.Clock.Sub(m.Seen)
	r.members[node] = m
	if node == r.cfg.Self.Node {
		r.cameBack()
	}
}

// onRole takes news of a role's key; r.mu is held.
func (r *Roles) onRole(role string, c Change) {
	var h holding
	if !c.Gone {
		if c.Revision <= r.roles[role].revision {
			return // older than what is known
		}
		if err := json.Unmarshal(c.Value, &h); err != nil {
			r.log.Warn("a role's key cannot be read; it counts as free", "key", c.Key, "error", err)
		}
		h.revision, h.since = c.Revision, time.Now()
	}
	r.roles[role] = h
}

// renew keeps the own key alive until ctx ends.
func (r *Roles) renew(ctx context.Context, fail func(error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	warned, failures := false, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-r.kick:
		}
		within, next := renewWithin, renewEvery
		if failures >= slowAfter {
			within = slowWithin
		}
		err := r.renewOnce(ctx, within)
		if failures++; err == nil {
			failures = 0
		} else {
			next = renewAgain
		}
		switch {
		case err == nil && warned:
			r.log.Info("the site's store is reached again")
			warned = false
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, ErrReplaced) || errors.Is(err, ErrClosed):
			fail(err)
			return
		case !warned:
			r.log.Warn("this node could not tell the others that it is alive; without touch it gives up its roles", "error", err)
			warned = true
		}
		timer.Reset(next)
	}
}

func (r *Roles) renewOnce(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	key := memberPrefix + r.cfg.Self.Node
	for range 3 {
		self := r.cfg.Self
		if r.cfg.Describe != nil {
			r.cfg.Describe(&self)
			self.Node, self.Boot = r.cfg.Self.Node, r.cfg.Self.Boot
		}
		r.mu.Lock()
		sent := time.Now()
		self.Hosts = r.cfg.Self.Hosts && !r.leaving && (r.current.IsZero() || r.knows(sent))
		r.mu.Unlock()
		self.Clock = sent.Round(0)
		value, err := json.Marshal(self)
		if err != nil {
			return err
		}
		revision, err := r.cfg.Space.Lease(ctx, key, value, r.revision, keyTTL)
		if err == nil {
			r.mu.Lock()
			r.revision = revision
			if !sent.Before(r.until) {
				r.joined = sent
			}
			r.until = sent.Add(holdsFor)
			if len(r.renewals) == maxRenewals {
				r.renewals = r.renewals[1:]
			}
			r.renewals = append(r.renewals, renewal{revision, sent})
			r.cameBack()
			r.mu.Unlock()
			poke(r.wake)
			return nil
		}
		if !errors.Is(err, ErrRevision) {
			return err
		}
		// It expired, an attempt had come about whose answer was lost, or it is another's.
		e, err := r.cfg.Space.Get(ctx, key)
		switch {
		case errors.Is(err, ErrNotFound):
			r.revision = 0
		case err != nil:
			return err
		default:
			var m Member
			if json.Unmarshal(e.Value, &m) == nil && m.Boot != self.Boot && !r.joined.IsZero() {
				return fmt.Errorf("%w: node %q runs as boot %s and as boot %s since %v; give each node its own name",
					ErrReplaced, self.Node, self.Boot, m.Boot, m.Started)
			}
			r.revision = e.Revision
		}
	}
	return ErrRevision
}

// drop makes roles be no more held: the work ends, then, if others may have them at once, the
// key is given up, for one of them when it is named.
func (r *Roles) drop(ctx context.Context, roles []string, release bool, to string) {
	var all sync.WaitGroup
	for _, role := range roles {
		all.Go(func() {
			r.cfg.Lost(role)
			r.mu.Lock()
			epoch := r.held[role]
			delete(r.held, role)
			r.mu.Unlock()
			if release {
				r.write(ctx, role, holding{For: to}, epoch)
			}
		})
	}
	all.Wait()
}

// write sets the role's key if it has the revision still.
func (r *Roles) write(ctx context.Context, role string, h holding, revision uint64) (uint64, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return 0, err
	}
	got, err := r.cfg.Space.Update(ctx, rolePrefix+role, value, revision)
	if err == nil {
		r.mu.Lock()
		if h.revision, h.since = got, time.Now(); got > r.roles[role].revision {
			r.roles[role] = h
		}
		r.mu.Unlock()
	}
	return got, err
}

// leave deletes the own key, if it is.
func (r *Roles) leave(ctx context.Context) {
	key := memberPrefix + r.cfg.Self.Node
	e, err := r.cfg.Space.Get(ctx, key)
	if err == nil && e.Revision == r.revision {
		err = r.cfg.Space.Delete(ctx, key)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		r.log.Warn("this node could not say farewell; the others notice within seconds", "error", err)
	}
}
