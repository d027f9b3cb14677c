package plan

import (
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config/strict"
	"github.com/anteroom/anteroom/internal/field"
	"github.com/anteroom/anteroom/sim"
)

// builder makes a scenario of a document and adds the faults that need more than one
// value's own text.
type builder struct {
	*strict.Reader
	doc    document
	file   string
	beside func() (fs.FS, func(), error)
	sites  []sim.Site
}

func (b *builder) given(path string) bool { _, ok := b.Where[path]; return ok }

// text checks a line that is shown to people.
func (b *builder) text(path, s string, most int) {
	switch {
	case utf8.RuneCountInString(s) > most:
		b.At(path, fmt.Sprintf("has %d characters", utf8.RuneCountInString(s)), fmt.Sprintf("at most %d", most))
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		b.At(path, "has characters that cannot be shown", "one line of plain text")
	}
}

func (b *builder) scenario() sim.Scenario {
	d := &b.doc
	if d.Length == 0 { // said already; nothing lies outside of it then
		d.Length = sim.MaxLength
	}
	if b.given("name") && d.Name == "" {
		b.At("name", "is empty", "a title for the report")
	}
	b.text("name", d.Name, 100)
	b.text("about", d.About, 1000)
	b.sites = b.buildSites()
	sc := sim.Scenario{
		Name: d.Name, About: d.About, Length: d.Length, Drain: d.Drain,
		Settings: d.Limits.WithDefaults(),
		Sites:    b.sites,
	}
	for _, key := range []string{"limits.total_active_users", "limits.new_users_per_minute"} {
		if !b.given(key) {
			b.At(key, "is missing", "both limits are needed, like limits: {total_active_users: 500, new_users_per_minute: 600}")
		}
	}
	if sc.Changes = b.changes(); len(sc.Changes) > 0 && sc.Changes[0].At == 0 {
		sc.Settings, sc.Changes = sc.Changes[0].Settings, sc.Changes[1:]
	}
	sc.Arrivals = b.arrivals()
	v := d.Visitors
	for _, s := range []struct {
		path        string
		mean, least time.Duration
	}{{"visitors.browsing", v.Browsing.Mean, v.Browsing.Least}, {"visitors.think", v.Think.Mean, v.Think.Least}} {
		if s.least > s.mean {
			b.At(s.path+".least", fmt.Sprintf("%s is above the mean of %s", field.Short(s.least), field.Short(s.mean)), "at most the mean")
		}
	}
	sc.Visitors = sim.Visitors{
		Browsing: sim.Spread{Least: v.Browsing.Least, Mean: v.Browsing.Mean}, Think: sim.Spread{Least: v.Think.Least, Mean: v.Think.Mean},
		LeavePerMinute: v.LeavePerMinute, Streams: v.Streams, Parallel: v.Parallel, Tabs: v.Tabs, Reloads: v.Reloads, Early: v.Early,
		Sleeps: v.Sleeps, Freezes: v.Freezes, Roams: v.Roams, Clones: v.Clones, Replays: v.Replays, Bare: v.Bare, Returns: v.Returns, NoCookies: v.NoCookies, LostCookies: v.LostCookies,
	}
	sc.Lanes = b.lanes()
	sc.Faults = b.faults()
	sc.Origin = b.origin()
	return sc
}

func (b *builder) lanes() (out []sim.Lane) {
	sums := sim.Lane{}
	for i, l := range b.doc.Lanes {
		at := fmt.Sprintf("lanes[%d]", i)
		if i >= anteroom.MaxLanes {
			b.At(at, "is one too many", fmt.Sprintf("at most %d lanes", anteroom.MaxLanes))
			return nil
		}
		if slices.ContainsFunc(out, func(o sim.Lane) bool { return o.Priority == l.Priority }) {
			b.At(at+".priority", fmt.Sprintf("%d is that of another lane", l.Priority), "a priority for each lane, 0 to 100")
		}
		if l.Priority == 0 && l.Visitors > 0 {
			b.At(at+".visitors", "is given for the lane of all others", "leave it out, or give the lane a priority of 1 to 100")
		}
		sums.Share, sums.Reserved, sums.Visitors = sums.Share+l.Share, sums.Reserved+l.Reserved, sums.Visitors+l.Visitors
		out = append(out, sim.Lane{Priority: l.Priority, Share: l.Share, Reserved: l.Reserved, Visitors: l.Visitors})
	}
	for _, s := range []struct {
		key       string
		sum, most float64
	}{{"share", float64(sums.Share), 100}, {"reserved", float64(sums.Reserved), 90}, {"visitors", 100 * sums.Visitors, 100}} {
		if s.sum > s.most {
			b.At("lanes", fmt.Sprintf("the values of %s add up to %g %%", s.key, s.sum), fmt.Sprintf("at most %g %% for all lanes together", s.most))
		}
	}
	return out
}

