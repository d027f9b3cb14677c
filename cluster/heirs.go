package cluster

import (
	"context"
	"maps"
	"slices"
	"time"
)

// A member that stops, or has more roles than its share, names an heir for a role before it gives that up. The heir prepares
// meanwhile, so that the role has no holder at work only for as long as the last step takes. Without heirs, or with heirs of a release that
// knows nothing of this, roles are given up as they are for anybody.

// prepareWithin is how long a member waits for the heir of a role that it gives away for the balance.
const prepareWithin = time.Second

// Bequeath names another member for each role held here, to take it as soon as Run ends, and waits until all of them are
// prepared, at the longest until ctx ends. From now on this process takes no role.
func (r *Roles) Bequeath(ctx context.Context) {
	r.mu.Lock()
	r.leaving = true
	r.heirs = r.choose(time.Now())
	heirs := len(r.heirs)
	r.mu.Unlock()
	if heirs == 0 {
		return
	}
	poke(r.kick)
	for {
		r.mu.Lock()
		awaited := r.awaited(time.Now())
		r.mu.Unlock()
		if len(awaited) == 0 {
			return
		}
		select {
		case <-r.news:
		case <-ctx.Done():
			r.log.Warn("roles are given up to members that are not prepared", "roles", awaited)
			return
		}
	}
}

// offer names the heir of a single role. Nothing is said before the next renewal, so that is now.
func (r *Roles) offer(role, to string) {
	r.mu.Lock()
	r.heirs, r.named = map[string]string{role: to}, time.Now()
	r.mu.Unlock()
	poke(r.kick)
}

// accepted returns the role that was offered, if its heir is prepared or was waited for long enough, or when to ask again.
func (r *Roles) accepted() (give string, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	next = now.Add(idle)
	if r.leaving {
		return "", next
	}
	for role, to := range r.heirs {
		_, held := r.held[role]
		until := r.named.Add(prepareWithin)
		switch m := r.members[to]; {
		case !held || !m.Hosts || r.silent(m, now):
			r.heirs = nil
		case len(r.awaited(now)) == 0 || !until.After(now):
			return role, next
		default:
			next = until
		}
	}
	return "", next
}

// withdraw ends an offer.
func (r *Roles) withdraw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leaving {
		r.heirs = nil
	}
}

// choose shares the roles held here among the others, the next one always to the member with the fewest; r.mu is held.
func (r *Roles) choose(now time.Time) map[string]string {
	load := map[string]int{}
	var nodes []string
	for node, m := range r.members {
		if node != r.cfg.Self.Node && m.Hosts && !r.silent(m, now) {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	for _, h := range r.roles {
		load[h.Node]++
	}
	heirs := map[string]string{}
	for _, role := range slices.Sorted(maps.Keys(r.held)) {
		to := slices.MinFunc(nodes, byLoad(load, role))
		load[to]++
		heirs[role] = to
	}
	return heirs
}

// awaited returns the roles whose heirs live and are not prepared; r.mu is held.
func (r *Roles) awaited(now time.Time) (roles []string) {
	for role, node := range r.heirs {
		m, known := r.members[node]
		epoch, held := r.held[role]
		if known && held && m.Hosts && !r.silent(m, now) && m.Ready[role] != epoch {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// heir returns the member that is to have a role that is given up, or "".
func (r *Roles) heir(role string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	node := r.heirs[role]
	if m := r.members[node]; !m.Hosts || r.silent(m, time.Now()) {
		return ""
	}
	return node
}

// inherited returns the roles that are to come here and for which nothing was done yet.
func (r *Roles) inherited() (roles []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for role, one := range r.inherits {
		if r.roles[role].revision != one.epoch {
			delete(r.inherits, role) // gained, or somebody else has it
		}
	}
	for node, m := range r.members {
		for role, heir := range m.Heirs {
			h := r.roles[role]
			if heir != r.cfg.Self.Node || r.leaving || h.Node != node || h.Boot != m.Boot || !slices.Contains(r.cfg.Roles, role) || r.inherits[role] != nil {
				continue
			}
			r.inherits[role] = &heritage{epoch: h.revision}
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// prepare has a role prepared that is to come here, and says so when all such roles are.
func (r *Roles) prepare(ctx context.Context, role string) {
	if r.cfg.Prepare != nil {
		r.cfg.Prepare(ctx, role)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.inherits[role]; one != nil {
		one.ready = true
	}
	for _, one := range r.inherits {
		if !one.ready {
			return
		}
	}
	poke(r.kick)
}

// prepared returns the roles that are to come here and may, with the epochs of their holders; r.mu is held.
func (r *Roles) prepared() map[string]uint64 {
	var ready map[string]uint64
	for role, one := range r.inherits {
		if one.ready {
			if ready == nil {
				ready = map[string]uint64{}
			}
			ready[role] = one.epoch
		}
	}
	return ready
}
