package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"
)

// idle is how long a member with nothing to do waits.
const idle = time.Minute

// decide does what is due now, and returns when to check again if nothing happens before.
func (r *Roles) decide(ctx context.Context) (next time.Time) {
	now := time.Now()
	next = now.Add(idle)
	r.mu.Lock()
	until := r.until
	valid := now.Before(until)
	var lost []string
	for role, epoch := range r.held {
		if h := r.roles[role]; !valid || h.revision > epoch {
			// Either this process has not renewed in time, or another one has written the role's key. In both cases
			// another holder may be at work.
			lost = append(lost, role)
		}
	}
	r.mu.Unlock()
	if len(lost) > 0 {
		slices.Sort(lost)
		r.log.Warn("roles are lost", "roles", lost, "touch", valid)
		r.drop(ctx, lost, false, nil)
		now = time.Now()
	}
	if !valid || !now.Before(until) || ctx.Err() != nil {
		return next // the next renewal wakes this loop
	}
	// Writes from here on must not succeed after the roles have ended.
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	r.mu.Lock()
	if len(r.held) > 0 {
		next = until
	}
	take, give, to, at := r.plan(now)
	r.mu.Unlock()
	if at.Before(next) {
		next = at
	}
	if !r.takeAll(ctx, take) {
		return earlier(next, time.Now().Add(renewEvery))
	}
	if give != "" {
		r.offer(give, to)
	}
	give, at = r.accepted()
	if give != "" {
		r.log.Info("a role is handed over", "role", give, "to", r.heir(give))
		r.drop(ctx, []string{give}, true, r.heir)
		r.withdraw()
	}
	return earlier(next, at)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// plan returns which roles to take now, which one to give to which node, and when to check again. Members that know the
// same compute the same shares, so they need not talk about them. r.mu is held.
func (r *Roles) plan(now time.Time) (take []string, give, to string, next time.Time) {
	next = now.Add(idle)
	// Without the whole picture, a member would take roles that others hold.
	if !r.synced[0] || !r.synced[1] || len(r.cfg.Roles) == 0 || !r.knows(now) || r.leaving {
		return nil, "", "", next
	}
	self := r.cfg.Self.Node
	load := map[string]int{self: 0} // roles by member
	for node, m := range r.members {
		if m.Hosts && !r.silent(m, now) {
			load[node] = 0
		}
		if at := m.Seen.Add(MemberTTL); at.After(now) {
			next = earlier(next, at)
		}
	}
	var free []string
	for _, role := range r.cfg.Roles {
		h := r.roles[role]
		_, mine := r.held[role]
		switch {
		case h.Node == self && h.Boot == r.cfg.Self.Boot && !mine:
			// The key says that this process holds the role, but it does not: the role was lost meanwhile, or the
			// answer was lost when it was taken.
			take = append(take, role)
			load[self]++
		case r.alive(h, now) || mine:
			if _, hosts := load[h.Node]; hosts {
				load[h.Node]++
			}
			h.freed = time.Time{}
		default:
			free = append(free, role)
			if h.freed.IsZero() {
				h.freed = now
			}
		}
		r.roles[role] = h
	}
	nodes := make([]string, 0, len(load))
	for node := range load {
		nodes = append(nodes, node)
	}
	start := r.joined.Add(settle)
	for _, role := range free {
		// The member with the fewest roles comes first, equal ones in an order that everyone computes alike. The others
		// follow in steps, so that a member that does not act delays nothing for long.
		slices.SortFunc(nodes, byLoad(load, role))
		h := r.roles[role]
		at, wait, first := h.freed, time.Duration(slices.Index(nodes, self))*takeStep, nodes[0]
		if at.Before(start) && h.For != self { // one that is meant for this member is shared already
			at = start
		}
		if _, hosts := load[h.For]; hosts {
			if first = h.For; first == self {
				wait = 0
			} else {
				wait += handWithin
			}
		}
		at = at.Add(wait)
		if !at.After(now) {
			take = append(take, role)
		} else {
			next = earlier(next, at)
		}
		load[first]++
	}
	if len(free) > 0 || len(take) > 0 || len(r.held) == 0 || len(r.heirs) > 0 {
		return take, "", "", next
	}
	// All roles are held. A member with at least two more than another one gives one away: with a difference of one, a
	// role would go back and forth.
	nodes = slices.DeleteFunc(nodes, func(node string) bool { return node != self && now.Sub(r.shunned[node]) < handShun })
	to = slices.MinFunc(nodes, func(a, b string) int { return cmp.Compare(load[a], load[b]) })
	if load[self] < load[to]+2 {
		return nil, "", "", next
	}
	// One at a time: each change of a role stops admissions of its rooms for a moment.
	for _, at := range []time.Time{r.handed.Add(handEvery), r.seized.Add(handAgain)} {
		if at.After(now) {
			return nil, "", "", earlier(next, at)
		}
	}
	for role := range r.held {
		if at := r.roles[role].since.Add(handAgain); at.After(now) {
			next = earlier(next, at)
		} else if give == "" || lot(role, to) < lot(give, to) {
			give = role
		}
	}
	if give == "" {
		return nil, "", "", next
	}
	r.handed = now
	return nil, give, to, earlier(next, now.Add(handEvery))
}

// byLoad orders members by who is to have a role next.
func byLoad(load map[string]int, role string) func(a, b string) int {
	return func(a, b string) int {
		return cmp.Or(cmp.Compare(load[a], load[b]), cmp.Compare(lot(role, a), lot(role, b)), strings.Compare(a, b))
	}
}

// lot returns a number that is the same for everyone, and different for each pair.
func lot(role, node string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(role + "\x00" + node))
	// FNV alone gives similar numbers to names that differ only in the last character.
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	return x ^ x>>33
}

