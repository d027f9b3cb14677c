package server

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage"
)

const (
	// leaveWithin bounds how long a core that is to be removed is waited for, until it serves no visitors any more and has
	// handed over its roles. With timeouts.drain_delay it may take longer.
	leaveWithin = 10 * time.Second
	// catchUp bounds how long a change of cores waits for copies that are behind.
	catchUp = 4 * time.Second
	// copying bounds how long an operator waits for the copies of a core that has taken another's place. It ends before
	// the admin listener gives an answer up.
	copying = 7 * time.Second
)

// sites are what an operator does with the nodes and sites of the cluster.
type sites struct{ s *Server }

var errStandalone = anteroom.Errorf(anteroom.Invalid, "this process is standalone: it has no other nodes or sites")

// changingKey is held in the store of a site while its cores are changed. The value is what an operator asked for, and the
// node that leaves, if any.
const changingKey = "changing"

// changingWithin bounds how long others are kept out by a change whose core ended in the middle of it.
const changingWithin = time.Minute

// changing lets one change of the site's cores be made at a time: two that are checked against the same cores could stop one more
// than the site can spare. done ends it; a core that has been removed cannot, so the change is over when the node that leaves is gone.
// If the store does not take it, the change goes on: it may be what brings the store back.
func (x sites) changing(ctx context.Context, what, leaves string) (done func(), err error) {
	if x.s.ring == nil {
		return nil, errStandalone
	}
	space, site := x.s.link.Site(), x.s.link.Health().SiteName
	life := changingWithin + x.s.Config().Timeouts.DrainDelay
	seen, _ := x.s.node.Cluster(ctx)
	value := strings.Join([]string{leaves, what + ", sent to " + seen.Node, rand.Text()}, "\n")
	hold := func(revision uint64) func() {
		return func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), doneWithin)
			defer cancel()
			if err := space.Remove(ctx, changingKey, revision); err != nil && !errors.Is(err, cluster.ErrRevision) {
				x.s.log.Warn("a change of cores is over, and others are refused for up to a minute", "error", err)
			}
		}
	}
	over := uint64(0)
	for began := time.Now(); ; {
		revision, err := space.Lease(ctx, changingKey, []byte(value), over, life)
		if err == nil {
			return hold(revision), nil
		}
		if !errors.Is(err, cluster.ErrRevision) {
			// It may have been written, and the answer be lost: the next try says so.
			if time.Since(began) < catchUp && ctx.Err() == nil {
				walltime.Sleep(ctx, readyAgain)
				continue
			}
			x.s.log.Warn("a change of cores is not noted in the store: make no other one until it has ended", "change", what, "error", err)
			return func() {}, nil
		}
		held, err := space.Get(ctx, changingKey)
		if errors.Is(err, cluster.ErrNotFound) {
			over = 0
			continue
		}
		if err != nil {
			return nil, asKind(err)
		}
		if string(held.Value) == value {
			return hold(held.Revision), nil
		}
		all, err := natslink.Cores(ctx, x.s.link)
		if err != nil {
			return nil, asKind(err)
		}
		gone, rest, _ := strings.Cut(string(held.Value), "\n")
		other, _, _ := strings.Cut(rest, "\n")
		if gone == "" || slices.ContainsFunc(all, func(c natslink.Core) bool { return c.Is(site, gone) }) {
			return nil, anteroom.Errorf(anteroom.Conflict, "nothing was done, because another command changes the cores of site %s now: %s; wait until it has ended, look at anteroom cluster status, and repeat yours if it is still needed", site, other)
		}
		over = held.Revision
	}
}

// doneWithin bounds how long an operator waits until others may change cores.
const doneWithin = 2 * time.Second

// core finds a core of the site among all of them, and refuses to remove it when the others could not go on.
func (x sites) core(ctx context.Context, node string) (core natslink.Core, all []natslink.Core, err error) {
	if x.s.ring == nil {
		return core, nil, errStandalone
	}
	all, err = natslink.Cores(ctx, x.s.link)
	if err != nil {
		return core, nil, asKind(err)
	}
	site := x.s.link.Health().SiteName
	i := slices.IndexFunc(all, func(c natslink.Core) bool { return c.Is(site, node) })
	if i < 0 {
		return core, nil, anteroom.Errorf(anteroom.Invalid, "site %s has no core %s; its cores are %s", site, node, names(all))
	}
	rest := slices.Delete(slices.Clone(all), i, i+1)
	if len(rest) == 0 {
		return core, nil, anteroom.Errorf(anteroom.Conflict, "%s is the only core of site %s, and keeps all of its data", node, site)
	}
	if len(rest) == 1 {
		return core, nil, anteroom.Errorf(anteroom.Conflict, "%s would be the only core left of site %s: use anteroom cluster shrink instead, sent to %s", rest[0].Node, site, rest[0].Node)
	}
	run := 0
	for _, c := range rest {
		if c.Runs {
			run++
		}
	}
	if run <= len(rest)/2 {
		return core, nil, anteroom.Errorf(anteroom.Conflict, "without %s, %d of %d cores would run, which is no majority, and nothing could be recorded: start another core first", node, run, len(rest))
	}
	// A core that has joined a moment ago counts, and does not have everything yet.
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	if !natslink.AwaitCurrent(ctx, x.s.link, node) {
		return core, nil, anteroom.Errorf(anteroom.Conflict, "the other cores of site %s do not all have complete copies yet: anteroom doctor shows which; try again when they have", site)
	}
	return all[i], all, nil
}

