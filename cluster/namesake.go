package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// Of two processes with one node name, the one that started later has the name, and the other holds no roles until the name is
// free. It renews nothing meanwhile, so the two do not fight, and says in a key of its own that it is there: members' keys are by
// name, and nobody else can know of it.

// namesakePrefix begins the keys of processes whose name another one has: node, dot, boot.
const namesakePrefix = "namesakes."

// errReplaced: another process with the same node name has started later.
var errReplaced = errors.New("cluster: another process of the same node has started")

// Namesakes returns the nodes of the site of which several processes run, sorted, as far as one of them knows.
func (r *Roles) Namesakes(ctx context.Context) ([]string, error) {
	keys, err := r.cfg.Space.Keys(ctx, namesakePrefix)
	var nodes []string
	for _, key := range keys {
		node, _, _ := strings.Cut(strings.TrimPrefix(key, namesakePrefix), ".")
		nodes = append(nodes, node)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replaced {
		nodes = append(nodes, r.cfg.Self.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), err
}

func (r *Roles) namesakeKey() string { return namesakePrefix + r.cfg.Self.Node + "." + r.cfg.Self.Boot }

// giveWay gives up the roles because another process has the name, and tells the others so.
func (r *Roles) giveWay(ctx context.Context, why error) {
	r.mu.Lock()
	first := !r.replaced
	r.replaced, r.until = true, time.Time{}
	r.mu.Unlock()
	poke(r.wake)
	if first {
		r.log.Error("another process has the name of this node, which holds no roles and is not in the status until that one has ended", "error", why)
	}
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	self := r.cfg.Self
	self.Clock = time.Now().Round(0)
	value, err := json.Marshal(self)
	if err != nil {
		return
	}
	revision, err := r.cfg.Space.Lease(ctx, r.namesakeKey(), value, r.waits, keyTTL)
	if errors.Is(err, ErrRevision) { // it has expired, or an answer was lost: the next try knows
		var e Entry
		e, err = r.cfg.Space.Get(ctx, r.namesakeKey())
		revision = e.Revision
	}
	if err == nil || errors.Is(err, ErrNotFound) {
		r.waits = revision
	}
}

// goOn notes that the name is this process's own, again if it was another's.
func (r *Roles) goOn(ctx context.Context) {
	r.mu.Lock()
	was := r.replaced
	r.replaced = false
	r.mu.Unlock()
	if !was {
		return
	}
	r.log.Warn("this node has its name to itself again")
	r.withdrawNamesake(ctx)
}

// withdrawNamesake deletes what giveWay has written. If that fails, it expires.
func (r *Roles) withdrawNamesake(ctx context.Context) {
	if r.waits == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	if r.cfg.Space.Delete(ctx, r.namesakeKey()) == nil {
		r.waits = 0
	}
}
