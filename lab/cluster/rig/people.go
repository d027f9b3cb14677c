package rig

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/sim/demo/crowd"
)

// habits say where a visitor goes. They follow from his number.
type habits struct {
	home, away int           // sites; away is where he goes on
	leaves     time.Duration // since the visitors came; 0: he stays
	anywhere   bool
}

// habitsOf draws a visitor's ways: the same for a seed, whatever happens.
func (c *Cluster) habitsOf(number int, site string) habits {
	rnd := rand.New(rand.NewPCG(c.o.Seed, 1<<32|uint64(number)))
	h := habits{home: c.draw(rnd.Float64())}
	for i, s := range c.sites {
		if s.Name == site {
			h.home = i
		}
	}
	h.away = h.home
	if len(c.sites) == 1 {
		return h
	}
	if rnd.Float64() < c.kase.People.Roams {
		h.away = (h.home + 1 + rnd.IntN(len(c.sites)-1)) % len(c.sites)
		h.leaves = time.Duration(rnd.Float64() * float64(c.length))
	}
	h.anywhere = rnd.Float64() < c.kase.People.Anywhere
	return h
}

// draw returns the site at a share of all shares.
func (c *Cluster) draw(at float64) int {
	sum := 0.0
	for _, s := range c.sites {
		sum += s.Share
	}
	for i, s := range c.sites {
		if at -= s.Share / sum; at < 0 {
			return i
		}
	}
	return 0
}

// route picks the node for a visitor's next request: any that serves at his site, without
// regard to the one before; when none does, any at all.
func (c *Cluster) route(h habits) string {
	site := h.home
	switch {
	case h.anywhere:
		site = rand.IntN(len(c.sites))
	case h.leaves != 0 && time.Since(c.began) > h.leaves:
		site = h.away
	}
	var here, all [16]*Node
	inSite, anywhere := here[:0], all[:0]
	for _, n := range c.nodes {
		if n.serves() {
			anywhere = append(anywhere, n)
			if n.site == site {
				inSite = append(inSite, n)
			}
		}
	}
	switch {
	case len(inSite) > 0:
		return inSite[rand.IntN(len(inSite))].visitors()
	case len(anywhere) > 0:
		return anywhere[rand.IntN(len(anywhere))].visitors()
	}
	return c.nodes[0].visitors()
}

// come sends the visitors and returns what they went through. They stop when the run's
// length is over, wherever they are then.
func (c *Cluster) come(ctx context.Context) (crowd.Result, error) {
	ctx, over := context.WithTimeout(ctx, c.length)
	defer over()
	var mu sync.Mutex
	var all crowd.Result
	var fault error
	stats := make([]crowd.Stats, len(c.kase.Flows))
	var flows, progress sync.WaitGroup
	first := 0
	for i, f := range c.kase.Flows {
		n := f.count(c.o.Scale)
		if n == 0 {
			continue
		}
		cfg := c.crowd(f, n, first)
		first += n
		cfg.Seed = c.o.Seed<<8 + uint64(i)
		cfg.Progress = func(s crowd.Stats) { mu.Lock(); stats[i] = s; mu.Unlock() }
		flows.Go(func() {
			if !c.Sleep(ctx, f.From) {
				return
			}
			r, err := crowd.Run(ctx, cfg)
			mu.Lock()
			defer mu.Unlock()
			fault = cmp.Or(fault, err)
			all.Visitors = append(all.Visitors, r.Visitors...)
			all.Failures = append(all.Failures, r.Failures...)
			stats[i] = r.Stats
		})
	}
	done := make(chan struct{})
	progress.Go(func() {
		t := time.NewTicker(max(c.length/30, 2*time.Second))
		defer t.Stop()
		for {
			select {
			case <-t.C:
				mu.Lock()
				s := sum(stats)
				mu.Unlock()
				c.say(s)
			case <-done:
				return
			}
		}
	})
	flows.Wait()
	close(done)
	progress.Wait()
	all.Stats = sum(stats)
	c.say(all.Stats)
	slices.SortFunc(all.Visitors, func(a, b crowd.Visitor) int { return cmp.Compare(a.Number, b.Number) })
	return all, fault
}

func (c *Cluster) say(s crowd.Stats) {
	fmt.Fprintf(c.o.Out, "%6s  arrived %5d  waiting %5d  inside %4d (origin %4d)  admitted %5d  gave up %4d  streams %4d  requests %6d  failed %d  late %v\n",
		time.Since(c.began).Round(time.Second), s.Arrived, s.Waiting, s.Inside, c.origin.shop.Inside(), s.Admitted, s.GaveUp, s.Streams, s.Requests, s.Failures, s.Late.Round(time.Millisecond))
}

func sum(all []crowd.Stats) (t crowd.Stats) {
	for _, s := range all {
		t.Arrived += s.Arrived
		t.Waiting += s.Waiting
		t.Inside += s.Inside
		t.Admitted += s.Admitted
		t.GaveUp += s.GaveUp
		t.Done += s.Done
		t.Streams += s.Streams
		t.Requests += s.Requests
		t.Failures += s.Failures
		t.Late = max(t.Late, s.Late)
	}
	return t
}

// crowd is who comes with a flow.
func (c *Cluster) crowd(f Flow, n, first int) crowd.Config {
	p := c.kase.People
	ways := make([]habits, n+1)
	for i := range ways {
		ways[i] = c.habitsOf(first+i, f.Site)
	}
	cfg := crowd.Config{
		Target:     "http://" + siteName,
		Route:      func(number int) string { return c.route(ways[number-first]) },
		First:      first,
		Paths:      []string{"/", "/product/dawn-mug", "/product/moss-vase", "/cart"},
		Arrivals:   []crowd.Arrivals{{Visitors: n, Over: scaled(f.To-f.From, c.o.Scale)}},
		Mix:        crowd.Mix{Parallel: p.Parallel, Plain: p.Plain / 2, Apps: p.Plain / 2},
		Pages:      p.Pages,
		Think:      p.Think,
		LoseCookie: p.Lost,
		Streams:    10_000,
		Prompt:     true,
		Start:      c.start,
		Every:      time.Second,
		Record:     true,
	}
	if p.Patience > 0 {
		cfg.Patience = p.Patience
		cfg.Mix.Leaving = 1 - cfg.Mix.Parallel
	}
	return cfg
}
