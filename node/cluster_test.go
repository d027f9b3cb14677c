package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
)

// group is a cluster under test: nodes of several sites that serve the same room.
type group struct {
	t     *testing.T
	world *memlink.World
	room  anteroom.Room
	rooms []anteroom.Room
	hub   string
	nodes map[string]*peer
	admit bool // on_failure: admit_new
	// over, if set, puts something between a node and its link.
	over func(cluster.Link) cluster.Link
}

// peer is the process of a node.
type peer struct {
	*Node
	group *group
	site  string
	name  string
	link  cluster.Link
	stop  context.CancelFunc
	done  chan struct{}
	kept  keeper // of what is recorded
}

// together runs a test with a cluster whose nodes are named by site and number: "dublin-1". The
// first site is the hub. Time is virtual.
func together(t *testing.T, room anteroom.Room, nodes string, test func(t *testing.T, g *group)) {
	t.Helper()
	togetherOver(t, nil, room, nodes, test)
}

// togetherOver is together with something between the nodes and their links.
func togetherOver(t *testing.T, over func(cluster.Link) cluster.Link, room anteroom.Room, nodes string, test func(t *testing.T, g *group)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &group{t: t, world: memlink.NewWorld(), room: room, rooms: []anteroom.Room{room}, nodes: map[string]*peer{}, over: over}
		g.world.Star()
		for name := range strings.FieldsSeq(nodes) {
			g.start(name)
		}
		t.Cleanup(func() {
			for _, p := range g.nodes {
				p.kill()
			}
		})
		g.settled()
		time.Sleep(4 * time.Second) // a coordinator that begins listens whether a site knows the time
		test(t, g)
	})
}

// start begins the process of a node.
func (g *group) start(name string) *peer {
	g.t.Helper()
	p := g.begin(name)
	g.nodes[name] = p
	return p
}

// begin is start for somebody who adds it to the nodes.
func (g *group) begin(name string) *peer {
	g.t.Helper()
	site, _, _ := strings.Cut(name, "-")
	if g.hub == "" {
		g.hub = site
	}
	p := &peer{group: g, site: site, name: name, link: g.world.Join(site, name), done: make(chan struct{})}
	if g.over != nil {
		p.link = g.over(p.link)
	}
	log := slog.DiscardHandler
	if testing.Verbose() {
		log = slog.NewTextHandler(lines{g.t}, nil)
	}
	var err error
	p.Node, err = New(g.t.Context(), Config{Link: p.link, Minutes: p.kept.hear, Log: slog.New(log).With("node", name),
		Cluster: &Cluster{Site: site, Node: name, Hub: site == g.hub, Version: "test"}})
	if err != nil {
		g.t.Fatal(err)
	}
	p.AdmitUnrecorded(g.admit)
	if err := p.Apply(g.t.Context(), g.rooms); err != nil {
		g.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		defer close(p.done)
		p.Run(ctx)
	}()
	return p
}

// kill ends the process as kill -9 would: nothing more leaves it.
func (p *peer) kill() {
	p.link.Close()
	p.stop()
	<-p.done
	p.group.without(p)
}

// leave ends the process as an operator does: it hands over what it holds.
func (p *peer) leave() {
	ctx, cancel := context.WithTimeout(p.group.t.Context(), 2*time.Second)
	p.Bequeath(ctx)
	cancel()
	p.Release()
	p.stop()
	<-p.done
	p.link.Close()
	p.group.without(p)
}

func (g *group) without(p *peer) {
	if g.nodes[p.name] == p {
		delete(g.nodes, p.name)
	}
}

// pass lets time pass, and what is under way end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// settled waits until every shard of every site is served.
func (g *group) settled() {
	g.t.Helper()
	for range 200 {
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		served := map[string]int{}
		for _, p := range g.nodes {
			for i := range cluster.Shards {
				if role := p.member().siteRole(i); role != nil && role.now.Load() != nil {
					served[p.site]++
				}
				if _, ok := p.member().roles.Held(fmt.Sprintf("%s%02d", coordRolePrefix, i)); ok {
					served[""]++
				}
			}
		}
		whole := served[""] == cluster.Shards
		for _, p := range g.nodes {
			whole = whole && served[p.site] == cluster.Shards
		}
		if whole {
			return
		}
	}
	g.t.Fatal("some shard is not served after 20 s")
}

