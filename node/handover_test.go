package node

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// slowly is a link on which reading a journal takes as long as many records do.
type slowly struct{ cluster.Link }

// perRecord is how long it takes to read a record.
const perRecord = 5 * time.Millisecond

func slow(fn func(time.Time, []byte) error) func(time.Time, []byte) error {
	return func(at time.Time, record []byte) error {
		<-time.After(perRecord)
		return fn(at, record)
	}
}

func (l slowly) Look(ctx context.Context, name string, from cluster.Place, fn func(time.Time, []byte) error) (cluster.Place, error) {
	return l.Link.Look(ctx, name, from, slow(fn))
}

func (l slowly) Journal(ctx context.Context, name string) (cluster.Journal, error) {
	j, err := l.Link.Journal(ctx, name)
	return slowJournal{j}, err
}

type slowJournal struct{ cluster.Journal }

func (j slowJournal) Replay(ctx context.Context, fn func(time.Time, []byte) error) error {
	return j.ReplayFrom(ctx, cluster.Place{}, fn)
}

func (j slowJournal) ReplayFrom(ctx context.Context, from cluster.Place, fn func(time.Time, []byte) error) error {
	return j.Journal.ReplayFrom(ctx, from, slow(fn))
}

// A node that stops in order holds nobody up for long: the next holder of its roles has read the journal by then, up to
// the last records, and knows the room time.
func TestAHandOverIsShort(t *testing.T) {
	room := shop
	room.TotalActiveUsers, room.NewUsersPerMinute = 10_000, 10_000
	for _, c := range []struct {
		name string
		who  func(g *group) *peer
	}{
		{"site", func(g *group) *peer { return g.holder("dublin") }},
		{"coordinator", (*group).coordinatorHolder},
	} {
		t.Run(c.name, func(t *testing.T) {
			togetherOver(t, func(l cluster.Link) cluster.Link { return slowly{l} }, room, three, func(t *testing.T, g *group) {
				gone := c.who(g)
				p := g.other("dublin", gone)
				ann := newGuest()
				ann.want(t, p, anteroom.Admit)
				var mu sync.Mutex
				var longest time.Duration
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				all.Go(func() {
					for ctx.Err() == nil {
						began := time.Now()
						if d := newGuest().want(t, p, anteroom.Admit); d.Verdict != anteroom.Admit {
							return
						}
						mu.Lock()
						longest = max(longest, time.Since(began))
						mu.Unlock()
						<-time.After(20 * time.Millisecond)
					}
				})
				pass(4 * time.Second) // some two hundred records
				mu.Lock()
				before := longest
				mu.Unlock()
				gone.leave()
				g.settled()
				pass(2 * time.Second)
				stop()
				all.Wait()
				t.Logf("the longest request took %v, and %v before", longest, before)
				if most := 100 * time.Millisecond; longest > most {
					t.Errorf("nobody was admitted for %v, at most %v are allowed", longest, most)
				}
				if d := ann.want(t, p, anteroom.Admit); d.Ticket.ID != ann.id {
					t.Error("a session is another's")
				}
			})
		})
	}
}

// A node whose visitors are decided about knows the room time, and one that has had none for a while does not rely on what
// it was told.
func TestTheRoomTimeIsKnown(t *testing.T) {
	together(t, shop, three, func(t *testing.T, g *group) {
		number := cluster.ShardOf(string(shop.ID))
		holder := g.holder("dublin")
		p := g.other("dublin", holder)
		for _, x := range g.nodes {
			if _, known := x.member().knownTime(number, time.Now()); known {
				t.Errorf("%s knows the time before anybody comes", x.name)
			}
		}
		newGuest().want(t, p, anteroom.Admit)
		pass(3 * time.Second)
		site := holder.member().siteRole(number).now.Load()
		at := time.Now()
		if now, known := p.member().knownTime(number, at); !known || now.Sub(site.clock.at(at)).Abs() > 5*time.Millisecond {
			t.Errorf("known: %v, off by %v", known, now.Sub(site.clock.at(at)))
		}
		g.world.CutNode(p.name, memlink.Both)
		pass(fresh + 2*time.Second)
		if _, known := p.member().knownTime(number, time.Now()); known {
			t.Errorf("%s has heard nothing for %v, and knows the time", p.name, fresh)
		}
		g.world.CutNode(p.name, memlink.None)
		pass(5 * time.Second)
	})
}

// The heir of a coordinator knows the room time before its coordinators begin, although nobody has come to it.
func TestAnHeirOfTheCoordinatorKnowsTheRoomTime(t *testing.T) {
	together(t, shop, three, func(t *testing.T, g *group) {
		number := cluster.ShardOf(string(shop.ID))
		role := fmt.Sprintf("%s%02d", coordRolePrefix, number)
		holder := g.holder("dublin")
		heir := g.other("dublin", holder)
		heir.member().prepare(t.Context(), role)
		if _, known := heir.member().knownTime(number, time.Now()); known {
			t.Error("the time is known before anybody has come")
		}
		newGuest().want(t, holder, anteroom.Admit)
		pass(3 * time.Second)
		heir.member().prepare(t.Context(), role)
		at := time.Now()
		want := holder.member().siteRole(number).now.Load().clock.at(at)
		if now, known := heir.member().knownTime(number, at); !known || now.Sub(want).Abs() > 5*time.Millisecond {
			t.Errorf("known: %v, off by %v", known, now.Sub(want))
		}
	})
}
