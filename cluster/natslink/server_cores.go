package natslink

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/anteroom/anteroom/cluster"
)

// Core is a core of a site that counts toward the majority.
type Core struct {
	Node  string // empty for one that has been away since the others started
	Runs  bool   // the others hear it
	leads bool   // the group of the cores
	id    string
}

// Is reports whether the core is that of a node of the link's site.
func (c Core) Is(site, node string) bool { return c.id == peerID(site+"."+node) }

// Cores returns the cores of the link's site, by name, as the one that leads them knows them. The link must be that of
// a core. The error is [cluster.ErrUnavailable] when they have no leader now.
func Cores(ctx context.Context, l cluster.Link) ([]Core, error) {
	j, ok := l.(*joined)
	if !ok {
		return nil, errNoCluster
	}
	return j.att.cores(ctx)
}

// RemoveCore makes the cores of a link's site forget the core that the node is or was, so that it no longer counts
// toward their majority, and what it kept is copied to one that takes its place. The link must be that of a core of the
// site, which may be the one to remove, and a majority must run. A core that runs stops storing anything, see [Removed].
func RemoveCore(ctx context.Context, l cluster.Link, node string) error {
	j, ok := l.(*joined)
	if !ok {
		return errNoCluster
	}
	return j.removePeer(ctx, peerID(j.att.siteOf()+"."+node), node, leastCores)
}

// Removed returns a channel that is closed when the others have removed the core of this link: it stores nothing any
// more, and must end. Its directory is of no use for another start as a core. The channel is nil where there is no core.
func Removed(l cluster.Link) <-chan struct{} {
	j, ok := l.(*joined)
	if !ok || j.att.server == nil {
		return nil
	}
	return j.att.server.removed
}

// leastCores is how many cores a site of several must keep: a server of a NATS cluster that starts waits for another one
// before it serves its store.
const leastCores = 2

var errNotCore = errors.New("cluster: only a core knows and changes the cores of its site: ask at one")

