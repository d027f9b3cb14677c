package node

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// keeper keeps the newest of each minute, as a store does.
type keeper struct {
	mu      sync.Mutex
	minutes map[analytics.Key]*analytics.Minute
}

func (k *keeper) hear(minutes []*analytics.Minute) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.minutes == nil {
		k.minutes = map[analytics.Key]*analytics.Minute{}
	}
	for _, m := range minutes {
		if old := k.minutes[m.Key()]; old == nil || m.Newer(old) {
			k.minutes[m.Key()] = m
		}
	}
}

// rows are the minutes of a room, those of all processes added up.
func (k *keeper) rows() map[time.Time]analytics.Row {
	k.mu.Lock()
	defer k.mu.Unlock()
	sums := map[time.Time]*analytics.Minute{}
	for key, m := range k.minutes {
		if sums[key.Start] == nil {
			sums[key.Start] = &analytics.Minute{Room: key.Room, Start: key.Start}
		}
		sums[key.Start].Add(m)
	}
	rows := map[time.Time]analytics.Row{}
	for at, m := range sums {
		rows[at] = m.Row()
	}
	return rows
}

// total is all rows rolled up.
func (k *keeper) total() (sum analytics.Row) {
	rows := k.rows()
	for _, at := range slices.SortedFunc(maps.Keys(rows), time.Time.Compare) {
		row := rows[at]
		sum.Add(&row)
	}
	return sum
}

// shaky loses a sixth of what is told of figures and carries a third twice, the second time before what
// comes next. From calm on it loses nothing: each minute is told seven times, and chance would take all seven in
// one test of a few hundred.
type shaky struct {
	cluster.Link
	calm   *atomic.Bool
	mu     sync.Mutex
	chance *rand.Rand
	again  []byte
}