// holder is the node that holds the site role of the room's shard in a site.
func (g *group) holder(site string) *peer {
	for _, p := range g.nodes {
		if p.site == site && p.member().siteRole(cluster.ShardOf(string(g.room.ID))) != nil {
			return p
		}
	}
	g.t.Fatalf("nobody decides in %s", site)
	return nil
}

// coordinatorHolder is the node that coordinates the room.
func (g *group) coordinatorHolder() *peer {
	for _, p := range g.nodes {
		if _, ok := p.member().roles.Held(fmt.Sprintf("%s%02d", coordRolePrefix, cluster.ShardOf(string(g.room.ID)))); ok {
			return p
		}
	}
	g.t.Fatal("nobody coordinates")
	return nil
}

// other is a node of the site that is not p.
func (g *group) other(site string, p *peer) *peer {
	for _, o := range g.nodes {
		if o.site == site && o != p {
			return o
		}
	}
	g.t.Fatalf("%s has no other node", site)
	return nil
}

func (g *group) node(name string) *peer { return g.nodes[name] }

// configure puts the room with other settings in force at every node.
func (g *group) configure(change func(*anteroom.Room)) {
	change(&g.room)
	g.rooms = []anteroom.Room{g.room}
	for _, p := range g.nodes {
		if err := p.Apply(g.t.Context(), g.rooms); err != nil {
			g.t.Fatal(err)
		}
	}
}

// lines writes a log to the test's.
type lines struct{ t *testing.T }

func (w lines) Write(b []byte) (int, error) {
	w.t.Logf("%s %s", time.Now().Format("15:04:05.000"), b)
	return len(b), nil
}

// guest is a visitor with a cookie jar.
type guest struct {
	ticket anteroom.Ticket
	known  bool
	id     anteroom.ID // of the first request without a ticket
	next   time.Time   // when the page comes back
}

var guests atomic.Uint64

// freshID is an id that nobody has, and as random as ids are.
func freshID() (id anteroom.ID) {
	n := rand.NewPCG(guests.Add(1), 7)
	binary.LittleEndian.PutUint64(id[:], n.Uint64())
	binary.LittleEndian.PutUint64(id[8:], n.Uint64())
	return id
}

func newGuest() *guest { return &guest{id: freshID()} }

func (v *guest) visit() anteroom.Visit {
	if v.known {
		return anteroom.Visit{Ticket: v.ticket, NewID: freshID()}
	}
	return anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: v.id}, NewID: freshID()}
}

// at makes a request at a node.
func (v *guest) at(t *testing.T, p *peer) anteroom.Decision {
	t.Helper()
	d := p.Room(p.group.room.ID).Decide(t.Context(), v.visit())
	v.take(d)
	return d
}

func (v *guest) take(d anteroom.Decision) {
	if !d.Ticket.ID.IsZero() && (d.SetCookie || !v.known) {
		v.ticket, v.known = d.Ticket, true
	}
}

// patient lets visitors come back when they are told to, at nodes as where says, for so long or
// until done says so.
func (g *group) patient(who []*guest, where func(i int) *peer, long time.Duration, done func(i int, d anteroom.Decision) bool) bool {
	end := time.Now().Add(long)
	for {
		first := 0
		for i, v := range who {
			if v.next.Before(who[first].next) {
				first = i
			}
		}
		v := who[first]
		if v.next.After(end) {
			time.Sleep(time.Until(end))
			return false
		}
		time.Sleep(time.Until(v.next))
		d := v.at(g.t, where(first))
		v.next = time.Now().Add(max(d.Refresh, time.Second))
		if done(first, d) {
			return true
		}
	}
}

// want makes a request and says when the answer is another.
func (v *guest) want(t *testing.T, p *peer, want anteroom.Verdict) anteroom.Decision {
	t.Helper()
	d := v.at(t, p)
	if d.Verdict != want {
		t.Errorf("%s at %s: %v %v, want %v", time.Now().Format("15:04:05.000"), p.name, d.Verdict, d.Reason, want)
	}
	return d
}

// judge counts sessions as an origin does: by who comes through.
type judge struct {
	limit, rate int
	length      time.Duration

	mu      sync.Mutex
	last    map[anteroom.ID]time.Time
	entered []time.Time
	faults  []string
}