// takeAll takes roles, all at the same time: one after the other, the last one's visitors would wait for all writes. It
// returns false if the store is probably gone.
func (r *Roles) takeAll(ctx context.Context, roles []string) bool {
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	asked := map[string]func() error{} // by the boot of a holder
	for _, role := range roles {
		r.mu.Lock()
		h := r.roles[role]
		heard := r.members[h.Node].revision
		r.mu.Unlock()
		if asked[h.Boot] == nil {
			asked[h.Boot] = sync.OnceValue(func() error { return r.ended(ctx, h, heard) })
		}
		ended := asked[h.Boot]
		all.Go(func() {
			err := r.take(ctx, role, h, ended)
			if err == nil || errors.Is(err, ErrRevision) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if failed == nil && ctx.Err() == nil {
				r.log.Warn("a free role cannot be taken", "role", role, "error", err)
			}
			failed = err
		})
	}
	all.Wait()
	return failed == nil
}

// ended returns nil if the holder of a role, of which a revision of its key was heard last, has ended or is this process,
// and ErrRevision if it lives.
func (r *Roles) ended(ctx context.Context, h holding, heard uint64) error {
	if h.Node == "" || h.Boot == r.cfg.Self.Boot {
		return nil
	}
	// What was heard may be out of date: the key itself says whether the holder has renewed it since.
	e, err := r.cfg.Space.Get(ctx, memberPrefix+h.Node)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	case bootOf(e.Value) == h.Boot && e.Revision > heard:
		return ErrRevision
	}
	return nil
}

// take makes this process the holder of the role after h, if that has ended. ErrRevision: another one was faster, or the
// holder lives.
func (r *Roles) take(ctx context.Context, role string, h holding, ended func() error) error {
	r.mu.Lock()
	back := h.Boot != r.cfg.Self.Boot && r.alive(h, time.Now()) // heard since the plan was made
	r.mu.Unlock()
	if back {
		return ErrRevision
	}
	if err := ended(); err != nil {
		return err
	}
	epoch, err := r.write(ctx, role, holding{Node: r.cfg.Self.Node, Boot: r.cfg.Self.Boot}, h.revision)
	if err != nil {
		return err
	}
	r.mu.Lock()
	// The write may have taken longer than the renewal lasts. Then the key is ours but the role is not, and plan takes
	// it again.
	valid := time.Now().Before(r.until)
	if valid {
		r.held[role] = epoch
	}
	// The role was meant for another member that did not take it.
	if h.For != "" && h.For != r.cfg.Self.Node {
		r.shunned[h.For] = time.Now()
	}
	r.mu.Unlock()
	if valid {
		r.log.Info("a role is taken", "role", role, "epoch", epoch, "from", h.Node)
		r.cfg.Gained(role, epoch)
	}
	return nil
}

func bootOf(member []byte) string {
	var m Member
	if json.Unmarshal(member, &m) != nil {
		return ""
	}
	return m.Boot
}
