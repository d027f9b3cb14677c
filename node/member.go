package node

// A node's part in a cluster: its doors, the roles that it holds, and how it asks other nodes.

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator"
	"github.com/anteroom/anteroom/engine"
)

// Cluster says which part of a cluster a node is.
type Cluster struct {
	// Site is the name of the data center, and of the site in the ledger: 1 to 63 lower-case letters, digits and
	// dashes. Required.
	Site string
	// Node names the node in the site. Required.
	Node string
	// Process is a number that no other process of the cluster has or had: random, and new at each start. If zero, one
	// is chosen.
	Process uint64
	// Hub says that the coordinators run in this site.
	Hub bool
	// Core says that the node stores a part of the data; for the status only.
	Core bool
	// Edge says that the node holds no roles: its doors ask the nodes that do.
	Edge bool
	// Weight is the site's share of idle permits in relation to other sites; zero means 1.
	Weight int
	// Version of the program, for the status.
	Version string
	// State, if set, returns a digest of the node's configuration, so that nodes can be compared. It must not block.
	State func() string
}

func (c *Cluster) check() error {
	switch {
	case !siteName(c.Site):
		return fmt.Errorf("node: %q is not a valid name for a site: use 1 to 63 lower-case letters, digits and dashes", c.Site)
	case c.Node == "" || cluster.CheckKey("members."+c.Node) != nil:
		return fmt.Errorf("node: %q is not a valid name for a node: use letters, digits and dashes", c.Node)
	case c.Weight < 0:
		return fmt.Errorf("node: the weight of a site is at least 1, not %d", c.Weight)
	}
	return nil
}

// numberOf turns a name into a number other than 0.
func numberOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return max(1, h.Sum64())
}

