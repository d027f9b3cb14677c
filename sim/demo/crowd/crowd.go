// Package crowd is a crowd of simulated visitors who use real HTTP: they arrive, wait as
// the waiting page tells them, are admitted, look around and leave.
//
// A visitor is a small value with one cookie, not a goroutine: a heap holds the moments at
// which somebody has something to do, and a few workers do it. 20,000 visitors take a
// fraction of a core. Everything random comes from [Config.Seed].
//
// Visitors tell the gateway who they are only by their cookie. For the judge they also send
// their number and the moment of sending ([shop.VisitorHeader], [shop.SentHeader]), and
// with [Config.Record] they write down what they were told: see [Visitor].
//
// A cookie-less first request gets a connection of its own, as a real visitor's would:
// the gateway takes requests without a ticket on one connection for one visitor's. Later
// requests share kept connections.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"time"
)

// Arrivals is a part of the curve by which the crowd comes: so many visitors, spread
// evenly (with chance) over a time; zero means all at once.
type Arrivals struct {
	Visitors int
	Over     time.Duration
}

// Mix says who is in the crowd. The parts are shares from 0 to 1; what they leave over is
// patient. Likewise what Plain and Apps leave over behaves like the page's script.
type Mix struct {
	Leaving  float64 // gives up after a while, see Config.Patience
	Early    float64 // reloads before its time, again and again
	Parallel float64 // sends six requests at once, always
	Bots     float64 // keeps no cookie and never stops reloading

	Plain float64 // no script: follows the Refresh header
	Apps  float64 // asks for JSON and follows refreshIntervalSeconds
}

// Config of a crowd. Target and Arrivals are required; every other zero value works.
type Config struct {
	// Target is the address of the gateway, like "http://127.0.0.1:8080".
	Target string
	// Route, if set, says where a visitor's next request goes: host and port of one of several
	// gateways before the same site. The name of the site stays Target's. Several requests ask at once.
	Route func(visitor int) string
	// First is the number of visitors before the first one, for crowds that come side by side.
	First int
	// Paths are what an admitted visitor looks at; the first is where everybody arrives.
	// Empty means "/".
	Paths []string
	// Arrivals is the curve. Repeat starts it again at its end, for ever.
	Arrivals []Arrivals
	Repeat   bool

	Mix Mix
	// Patience is the mean time after which a leaving visitor gives up (exponential).
	// Zero means two minutes.
	Patience time.Duration
	// Pages is how many requests an admitted visitor makes on average (at least one, at
	// most twice as many); zero means 4. Think is the mean pause between them, half to one
	// and a half times as long; zero means 5 s.
	Pages int
	Think time.Duration
	// LoseCookie is the share of Set-Cookie headers that never arrive, 0 to 1.
	LoseCookie float64
	// CookiePrefix tells the ticket from other cookies; empty means "__cfwaitingroom".
	CookiePrefix string
	// Streams is how many visitors at most hold a stream open at once when the gateway
	// offers one. Zero means none.
	Streams int

	// Prompt lets the page's script ask as soon as a waiting page has come, as the real one
	// does that finds in the page whether there is a stream, instead of after the interval.
	Prompt bool

	// Seed of everything random.
	Seed uint64
	// Start is the zero of all times that visitors send and write down; it must come from
	// time.Now in this process. Zero means the start of Run.
	Start time.Time
	// Workers is the number of requests under way at once, streams not counted; zero means 256.
	Workers int
	// Timeout of one request; zero means 15 s.
	Timeout time.Duration
	// Addresses are the client's addresses, taken in turn; empty leaves it to the system.
	// One address has some 28,000 ports: see Loopback.
	Addresses []netip.Addr
	// Dial replaces the network. Nil means TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Record keeps every visitor's own record for the result: some 30 bytes for every
	// answer. Not for a crowd that repeats for ever.
	Record bool
	// Progress, if set, is called every Every (zero means one second) and at the end, from
	// one goroutine.
	Progress func(Stats)
	Every    time.Duration
}

const (
	// parallel is how many requests a parallel visitor sends at once.
	parallel = 6
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 256 << 10
	// maxVisitors bounds one round of the curve.
	maxVisitors = 10_000_000
	// maxFailures bounds the failures that the result lists; the count goes on.
	maxFailures = 10_000
)

// Loopback returns n client addresses from 127.0.0.2 on, at most 200: enough ports for a
// crowd on one machine (Linux).
func Loopback(n int) []netip.Addr {
	out := make([]netip.Addr, min(n, 200))
	for i := range out {
		out[i] = netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)})
	}
	return out
}

// Stats is the crowd at a moment.
type Stats struct {
	At       time.Duration // since Start
	Arrived  int           // visitors so far
	Waiting  int           // have been answered with the waiting page and are still there
	Inside   int           // are looking around
	Admitted int           // have got in so far
	GaveUp   int           // left the line
	Done     int           // left after having been inside
	Streams  int           // open now
	Requests int
	Failures int           // requests without a proper answer: no connection, 5xx, …
	Late     time.Duration // the worst lag of a request behind its plan since the last report
}

