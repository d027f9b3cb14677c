package cluster

import (
	"cmp"
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

	"github.com/anteroom/anteroom/internal/walltime"
)

// Every member has one key that it renews. A role's key names its holder, and the role is free once the holder's member
// key has not changed for MemberTTL. So the number of writes does not grow with the number of roles.
//
// The observer measures that time with its own monotonic clock, and only while its own renewals come back through the
// same watch: everything written before them has then arrived, too. While the store accepts no writes, and for a moment
// after that, no member counts as silent, because none can be heard. The same holds while nothing arrives: a watch that
// goes on later tells only the newest value of each key, and the own one may be the first.
//
// A holder stops holdsFor after its last renewal. That is later than others may take the role, so that a pause of the
// store moves no role. For a while, two processes may hold a role; the later one has the greater epoch, and the work for
// the role must be fenced by that.
const (
	memberPrefix = "members."
	// RolePrefix begins the keys of roles in a site's space. A role that was held once has a key for good.
	RolePrefix = "roles."

	// MemberTTL is how long a silent member counts as alive.
	MemberTTL = 2500 * time.Millisecond

	// keyTTL is how long the store keeps the key of a member that has ended.
	keyTTL      = 30 * time.Second
	renewEvery  = 600 * time.Millisecond
	renewWithin = 600 * time.Millisecond // for one attempt, which hangs if the store has just lost its leader
	renewAgain  = 100 * time.Millisecond // after a failed attempt
	holdsFor    = 6 * time.Second
	// slowAfter is how many attempts fail before attempts get slowWithin: then the store is slow.
	slowAfter  = 10
	slowWithin = 2 * time.Second

	// pauseMost is the longest time between two renewals that come back; beyond it, the store has paused. After a
	// pause, other members have regain to renew their keys. Within it, the store may be without a leader for a second; and a member
	// whose renewal that has kept waiting is not silent yet, because renewEvery and pauseMost together are less than MemberTTL.
	pauseMost = renewEvery + time.Second
	regain    = renewWithin + 2*renewAgain

	// takeStep is how much later each further member takes a free role, so that they do not all try at the same time.
	takeStep = 150 * time.Millisecond
	// settle is how long a member that has just started, or is back, leaves free roles alone, so that members that
	// start together share them.
	settle = time.Second
	// handEvery is the shortest time between two roles that a member with more than its share gives away, and handAgain
	// the shortest time until a role may be given away again, and any role after one was taken from a silent member:
	// each change stops admissions for a moment. The receiver has handWithin to take it; if it does not,
	// it gets none for handShun.
	handEvery  = time.Second
	handAgain  = 10 * time.Second
	handWithin = time.Second
	handShun   = 30 * time.Second
	// maxRenewals is how many renewals may be on their way back; of more, the oldest are not waited for.
	maxRenewals = 100
	// farewell bounds the time in which a member that stops tells the others.
	farewell = 2 * time.Second
)

// Member is what a process tells the others of its site, as JSON in its key. Unknown members of other versions are
// ignored.
type Member struct {
	Node    string    `json:"node"` // part of a key: no dots
	Boot    string    `json:"boot"` // different at every start of the process
	Site    string    `json:"site"`
	Version string    `json:"version"`
	Wire    [2]int    `json:"wire"`            // oldest and newest message encodings that it understands
	Core    bool      `json:"core,omitempty"`  // it stores a part of the data
	Hosts   bool      `json:"hosts,omitempty"` // it takes roles; NewRoles sets it
	Address string    `json:"address,omitempty"`
	State   string    `json:"state,omitempty"` // digest of its configuration, for comparison
	Started time.Time `json:"started"`
	Clock   time.Time `json:"clock"` // its own clock at the last renewal; set by Roles
	// Heirs are the members to which this one is about to give its roles, and Ready the roles of others for which it is
	// an heir and prepared, with the epochs of their holders; see Roles.Bequeath.
	Heirs map[string]string `json:"heirs,omitempty"`
	Ready map[string]uint64 `json:"ready,omitempty"`

	// Seen is when this process last heard from it, and Offset how far its clock was ahead then, less the time that the
	// message took.
	Seen   time.Time     `json:"-"`
	Offset time.Duration `json:"-"`

	revision uint64
}

