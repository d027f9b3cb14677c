package published

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/anteroom/anteroom"
)

// Method is a way of sharing slots.
type Method int

const (
	Even     Method = iota // shares of shares, split evenly among workers
	Adapted                // split by a number of workers that follows utilisation
	Counters               // a counter per data centre, then an Anywhere counter
)

func (m Method) String() string { return [...]string{"even", "adapted", "counters"}[m] }

// Config is a room before it starts.
type Config struct {
	Method   Method
	Settings anteroom.Settings
	Sites    []int           // number of workers of each data centre; none: one with one
	Delays   []time.Duration // one way from each data centre to the global object; missing ones are 0
	Curve    float64         // curveFactor of Adapted; 0 means 1
	// Exchange is how often workers report to their data centre's object, and that to the
	// global one. Zero means 3 s.
	Exchange time.Duration
	// Cell is how finely active users are counted. Zero means a twelfth of the session
	// duration at the start; a minute is the published design.
	Cell time.Duration
	Seed uint64 // of refresh intervals and of when each data centre exchanges
}

const (
	defaultExchange = 3 * time.Second
	refresh         = 20 * time.Second // published; varied by a tenth
	siteCall        = time.Millisecond // a counter in the data centre
	keptMinutes     = 4                // of admissions and visitors, before the running one
)

// Room is a waiting room of many data centres. It has no clock: the moment is an argument and
// never goes back. Not safe for concurrent use.
type Room struct {
	c        Config
	settings anteroom.Settings
	cell     anteroom.Time // in microseconds, as Exchange
	exchange anteroom.Time
	started  bool
	start    anteroom.Time
	rng      *rand.Rand
	sites    []*site
	workers  int // of all sites
	down     bool

	global   tally
	anywhere counts // the Anywhere counters, by minute and kind
	messages int
}

// site is the object of a data centre.
type site struct {
	index   int
	delay   anteroom.Time
	skew    anteroom.Time
	cut     bool
	workers []*worker
	next    anteroom.Time // exchange
	counter counts        // by minute and kind

	view     tally // all that is known here
	delta    tally // of which not yet reported
	unacked  []batch
	number   int      // of the last batch
	included int      // of the last batch that the global object has
	up       []batch  // on their way
	down     []answer // on their way
}

// batch is what a site reports: what was counted since the last one.
type batch struct {
	number int
	at     anteroom.Time // arrival at the global object
	tally  tally
}

// answer is the world's sum with everything of this site up to a batch.
type answer struct {
	included int
	at       anteroom.Time // arrival at the site
	sum      tally
}

// New returns a room that starts at the first call that says a moment.
func New(c Config) *Room {
	c.Settings = c.Settings.WithDefaults()
	if len(c.Sites) == 0 {
		c.Sites = []int{1}
	}
	c.Curve = cmp.Or(c.Curve, 1)
	if c.Exchange <= 0 {
		c.Exchange = defaultExchange
	}
	if c.Cell <= 0 {
		c.Cell = c.Settings.SessionDuration / 12
	}
	r := &Room{c: c, settings: c.Settings,
		cell:     max(1, micros(c.Cell)),
		exchange: micros(c.Exchange),
		rng:      rand.New(rand.NewPCG(c.Seed, 0))}
	for i, n := range c.Sites {
		s := &site{index: i}
		if i < len(c.Delays) {
			s.delay = micros(c.Delays[i])
		}
		for range max(1, n) {
			s.workers = append(s.workers, &worker{site: s, stale: true})
		}
		r.workers += len(s.workers)
		r.sites = append(r.sites, s)
	}
	return r
}

func micros(d time.Duration) anteroom.Time { return anteroom.Time(d / time.Microsecond) }

// Configure puts other settings in force, everywhere at once.
func (r *Room) Configure(now anteroom.Time, s anteroom.Settings) {
	r.begin(now)
	r.settings = s.WithDefaults()
	for _, s := range r.sites {
		for _, w := range s.workers {
			w.stale = true
		}
	}
}

func (r *Room) begin(now anteroom.Time) {
	if r.started {
		return
	}
	r.started, r.start = true, now
	for _, s := range r.sites {
		s.next = now + 1 + anteroom.Time(r.rng.Int64N(int64(r.exchange)))
	}
}

// Tick exchanges what is due. Call it about every 100 ms.
func (r *Room) Tick(now anteroom.Time) {
	r.begin(now)
	for _, s := range r.sites {
		if now < s.next {
			continue
		}
		if s.next += r.exchange; s.next <= now {
			s.next = now + r.exchange
		}
		r.report(now, s)
	}
	if !r.down {
		for _, s := range r.sites {
			r.answer(now, s)
		}
	}
	for _, s := range r.sites {
		r.learn(now, s)
	}
}