func (a *attachment) cores(ctx context.Context) ([]Core, error) {
	if a.cfg.External != nil {
		return nil, errors.New("cluster: the NATS servers are yours: add and remove them there")
	}
	if a.system == nil {
		return nil, errNotCore
	}
	if len(a.coreList()) < 2 {
		name := a.siteOf() + "." + a.cfg.Node
		return []Core{{Node: a.cfg.Node, Runs: true, leads: true, id: peerID(name)}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, electedWithin)
	defer cancel()
	for began := time.Now(); ; {
		all, unheard, err := a.askCores(ctx)
		switch {
		case err != nil:
			began = time.Now()
			if !errors.Is(err, cluster.ErrUnavailable) || !pause(ctx, minBackoff) {
				return nil, err
			}
		case !unheard || time.Since(began) > firstHeard || !pause(ctx, minBackoff):
			return all, nil
		}
	}
}

const (
	// silentAfter is how long a core that runs is never silent: cores answer the one that leads them several times a
	// second. NATS itself calls a killed server offline only after two minutes or so.
	silentAfter = 5 * time.Second
	// electedWithin is how long those who ask wait for a leader. After a kill the cores elect one within a second or two, and
	// what was asked before has got lost.
	electedWithin = 10 * time.Second
	// askLeader is how long one question waits: a core that leads answers at once.
	askLeader = time.Second
	// firstHeard is how long a core that has begun to lead takes at most to hear those that run.
	firstHeard = time.Second
)

// askCores asks the core that leads. unheard says that it has not heard one of the others lately, which may be so because it
// has just begun to lead.
func (a *attachment) askCores(ctx context.Context) (all []Core, unheard bool, _ error) {
	one, cancel := context.WithTimeout(ctx, askLeader)
	defer cancel()
	m, err := a.system.RequestWithContext(one, "$SYS.REQ.SERVER.PING.JSZ", []byte(`{"leader_only":true}`))
	if err != nil {
		return nil, false, noLeader(err)
	}
	type peer struct {
		Name    string        `json:"name"`
		Peer    string        `json:"peer"`
		Offline bool          `json:"offline"`
		Active  time.Duration `json:"active"` // since it was heard; 0: never by this leader
	}
	var answer struct {
		Data struct {
			Meta struct {
				Leader   string `json:"leader"`
				Peer     string `json:"peer"`
				Replicas []peer `json:"replicas"`
			} `json:"meta_cluster"`
		} `json:"data"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return nil, false, fmt.Errorf("natslink: answer %.80q: %w", m.Data, err)
	}
	meta := answer.Data.Meta
	all = []Core{{Node: a.nodeOf(meta.Leader), Runs: true, leads: true, id: meta.Peer}}
	for _, p := range meta.Replicas {
		runs := !p.Offline && p.Active > 0 && p.Active < silentAfter
		all = append(all, Core{Node: a.nodeOf(p.Name), Runs: runs, id: p.Peer})
		unheard = unheard || !runs && !p.Offline
	}
	slices.SortFunc(all, func(a, b Core) int { return cmp.Compare(a.Node, b.Node) })
	return all, unheard, nil
}

// nodeOf is the node of a server of the site, or "" where its name is not known.
func (a *attachment) nodeOf(server string) string {
	node, _ := strings.CutPrefix(server, a.siteOf()+".")
	if !isName(node) {
		return ""
	}
	return node
}

// peerID is how NATS calls a server among those that agree. They remember it when they have forgotten the name.
func peerID(server string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(server))
	id := make([]byte, 8)
	for i := range id {
		id[i] = digits[int(sum[i])%len(digits)]
	}
	return string(id)
}

func noLeader(err error) error {
	return fmt.Errorf("%w: the cores of the site have no leader now: more than half of them must run and reach each other; "+
		"start those that are away (anteroom doctor names them) and try again: %w", cluster.ErrUnavailable, err)
}

// removePeer removes the core with an id, so that at least so many are left.
func (a *attachment) removePeer(ctx context.Context, id, node string, least int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*apiTimeout)
	defer cancel()
	for asked := false; ; {
		all, err := a.cores(ctx)
		if err != nil {
			if asked && a.server.isRemoved() {
				return nil // it was this one
			}
			if errors.Is(err, cluster.ErrUnavailable) && pause(ctx, minBackoff) {
				continue // another one is being elected
			}
			return err
		}
		i := slices.IndexFunc(all, func(c Core) bool { return c.id == id })
		switch {
		case i < 0 && asked:
			a.system.Publish(subjectRemoved, []byte(id)) // an error means that nobody hears it
			if id == a.server.id() {
				a.server.retire()
			}
			return nil
		case i < 0:
			return fmt.Errorf("cluster: %q is no core of this site", node)
		case len(all) <= least:
			return fmt.Errorf("cluster: %q is one of %d cores of its site, which needs %d: only anteroom cluster shrink leaves one", node, len(all), least)
		}
		// Without a leader, nothing is written until the others have elected one. That takes seconds, unless the leader
		// hands over before it goes.
		if least > 0 {
			a.unlead(ctx, node)
		}
		if all[i].leads {
			if err := askFor(ctx, a.system, "$JS.API.META.LEADER.STEPDOWN", nil, nil); err != nil && ctx.Err() != nil {
				return noLeader(err)
			}
			if !pause(ctx, minBackoff) {
				return noLeader(ctx.Err())
			}
			continue
		}
		err = askFor(ctx, a.system, "$JS.API.SERVER.REMOVE", map[string]string{"peer_id": id}, nil)
		_, refused := errors.AsType[*apiError](err)
		switch {
		// It is on its way, or the answer was lost. The removal is lost, too, if another one is elected before it is noted.
		case !refused:
			asked = true
			if !pause(ctx, minBackoff) {
				return noLeader(ctx.Err())
			}
			continue
		// The core that takes its place may have come a moment ago, or the removal is under way.
		case !strings.Contains(err.Error(), "member change is in progress"):
			return fmt.Errorf("cluster: core %q is not removed: %w", node, err)
		}
		if !pause(ctx, maxBackoff/2) {
			return noLeader(err)
		}
	}
}

// StepAside has other cores lead what the core of a link leads, and waits for that, for as long as ctx lasts. A core does it
// before it gives up its roles and ends: otherwise those who take them write to a leader that is going, and wait for the
// next one. Where there are no other cores, it does nothing.
func StepAside(ctx context.Context, l cluster.Link) {
	j, ok := l.(*joined)
	if !ok || len(j.att.coreList()) < 2 || j.att.system == nil {
		return
	}
	a := j.att
	a.aside.Store(true)
	srv := a.server.srv()
	for again := false; ; again = true {
		leads := srv.JetStreamIsLeader()
		if leads && !again {
			// An error shows in that it leads still.
			askFor(ctx, a.system, "$JS.API.META.LEADER.STEPDOWN", nil, nil)
		}
		for _, one := range []struct {
			account, stream string
			nc              *nats.Conn
		}{
			{accountSite, j.site.keys.stream, a.site}, {accountSite, j.books.store.stream, a.site},
			{accountShared, j.hub.stream, a.shared}, {accountShared, mirrorPrefix + j.hub.stream, a.shared},
		} {
			if !srv.JetStreamIsStreamLeader(one.account, one.stream) {
				continue
			}
			if leads = true; !again {
				askFor(ctx, one.nc, "$JS.API.STREAM.LEADER.STEPDOWN."+one.stream, nil, nil)
			}
		}
		if again && !leads || !pause(ctx, minBackoff) {
			return
		}
	}
}

// unlead has other cores lead the streams that a node leads, as far as that can be done now.
func (a *attachment) unlead(ctx context.Context, node string) {
	for _, account := range []struct {
		nc     *nats.Conn
		domain string
		shared bool
	}{{a.site, "", false}, {a.shared, "", true}} {
		streams, err := lookStreams(ctx, account.nc, account.domain, account.shared)
		if err != nil {
			continue
		}
		for _, s := range streams {
			if s.Leader != a.siteOf()+"."+node {
				continue
			}
			if err := askFor(ctx, account.nc, "$JS.API.STREAM.LEADER.STEPDOWN."+s.Name, nil, nil); err != nil {
				a.cfg.Log.Warn("a core that is removed leads a stream still", "core", node, "stream", s.Name, "error", err)
			}
		}
	}
}

// askFor sends a request to JetStream, without a body where that is nil, and reads its answer; into nothing where that is
// nil.
func askFor(ctx context.Context, nc *nats.Conn, subject string, request, result any) error {
	body, err := question(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return err
	}
	return answerOf(m.Data, result)
}

// removal is how NATS says that the others have removed the server.
const removal = "our server was removed from the cluster"

// retire notes that the others have removed this core, in its directory too: a server that starts on it would be let in
// again.
func (s *coreServer) retire() {
	s.retiring.Do(func() {
		if err := writeLayout(s.cfg.Dir, layout{s.cfg.Cluster, s.cfg.Site, s.cfg.Node, shapeRemoved}); err != nil {
			s.log.say(slog.LevelError, "this core was removed, and its directory does not say so: %v", []any{err})
		}
		close(s.removed)
	})
}

// isRemoved reports whether the others have removed this core.
func (s *coreServer) isRemoved() bool {
	select {
	case <-s.removed:
		return true
	default:
		return false
	}
}

// whole reports whether everything that the site of the link keeps has as many copies as it should have, all of them up
// to date.
func (f Facts) whole() bool {
	return f.Current("") && !slices.ContainsFunc(f.Streams, func(s StreamFacts) bool { return f.own(s) && s.Copies != 1+len(s.Replicas) })
}

// Current reports whether all copies of what the site of the link keeps are up to date, except those of one server
// (site.node): "" excepts none.
func (f Facts) Current(except string) bool {
	return len(f.Streams) > 0 && !slices.ContainsFunc(f.Streams, func(s StreamFacts) bool {
		return f.own(s) && (s.Copies > 1 && s.Leader == "" ||
			slices.ContainsFunc(s.Replicas, func(r ReplicaFacts) bool { return r.Server != except && (!r.Current || r.Offline) }))
	})
}

// own reports whether a stream is kept by the cores of this site: the hub keeps what all sites share.
func (f Facts) own(s StreamFacts) bool { return !s.Shared || f.Core != nil && f.Core.Hub }

// AwaitWhole waits until the facts of a link are whole, for as long as ctx lasts, and reports whether they are.
func AwaitWhole(ctx context.Context, l cluster.Link) bool { return awaitFacts(ctx, l, Facts.whole) }

// AwaitCurrent waits until all copies but those of a node of the link's site are up to date, for as long as ctx lasts, and
// reports whether they are. A copy is behind for a moment whenever another core begins to lead.
func AwaitCurrent(ctx context.Context, l cluster.Link, except string) bool {
	server := l.Health().SiteName + "." + except
	return awaitFacts(ctx, l, func(f Facts) bool { return f.Current(server) })
}

func awaitFacts(ctx context.Context, l cluster.Link, ok func(Facts) bool) bool {
	for {
		if f, err := Look(ctx, l); err == nil && ok(f) {
			return true
		}
		if !pause(ctx, 200*time.Millisecond) {
			return false
		}
	}
}