// RolesConfig says who takes part, and in which roles.
type RolesConfig struct {
	// Space is where members and roles are stored: that of a site. Required.
	Space Space
	// Self is this process. Node and Boot are required.
	Self Member
	// Describe, if set, may change what this process tells about itself before each renewal, except Node, Boot and
	// Hosts.
	Describe func(*Member)
	// Roles are the roles that this process may hold. All processes of a space that have any must have the same.
	Roles []string
	// Gained is called when this process holds the role from now on. The epoch is greater than that of every holder
	// before, including this process. It must not block, and may be called for several roles at the same time.
	Gained func(role string, epoch uint64)
	// Prepare, if set, is called when the holder of a role is about to give it up for this process: what can be done
	// before it is gained may be done here, until ctx ends. The holder waits for it, but not for long. Gained follows, or not.
	// It may be called for several roles at the same time.
	Prepare func(ctx context.Context, role string)
	// Lost is called when this process no longer holds the role, or has to give it up. All work for the role must have
	// ended when Lost returns, within a second or so; only then may others have the role, if there is time for that. It
	// may be called for several roles at the same time, and is called for each role that was gained, also when Run
	// ends.
	Lost func(role string)
	// Log; nil means none.
	Log *slog.Logger
}

// Roles is a process's part in a site: it tells the others that the process is alive, knows which others are, and takes
// roles so that each role has one holder and each member its share.
type Roles struct {
	cfg  RolesConfig
	log  *slog.Logger
	wake chan struct{} // wakes decide
	kick chan struct{} // wakes renew
	news chan struct{} // wakes Bequeath

	mu       sync.Mutex
	members  map[string]Member // by node
	roles    map[string]holding
	synced   [2]bool              // members, roles: everything has been reported
	held     map[string]uint64    // epoch by role
	until    time.Time            // until when roles are held
	joined   time.Time            // since when its key has been renewed in time; zero: never
	revision uint64               // of its own key
	replaced bool                 // another process has its name
	waits    uint64               // revision of the key that says so; 0: it has none. Used by renew, and at the end
	renewals []renewal            // of its own key, still on their way back
	current  time.Time            // everything written before is known here; zero: nothing is
	arrived  time.Time            // when one of its own renewals came back last
	steady   time.Time            // since when its own renewals come back without a pause
	handed   time.Time            // when a role was last given away
	seized   time.Time            // when a role was last taken from a holder that had not given it up
	shunned  map[string]time.Time // when a node did not take a role that was given up for it
	leaving  bool                 // it takes no more roles
	heirs    map[string]string    // by role: who is to have it next
	named    time.Time            // when the heir of a single role was named, see offer
	inherits map[string]*heritage // by role that is to come here
}

// heritage is a role that its holder is about to give up for this process.
type heritage struct {
	epoch uint64 // of the holder
	ready bool   // Prepare has returned
}

// renewal is a renewal of its own key that was written.
type renewal struct {
	revision uint64
	sent     time.Time
}

// holding is the key of a role.
type holding struct {
	Node string `json:"node,omitempty"` // empty: given up
	Boot string `json:"boot,omitempty"`
	For  string `json:"for,omitempty"` // for a role that was given up: the node that should take it

	revision uint64
	freed    time.Time // when it was first seen free; zero: it is not free
	since    time.Time // when it was first seen with this holder
}

// NewRoles returns Roles that take part once Run is called.
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
		if err := CheckKey(RolePrefix + role); err != nil {
			return nil, err
		}
	}
	cfg.Roles = slices.Compact(slices.Sorted(slices.Values(cfg.Roles)))
	cfg.Self.Hosts = len(cfg.Roles) > 0
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	r := &Roles{cfg: cfg, log: cfg.Log, wake: make(chan struct{}, 1), kick: make(chan struct{}, 1), news: make(chan struct{}, 1),
		members: map[string]Member{}, roles: map[string]holding{}, held: map[string]uint64{}, shunned: map[string]time.Time{}, inherits: map[string]*heritage{}}
	return r, nil
}

