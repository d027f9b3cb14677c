package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
)

// crowd is many visitors who go from node to node while processes end and begin.
type crowd struct {
	t     *testing.T
	g     *group
	judge *judge

	mu     sync.Mutex // of what follows and of the group's nodes
	chance *rand.Rand
	faults []string
	inside int
	asked  int // pages that keep a session's cookie
	failed int // requests at a process that ended
}

func (c *crowd) draw(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chance.IntN(n)
}

func (c *crowd) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// somewhere is a node that is up.
func (c *crowd) somewhere(names []string) *peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for _, i := range c.chance.Perm(len(names)) {
			if p := c.g.nodes[names[i]]; p != nil {
				return p
			}
		}
		c.mu.Unlock()
		time.Sleep(time.Second) // the whole site is down
		c.mu.Lock()
	}
}

// up reports whether the process has not ended meanwhile: else the connection is broken, and
// nobody hears the answer.
func (c *crowd) up(p *peer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.g.nodes[p.name] == p
}

// visit makes a request somewhere until it is answered.
func (c *crowd) visit(v *guest, names []string) anteroom.Decision {
	for {
		p := c.somewhere(names)
		before := *v
		d := p.Room(c.g.room.ID).Decide(c.t.Context(), v.visit())
		if !c.up(p) {
			c.mu.Lock()
			c.failed++
			c.mu.Unlock()
			*v = before
			time.Sleep(500 * time.Millisecond)
			continue
		}
		v.take(d)
		if d.Verdict == anteroom.Admit {
			c.judge.saw(d.Ticket.ID)
		}
		return d
	}
}

// live is one visitor's life: waits for the turn, makes some requests and goes.
func (c *crowd) live(names []string) {
	v := newGuest()
	patience := time.Now().Add(3 * time.Minute)
	for {
		before := *v
		d := c.visit(v, names)
		if before.known && d.Ticket.ID != before.ticket.ID {
			c.fault("%v lost the place: %v %v", v.id.Reference(), d.Verdict, d.Reason)
			return
		}
		if d.Verdict == anteroom.Admit {
			break
		}
		if time.Now().After(patience) {
			return
		}
		time.Sleep(max(d.Refresh, time.Second) + time.Duration(c.draw(300))*time.Millisecond)
	}
	c.mu.Lock()
	c.inside++
	c.mu.Unlock()
	for range c.draw(5) {
		time.Sleep(time.Duration(c.draw(9_000)) * time.Millisecond)
		d := c.visit(v, names)
		for d.Verdict == anteroom.Wait && d.Ticket.ID.IsZero() {
			// Gone to another site while nobody answers at the first, which has the session: the cookie
			// stays, and the next request finds it.
			c.mu.Lock()
			c.asked++
			c.mu.Unlock()
			time.Sleep(d.Refresh)
			d = c.visit(v, names)
		}
		if d.Verdict != anteroom.Admit {
			c.fault("%v lost the session: %v %v", v.id.Reference(), d.Verdict, d.Reason)
			return
		}
	}
}

// TestACrowdWhileProcessesEnd: two sites, five nodes, a thousand visitors who hit another node
// at every request, a third of them of any site, and every few seconds a process is killed or restarted. Judged by who comes
// through.
func TestACrowdWhileProcessesEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const visitors, names = 1000, "dublin-1 dublin-2 dublin-3 tokyo-1 tokyo-2"
	room := shop
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration = 300, 800, time.Minute
	together(t, room, names, func(t *testing.T, g *group) {
		c := &crowd{t: t, g: g, judge: newJudge(room.Settings), chance: rand.New(rand.NewPCG(1, 2))}
		all := strings.Fields(names)
		var people, faults sync.WaitGroup
		for i := range visitors {
			people.Go(func() {
				time.Sleep(time.Duration(c.draw(90_000)) * time.Millisecond)
				switch i % 3 {
				case 0:
					c.live(all[:3])
				case 1:
					c.live(all[3:])
				default:
					c.live(all)
				}
			})
		}
		ctx, stop := context.WithCancel(t.Context())
		faults.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(8+c.draw(8)) * time.Second)
				name := all[c.draw(len(all))]
				c.mu.Lock()
				p := g.nodes[name]
				delete(g.nodes, name)
				c.mu.Unlock()
				if c.draw(3) == 0 {
					p.leave()
				} else {
					p.kill()
				}
				time.Sleep(time.Duration(1+c.draw(4)) * time.Second)
				p = g.begin(name)
				c.mu.Lock()
				g.nodes[name] = p
				c.mu.Unlock()
			}
		})
		people.Wait()
		stop()
		faults.Wait()
		synctest.Wait()
		c.judge.check(t)
		for i, f := range c.faults {
			if i < 10 {
				t.Error(f)
			}
		}
		t.Logf("%d of %d have entered, %d requests met a process that ended, %d requests within a session were told to ask again; %d faults; it took %v",
			c.inside, visitors, c.failed, c.asked, len(c.faults), time.Since(moment(t, "00:00:00")))
		if c.inside < visitors*8/10 || c.asked > visitors/50 {
			t.Errorf("%d of %d have entered and %d were told to ask again", c.inside, visitors, c.asked)
		}
	})
}
