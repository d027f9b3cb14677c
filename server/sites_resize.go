package server

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage"
)

// leaveSubject begins the subject at which a core of the site is asked to stop in good order, because it is to be removed.
const leaveSubject = "leave."

// AddCores implements manage.Sites.
func (x sites) AddCores(ctx context.Context, sure func() error) (manage.AddedCores, error) {
	cfg, err := x.s.opts.Load()
	if err != nil {
		return manage.AddedCores{}, anteroom.Errorf(anteroom.Invalid, "the configuration cannot be read: %w", err)
	}
	c := cfg.Cluster
	if x.s.ring == nil {
		return x.beginCluster(ctx, c, sure)
	}
	done, err := x.changing(ctx, "add", "")
	if err != nil {
		return manage.AddedCores{}, err
	}
	defer done()
	if n := len(natslink.ListedCores(x.s.link)); n > 1 {
		return manage.AddedCores{}, anteroom.Errorf(anteroom.Conflict, "this core is one of %d already", n)
	}
	if _, err := natslink.Cores(ctx, x.s.link); err != nil {
		return manage.AddedCores{}, asKind(err)
	}
	if len(c.Cores) < 2 {
		return manage.AddedCores{}, anteroom.Errorf(anteroom.Conflict, "cluster.cores in the configuration lists no other cores: list three there, this one first, "+
			"start the other two with the same list and empty data directories, and try again")
	}
	ctx, cancel := context.WithTimeout(ctx, resizeWithin)
	defer cancel()
	complete, err := natslink.Grow(ctx, x.s.link, c.Cores, sure)
	if err != nil {
		return manage.AddedCores{}, refusal(err)
	}
	return manage.AddedCores{Cores: len(c.Cores), Complete: complete}, nil
}

// resizeWithin bounds how long an operator waits for a change of cores. It ends before the admin listener gives an answer
// up.
const resizeWithin = 25 * time.Second

// beginCluster makes a standalone process a core: another process takes its place, with its listeners and its data.
func (x sites) beginCluster(ctx context.Context, c config.Cluster, sure func() error) (manage.AddedCores, error) {
	switch {
	case !c.On():
		return manage.AddedCores{}, anteroom.Errorf(anteroom.Conflict, "the configuration has no cluster: add cluster.listen, cluster.secret_file and, for several cores, cluster.cores to the file, and try again")
	case c.Listen == "" || !c.IsHub():
		return manage.AddedCores{}, anteroom.Errorf(anteroom.Conflict, "the configuration does not make this process a core of the hub, and only such a core can bring its data into a cluster: set cluster.listen, and remove cluster.join, hub and nats")
	}
	for _, other := range c.Cores {
		if other == c.Listen || len(c.Cores) < 2 {
			continue
		}
		// This finds what is most often forgotten; the new process finds the rest, and takes longer.
		dialer := net.Dialer{Timeout: 2 * time.Second}
		conn, err := dialer.DialContext(ctx, "tcp", other)
		if err != nil {
			return manage.AddedCores{}, anteroom.Errorf(anteroom.Conflict, "the core at %s does not answer (start it first, with the same cluster.cores and an empty data directory): %w", other, err)
		}
		conn.Close()
	}
	if err := sure(); err != nil {
		return manage.AddedCores{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, resizeWithin)
	defer cancel()
	if err := x.s.HandOver(ctx); err != nil {
		return manage.AddedCores{}, anteroom.Errorf(anteroom.Conflict, "nothing has changed: %w", err)
	}
	return manage.AddedCores{Cores: max(1, len(c.Cores)), Restarts: true}, nil
}

// ShrinkCores implements manage.Sites.
func (x sites) ShrinkCores(ctx context.Context, sure func() error) error {
	cfg, err := x.s.opts.Load()
	if err != nil {
		return anteroom.Errorf(anteroom.Invalid, "the configuration cannot be read: %w", err)
	}
	if n := len(cfg.Cluster.Cores); n > 1 {
		return anteroom.Errorf(anteroom.Conflict, "cluster.cores in the configuration lists %d cores: remove it from the file of this core, and try again (until then, a restart changes nothing)", n)
	}
	done, err := x.changing(ctx, "shrink", "")
	if err != nil {
		return err
	}
	defer done()
	all, err := natslink.Cores(ctx, x.s.link)
	if err != nil {
		return asKind(err)
	}
	seen, _ := x.s.node.Cluster(ctx)
	if len(all) < 2 {
		return anteroom.Errorf(anteroom.Conflict, "%s is the only core of site %s already", seen.Node, seen.Site)
	}
	if err := sure(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resizeWithin)
	defer cancel()
	for _, c := range all {
		if c.Runs && c.Node != seen.Node {
			x.askToLeave(ctx, c.Node)
		}
	}
	if err := natslink.Shrink(ctx, x.s.link); err != nil {
		return refusal(err)
	}
	return nil
}

// askToLeave has another core stop serving visitors and hand over its roles. One that does not answer in time loses them when
// it is removed, and the seats of its visitors are held for longer.
func (x sites) askToLeave(ctx context.Context, node string) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	for {
		_, err := x.s.link.Site().Request(ctx, leaveSubject+node, nil)
		if errors.Is(err, cluster.ErrUnavailable) && ctx.Err() == nil { // a link gives up earlier
			walltime.Sleep(ctx, readyAgain)
			continue
		}
		if err != nil {
			x.s.log.Warn("a core that is to be removed has not left in time", "node", node, "error", err)
		}
		return
	}
}