func newJudge(s anteroom.Settings) *judge {
	return &judge{limit: s.TotalActiveUsers, rate: s.NewUsersPerMinute, length: s.SessionDuration, last: map[anteroom.ID]time.Time{}}
}

// saw notes a request that came through with a ticket.
func (j *judge) saw(id anteroom.ID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	before, known := j.last[id]
	j.last[id] = now
	// A session goes on for as long as a touch may be on its way to the site, which keeps the seat until then.
	if known && now.Sub(before) < j.length+engine.TouchDelay {
		return
	}
	if known {
		j.faults = append(j.faults, fmt.Sprintf("%v: a session went on %v after its last request", now, now.Sub(before)))
	}
	j.entered = append(j.entered, now)
	active, recent := 0, 0
	for _, at := range j.last {
		if now.Sub(at) < j.length {
			active++
		}
	}
	for _, at := range slices.Backward(j.entered) {
		if now.Sub(at) >= time.Minute {
			break
		}
		recent++
	}
	if active > j.limit {
		j.faults = append(j.faults, fmt.Sprintf("%v: %d active of %d", now, active, j.limit))
	}
	if recent > j.rate {
		j.faults = append(j.faults, fmt.Sprintf("%v: %d in a minute, of %d", now, recent, j.rate))
	}
}

func (j *judge) check(t *testing.T) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, f := range j.faults {
		if i == 10 {
			t.Errorf("and %d more", len(j.faults)-i)
			break
		}
		t.Error(f)
	}
}

const three = "dublin-1 dublin-2 dublin-3"

func TestAnyNodeServesAnyVisitor(t *testing.T) {
	together(t, shop, three, func(t *testing.T, g *group) {
		ann, bob, cid, dan := newGuest(), newGuest(), newGuest(), newGuest()
		ann.want(t, g.node("dublin-1"), anteroom.Admit)
		bob.want(t, g.node("dublin-2"), anteroom.Admit)
		cid.want(t, g.node("dublin-3"), anteroom.Wait)
		dan.want(t, g.node("dublin-1"), anteroom.Wait)
		for i, name := range strings.Fields(three + " " + three) {
			if d := ann.want(t, g.node(name), anteroom.Admit); d.Reason != anteroom.ReasonSession {
				t.Errorf("ann's request %d: %v", i, d.Reason)
			}
			time.Sleep(5 * time.Second)
			if d := dan.want(t, g.node(name), anteroom.Wait); d.AheadKnown && d.Ahead > 1 {
				t.Errorf("dan at %s: %d ahead, want at most 1", name, d.Ahead)
			}
			cid.want(t, g.node(name), anteroom.Wait)
		}
		// Bob's session lapses; the turn is cid's, wherever he comes.
		time.Sleep(time.Minute - 28*time.Second)
		var at time.Duration
		for began := time.Now(); cid.at(t, g.node("dublin-2")).Verdict != anteroom.Admit; time.Sleep(2 * time.Second) {
			if at = time.Since(began); at > 30*time.Second {
				t.Fatal("cid does not get the free seat")
			}
			ann.want(t, g.node("dublin-3"), anteroom.Admit)
			dan.want(t, g.node("dublin-1"), anteroom.Wait)
		}
		cid.want(t, g.node("dublin-1"), anteroom.Admit)
	})
}

func TestSixParallelRequestsAreOneVisitor(t *testing.T) {
	for _, c := range []struct {
		name  string
		taken int
		want  anteroom.Verdict
	}{{"seat", 0, anteroom.Admit}, {"place", 2, anteroom.Wait}} {
		t.Run(c.name, func(t *testing.T) {
			together(t, shop, three, func(t *testing.T, g *group) {
				for range c.taken {
					newGuest().want(t, g.node("dublin-1"), anteroom.Admit)
				}
				ann := newGuest()
				var work sync.WaitGroup
				answers := make([]anteroom.Decision, 6)
				names := strings.Fields(three)
				for i := range answers {
					v := ann.visit()
					work.Go(func() { answers[i] = g.node(names[i%3]).Room(shop.ID).Decide(t.Context(), v) })
				}
				work.Wait()
				for i, d := range answers {
					if d.Verdict != c.want || d.Ticket.ID != ann.id {
						t.Errorf("request %d: %v %v, ticket %v, want %v", i, d.Verdict, d.Reason, d.Ticket.ID.Reference(), c.want)
					}
				}
				time.Sleep(2 * time.Second)
				s := g.node("dublin-3").Room(shop.ID).Status()
				seats, places := 1, 0
				if c.want == anteroom.Wait {
					seats, places = 2, 1
				}
				if s.ActiveUsers != seats || s.Waiting+s.Dormant != places {
					t.Errorf("%d seats and %d places, want %d and %d", s.ActiveUsers, s.Waiting+s.Dormant, seats, places)
				}
			})
		})
	}
}

