package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

func (sc Scenario) withDefaults() Scenario {
	sc.Settings = sc.Settings.WithDefaults()
	sc.Changes = slices.Clone(sc.Changes)
	for i := range sc.Changes {
		sc.Changes[i].Settings = sc.Changes[i].Settings.WithDefaults()
	}
	sc.lanes()
	if len(sc.Sites) == 0 {
		sc.Sites = []Site{{Name: "here"}}
	}
	sc.Sites = slices.Clone(sc.Sites)
	share := 0.0
	for _, s := range sc.Sites {
		share += s.Share
	}
	for i := range sc.Sites {
		s := &sc.Sites[i]
		s.Nodes = cmp.Or(s.Nodes, 1)
		if share == 0 {
			s.Share = 1
		}
	}
	v := &sc.Visitors
	v.Browsing.Mean = cmp.Or(v.Browsing.Mean, 90*time.Second)
	v.Think.Mean = cmp.Or(v.Think.Mean, 15*time.Second)
	return sc
}

// step is the distance of two points of the result.
func (sc Scenario) step() time.Duration {
	return max(time.Second, (sc.Length / 1000).Round(time.Second))
}

// Check says what is wrong with a scenario, or nil.
func (sc Scenario) Check() error {
	bad := func(format string, args ...any) error { return fmt.Errorf("scenario: "+format, args...) }
	if sc.Length <= 0 || sc.Length > MaxLength {
		return bad("a length of %v is not between 0 and %v", sc.Length, MaxLength)
	}
	if len(sc.Sites) > MaxSites || len(sc.Arrivals) > MaxFlows || len(sc.Changes) > MaxChanges {
		return bad("at most %d sites, %d flows of arrivals and %d changes fit", MaxSites, MaxFlows, MaxChanges)
	}
	if err := sc.checkLanes(); err != nil {
		return err
	}
	names, share := map[string]bool{}, 0.0
	for _, s := range sc.Sites {
		switch {
		case names[s.Name]:
			return bad("two sites are called %q", s.Name)
		case s.Nodes < 0 || s.Nodes > MaxNodes:
			return bad("site %q has %d nodes; 1 to %d fit", s.Name, s.Nodes, MaxNodes)
		case len(s.Loads) != 0 && len(s.Loads) != s.Nodes:
			return bad("site %q has %d nodes and %d loads", s.Name, s.Nodes, len(s.Loads))
		case !fine(s.Share) || s.Delay < 0 || s.Jitter < 0 || s.Delay+s.Jitter > time.Minute:
			return bad("site %q: its share has to be 0 or more, its delay between 0 and a minute", s.Name)
		}
		sum := 0.0
		for _, l := range s.Loads {
			if !fine(l) {
				return bad("site %q: a load is below 0", s.Name)
			}
			sum += l
		}
		if len(s.Loads) > 0 && sum == 0 {
			return bad("site %q: all its loads are 0", s.Name)
		}
		names[s.Name] = true
		share += s.Share
	}
	if len(sc.Sites) > 0 && share == 0 {
		return bad("all shares are 0")
	}
	known := func(name string) bool { return name == "" || names[name] }
	sum := 0.0
	for _, f := range sc.Arrivals {
		n := float64(f.Visitors)
		if f.Visitors == 0 {
			n = (f.PerMinute + f.ToPerMinute) / 2 * (f.To - f.From).Minutes()
		}
		if f.From < 0 || f.To < f.From || f.To > sc.Length || !fine(n) || !fine(f.PerMinute) || !fine(f.ToPerMinute) || f.Visitors < 0 {
			return bad("arrivals from %v to %v: they have to lie within the length of %v, and rates be 0 or more", f.From, f.To, sc.Length)
		}
		if !known(f.Site) {
			return bad("arrivals at an unknown site %q", f.Site)
		}
		sum += n
	}
	if sum > MaxVisitors {
		return bad("%.0f visitors are more than the %d that fit", sum, MaxVisitors)
	}
	if n := len(sc.Faults.Cuts) + len(sc.Faults.Deaths) + len(sc.Faults.Pauses) + len(sc.Faults.Handovers) + len(sc.Faults.Jumps) + len(sc.Faults.Stalls); n > MaxFaults {
		return bad("%d faults are more than the %d that fit", n, MaxFaults)
	}
	for _, c := range sc.Faults.Cuts {
		if !names[c.Site] {
			return bad("a cut at an unknown site %q", c.Site)
		}
		if !fine(c.Loses) || c.Loses > 1 || c.Slow < 0 || c.Slow > time.Minute {
			return bad("a cut that loses a share of %v and takes %v: the share is between 0 and 1, the time at most a minute", c.Loses, c.Slow)
		}
		if c.What == "node" {
			if err := sc.process("node", c.Site, c.Node); err != nil {
				return err
			}
		} else if c.What != "" && c.What != "site" {
			return bad("a cut of %q: it is of a site or a node", c.What)
		}
	}
	for _, d := range sc.Faults.Deaths {
		if err := sc.process(d.What, d.Site, d.Node); err != nil {
			return err
		}
	}
	for _, p := range sc.Faults.Pauses {
		if err := sc.process(p.What, p.Site, p.Node); err != nil {
			return err
		}
	}
	for _, h := range sc.Faults.Handovers {
		if !known(h.Site) {
			return bad("a hand-over at an unknown site %q", h.Site)
		}
		if h.For < 0 || h.For > MaxHandover {
			return bad("a hand-over of %v: a process takes itself for a site for at most %v after another has taken over", h.For, MaxHandover)
		}
	}
	for _, s := range sc.Faults.Stalls {
		if !known(s.Site) {
			return bad("a stall at an unknown site %q", s.Site)
		}
	}
	for _, j := range sc.Faults.Jumps {
		if !known(j.Site) {
			return bad("a clock jumps at an unknown site %q", j.Site)
		}
	}
	if err := sc.Origin.check(sc); err != nil {
		return err
	}
	v, f := sc.Visitors, sc.Faults
	for _, p := range []float64{v.Streams, v.Parallel, v.Tabs, v.Reloads, v.Early, v.Sleeps, v.Freezes, v.Roams, v.Clones, v.Replays, v.Quits, v.LogsOut, v.Drops, v.Bare, v.Returns, v.NoCookies, v.LostCookies, f.Loss, f.Repeat, f.Reorder} {
		if !fine(p) || p > 1 {
			return bad("a share of %v is not between 0 and 1", p)
		}
	}
	if !fine(v.LeavePerMinute) || v.Browsing.Mean < 0 || v.Think.Mean < time.Second {
		return bad("the visitors' times have to be above 0 (think: a second and more)")
	}
	return nil
}