// report is an exchange: workers tell their data centre what they counted and learn what
// the others there did; it tells the global object. Without a link that stays for the next time.
func (r *Room) report(now anteroom.Time, s *site) {
	for _, w := range s.workers {
		s.delta.merge(&w.delta)
		s.view.merge(&w.delta)
		w.delta.clear()
	}
	s.counter.drop(r.localMinute(now, s))
	r.forget(now, s.skew, &s.view)
	r.inform(s)
	if s.cut || r.down {
		return
	}
	s.number++
	b := batch{number: s.number, at: now + s.delay, tally: s.delta}
	s.delta = tally{}
	s.unacked = append(s.unacked, b)
	s.up = append(s.up, b)
	r.messages++
}

// inform gives all workers of a data centre what is known there, with what they have done
// since they reported.
func (r *Room) inform(s *site) {
	for _, w := range s.workers {
		w.view.copy(&s.view)
		w.view.merge(&w.delta)
		w.stale = true
	}
}

// answer adds what has arrived at the global object and sends the world's sum back.
func (r *Room) answer(now anteroom.Time, s *site) {
	for len(s.up) > 0 && s.up[0].at <= now {
		b := s.up[0]
		s.up = s.up[1:]
		r.global.merge(&b.tally)
		s.included = b.number
		if s.cut {
			continue
		}
		r.forget(now, 0, &r.global)
		a := answer{included: s.included, at: now + s.delay}
		a.sum.copy(&r.global)
		s.down = append(s.down, a)
		r.messages++
	}
}

// learn takes an answer that has arrived at a data centre; what it did since is added.
func (r *Room) learn(now anteroom.Time, s *site) {
	for len(s.down) > 0 && s.down[0].at <= now {
		a := s.down[0]
		s.down = s.down[1:]
		for len(s.unacked) > 0 && s.unacked[0].number <= a.included {
			s.unacked = s.unacked[1:]
		}
		s.view = a.sum
		for i := range s.unacked {
			s.view.merge(&s.unacked[i].tally)
		}
		s.view.merge(&s.delta)
		r.inform(s)
	}
}

// forget drops what no decision will need. A minute more is kept of each for clocks that
// are wrong.
func (r *Room) forget(now, skew anteroom.Time, t *tally) {
	local := now + min(0, skew)
	t.drop(r.firstCell(now)-1, r.firstSeen(now)-1, minuteOf(local)-keptMinutes-1)
}

const minute = anteroom.Time(time.Minute / time.Microsecond)

// minuteOf numbers the minutes since the epoch: a bucket is named by it.
func minuteOf(t anteroom.Time) int64 { return int64(anteroom.BucketOf(t)) / int64(minute) }

// localMinute is the running one by the site's wall clock.
func (r *Room) localMinute(now anteroom.Time, s *site) int64 { return minuteOf(now + s.skew) }

// cellOf numbers the cells; moments before the epoch share the first.
func (r *Room) cellOf(t anteroom.Time) int64 { return int64(max(0, t) / r.cell) }

// firstCell is the oldest cell whose users are active.
func (r *Room) firstCell(now anteroom.Time) int64 {
	return r.cellOf(now.Add(-r.settings.SessionDuration))
}

// firstSeen is the oldest minute of check-ins whose visitors keep their place.
func (r *Room) firstSeen(now anteroom.Time) int64 {
	return minuteOf(now.Add(-r.settings.PlaceHold + 30*time.Second))
}

// Cut opens or closes the link between a data centre and the global object. What is on its
// way up still arrives.
func (r *Room) Cut(site int, cut bool) { r.sites[site].cut = cut }

// CoordinatorDown stops the global object or starts it again, with all that it had.
func (r *Room) CoordinatorDown(down bool) { r.down = down }

// Skew sets by how much the wall clocks of a data centre are off.
func (r *Room) Skew(site int, by time.Duration) { r.sites[site].skew = micros(by) }

// Restart ends a worker and starts a new one. What it had not reported is lost, and what it
// had taken of its shares is forgotten.
func (r *Room) Restart(site, worker int) {
	w := r.sites[site].workers[worker]
	w.delta.clear()
	w.own = w.own[:0]
	w.view.copy(&w.site.view)
	w.stale = true
}

// Messages is how many have gone between data centres and the global object so far, in
// both directions.
func (r *Room) Messages() int { return r.messages }