// Members returns the members that are alive as far as this process knows, sorted by node.
func (r *Roles) Members() []Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Member
	for _, node := range slices.Sorted(maps.Keys(r.members)) {
		// A member that is silent to this process may be alive to others; they decide by what they see.
		if m := r.members[node]; !r.silent(m, time.Now()) {
			all = append(all, m)
		}
	}
	return all
}

// Heard returns the Members that this process has heard from within twice MemberTTL, and itself. While the site's store
// cannot be reached, no member can be found silent, so Members keeps all of them.
func (r *Roles) Heard() []Member {
	return slices.DeleteFunc(r.Members(), func(m Member) bool {
		return m.Node != r.cfg.Self.Node && time.Since(m.Seen) > 2*MemberTTL
	})
}

// Holder returns the holder of the role, if it is alive.
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

// alive reports whether the holder is a member that is heard from; r.mu is held.
func (r *Roles) alive(h holding, now time.Time) bool {
	m, known := r.members[h.Node]
	return known && m.Boot == h.Boot && !r.silent(m, now)
}

// silent reports whether a member has not renewed its key for MemberTTL, as far as this process can tell from its own
// renewals that have come back since; r.mu is held.
func (r *Roles) silent(m Member, now time.Time) bool {
	// Three conditions: the member has been silent for long enough by this clock, the store has reported what was
	// written since, and it has done so steadily. Without the last two, a pause of the store would look like the death
	// of everyone.
	return m.Node != r.cfg.Self.Node && now.Sub(m.Seen) >= MemberTTL &&
		r.current.Sub(m.Seen) >= MemberTTL-regain && r.current.Sub(r.steady) >= regain
}

// knows reports whether this process knows what was written a moment ago; r.mu is held.
func (r *Roles) knows(now time.Time) bool { return now.Sub(r.current) < 2*pauseMost }

// cameBack notes which of its own renewals have been reported; r.mu is held.
func (r *Roles) cameBack() {
	told := r.members[r.cfg.Self.Node].revision
	for len(r.renewals) > 0 && r.renewals[0].revision <= told {
		now := time.Now()
		if now.Sub(r.arrived) > pauseMost {
			r.steady = now
		}
		r.current, r.arrived, r.renewals = r.renewals[0].sent, now, r.renewals[1:]
	}
}

func poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Run takes part until ctx ends, then gives up its roles, tells the others, and returns ctx's error. It returns
// ErrClosed earlier if the link was closed; its roles are then lost as well. While another process has the name of its node,
// because it has started later, this one holds no roles.
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
	// The key is still renewed while roles are given up: otherwise others would take them before the work for them has
	// ended.
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	all.Go(func() { r.watch(inner, memberPrefix, 0, r.onMember, fail) })
	all.Go(func() { r.watch(inner, RolePrefix, 1, r.onRole, fail) })
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		r.renew(renewing, fail)
	}()
	for {
		next := r.decide(inner)
		for _, role := range r.inherited() {
			all.Go(func() { r.prepare(inner, role) })
		}
		select {
		case <-inner.Done():
		case <-r.wake:
		case <-time.After(time.Until(next)):
		}
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
	poke(r.kick) // the key says from now on that this member takes no roles
	r.drop(bye, mine, release, r.heir)
	stop()
	<-renewed
	cancel()
	if failed != nil {
		return failed
	}
	r.withdrawNamesake(bye)
	r.leave(bye)
	return ctx.Err()
}

// watch follows the keys under prefix.
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
		poke(r.news)
	})
	if ctx.Err() == nil {
		fail(err)
	}
}

// onMember handles a change of a member's key; r.mu is held.
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
		return // a repetition
	}
	m.Seen, m.revision = time.Now(), c.Revision
	m.Offset = m.Clock.Sub(m.Seen)
	r.members[node] = m
	if node == r.cfg.Self.Node {
		r.cameBack()
	}
}

