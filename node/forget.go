package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator"
)

// ForgetSite writes off a site of the cluster that is lost for good: the units that it was granted may be used by the
// others at once, and its name by another site. sure is called once nothing speaks against it; an error of it ends the
// call. The error is of kind Invalid if the cluster has no such site, Conflict while the site answers or was heard in
// the last minute, and Unavailable if that cannot be found out. After an error, ForgetSite may be repeated.
func (n *Node) ForgetSite(ctx context.Context, site string, sure func() error) (coordinator.Forgotten, error) {
	return n.part.forgetSite(ctx, site, sure)
}

func (x *member) forgetSite(ctx context.Context, site string, sure func() error) (coordinator.Forgotten, error) {
	if !siteName(site) {
		return coordinator.Forgotten{}, anteroom.Errorf(anteroom.Invalid, "%.40q is not the name of a site", site)
	}
	if site == x.cfg.Site {
		return coordinator.Forgotten{}, anteroom.Errorf(anteroom.Conflict, "%s is the site that answers", site)
	}
	_, err := x.link.Get(ctx, sitePrefix+site)
	if errors.Is(err, cluster.ErrNotFound) {
		return coordinator.Forgotten{}, anteroom.Errorf(anteroom.Invalid, "the cluster has no site %s: anteroom cluster status lists the sites", site)
	}
	if err != nil {
		return coordinator.Forgotten{}, anteroom.Errorf(anteroom.Unavailable, "the names of the sites cannot be read: %w", err)
	}
	if x.answers(ctx, site) {
		return coordinator.Forgotten{}, anteroom.Errorf(anteroom.Conflict, "site %s answers: stop its nodes first", site)
	}
	if err := sure(); err != nil {
		return coordinator.Forgotten{}, err
	}
	all, err := x.client.Forget(ctx, site)
	if err != nil {
		return all, err
	}
	if err := x.link.Delete(ctx, hubPrefix+site); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return all, anteroom.Errorf(anteroom.Unavailable, "the units of site %s are free, but it is still listed as a hub: %w", site, err)
	}
	// The name last: as long as it is listed, the command may be repeated.
	if err := x.link.Delete(ctx, sitePrefix+site); err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return all, anteroom.Errorf(anteroom.Unavailable, "the units of site %s are free, but its name is still taken: %w", site, err)
	}
	return all, nil
}

// answers reports whether any role of another site answers.
func (x *member) answers(ctx context.Context, site string) bool {
	var one atomic.Bool
	var work sync.WaitGroup
	for shard := range cluster.Shards {
		work.Go(func() {
			if _, err := x.ask(ctx, site, shard, question{Op: "state"}); err == nil {
				one.Store(true)
			}
		})
	}
	work.Wait()
	return one.Load()
}
