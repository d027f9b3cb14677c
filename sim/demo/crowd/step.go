package crowd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// unasked is how long a visitor waits who was told no interval.
	unasked = 20 * time.Second
	// backoff after a failure: doubled each time from the first to the last, with chance.
	firstBackoff, lastBackoff = 500 * time.Millisecond, 8 * time.Second
)

// step does what is due for a person: one request (or six), and plans the next.
func (c *crowd) step(ctx context.Context, p *person) {
	if ctx.Err() != nil {
		c.put(p)
		return
	}
	if p.leaves != 0 && !p.inside && time.Since(c.cfg.Start) >= p.leaves {
		c.end(p, GaveUp)
		return
	}
	a := c.exchange(ctx, p)
	if a.err != nil {
		if ctx.Err() == nil {
			c.failed(p, a)
		}
		p.due = time.Since(c.cfg.Start) + p.around(min(firstBackoff<<p.failed, lastBackoff))
		p.failed = min(p.failed+1, 5)
		c.put(p)
		return
	}
	p.failed = 0
	now := time.Since(c.cfg.Start)
	switch {
	case a.inside:
		if c.entered(p, a) {
			return
		}
		p.due = now + p.around(c.cfg.Think)
	case p.inside:
		c.end(p, Removed)
		return
	case a.admitted:
		p.asking = true
		p.due = now
	default:
		c.waits(p, a, now)
	}
	c.put(p)
}

// exchange sends the person's request and takes note of what its answer says about him.
func (c *crowd) exchange(ctx context.Context, p *person) answer {
	q := ask{number: p.Number, cookie: p.cookie, pass: p.pass, path: c.cfg.Paths[0], accept: acceptHTML}
	switch {
	case p.inside:
		q.path = c.cfg.Paths[p.rnd.IntN(len(c.cfg.Paths))]
	case p.Way == App:
		q.accept = acceptJSON
	case p.Way == Script && !p.asking && p.cookie != "":
		q.accept, q.query = acceptJSON, "__anteroom=status"+p.seen()
	}
	p.asking = false
	answers := make([]answer, 1, parallel)
	if p.Kind == Parallel && p.cookie != "" {
		answers = answers[:parallel]
	}
	c.mu.Lock()
	c.stats.Requests += len(answers)
	c.mu.Unlock()
	if len(answers) == 1 {
		answers[0] = c.client.do(ctx, q)
	} else {
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = c.client.do(ctx, q) })
		}
		all.Wait()
	}
	fresh := q.cookie == ""
	for i := range answers {
		p.heard(c, &answers[i], fresh)
	}
	return together(answers)
}

// heard takes from one answer what holds whatever the others say: the cookie, the record.
func (p *person) heard(c *crowd, a *answer, fresh bool) {
	if a.err != nil && !a.inside && a.cookie == "" {
		return
	}
	if a.cookie != "" && p.Kind != Bot {
		switch {
		case p.rnd.Float64() < c.cfg.LoseCookie:
			p.Lost++
			p.best = -1
		case a.unset:
			p.cookie = ""
		default:
			p.cookie = a.cookie
		}
	}
	if a.pass != "" && p.Kind != Bot && p.rnd.Float64() >= c.cfg.LoseCookie {
		p.pass = a.pass
	}
	if a.err != nil {
		return
	}
	if fresh && p.Admitted == 0 {
		first := p.Placed == 0
		if !first {
			p.Anew++
		}
		p.Joined, p.Placed, p.Polls, p.best = a.sent, a.came, nil, -1
		p.Told, p.ToldAt = 0, 0
		if first && !a.inside {
			p.inLine = true
			c.mu.Lock()
			c.stats.Waiting++
			c.mu.Unlock()
		}
		if first && p.Kind == Leaving {
			p.leaves = time.Since(c.cfg.Start) + time.Duration(p.rnd.ExpFloat64()*float64(c.cfg.Patience))
		}
	} else if fresh {
		p.Anew++
	}
	switch {
	case a.inside:
		p.last, p.known = max(p.last, a.sent), a.came
	case a.admitted:
		p.sure, p.known = a.sent, a.came
	case (p.inside || p.sure != 0) && !fresh && a.sent < p.known:
		// Asked before it was known, and decided before: answers overtake each other.
	case (p.inside || p.sure != 0) && !fresh:
		p.Thrown = append(p.Thrown, Thrown{max(p.last, p.sure), a.sent, a.came, a.to})
		p.sure = 0
	case !p.inside:
		p.place(a.came, a.sent, a.ahead)
		if a.ref != "" {
			p.Ref = a.ref
		}
		if a.wait >= 0 && p.ToldAt == 0 {
			p.Told, p.ToldAt = a.wait, a.came
		}
		if a.lost && !fresh {
			p.PlaceLost = append(p.PlaceLost, a.came)
		}
		if c.cfg.Record {
			p.Polls = append(p.Polls, Poll{a.sent, a.came, a.refresh.Microseconds(), a.ahead, false})
		}
	}
}