func (s *shaky) Publish(subject string, data []byte) error {
	if subject != figuresSubject {
		return s.Link.Publish(subject, data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again != nil {
		s.Link.Publish(subject, s.again)
		s.again = nil
	}
	switch s.chance.IntN(6) {
	case 0:
		if !s.calm.Load() {
			return nil
		}
	case 1, 2:
		s.again = slices.Clone(data)
	}
	return s.Link.Publish(subject, data)
}

// truth is what visitors saw, by minute.
type truth struct {
	mu      sync.Mutex
	minutes map[time.Time]*seen
	shown   map[anteroom.ID]bool // the page
}

type seen struct {
	reasons                 map[string]int64
	newUsers, joined        int64
	turnedAway              int64
	waited, inQueue, renews []time.Duration
}

// saw notes an answer, to a request with a ticket.
func (x *truth) saw(d anteroom.Decision, before anteroom.Ticket, known bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := time.Time(d.At.Std().Truncate(time.Minute))
	m := x.minutes[at]
	if m == nil {
		m = &seen{reasons: map[string]int64{}}
		x.minutes[at] = m
	}
	m.reasons[d.Reason.String()]++
	id := d.Ticket.ID
	switch {
	case d.Verdict == anteroom.Refuse:
		m.turnedAway++
	case d.Verdict == anteroom.Wait && !x.shown[id]:
		x.shown[id] = true
		m.joined++
	case d.Verdict == anteroom.Wait && d.SetCookie && known:
		m.inQueue = append(m.inQueue, d.At.Sub(d.Ticket.Arrival))
	case d.Verdict == anteroom.Admit && d.Reason != anteroom.ReasonSession:
		m.newUsers++
		if x.shown[id] {
			m.waited = append(m.waited, d.At.Sub(d.Ticket.Arrival))
		}
	case d.Verdict == anteroom.Admit && d.SetCookie:
		m.renews = append(m.renews, d.At.Sub(before.LastCheckIn))
	}
}

// same compares durations with a distribution.
func same(h *analytics.Histogram, want []time.Duration) bool {
	slices.Sort(want)
	if h.Count() != int64(len(want)) {
		return false
	}
	for _, q := range append(analytics.Quantiles[:], 100) {
		if len(want) == 0 {
			break
		}
		i := max(0, int(q/100*float64(len(want))+0.5)-1)
		if off := h.Quantile(q) - want[i]; off < -time.Millisecond || off > want[i]/500+2*time.Millisecond {
			return false
		}
	}
	return true
}

// check compares what was kept with what visitors saw.
func (x *truth) check(t *testing.T, name string, rows map[time.Time]analytics.Row) {
	t.Helper()
	for at, want := range x.minutes {
		got := rows[at]
		if !maps.Equal(got.Reasons, want.reasons) {
			t.Errorf("%s at %v: decisions %v, want %v", name, at, got.Reasons, want.reasons)
		}
		for metric, n := range map[analytics.Metric]int64{analytics.NewUsers: want.newUsers, analytics.Joined: want.joined, analytics.TurnedAway: want.turnedAway} {
			if got.Stats[metric].Sum != n {
				t.Errorf("%s at %v: %v %d, want %d", name, at, metric, got.Stats[metric].Sum, n)
			}
		}
		for span, want := range map[analytics.Span][]time.Duration{analytics.Waited: want.waited, analytics.InQueue: want.inQueue, analytics.BetweenRefreshes: want.renews} {
			if h := got.Histograms[span]; !same(h, want) {
				t.Errorf("%s at %v: %v has %d, up to %v; want %d: %v", name, at, span, h.Count(), h.Max(), len(want), want)
			}
		}
	}
	for at, row := range rows {
		if x.minutes[at] == nil && row.Reasons != nil {
			t.Errorf("%s: nobody asked anything at %v: %v", name, at, row.Reasons)
		}
	}
}

// audience is visitors whose every answer is noted.
type audience struct {
	g      *group
	truth  truth
	mu     sync.Mutex
	chance *rand.Rand
	nodes  map[string]*peer
	open   []string // nodes that they go to
	gaveUp int      // in line
	inside []*guest // at the end
}

func (a *audience) draw(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.chance.IntN(n)
}

// visit makes a request at any node of a site.
func (a *audience) visit(v *guest, site string) anteroom.Decision {
	a.mu.Lock()
	var near []string
	for _, name := range a.open {
		if strings.HasPrefix(name, site) {
			near = append(near, name)
		}
	}
	p := a.nodes[near[a.chance.IntN(len(near))]]
	a.mu.Unlock()
	before, known := v.ticket, v.known
	d := v.at(a.g.t, p)
	a.truth.saw(d, before, known)
	return d
}

// live is a visitor's life at a site: one in seven gives up at the first sight of the line, after some
// check-ins; the others are let in, look around and go.
func (a *audience) live(site string) {
	v, patience := newGuest(), 1<<30
	if a.draw(7) == 0 {
		patience = 2 + a.draw(3)
	}
	for d := a.visit(v, site); d.Verdict != anteroom.Admit; d = a.visit(v, site) {
		if patience--; patience <= 0 {
			a.mu.Lock()
			a.gaveUp++
			a.mu.Unlock()
			return
		}
		time.Sleep(max(d.Refresh, time.Second) + time.Duration(a.draw(300))*time.Millisecond)
	}
	for range a.draw(6) {
		time.Sleep(time.Duration(2+a.draw(14)) * time.Second)
		a.visit(v, site)
	}
	a.mu.Lock()
	a.inside = append(a.inside, v)
	a.mu.Unlock()
}

// come lets n visitors come in so long, and returns when all have gone.
func (a *audience) come(n int, long time.Duration, sites ...string) {
	var all sync.WaitGroup
	for range n {
		site := sites[a.draw(len(sites))]
		after := time.Duration(a.draw(int(long)))
		all.Go(func() {
			time.Sleep(after)
			a.live(site)
		})
	}
	all.Wait()
}

var busy = func() anteroom.Room {
	r := shop
	r.TotalActiveUsers, r.NewUsersPerMinute, r.SessionDuration = 20, 90, 20*time.Second
	return r
}()

func newAudience(g *group) *audience {
	a := &audience{g: g, nodes: maps.Clone(g.nodes), chance: rand.New(rand.NewPCG(1, 2)), truth: truth{minutes: map[time.Time]*seen{}, shown: map[anteroom.ID]bool{}}}
	for name := range g.nodes {
		a.open = append(a.open, name)
	}
	slices.Sort(a.open)
	return a
}

// TestEveryNodeKnowsWhatHappened: two sites, four nodes, messages of figures that are lost and repeated, a site
// that is cut off for a while: in the end each node has of each minute exactly what visitors saw.
func TestEveryNodeKnowsWhatHappened(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	var calm atomic.Bool
	seed := uint64(0)
	over := func(l cluster.Link) cluster.Link {
		seed++
		return &shaky{Link: l, calm: &calm, chance: rand.New(rand.NewPCG(seed, 3))}
	}
	togetherOver(t, over, busy, "dublin-1 dublin-2 tokyo-1 tokyo-2", func(t *testing.T, g *group) {
		a := newAudience(g)
		a.come(150, 2*time.Minute, "dublin", "tokyo")
		g.world.CutSite("tokyo", memlink.Both)
		a.come(40, time.Minute, "dublin", "tokyo")
		g.world.CutSite("tokyo", memlink.None)
		a.come(40, time.Minute, "dublin", "tokyo")
		for _, v := range a.inside[len(a.inside)-3:] {
			if d := a.visit(v, "dublin"); d.Verdict == anteroom.Admit {
				g.node("dublin-1").Room(busy.ID).Revoke(v.ticket.ID)
			}
		}
		pass(30 * time.Minute)
		calm.Store(true)
		pass(30 * time.Minute) // places lapse, and minutes are told for the last time
		var first *analytics.Row
		for name, p := range g.nodes {
			a.truth.check(t, name, p.kept.rows())
			sum := p.kept.total()
			if first == nil {
				first = &sum
			}
			if got, want := fmt.Sprint(sum.Stats, sum.Weighted), fmt.Sprint(first.Stats, first.Weighted); got != want {
				t.Errorf("%s has %s, another node %s", name, got, want)
			}
		}
		if got := first.Stats[analytics.Abandoned].Sum; got != int64(a.gaveUp) {
			t.Errorf("%d places were given up, recorded are %d", a.gaveUp, got)
		}
		if n, ended := first.Stats[analytics.NewUsers].Sum, first.Histograms[analytics.OnOrigin].Count(); n != ended || n < 150 {
			t.Errorf("%d sessions began, %d ended", n, ended)
		}
		late, early, waited := first.Histograms[analytics.Late].Count(), first.Histograms[analytics.Early].Count(), first.Histograms[analytics.Waited].Count()
		if late+early > waited || early == 0 {
			t.Errorf("%d were let in later than told, %d earlier, of %d who waited", late, early, waited)
		}
		limits := first.Stats[analytics.ActiveLimit]
		if limits.Min != 20 || limits.Max != 20 || first.Stats[analytics.NewLimit].Max != 90 || first.Stats[analytics.SessionDuration].Max != 20 || first.Method != anteroom.FIFO {
			t.Errorf("in force: %+v %v", first.Stats, first.Method)
		}
		if active, queued := first.Stats[analytics.ActiveUsers], first.Stats[analytics.QueuedUsers]; active.Max != 20 || active.Min < 0 || queued.Max < 10 || active.N != queued.N {
			t.Errorf("active %+v, queued %+v", active, queued)
		}
		for at, row := range g.node("tokyo-1").kept.rows() {
			if n := row.Stats[analytics.ActiveUsers].N; n > 61 {
				t.Errorf("at %v there are %d samples", at, n)
			}
		}
	})
}

// TestFiguresSurviveTheirProcesses: who leaves tells the last second too, the role of a site goes from process to process,
// and of one that is killed at most the last second is missing. Nothing counts twice.
func TestFiguresSurviveTheirProcesses(t *testing.T) {
	together(t, busy, "dublin-1 dublin-2 dublin-3", func(t *testing.T, g *group) {
		a := newAudience(g)
		end := func(p *peer, how func()) {
			a.mu.Lock()
			a.open = slices.DeleteFunc(a.open, func(name string) bool { return name == p.name })
			a.mu.Unlock()
			pass(4 * time.Second) // what is under way there is answered
			how()
			g.settled()
		}
		var come sync.WaitGroup
		come.Go(func() { a.come(120, 3*time.Minute, "dublin") })
		pass(50 * time.Second)
		left := g.holder("dublin")
		end(left, left.leave)
		come.Wait()
		pass(30 * time.Second)
		killed := g.holder("dublin")
		end(killed, killed.kill)
		a.come(20, 20*time.Second, "dublin")
		pass(time.Hour)
		for name, p := range g.nodes {
			a.truth.check(t, name, p.kept.rows())
			sum := p.kept.total()
			// Where the site changed its process in the moment, nobody knows whether the end was counted.
			if n, ended := sum.Stats[analytics.NewUsers].Sum, sum.Histograms[analytics.OnOrigin].Count(); ended > n || ended < n-5 {
				t.Errorf("%d sessions began, %d ended", n, ended)
			}
		}
	})
}

// TestAProcessAloneKeepsItsFigures: the same, for a room that is decided about here.
func TestAProcessAloneKeepsItsFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept keeper
		n, kill := beginWith(t, Config{Link: memlink.New(), Minutes: kept.hear}, shop)
		r := n.Room(shop.ID)
		x := truth{minutes: map[time.Time]*seen{}, shown: map[anteroom.ID]bool{}}
		for range 40 {
			v := newGuest()
			for range 3 {
				before, known := v.ticket, v.known
				d := r.Decide(t.Context(), v.visit())
				v.take(d)
				x.saw(d, before, known)
				time.Sleep(1700 * time.Millisecond)
			}
		}
		time.Sleep(2 * time.Second)
		if live := kept.rows(); len(live) < 3 {
			t.Errorf("%d minutes are known while they last", len(live))
		}
		time.Sleep(10 * time.Minute)
		kill()
		x.check(t, "alone", kept.rows())
		if !r.Recorder().Idle() {
			t.Error("what nobody asks for any more is kept")
		}
	})
}