func TestVisitorsGoToAnotherSite(t *testing.T) {
	together(t, shop, "dublin-1 dublin-2 tokyo-1", func(t *testing.T, g *group) {
		ann, bob, cid := newGuest(), newGuest(), newGuest()
		ann.want(t, g.node("dublin-1"), anteroom.Admit)
		bob.want(t, g.node("tokyo-1"), anteroom.Admit)
		cid.want(t, g.node("dublin-2"), anteroom.Wait)
		for _, name := range []string{"tokyo-1", "dublin-1", "tokyo-1", "dublin-2"} {
			if d := ann.want(t, g.node(name), anteroom.Admit); d.Ticket.ID != ann.id {
				t.Errorf("ann has another ticket at %s", name)
			}
			time.Sleep(3 * time.Second)
			if d := cid.want(t, g.node(name), anteroom.Wait); d.Ticket.ID != cid.id || d.AheadKnown && d.Ahead != 0 {
				t.Errorf("cid at %s: %v, %d ahead", name, d.Reason, d.Ahead)
			}
		}
		if s := g.node("tokyo-1").Room(shop.ID).Status(); s.ActiveUsers != 2 || s.Waiting+s.Dormant != 1 {
			t.Errorf("%d active, %d in line; want 2 and 1", s.ActiveUsers, s.Waiting+s.Dormant)
		}
	})
}

func TestATurnIsToldOnAStreamOfAnyNode(t *testing.T) {
	together(t, shop, "dublin-1 dublin-2 tokyo-1", func(t *testing.T, g *group) {
		ann, bob := newGuest(), newGuest()
		ann.want(t, g.node("dublin-1"), anteroom.Admit)
		bob.want(t, g.node("dublin-2"), anteroom.Admit)
		for _, name := range []string{"dublin-2", "tokyo-1"} {
			cid := newGuest()
			d, updates := g.node(name).Room(shop.ID).Watch(t.Context(), cid.visit())
			cid.take(d)
			if d.Verdict != anteroom.Wait || updates == nil {
				t.Fatalf("%s: %v %v, want a stream", name, d.Verdict, d.Reason)
			}
			time.Sleep(time.Second)
			if ok, err := g.node(name).Room(shop.ID).EndSession(t.Context(), ann.ticket.ID); !ok || err != nil {
				t.Errorf("%s: ann's session was not ended: %v, %v", name, ok, err)
			}
			began := time.Now()
			for u := range updates {
				if u.Verdict == anteroom.Admit {
					break
				}
			}
			if late := time.Since(began); late > time.Second {
				t.Errorf("%s: told after %v", name, late)
			}
			cid.want(t, g.node(name), anteroom.Admit)
			ann = cid
		}
	})
}

// What a stream tells first is what its site says; what it tells later is what its door makes of
// the figures. The door is bound by the first, whatever the cookie was told before.
func TestAPlaceOnAStreamDoesNotMoveBack(t *testing.T) {
	together(t, shop, "dublin-1 dublin-2", func(t *testing.T, g *group) {
		newGuest().want(t, g.node("dublin-1"), anteroom.Admit)
		newGuest().want(t, g.node("dublin-1"), anteroom.Admit)
		for range 5 {
			newGuest().want(t, g.node("dublin-1"), anteroom.Wait)
		}
		last := newGuest()
		last.want(t, g.node("dublin-1"), anteroom.Wait)
		last.ticket.Told = 100
		r := g.node("dublin-2").Room(shop.ID)
		d, updates := r.Watch(t.Context(), last.visit())
		if updates == nil || !d.AheadKnown {
			t.Fatalf("no stream with a place: %v %v", d.Verdict, d.Reason)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if told := r.watchers[last.ticket.ID][0].ticket.Told; int(told) != d.Ahead+1 {
			t.Errorf("the stream may tell %d ahead after %d", int(told)-1, d.Ahead)
		}
	})
}