// together makes one answer of several: in if one was let in, failed if all failed.
func together(answers []answer) answer {
	out := answers[0]
	for _, a := range answers[1:] {
		switch {
		case out.err != nil, a.inside && !out.inside:
			first := min(out.sent, a.sent)
			out = a
			out.sent = first
		case a.err == nil && a.admitted:
			out.admitted = true
		}
	}
	return out
}

// entered counts a page of the shop and reports whether the person has left with it.
func (c *crowd) entered(p *person, a answer) bool {
	if !p.inside {
		p.Admitted, p.Asked = a.came, a.sent
		c.mu.Lock()
		c.stats.Admitted++
		c.stats.Inside++
		if p.inLine {
			c.stats.Waiting--
		}
		c.mu.Unlock()
		p.inside, p.inLine = true, false
	}
	p.pages--
	if p.pages <= 0 {
		c.end(p, Done)
		return true
	}
	return false
}

// waits plans the next look at the line.
func (c *crowd) waits(p *person, a answer, now time.Duration) {
	wait := a.refresh
	if wait <= 0 {
		wait = unasked
	}
	p.told = wait
	// A browser is never exact: up to a fifth of a second late.
	p.due = now + wait + time.Duration(p.rnd.Float64()*float64(200*time.Millisecond))
	switch {
	case c.cfg.Prompt && p.Way == Script && p.Kind != Early && p.cookie != "" && a.page:
		p.due = now
	case p.Kind == Early && p.rnd.Float64() < 0.5, p.Kind == Bot:
		p.due = now + time.Duration((0.1+0.8*p.rnd.Float64())*float64(wait))
	case a.offered && p.Kind != Early && p.cookie != "":
		c.mu.Lock()
		if c.stats.Streams < c.cfg.Streams {
			c.stats.Streams++
			p.stream = true
			p.due = now
		}
		c.mu.Unlock()
	}
	if p.leaves != 0 {
		p.due = min(p.due, max(p.leaves, now))
	}
}

func (c *crowd) failed(p *person, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Failures++
	if len(c.failures) < maxFailures {
		c.failures = append(c.failures, Failure{a.came, p.Number, a.err.Error(), a.to})
	}
}

// listen holds a stream open until it says go, ends, or the person gives up, and gives the
// person back.
func (c *crowd) listen(ctx context.Context, p *person) {
	whole := ctx
	if p.leaves != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.cfg.Start.Add(p.leaves))
		defer cancel()
	}
	sent := c.client.now()
	s := c.follow(ctx, p)
	came := c.client.now()
	if c.cfg.Record && s.opened {
		p.Polls = append(p.Polls, Poll{Sent: sent, Answered: came, Ahead: s.ahead, Stream: true})
	}
	p.stream = false
	p.asking = s.went
	p.due = time.Since(c.cfg.Start)
	if s.err != nil && ctx.Err() == nil {
		c.failed(p, answer{came: came, err: s.err, to: s.to})
	}
	switch {
	case s.went || whole.Err() != nil:
	case s.opened || s.err != nil:
		p.due += p.around(firstBackoff) // it ended or broke: ask again soon
	default:
		p.due += p.told // refused: go on as if there were no streams
	}
	if p.leaves != 0 {
		p.due = min(p.due, max(p.leaves, time.Since(c.cfg.Start)))
	}
	c.mu.Lock()
	c.stats.Streams--
	c.stats.Requests++
	c.mu.Unlock()
	c.put(p)
}

// followed is what became of a stream.
type followed struct {
	opened bool // it was a stream
	went   bool // it said go
	ahead  int  // last place shown; -1 when none was
	to     string
	err    error
}

// follow reads the stream to its end. Its error is nil when the gateway refused or ended it
// properly.
func (c *crowd) follow(ctx context.Context, p *person) followed {
	out := followed{ahead: -1, to: c.client.route(p.Number)}
	r := c.client.request(ctx, ask{number: p.Number, to: out.to, cookie: p.cookie, path: c.cfg.Paths[0], query: "__anteroom=stream" + p.seen(), accept: "text/event-stream"})
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := c.client.single.RoundTrip(r)
	if err != nil {
		out.err = err
		return out
	}
	defer resp.Body.Close()
	if cookie, unset := c.client.ticket(resp); cookie != "" && !unset {
		p.cookie = cookie
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		if resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable {
			out.err = errors.New("the stream says " + resp.Status)
		}
		return out
	}
	out.opened = true
	sc := bufio.NewScanner(io.LimitReader(resp.Body, 64*maxAnswer))
	event := ""
	for sc.Scan() {
		line := sc.Text()
		if name, ok := strings.CutPrefix(line, "event:"); ok {
			event = strings.TrimSpace(name)
			continue
		}
		data, ok := strings.CutPrefix(line, "data:")
		switch {
		case line == "":
			if event == "go" {
				out.went = true
				return out
			}
			event = ""
		case ok && event == "place":
			place := answer{ahead: -1, wait: -1}
			if out.err = place.readJSON([]byte(strings.TrimSpace(data))); out.err != nil {
				return out
			}
			now := c.client.now()
			p.place(now, now, place.ahead)
			if place.ahead >= 0 {
				out.ahead = place.ahead
			}
		}
	}
	out.err = sc.Err()
	return out
}
