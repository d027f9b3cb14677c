package published

import (
	"container/heap"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

var morning = anteroom.TimeOf(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))

// crowd is a small world around a room, with books of its own: who is active is whoever was
// let in and sent a request less than a session duration ago.
type crowd struct {
	room     *Room
	config   Config
	rng      *rand.Rand
	shares   []float64 // of the arrivals, by site; none: even
	loads    []float64 // of a site's visitors, by worker; none: even
	browsing time.Duration
	think    time.Duration
	life     time.Duration // mean of a worker; 0: for ever

	now    anteroom.Time
	events events
	seq    int
	people []*person
	inside []*person

	arrived, admitted, queued, premature, overtaken int
	peak, peakMinute                                int
	admittedShown, peakWaiting                      int
	latency                                         time.Duration
	perMinute                                       map[int64]int
}

type person struct {
	site, worker int
	ticket       anteroom.Ticket
	arrived      anteroom.Time
	lastRequest  anteroom.Time
	leaves       anteroom.Time
	shown, in    bool
	passed       bool
}

type event struct {
	at  anteroom.Time
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

func newCrowd(c Config) *crowd {
	return &crowd{room: New(c), config: c, rng: rand.New(rand.NewPCG(c.Seed, 1)), now: morning,
		browsing: 90 * time.Second, think: 15 * time.Second, perMinute: map[int64]int{}}
}

func (c *crowd) at(t anteroom.Time, do func()) {
	c.seq++
	heap.Push(&c.events, event{t, c.seq, do})
}

func (c *crowd) exponential(mean time.Duration) time.Duration {
	return time.Duration(c.rng.ExpFloat64() * float64(mean))
}

func (c *crowd) pick(shares []float64, n int) int {
	if len(shares) == 0 {
		return c.rng.IntN(n)
	}
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	x := c.rng.Float64() * sum
	for i, s := range shares {
		if x -= s; x < 0 {
			return i
		}
	}
	return len(shares) - 1
}

// arrive lets n people come evenly at random; site is -1 for the usual shares.
func (c *crowd) arrive(from, to time.Duration, n, site int) {
	for range n {
		at := morning.Add(from + time.Duration(c.rng.Float64()*float64(to-from)))
		p := &person{site: site, arrived: at}
		if site < 0 {
			p.site = c.pick(c.shares, len(c.config.Sites))
		}
		binary.BigEndian.PutUint64(p.ticket.ID[:], uint64(len(c.people)+1))
		c.people = append(c.people, p)
		c.at(at, func() { c.come(p) })
	}
}

func (c *crowd) visit(p *person, fresh bool) anteroom.Decision {
	p.worker = c.pick(c.loads, c.config.Sites[p.site])
	d, latency := c.room.Visit(c.now, p.site, p.worker, anteroom.Visit{Ticket: p.ticket, Fresh: fresh, NewID: p.ticket.ID})
	c.latency += latency
	p.ticket = d.Ticket
	return d
}

func (c *crowd) come(p *person) {
	c.arrived++
	free := c.free()
	waiting := c.queued - c.admittedShown
	if d := c.visit(p, true); d.Verdict == anteroom.Admit {
		c.enter(p)
	} else {
		p.shown = true
		c.queued++
		if free > waiting {
			c.premature++
		}
		c.at(d.Ticket.Next, func() { c.poll(p) })
	}
	c.peakWaiting = max(c.peakWaiting, c.queued-c.admittedShown)
}

func (c *crowd) poll(p *person) {
	if d := c.visit(p, false); d.Verdict == anteroom.Admit {
		c.enter(p)
	} else {
		c.at(d.Ticket.Next, func() { c.poll(p) })
	}
}

func (c *crowd) enter(p *person) {
	p.in, p.lastRequest = true, c.now
	p.leaves = c.now.Add(c.exponential(c.browsing))
	c.admitted++
	if p.shown {
		c.admittedShown++
	}
	c.inside = append(c.inside, p)
	c.perMinute[minuteOf(c.now)]++
	c.peakMinute = max(c.peakMinute, c.perMinute[minuteOf(c.now)])
	c.peak = max(c.peak, c.active())
	for _, q := range c.people {
		if q.shown && !q.in && !q.passed && q.arrived.Add(time.Second) < p.arrived {
			q.passed = true
			c.overtaken++
		}
	}
	c.browse(p)
}

func (c *crowd) browse(p *person) {
	next := c.now.Add(c.exponential(c.think))
	if next > p.leaves {
		return
	}
	c.at(next, func() {
		p.lastRequest = c.now
		c.visit(p, false)
		c.browse(p)
	})
}

func (c *crowd) active() int {
	d := c.config.Settings.SessionDuration
	c.inside = slices.DeleteFunc(c.inside, func(p *person) bool { return p.lastRequest.Add(d) <= c.now })
	return len(c.inside)
}

// free is the number of slots that somebody who knows everything would see.
func (c *crowd) free() int {
	s := c.config.Settings
	return slots(s.TotalActiveUsers, s.NewUsersPerMinute, c.active(), c.perMinute[minuteOf(c.now)])
}

func (c *crowd) run(length time.Duration) {
	for end := c.now.Add(length); c.now < end; {
		next := c.now.Add(100 * time.Millisecond)
		for len(c.events) > 0 && c.events[0].at < next {
			e := heap.Pop(&c.events).(event)
			c.now = e.at
			e.do()
		}
		c.now = next
		c.room.Tick(next)
		if c.life == 0 {
			continue
		}
		for s, n := range c.config.Sites {
			for w := range n {
				if c.rng.Float64() < (100*time.Millisecond).Seconds()/c.life.Seconds() {
					c.room.Restart(s, w)
				}
			}
		}
	}
}

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