func (b *builder) origin() sim.Origin {
	o := b.doc.Origin
	if o.PerSecond == 0 {
		if len(o.Faults) > 0 {
			b.At("origin.per_second", "is missing", "an origin with faults needs to answer something, like per_second: 100")
		}
		return sim.Origin{}
	}
	out := sim.Origin{PerSecond: o.PerSecond, Latency: o.Latency, Timeout: o.Timeout}
	for i, f := range o.Faults {
		b.within(fmt.Sprintf("origin.faults[%d].at", i), f.At)
		out.Faults = append(out.Faults, sim.OriginFault{At: f.At, For: f.For, What: f.What})
	}
	return out
}

// within adds a fault when a moment lies outside the plan.
func (b *builder) within(path string, at time.Duration) {
	if at > b.doc.Length {
		b.At(path, fmt.Sprintf("%s is after the end of the plan", field.Short(at)), fmt.Sprintf("at most the length, %s", field.Short(b.doc.Length)))
	}
}

// changes lays the events over each other: at each moment where one begins or ends, the
// settings are those of the start with every event in force on top, in order of their
// beginning.
func (b *builder) changes() []sim.Change {
	type window struct {
		event
		path string
	}
	var windows []window
	var moments []time.Duration
	for i, e := range b.doc.Events {
		path := fmt.Sprintf("events[%d]", i)
		b.within(path+".at", e.At)
		moments = append(moments, e.At)
		if b.given(path + ".until") {
			b.within(path+".until", e.Until)
			if e.Until <= e.At {
				b.At(path+".until", fmt.Sprintf("%s is not after at, %s", field.Short(e.Until), field.Short(e.At)), "a later moment; both count from the start of the plan")
			}
			moments = append(moments, e.Until)
		} else {
			e.Until = sim.MaxLength + 1
		}
		w := window{e, path}
		moments = append(moments, b.ramp(w.event, path)...)
		if !slices.ContainsFunc(field.Of(reflect.TypeFor[settings]()), func(f field.Field) bool { return b.given(path + "." + f.Key) }) && len(e.Ramp) == 0 {
			b.At(path, "changes nothing", "add a key of limits, like total_active_users: 1000 or queue_all: true")
		}
		windows = append(windows, w)
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	if len(moments) > sim.MaxChanges {
		b.At("events", fmt.Sprintf("change the settings %d times", len(moments)), fmt.Sprintf("at most %d times", sim.MaxChanges))
		return nil
	}
	slices.SortStableFunc(windows, func(x, y window) int { return int(x.At - y.At) })
	var out []sim.Change
	for _, at := range moments {
		s := b.doc.Limits
		for _, w := range windows {
			if w.At <= at && at < w.Until {
				b.overlay(&s, w.settings, w.path)
				s.Settings, _ = anteroom.Event{Ramp: w.Ramp}.Ramped(s.Settings, at-w.At)
			}
		}
		out = append(out, sim.Change{At: at, Settings: s.WithDefaults(), Planned: true})
	}
	return out
}

// ramp checks the ramp of an event and returns the moments at which it changes the limits.
func (b *builder) ramp(e event, path string) (moments []time.Duration) {
	// A room's event is what checks it; its day says nothing.
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	room := anteroom.Event{Name: "plan", Start: anteroom.StampOf(start), End: anteroom.StampOf(start.Add(min(e.Until, sim.MaxLength) - e.At)), Ramp: e.Ramp}
	limits := b.doc.Limits
	b.overlay(&limits, e.settings, path)
	faults := room.Check()
	if len(faults) == 0 {
		faults = anteroom.Room{Settings: limits.Settings, Events: []anteroom.Event{room}}.CheckLimits()
	}
	broken := false
	for _, f := range faults {
		if f.Path = strings.TrimPrefix(f.Path, "events[0]."); strings.HasPrefix(f.Path, "ramp") {
			b.At(path+"."+f.Path, f.Problem, f.Fix)
			broken = true
		}
	}
	if broken {
		return nil
	}
	for at := time.Duration(-1); ; {
		_, next := room.Ramped(anteroom.Settings{}, at)
		if next <= at {
			return moments
		}
		moments, at = append(moments, e.At+next), next
	}
}

// overlay puts what was given at a path over s.
func (b *builder) overlay(s *settings, over settings, path string) {
	to, from := reflect.ValueOf(s).Elem(), reflect.ValueOf(over)
	for _, f := range field.Of(to.Type()) {
		if b.given(path + "." + f.Key) {
			to.FieldByIndex(f.Index).Set(from.FieldByIndex(f.Index))
		}
	}
}

func (b *builder) buildSites() []sim.Site {
	if len(b.doc.Sites) == 0 {
		return []sim.Site{{Name: "here", Share: 1, Nodes: 1}}
	}
	if len(b.doc.Sites) > sim.MaxSites {
		b.At("sites", fmt.Sprintf("has %d sites", len(b.doc.Sites)), fmt.Sprintf("at most %d", sim.MaxSites))
	}
	var out []sim.Site
	owner, shares := map[string]int{}, 0.0
	for i, s := range b.doc.Sites {
		path := fmt.Sprintf("sites[%d]", i)
		if first, taken := owner[s.Name]; taken && s.Name != "" {
			b.At(path+".name", fmt.Sprintf("%s is also sites[%d]", field.Quote(s.Name), first), "every site has a name of its own")
		} else {
			owner[s.Name] = i
		}
		if s.Name != "" && (len(s.Name) > anteroom.MaxNameLength || strings.Trim(strings.ToLower(s.Name), "abcdefghijklmnopqrstuvwxyz0123456789_-") != "") {
			b.At(path+".name", field.Quote(s.Name)+" is not a name", "up to 64 letters, digits, _ and -")
		}
		loads := 0.0
		for _, l := range s.Loads {
			loads += l
		}
		switch {
		case !b.given(path + ".loads"):
		case len(s.Loads) != s.Nodes:
			b.At(path+".loads", fmt.Sprintf("has %d numbers for nodes: %d", len(s.Loads), s.Nodes), "one for each node")
		case loads == 0:
			b.At(path+".loads", "are all 0", "at least one above 0")
		}
		shares += s.Share
		out = append(out, sim.Site{Name: s.Name, Share: s.Share, Nodes: s.Nodes, Loads: s.Loads, Delay: s.Delay, Jitter: s.Jitter})
	}
	if shares == 0 {
		b.At("sites", "have no share of the visitors: every share is 0", "give one of them a share above 0")
	}
	return out
}

// site returns the site of a name, or adds a fault.
func (b *builder) site(path, name string) (sim.Site, bool) {
	names := make([]string, len(b.sites))
	for i, s := range b.sites {
		if names[i] = s.Name; s.Name == name {
			return s, true
		}
	}
	fix := "known: " + strings.Join(names[:min(len(names), 10)], ", ")
	switch near := strict.DidYouMean(name, names); {
	case len(b.doc.Sites) == 0:
		fix = "add it to sites, or leave the key out"
	case near != "":
		fix = "did you mean " + near + "?"
	}
	b.At(path, field.Quote(name)+" is not a site of this plan", fix)
	return sim.Site{}, false
}

// siteOfFault is site for a fault, where the only site may be left out.
func (b *builder) siteOfFault(path, name string) (sim.Site, bool) {
	if name != "" || b.given(path) {
		return b.site(path, name)
	}
	if len(b.sites) > 1 {
		b.At(path, "is missing", "the name of the site; the plan has several")
		return sim.Site{}, false
	}
	return b.sites[0], true
}

func (b *builder) faults() sim.Faults {
	f := b.doc.Faults
	out := sim.Faults{Loss: f.Loss, Repeat: f.Repeat, Reorder: f.Reorder, NodeLife: f.NodeLife, Clock: f.Clock, SlowStore: f.SlowStore}
	if n := len(f.Cuts) + len(f.Deaths) + len(f.Handovers) + len(f.Pauses) + len(f.Jumps) + len(f.Stalls); n > sim.MaxFaults {
		b.At("faults", fmt.Sprintf("has %d members", n), fmt.Sprintf("at most %d cuts, deaths, hand-overs, pauses, stalls and jumps together", sim.MaxFaults))
		return out
	}
	for i, c := range f.Cuts {
		path := fmt.Sprintf("faults.cuts[%d]", i)
		s, node := b.process(path, c.At, c.What, c.Site, c.Node)
		out.Cuts = append(out.Cuts, sim.Cut{At: c.At, For: c.For, What: c.What, Site: s, Node: node, Up: c.Direction == "up", Down: c.Direction == "down"})
	}
	for i, d := range f.Deaths {
		path := fmt.Sprintf("faults.deaths[%d]", i)
		site, node := b.process(path, d.At, d.What, d.Site, d.Node)
		if d.Forgets && d.What != "site" && d.What != "process" && d.What != "all" {
			b.At(path+".forgets", "is for sites only", "a node holds nothing to forget, and the coordinator is asked to forget by its sites")
		}
		out.Deaths = append(out.Deaths, sim.Death{At: d.At, For: d.For, What: d.What, Site: site, Node: node, Forgets: d.Forgets})
	}
	for i, h := range f.Handovers {
		path := fmt.Sprintf("faults.handovers[%d]", i)
		s, _ := b.process(path, h.At, h.What, h.Site, 1)
		out.Handovers = append(out.Handovers, sim.Handover{At: h.At, For: h.For, Site: s, Orderly: h.Orderly})
	}
	for i, p := range f.Pauses {
		site, node := b.process(fmt.Sprintf("faults.pauses[%d]", i), p.At, p.What, p.Site, p.Node)
		out.Pauses = append(out.Pauses, sim.Pause{At: p.At, For: p.For, What: p.What, Site: site, Node: node, Replaced: p.Replaced})
	}
	for i, s := range f.Stalls {
		b.anySite(fmt.Sprintf("faults.stalls[%d]", i), s.At, s.Site)
		out.Stalls = append(out.Stalls, sim.Stall{At: s.At, For: s.For, Site: s.Site})
	}
	for i, j := range f.Jumps {
		b.anySite(fmt.Sprintf("faults.jumps[%d]", i), j.At, j.Site)
		out.Jumps = append(out.Jumps, sim.Jump{At: j.At, Site: j.Site, By: j.By})
	}
	return out
}

// anySite checks a fault that names a site or, with none, concerns the coordinator.
func (b *builder) anySite(path string, at time.Duration, site string) {
	b.within(path+".at", at)
	if site != "" {
		b.site(path+".site", site)
	}
}

// process checks what a death or a pause names, and returns the site and the node's index.
func (b *builder) process(path string, at time.Duration, what, site string, node int) (string, int) {
	b.within(path+".at", at)
	if what == "coordinator" || what == "all" {
		if site != "" {
			b.At(path+".site", "is given, and what is "+what+", which belongs to no site", "leave it out, or say what: site")
		}
		if b.given(path + ".node") {
			b.At(path+".node", "is given, and what is "+what+", which is no node", "leave it out, or say what: node")
		}
		return "", 0
	}
	if what == "" {
		return "", 0 // said already: required
	}
	s, ok := b.siteOfFault(path+".site", site)
	if what == "site" {
		if b.given(path + ".node") {
			b.At(path+".node", "is given for a whole site", "leave it out, or say what: node")
		}
		return s.Name, 0
	}
	if ok && node > s.Nodes {
		b.At(path+".node", fmt.Sprintf("%d is not a node: the site has %d", node, s.Nodes), fmt.Sprintf("1 to %d", s.Nodes))
	}
	return s.Name, node - 1
}