// Failure is one request that got no proper answer.
type Failure struct {
	At      int64  `json:"us"` // when it failed, µs since Start
	Visitor int    `json:"visitor"`
	What    string `json:"what"`
	To      string `json:"to,omitempty"` // where Config.Route sent it
}

// Result is what is left of a crowd.
type Result struct {
	Stats    Stats
	Visitors []Visitor // with Record, by number
	Failures []Failure // at most 10,000
}

// Run sends the crowd and returns when everybody has left or ctx has ended; the latter is
// no error. Errors are faults of the configuration.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := cfg.fill(); err != nil {
		return Result{}, err
	}
	target, err := url.Parse(cfg.Target)
	if err != nil || target.Host == "" || (target.Scheme != "http" && target.Scheme != "https") {
		return Result{}, fmt.Errorf("crowd: target %.100q is not an address: write one like http://127.0.0.1:8080", cfg.Target)
	}
	c := &crowd{cfg: cfg, jobs: make(chan *person), wake: make(chan struct{}, 1)}
	c.client = newClient(&c.cfg, target)
	defer c.client.close()
	return c.run(ctx), nil
}

func (c *Config) fill() error {
	total := 0
	for i, a := range c.Arrivals {
		if a.Visitors < 0 || a.Over < 0 || a.Visitors > maxVisitors {
			return fmt.Errorf("crowd: arrivals[%d]: %d visitors over %v: neither may be negative, at most %d visitors", i, a.Visitors, a.Over, maxVisitors)
		}
		total += a.Visitors
	}
	switch {
	case total == 0:
		return errors.New("crowd: nobody arrives: give Arrivals with visitors")
	case total > maxVisitors:
		return fmt.Errorf("crowd: %d visitors are too many: at most %d", total, maxVisitors)
	case c.Repeat && c.length() == 0:
		return errors.New("crowd: an endless crowd cannot come all at once: give Arrivals a time")
	case c.Repeat && c.Record:
		return errors.New("crowd: an endless crowd cannot be recorded: unset Record or Repeat")
	}
	for _, share := range []struct {
		name string
		sum  float64
		each []float64
	}{
		{"leaving, early, parallel and bots", c.Mix.Leaving + c.Mix.Early + c.Mix.Parallel + c.Mix.Bots, []float64{c.Mix.Leaving, c.Mix.Early, c.Mix.Parallel, c.Mix.Bots}},
		{"plain and apps", c.Mix.Plain + c.Mix.Apps, []float64{c.Mix.Plain, c.Mix.Apps}},
		{"lost cookies", c.LoseCookie, []float64{c.LoseCookie}},
	} {
		for _, one := range share.each {
			if !(one >= 0 && one <= 1) || share.sum > 1.000001 {
				return fmt.Errorf("crowd: the shares of %s must be between 0 and 1, and together at most 1; they are %v", share.name, share.each)
			}
		}
	}
	if len(c.Paths) == 0 {
		c.Paths = []string{"/"}
	}
	zero(&c.Patience, 2*time.Minute)
	zero(&c.Pages, 4)
	zero(&c.Think, 5*time.Second)
	zero(&c.CookiePrefix, "__cfwaitingroom")
	zero(&c.Workers, 256)
	zero(&c.Timeout, 15*time.Second)
	zero(&c.Every, time.Second)
	if c.Start.IsZero() {
		c.Start = time.Now()
	}
	return nil
}

func zero[T comparable](v *T, otherwise T) {
	var none T
	if *v == none {
		*v = otherwise
	}
}

func (c *Config) length() time.Duration {
	var sum time.Duration
	for _, a := range c.Arrivals {
		sum += a.Over
	}
	return sum
}

// newcomers tells when the next visitor comes: the moments of each part are spread evenly,
// each moved by chance within its own share of the time.
type newcomers struct {
	parts  []Arrivals
	repeat bool
	rnd    *rand.Rand
	part   int
	in     int // of the part, so far
	began  time.Duration
}

// next returns the time since the crowd's start; ok is false when nobody comes any more.
func (n *newcomers) next() (at time.Duration, ok bool) {
	for n.part < len(n.parts) && n.in >= n.parts[n.part].Visitors {
		n.began += n.parts[n.part].Over
		n.part, n.in = n.part+1, 0
		if n.part == len(n.parts) && n.repeat {
			n.part = 0
		}
	}
	if n.part == len(n.parts) {
		return 0, false
	}
	p := n.parts[n.part]
	share := float64(p.Over) / float64(p.Visitors)
	at = n.began + time.Duration((float64(n.in)+n.rnd.Float64())*share)
	n.in++
	return at, true
}

// drain reads what is left of an answer, within bounds, so that its connection is kept.
func drain(body io.Reader) { _, _ = io.CopyN(io.Discard, body, maxAnswer) }