// onRole handles a change of a role's key; r.mu is held.
func (r *Roles) onRole(role string, c Change) {
	var h holding
	if !c.Gone {
		if c.Revision <= r.roles[role].revision {
			return // older than what is known
		}
		if err := json.Unmarshal(c.Value, &h); err != nil {
			// A key that cannot be read is better taken over than left without a holder for good.
			r.log.Warn("a role's key cannot be read; it counts as free", "key", c.Key, "error", err)
		}
		h.revision, h.since = c.Revision, time.Now()
	}
	r.replace(role, h)
}

// replace notes the key of a role; r.mu is held.
func (r *Roles) replace(role string, h holding) {
	if before := r.roles[role]; before.Node != "" && h.Node != "" && h.Boot != before.Boot && !r.alive(before, h.since) {
		r.seized = h.since
	}
	r.roles[role] = h
}

// renew keeps its own key alive until ctx ends.
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
		if err == nil {
			r.goOn(ctx)
			next = walltime.NextBeat(renewEvery)
		}
		switch {
		case err == nil && warned:
			r.log.Info("the site's store is reached again")
			warned = false
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, errReplaced):
			r.giveWay(ctx, err)
			failures, next = 0, MemberTTL
		case errors.Is(err, ErrClosed):
			fail(err)
			return
		case !warned:
			// Once per outage: a warning for each attempt would bury everything else in the log.
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
	// A conflict is resolved by reading the key. Three rounds are enough unless another process writes it all the time.
	for range 3 {
		self := r.cfg.Self
		if r.cfg.Describe != nil {
			r.cfg.Describe(&self)
			self.Node, self.Boot = r.cfg.Self.Node, r.cfg.Self.Boot
		}
		r.mu.Lock()
		sent := time.Now()
		// A member that does not know the latest state would take roles that others hold.
		self.Hosts = r.cfg.Self.Hosts && !r.leaving && (r.current.IsZero() || r.knows(sent))
		self.Heirs, self.Ready = maps.Clone(r.heirs), r.prepared()
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
			// The chain of renewals was broken, so its roles were lost in between.
			if !sent.Before(r.until) {
				r.joined = sent
			}
			// Counted from before the write: the others may have seen it as early as that.
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
		// The key has expired, an earlier write succeeded but its answer was lost, or another process has written it.
		e, err := r.cfg.Space.Get(ctx, key)
		switch {
		case errors.Is(err, ErrNotFound):
			r.revision = 0
		case err != nil:
			return err
		default:
			var m Member
			// Before the first renewal, an older process of the same node may still have to expire.
			if json.Unmarshal(e.Value, &m) == nil && m.Boot != self.Boot && !r.joined.IsZero() {
				return fmt.Errorf("%w: node %q runs as boot %s and as boot %s since %v; give each node its own name",
					errReplaced, self.Node, self.Boot, m.Boot, m.Started)
			}
			r.revision = e.Revision
		}
	}
	return ErrRevision
}

// drop ends the work for roles. If others may have them immediately, it then gives up their keys, for a certain node if
// to names one.
func (r *Roles) drop(ctx context.Context, roles []string, release bool, to func(role string) string) {
	var all sync.WaitGroup
	for _, role := range roles {
		all.Go(func() {
			// First the work, then the key: a new holder must not meet the old one at work.
			r.cfg.Lost(role)
			r.mu.Lock()
			epoch := r.held[role]
			delete(r.held, role)
			r.mu.Unlock()
			if release {
				r.write(ctx, role, holding{For: to(role)}, epoch)
			}
		})
	}
	all.Wait()
}

// write sets the role's key if it still has the revision.
func (r *Roles) write(ctx context.Context, role string, h holding, revision uint64) (uint64, error) {
	value, err := json.Marshal(h)
	if err != nil {
		return 0, err
	}
	got, err := r.cfg.Space.Update(ctx, RolePrefix+role, value, revision)
	if err == nil {
		r.mu.Lock()
		if h.revision, h.since = got, time.Now(); got > r.roles[role].revision {
			r.replace(role, h)
		}
		r.mu.Unlock()
	}
	return got, err
}

// leave deletes its own key, unless another process has written it.
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
