package node

// A site's name is its own: another site with the same name would be taken for it, and get its units.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/walltime"
)

const (
	// sitePrefix is where all sites list their names, with the id of the site.
	sitePrefix = "sites."
	// hubPrefix is where each site that its configuration makes the hub lists its name: nothing else shows that there are two, where they meet
	// at NATS servers of the operator.
	hubPrefix = "hubs."
	// identityKey is where a site stores its id.
	identityKey = "identity"
	// claimFor bounds how long the name is checked before roles are taken: a site that is cut off from the others still
	// has to serve.
	claimFor = 2 * time.Second
	// claimAgain is how often the name is checked again.
	claimAgain = 30 * time.Second
)

// errNamesake says that another site has the name.
var errNamesake = errors.New("another site of the cluster has this site's name")

// claim lists the site among those of the cluster. It returns errNamesake if another site has its name, and other
// errors if that is not known.
func (x *member) claim(ctx context.Context) error {
	id, err := x.identity(ctx)
	if err != nil {
		return fmt.Errorf("node: the site's id cannot be read: %w", err)
	}
	key := sitePrefix + x.cfg.Site
	e, err := x.link.Get(ctx, key)
	switch {
	case errors.Is(err, cluster.ErrNotFound):
	case err != nil:
		return fmt.Errorf("node: %s cannot be read: %w", key, err)
	case string(e.Value) == id:
		return nil
	case x.cfg.Hub, x.node.cfg.Forgot && !x.reclaimed, string(e.Value) == x.cfg.Site:
		// There is one hub. A site whose store was lost on purpose goes on under its name, and one of
		// before sites had ids gets one.
	default:
		return errNamesake
	}
	if _, err := x.link.Update(ctx, key, []byte(id), e.Revision); err != nil {
		return fmt.Errorf("node: %s cannot be written: %w", key, err)
	}
	x.reclaimed = true
	return nil
}

// claimHub lists the site among the hubs, or takes it off the list.
func (x *member) claimHub(ctx context.Context) error {
	key := hubPrefix + x.cfg.Site
	_, err := x.link.Get(ctx, key)
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return err
	}
	switch listed := err == nil; {
	case x.cfg.Hub == listed || x.cfg.Edge: // edges may not write it
		err = nil
	case x.cfg.Hub:
		_, err = x.link.Put(ctx, key, []byte("hub"))
	default:
		err = x.link.Delete(ctx, key)
	}
	return err
}

// hubs returns the sites that are the hub, if there are several.
func (x *member) hubs(ctx context.Context) []string {
	keys, err := x.link.Keys(ctx, hubPrefix)
	if err != nil || len(keys) < 2 {
		return nil
	}
	for i := range keys {
		keys[i] = strings.TrimPrefix(keys[i], hubPrefix)
	}
	slices.Sort(keys)
	return keys
}

// sayHubs logs that there are several hubs, once.
func (x *member) sayHubs(ctx context.Context) {
	hubs := x.hubs(ctx)
	if x.cfg.Hub && len(hubs) > 0 && !x.severalHubs {
		x.log.Error("several sites are the hub; each decides about all rooms, against the others", "sites", strings.Join(hubs, ", "),
			"fix", "set cluster.nats.hub: false at all sites but one and restart their nodes; write off a site that no longer runs: anteroom cluster forget SITE")
	}
	x.severalHubs = len(hubs) > 0
}

// identity is the id of the site: random, made by its first node and kept in its store.
func (x *member) identity(ctx context.Context) (string, error) {
	for {
		e, err := x.link.Site().Get(ctx, identityKey)
		if !errors.Is(err, cluster.ErrNotFound) {
			return string(e.Value), err
		}
		var raw [16]byte
		rand.Read(raw[:])
		id := hex.EncodeToString(raw[:])
		if _, err = x.link.Site().Update(ctx, identityKey, []byte(id), 0); !errors.Is(err, cluster.ErrRevision) {
			return id, err
		}
	}
}

// announce claims the site's name until ctx ends: may is called when roles may be taken, or that
// cannot be found out soon, and mayNot when they may be held no longer, for good.
func (x *member) announce(ctx context.Context, may, mayNot func()) {
	began := false
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, claimAgain) {
		within, cancel := context.WithTimeout(ctx, claimFor)
		err := x.claim(within)
		if err == nil && x.claimHub(within) == nil {
			x.sayHubs(within)
		}
		cancel()
		switch {
		case errors.Is(err, errNamesake):
			if !x.namesake.Swap(true) {
				x.log.Error("another site of the cluster has this site's name; this site holds no roles, because it would be taken for the other one", "site", x.cfg.Site,
					"fix", "give one of the two another cluster.site and restart its nodes; if this site lost its store, start it once with --new-journal")
			}
			if began {
				mayNot()
				return
			}
		case err == nil, !x.namesake.Load():
			x.namesake.Store(false)
			began = true
			may()
		}
		if err == nil {
			wait = claimAgain // the hub may be put in the place of another
		}
		walltime.Sleep(ctx, wait)
	}
}