// awaitLeave has this node leave when another one asks for it, until ctx ends.
func (s *Server) awaitLeave(ctx context.Context, node string) {
	stop, err := s.link.Site().Subscribe(leaveSubject+node, func(m cluster.Message) {
		s.log.Warn("this core is to be removed: it stops serving visitors and hands over its roles", "node", node)
		if s.leave(ctx) == nil && m.Reply != nil {
			m.Reply(nil) // who asked goes on without it
		}
	})
	if err != nil {
		return // the link is closed
	}
	defer stop()
	<-ctx.Done()
}

// refusal is an error that an operator can do something about.
func refusal(err error) error {
	if errors.Is(err, cluster.ErrUnavailable) {
		return anteroom.Errorf(anteroom.Unavailable, "%w", err)
	}
	return anteroom.Errorf(anteroom.Conflict, "%w", err)
}

// foundedKey is set in a site's store when its first core has brought in what there was before.
const foundedKey = "founded"

// found notes that the store has what it begins with, or waits for the core that brings that. A cluster of an earlier
// release has no such note, and has had roles.
func (s *Server) found(ctx context.Context, cfg config.Config) error {
	space := s.link.Site()
	if natslink.Founds(s.link) {
		for {
			// The keys first: another core would make new ones, and every ticket would be worthless.
			_, err := s.clusterKeys(ctx, cfg.Data)
			if err == nil {
				_, err = space.Update(ctx, foundedKey, []byte(cfg.Cluster.Node), 0)
			}
			if errors.Is(err, cluster.ErrRevision) {
				return nil
			}
			if !errors.Is(err, cluster.ErrUnavailable) || ctx.Err() != nil {
				return err
			}
			walltime.Sleep(ctx, readyAgain)
		}
	}
	for said := false; ; said = true {
		_, err := space.Get(ctx, foundedKey)
		if errors.Is(err, cluster.ErrNotFound) {
			var roles []string
			if roles, err = space.Keys(ctx, cluster.RolePrefix); err == nil && len(roles) == 0 {
				err = cluster.ErrNotFound
			}
		}
		if !errors.Is(err, cluster.ErrNotFound) {
			return nil // without the store, it goes on with its copy
		}
		if !said {
			s.log.Info("waiting for the first of cluster.cores, which brings the data")
		}
		if walltime.Sleep(ctx, readyAgain); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