// siteName reports whether a name can be that of a data center.
func siteName(name string) bool {
	return name != "" && len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// member is a node's part in a cluster.
type member struct {
	node    *Node
	cfg     Cluster
	link    cluster.Link
	log     *slog.Logger
	shards  [cluster.Shards]*shard
	roles   *cluster.Roles
	host    *coordinator.Host // nil outside the hub
	client  *coordinator.Client
	garbled atomic.Uint64 // messages that could not be read
	unsent  atomic.Uint64 // messages that could not be sent

	number uint64 // of the node, by its name: the same after each restart

	namesake    atomic.Bool // another site has this site's name
	severalHubs bool        // what announce has said last
	reclaimed   bool        // Config.Forgot was applied to the name; used by announce only

	leave   context.CancelFunc // hands the roles over
	leaving context.Context

	mu     sync.Mutex
	sites  [cluster.Shards]*siteRole  // nil: not held here
	ahead  [cluster.Shards]*readAhead // of site roles that are to come here
	retain time.Duration              // retention of journals; 0: unchanged
	forgot [cluster.Shards]bool       // Config.Forgot was applied to the shard

	retaining chan struct{} // signals that retain has changed, or that the first role was gained
	plans     sync.Map      // anteroom.RoomID -> *anteroom.Room
}

const (
	siteRolePrefix  = "site."
	coordRolePrefix = "coordinator."
)

func newMember(n *Node) (*member, error) {
	cfg := *n.cfg.Cluster
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Process == 0 {
		cfg.Process = uniqueProcess()
	}
	n.clock, _ = startClock(mark{}) // time and journals belong to the roles
	n.figures.process = cfg.Process
	x := &member{node: n, cfg: cfg, link: n.cfg.Link, log: n.log, retaining: make(chan struct{}, 1), client: coordinator.NewClient(n.cfg.Link), number: numberOf(cfg.Node)}
	x.leaving, x.leave = context.WithCancel(context.Background())
	for i := range x.shards {
		x.shards[i] = newShard(x, i)
	}
	var names []string
	// An edge is not a candidate: it has no part of the store, so it could hold a role only as long as its core
	// answers.
	for i := range cluster.Shards {
		if cfg.Edge {
			break
		}
		names = append(names, fmt.Sprintf("%s%02d", siteRolePrefix, i))
		// Coordinators live at the hub, where all sites meet; elsewhere they would lose sites with the first cut.
		if cfg.Hub {
			names = append(names, fmt.Sprintf("%s%02d", coordRolePrefix, i))
		}
	}
	if cfg.Hub && !cfg.Edge {
		x.host = coordinator.New(coordinator.Config{Link: x.link, Plan: x.plan, Time: x.knownTime, Recorder: n.recorder, Log: x.log})
	}
	var err error
	x.roles, err = cluster.NewRoles(cluster.RolesConfig{Space: x.link.Site(), Roles: names, Gained: x.gained, Prepare: x.prepare, Lost: x.lost, Log: x.log,
		Describe: func(m *cluster.Member) {
			if cfg.State != nil {
				m.State = cfg.State()
			}
		},
		Self: cluster.Member{Node: cfg.Node, Boot: fmt.Sprintf("%016x", cfg.Process), Site: cfg.Site, Version: cfg.Version,
			Wire: [2]int{engine.WireVersion, engine.WireVersion}, Core: cfg.Core, Started: time.Now()}})
	return x, err
}

func (x *member) open(_ context.Context, rooms []*anteroom.Room) (opened []*Room, _ error) {
	for _, r := range rooms {
		opened = append(opened, x.openFar(r))
	}
	return opened, nil
}

// bequeath has other nodes prepare for the roles held here, for as long as ctx lasts.
func (x *member) bequeath(ctx context.Context) { x.roles.Bequeath(ctx) }

// release hands the roles over; the doors stay open.
func (x *member) release() { x.leave() }

func (x *member) tick(anteroom.Time, bool) { x.speak() }

// stalled: the holders of roles send nothing that is not recorded.
func (x *member) stalled() bool { return false }

func (x *member) cutOff() bool { return x.link.Health().CutOff }

// roomTime is the shard's, so that all processes mean the same minute.
func (x *member) roomTime(id anteroom.RoomID) func() anteroom.Time {
	return x.shards[cluster.ShardOf(string(id))].clock.now
}

// knownTime returns the room time of a shard at a moment, if this node's doors or its site role were told it lately.
func (x *member) knownTime(shard int, at time.Time) (anteroom.Time, bool) {
	if now, ok := x.shards[shard].clock.lately(at); ok {
		return now, true
	}
	if role := x.siteRole(shard); role != nil {
		if s := role.now.Load(); s != nil {
			return s.clock.lately(at)
		}
	}
	return 0, false
}

// plan returns a room as configured.
func (x *member) plan(id anteroom.RoomID) (anteroom.Room, bool) {
	v, ok := x.plans.Load(id)
	if !ok {
		return anteroom.Room{}, false
	}
	return *v.(*anteroom.Room), true
}

// configure puts the plan of a room in force in the roles held here.
func (x *member) configure(room *anteroom.Room) {
	if before, _ := x.plans.Swap(room.ID, room); before != any(room) {
		x.planned(room.ID)
	}
}

// forget ends what the roles held here decide about a room.
func (x *member) forget(id anteroom.RoomID) {
	x.plans.Delete(id)
	x.planned(id)
}

func (x *member) planned(id anteroom.RoomID) {
	if x.host != nil {
		x.host.Configure(id)
	}
	if role := x.siteRole(cluster.ShardOf(string(id))); role != nil {
		role.configure(id)
	}
}

// siteRole returns the site role of a shard if this node holds it, or nil.
func (x *member) siteRole(shard int) *siteRole {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sites[shard]
}

// keep leaves it to the holders of roles to tell the store.
func (x *member) keep(_ context.Context, d time.Duration) error {
	x.mu.Lock()
	x.retain = d
	x.mu.Unlock()
	select {
	case x.retaining <- struct{}{}:
	default: // a signal is pending already
	}
	return nil
}

// keepLong tells the store how long to keep records, until ctx ends.
func (x *member) keepLong(ctx context.Context) {
	var told time.Duration
	for {
		x.mu.Lock()
		want := x.retain
		held := slices.ContainsFunc(x.sites[:], func(r *siteRole) bool { return r != nil })
		x.mu.Unlock()
		wait := time.Hour // the store may have been replaced by another
		// Only a holder tells the store: nodes with different configurations would overwrite each other.
		if held && want != 0 {
			err := x.link.Retain(ctx, want)
			switch {
			case err != nil && ctx.Err() == nil:
				wait = againMax
				x.log.Warn("the retention of journals cannot be set in the store; retrying", "error", err)
			case want != told:
				told = want
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-x.retaining:
		case <-time.After(wait):
		}
	}
}

func (x *member) journalStats() (all JournalStats) {
	for i := range x.sites {
		role := x.siteRole(i)
		if role == nil {
			continue
		}
		// The journal is being taken over, so nothing can be recorded now.
		s := role.now.Load()
		if s == nil {
			all.Failing = true
			continue
		}
		one := s.journal.stats()
		all.Records += one.Records
		all.Bytes += one.Bytes
		all.Events += one.Events
		all.Failures += one.Failures
		all.Lost += one.Lost
		all.Failing = all.Failing || one.Failing
		all.Slowest = max(all.Slowest, one.Slowest)
	}
	return all
}

// processOf returns the number of a member's process.
func processOf(m cluster.Member) uint64 {
	n, _ := strconv.ParseUint(m.Boot, 16, 64)
	return n
}

// roleOf splits the name of a role.
func roleOf(name string) (site bool, shard int, ok bool) {
	digits, site := strings.CutPrefix(name, siteRolePrefix)
	if !site {
		if digits, ok = strings.CutPrefix(name, coordRolePrefix); !ok {
			return false, 0, false
		}
	}
	shard, err := strconv.Atoi(digits)
	return site, shard, err == nil && shard >= 0 && shard < cluster.Shards
}

func (x *member) gained(role string, epoch uint64) {
	site, shard, ok := roleOf(role)
	switch {
	case !ok:
	case site:
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.sites[shard] == nil {
			x.sites[shard] = x.newSiteRole(shard, epoch)
			// The first role makes this node responsible for the retention.
			select {
			case x.retaining <- struct{}{}:
			default:
			}
		}
	case x.host != nil:
		x.host.Gain(shard, epoch)
	}
}

// lost gives a role up: when it returns, nothing of it leaves this process any more.
func (x *member) lost(role string) {
	site, shard, ok := roleOf(role)
	switch {
	case !ok:
	case site:
		x.mu.Lock()
		held := x.sites[shard]
		x.sites[shard] = nil
		// Outside the lock: the last writes may take a second, and requests ask which roles are held.
		x.mu.Unlock()
		if held != nil {
			held.end()
		}
	case x.host != nil:
		x.host.Lose(shard)
	}
}

// run takes part in the cluster until ctx ends.
func (x *member) run(ctx context.Context) error {
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	listen := func(space cluster.Space, subject string, fn func(cluster.Message)) error {
		stop, err := space.Subscribe(subject, fn)
		if err != nil {
			return fmt.Errorf("node: cannot subscribe to %s: %w", subject, err)
		}
		stops = append(stops, stop)
		return nil
	}
	if err := listen(x.link.Site(), toDoorSubject(x.cfg.Process), x.hear); err != nil {
		return err
	}
	if x.node.cfg.Minutes != nil {
		if err := listen(x.link, figuresSubject, x.hearFigures); err != nil {
			return err
		}
	}
	// Subscriptions before anything is asked, so that no answer is missed.
	for i, s := range x.shards {
		if err := listen(x.link.Site(), toDoorsSubject(i), s.hear); err != nil {
			return err
		}
	}
	var work sync.WaitGroup
	// The doors go on until those who have taken the roles have heard their last words.
	speaking, silence := context.WithCancel(context.WithoutCancel(ctx))
	defer silence()
	for _, s := range x.shards {
		work.Go(func() { s.run(speaking) })
	}
	// A node that leaves hands its roles over, but its doors go on until ctx ends.
	holding, release := context.WithCancel(ctx)
	defer release()
	stopLeaving := context.AfterFunc(x.leaving, release)
	defer stopLeaving()
	if x.host != nil {
		work.Go(func() {
			if err := x.host.Run(ctx); err != nil && ctx.Err() == nil {
				x.log.Error("the coordinators have stopped", "error", err)
			}
		})
	}
	named := make(chan struct{})
	work.Go(func() { x.announce(ctx, sync.OnceFunc(func() { close(named) }), release) })
	work.Go(func() { x.keepLong(ctx) })
	work.Go(func() {
		defer silence()
		defer x.sayLastWords()
		select {
		// Roles only after the name is known to be this site's own: two sites with one name would spend the same units.
		case <-named:
		case <-ctx.Done():
		}
		if err := x.roles.Run(holding); err != nil && holding.Err() == nil {
			x.log.Error("this node no longer holds roles", "error", err)
		}
		<-ctx.Done() // roles may have been handed over before
	})
	work.Wait()
	return nil
}

// lastWordsWithin bounds how long a node that stops waits for its site to have heard its doors.
const lastWordsWithin = time.Second

// sayLastWords tells the site that the doors here admit nobody any more. Without that, it holds the seats of all whom they
// may be admitting for up to half a session and a session. Those who decide now have to hear it, so the roles of this node
// must have been handed over before.
func (x *member) sayLastWords() {
	x.node.releaseRooms()
	others := slices.ContainsFunc(x.roles.Heard(), func(m cluster.Member) bool { return m.Hosts && m.Node != x.cfg.Node })
	for end := time.Now().Add(lastWordsWithin); ; time.Sleep(lastWordsWithin / 50) {
		confirmed := true
		x.node.mu.RLock()
		for _, r := range x.node.rooms {
			confirmed = r.decider.(*far).end() && confirmed
		}
		x.node.mu.RUnlock()
		if confirmed || !others || !time.Now().Before(end) {
			return
		}
	}
}

// hear handles the messages of the site to this process.
func (x *member) hear(m cluster.Message) {
	frames, err := cluster.Frames(m.Data)
	if err != nil {
		x.malformed("", err)
		return
	}
	for raw, body := range frames {
		if r := x.roomOf(raw); r != nil {
			r.hear(body)
		}
	}
}

// siteNames returns the sites of the cluster, or only this one if nothing else is known.
func (x *member) siteNames(ctx context.Context) ([]string, error) {
	keys, err := x.link.Keys(ctx, sitePrefix)
	names := []string{x.cfg.Site}
	for _, k := range keys {
		if name := strings.TrimPrefix(k, sitePrefix); name != x.cfg.Site {
			names = append(names, name)
		}
	}
	return names, err
}