// TestFiguresHaveTheTimeOfTheClock: room time stays ahead after a process whose clock was ahead, and figures do not.
func TestFiguresHaveTheTimeOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		own, err := link.Journal(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		const wrong = 6*time.Hour + 20*time.Second
		now := func() anteroom.Time { return anteroom.TimeOf(time.Now().Add(wrong)) }
		if err := newJournal(own, now, slog.New(slog.DiscardHandler)).start(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		var kept keeper
		n, kill := beginWith(t, Config{Link: link, Minutes: kept.hear}, shop)
		defer kill()
		begun := time.Now()
		r := n.Room(shop.ID)
		for range 3 {
			r.Decide(t.Context(), newcomer())
			time.Sleep(time.Minute)
		}
		if ahead := r.Now().Sub(anteroom.TimeOf(time.Now())); ahead < wrong {
			t.Errorf("room time is ahead by %v only", ahead)
		}
		rows := kept.rows()
		if len(rows) < 3 {
			t.Errorf("%d minutes", len(rows))
		}
		for _, row := range rows {
			if row.Start.Before(begun.Add(-time.Minute)) || row.Start.After(time.Now().Add(time.Minute)) {
				t.Errorf("a minute of %v, it is %v", row.Start, time.Now())
			}
		}
		if skew := n.Skew(); skew.Abs() > time.Second {
			t.Errorf("the clock is said to have been set by %v since the start", skew)
		}
	})
}