func names(cores []natslink.Core) string {
	var all []string
	for _, c := range cores {
		switch {
		case c.Node == "":
			all = append(all, "one that has been away since the others started")
		case !c.Runs:
			all = append(all, c.Node+" (away)")
		default:
			all = append(all, c.Node)
		}
	}
	return strings.Join(all, ", ")
}

// asKind gives an error of the link the kind that says whether trying again may help.
func asKind(err error) error {
	if errors.Is(err, cluster.ErrUnavailable) {
		return anteroom.Errorf(anteroom.Unavailable, "%w", err)
	}
	return anteroom.Errorf(anteroom.Invalid, "%w", err)
}

// runs reports whether a core still runs, as the other cores or the nodes of the site see it.
func (x sites) runs(ctx context.Context, core natslink.Core, node string) bool {
	if core.Runs {
		return true
	}
	seen, _ := x.s.node.Cluster(ctx)
	return slices.ContainsFunc(seen.Members, func(m cluster.Member) bool { return m.Node == node })
}

// RemoveNode implements manage.Sites.
func (x sites) RemoveNode(ctx context.Context, node string, force bool, sure func() error) error {
	done, err := x.changing(ctx, "remove "+node, node)
	if err != nil {
		return err
	}
	seen, _ := x.s.node.Cluster(ctx)
	own, removed := seen.Node == node, false
	defer func() {
		if !own || !removed {
			done()
		}
	}()
	core, _, err := x.core(ctx, node)
	if err != nil {
		return err
	}
	if !own && !force && x.runs(ctx, core, node) {
		return anteroom.Errorf(anteroom.Conflict, "%s runs, or was heard within the last 5 seconds: if it has ended, repeat the command in 5 seconds; if it runs, send it to its own admin address (--api), so that it hands over its roles before it stops; "+
			"--force removes it without that, and no visitor is admitted where it holds roles for some seconds", node)
	}
	if err := sure(); err != nil {
		return err
	}
	// Whoever asked may be gone before the core has left, and that must not leave the rest undone.
	ctx = context.WithoutCancel(ctx)
	switch {
	case own:
		x.s.log.Warn("an operator removes this core: it stops serving visitors and hands over its roles", "node", node)
		leaving, end := context.WithTimeout(ctx, leaveWithin+x.s.Config().Timeouts.DrainDelay)
		err := x.s.leave(leaving)
		end()
		if err != nil {
			return err
		}
	case x.runs(ctx, core, node):
		x.askToLeave(ctx, node)
	}
	if err := natslink.RemoveCore(ctx, x.s.link, node); err != nil {
		err = asKind(err)
		if own {
			err = anteroom.Errorf(anteroom.KindOf(err), "%w; this core has stopped serving visitors, and ends within %v: start it again, then repeat the command", err, removedWithin)
		}
		return err
	}
	removed = true
	x.s.log.Warn("removed a core", "node", node)
	return nil
}

// ReplaceNode implements manage.Sites.
func (x sites) ReplaceNode(ctx context.Context, node, by string, force bool, sure func() error) (complete bool, err error) {
	done, err := x.changing(ctx, "replace "+node+" "+by, node)
	if err != nil {
		return false, err
	}
	defer done()
	core, all, err := x.core(ctx, node)
	if err != nil {
		return false, err
	}
	if !force && x.runs(ctx, core, node) {
		return false, anteroom.Errorf(anteroom.Conflict, "%s runs, or was heard within the last 5 seconds: stop it and repeat the command after 5 seconds, or pass --force if it does not work any more", node)
	}
	site := x.s.link.Health().SiteName
	if node == by || !slices.ContainsFunc(all, func(c natslink.Core) bool { return c.Runs && c.Is(site, by) }) {
		return false, anteroom.Errorf(anteroom.Conflict, "%s is not another core of site %s that runs: start it first, under the address of %s and with an empty data directory; the cores are %s", by, site, node, names(all))
	}
	// One that is there already takes nobody's place: afterwards the site would have a core less.
	if size := len(natslink.ListedCores(x.s.link)); len(all) <= size {
		return false, anteroom.Errorf(anteroom.Conflict, "site %s has %d cores and lists %d, so none of them has come in the place of %s: start a new core first, under the address of %s and with an empty data directory; "+
			"to go on with one core less, use anteroom cluster remove %s", site, len(all), size, node, node, node)
	}
	last, err := natslink.CameLast(ctx, x.s.link, all)
	if err != nil {
		return false, asKind(err)
	}
	if !slices.ContainsFunc(last, func(c natslink.Core) bool { return c.Is(site, by) }) {
		return false, anteroom.Errorf(anteroom.Conflict, "%s has not come in the place of %s: the core that came last is %s; use its name, or anteroom cluster remove %s to go on with one core less", by, node, names(last), node)
	}
	if err := sure(); err != nil {
		return false, err
	}
	if err := natslink.RemoveCore(ctx, x.s.link, node); err != nil {
		return false, asKind(err)
	}
	x.s.log.Warn("removed a core that another has replaced", "node", node, "by", by)
	ctx, cancel := context.WithTimeout(ctx, copying)
	defer cancel()
	return natslink.AwaitWhole(ctx, x.s.link), nil
}

// ForgetSite implements manage.Sites.
func (x sites) ForgetSite(ctx context.Context, site string, sure func() error) (manage.ForgottenSite, error) {
	if x.s.ring == nil {
		return manage.ForgottenSite{}, errStandalone
	}
	all, err := x.s.node.ForgetSite(ctx, site, sure)
	if err != nil {
		return manage.ForgottenSite{}, err
	}
	x.s.log.Warn("wrote off a site", "site", site, "rooms", all.Rooms, "seats", all.Seats)
	return manage.ForgottenSite{Site: site, Rooms: all.Rooms, Seats: all.Seats}, nil
}