// process says whether a fault names one.
func (sc Scenario) process(what, site string, node int) error {
	i := slices.IndexFunc(sc.Sites, func(s Site) bool { return s.Name == site })
	switch {
	case (what == "coordinator" || what == "all") && site == "", what == "site" && i >= 0, (what == "node" || what == "process") && i >= 0 && node >= 0 && node < max(1, sc.Sites[i].Nodes):
		return nil
	}
	return fmt.Errorf("scenario: a fault of %q at site %q, node %d: there is no such process", what, site, node)
}

func fine(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// arrival is one visitor to come.
type arrival struct {
	at   time.Duration
	site int16
}

func arrivalsOf(sc Scenario, rng *rand.Rand) []arrival {
	shares := make([]float64, len(sc.Sites))
	index := map[string]int16{}
	for i, s := range sc.Sites {
		shares[i] = s.Share
		index[s.Name] = int16(i)
	}
	scale := cumulative(shares, len(shares))
	var out []arrival
	for _, f := range sc.Arrivals {
		add := func(at time.Duration) {
			a := arrival{at: at.Round(time.Microsecond)}
			if f.Site != "" {
				a.site = index[f.Site]
			} else {
				a.site = int16(pick(scale, rng.Float64()))
			}
			out = append(out, a)
		}
		span := f.To - f.From
		if f.Visitors > 0 {
			for range f.Visitors {
				add(f.From + time.Duration(rng.Float64()*float64(span)))
			}
			continue
		}
		// Thinning: a steady stream at the higher rate, of which the line's share stays.
		most := max(f.PerMinute, f.ToPerMinute)
		if most == 0 {
			continue
		}
		for at := f.From; ; {
			at += time.Duration(rng.ExpFloat64() / most * float64(time.Minute))
			if at >= f.To {
				break
			}
			rate := f.PerMinute + (f.ToPerMinute-f.PerMinute)*float64(at-f.From)/float64(span)
			if rng.Float64()*most < rate {
				add(at)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return out
}

// settingsAt returns the settings in force at a moment, with the limits to come that are planned.
func (sc Scenario) settingsAt(at time.Duration) anteroom.Settings {
	s, coming := sc.Settings, sc.Changes
	for len(coming) > 0 && coming[0].At.Truncate(time.Microsecond) <= at { // as fine as room time
		s, coming = coming[0].Settings, coming[1:]
	}
	for _, a := range sc.Acts {
		if a.What == "reset" && a.At.Truncate(time.Microsecond) <= at {
			s.ResetAt = max(s.ResetAt, epoch.Add(a.At))
		}
	}
	var ahead anteroom.Ahead
	for _, c := range coming {
		if c.Planned {
			ahead.Limits = append(ahead.Limits, anteroom.LimitsFrom{From: epoch.Add(c.At), TotalActiveUsers: c.Settings.TotalActiveUsers, NewUsersPerMinute: c.Settings.NewUsersPerMinute})
		}
	}
	if len(ahead.Limits) > 0 {
		s.Ahead = &ahead
	}
	return s
}
