package crowd

import (
	"cmp"
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// crowd is a run. mu guards what is below it; persons in the heap belong to nobody, others
// to the worker or stream that has them.
type crowd struct {
	cfg    Config
	client *client
	jobs   chan *person
	wake   chan struct{} // somebody was put into the heap

	mu       sync.Mutex
	due      agenda
	stats    Stats
	late     time.Duration
	alive    int
	records  []Visitor
	failures []Failure
}

func (c *crowd) run(ctx context.Context) Result {
	var work, reports sync.WaitGroup
	for range c.cfg.Workers {
		work.Go(func() {
			for p := range c.jobs {
				c.step(ctx, p)
			}
		})
	}
	stop := make(chan struct{})
	if c.cfg.Progress != nil {
		reports.Go(func() { c.report(stop) })
	}
	var streams sync.WaitGroup
	c.schedule(ctx, &streams)
	close(c.jobs)
	work.Wait()
	streams.Wait()
	close(stop)
	reports.Wait()

	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.due {
		c.keep(p)
	}
	slices.SortFunc(c.records, func(a, b Visitor) int { return cmp.Compare(a.Number, b.Number) })
	c.stats.At = time.Since(c.cfg.Start)
	return Result{Stats: c.stats, Visitors: c.records, Failures: c.failures}
}

// schedule hands everybody who is due to a worker, until all have left or ctx ends.
func (c *crowd) schedule(ctx context.Context, streams *sync.WaitGroup) {
	come := &newcomers{parts: c.cfg.Arrivals, repeat: c.cfg.Repeat, rnd: rand.New(rand.NewPCG(c.cfg.Seed, 0))}
	offset := time.Since(c.cfg.Start) // the curve begins now
	number := 0
	next, more := come.next()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Since(c.cfg.Start)
		c.mu.Lock()
		for more && offset+next <= now {
			number++
			p := newPerson(&c.cfg, c.cfg.First+number)
			p.due = offset + next
			heap.Push(&c.due, p)
			c.alive++
			c.stats.Arrived++
			next, more = come.next()
		}
		if c.alive == 0 && !more {
			c.mu.Unlock()
			return
		}
		var p *person
		sleep := time.Hour
		if more {
			sleep = offset + next - now
		}
		if len(c.due) > 0 {
			if first := c.due[0].due; first <= now {
				p = heap.Pop(&c.due).(*person)
				c.late = max(c.late, now-first)
			} else {
				sleep = min(sleep, first-now)
			}
		}
		c.mu.Unlock()
		if p != nil {
			if p.stream {
				streams.Go(func() { c.listen(ctx, p) })
				continue
			}
			select {
			case c.jobs <- p:
			case <-ctx.Done():
				c.put(p)
				return
			}
			continue
		}
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-c.wake:
		case <-ctx.Done():
			return
		}
	}
}

// put gives a person back to the heap.
func (c *crowd) put(p *person) {
	c.mu.Lock()
	heap.Push(&c.due, p)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// end lets a person go for good.
func (c *crowd) end(p *person, how string) {
	p.End, p.Ended = how, c.client.now()
	c.mu.Lock()
	switch {
	case p.inside:
		c.stats.Inside--
	case p.inLine:
		c.stats.Waiting--
	}
	if how == GaveUp {
		c.stats.GaveUp++
	} else {
		c.stats.Done++
	}
	c.alive--
	c.keep(p)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *crowd) keep(p *person) {
	if c.cfg.Record {
		c.records = append(c.records, p.Visitor)
	}
}

func (c *crowd) report(stop <-chan struct{}) {
	t := time.NewTicker(c.cfg.Every)
	defer t.Stop()
	for {
		last := false
		select {
		case <-t.C:
		case <-stop:
			last = true
		}
		c.mu.Lock()
		s := c.stats
		s.At, s.Late = time.Since(c.cfg.Start), c.late
		c.late = 0
		c.mu.Unlock()
		c.cfg.Progress(s)
		if last {
			return
		}
	}
}

// agenda is a heap of persons by due.
type agenda []*person

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due < a[j].due }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(*person)) }
func (a *agenda) Pop() any {
	old := *a
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	return p
}
