// Package doctor finds what is wrong with a cluster, from what its nodes know. It sends no requests and changes
// nothing.
package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator"
)

// Severity says how bad a finding is.
type Severity string

const (
	// Error: visitors are turned away or limits are not served, or will be at the next fault.
	Error Severity = "error"
	// Warning: it works, and something is not as it should be.
	Warning Severity = "warning"
	// Note: worth knowing; nothing has to be done.
	Note Severity = "note"
)

// Finding is something that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	What     string   `json:"what"` // what was seen, with its numbers
	Why      string   `json:"why"`  // what comes of it
	Fix      string   `json:"fix"`  // what to do
}

// View is what one node knows of its site and of the cluster. What is not known stays empty.
type View struct {
	Node string // who looks
	Site string

	// External: the store is in NATS servers of the operator's own.
	External bool
	// Cores is how many cores the site is to have by its configuration; 0: it is not known.
	Cores int
	// Members are the nodes of the site, the looking one included, whose Offset is 0.
	Members []cluster.Member

	// Namesake: another site of the cluster has the name of this one.
	Namesake bool
	// Namesakes are nodes of the site whose name several processes have.
	Namesakes []string
	// Hubs are the sites that are the hub, if there are several.
	Hubs []string

	Roles    []Role // of the site
	Health   cluster.Health
	Sites    []coordinator.SiteSummary // as coordinators see them
	Silent   []int                     // shards whose coordinator does not answer
	Journals []Journal
	Store    []Finding // what the link has found itself
}

// Role is a role of the site and who holds it.
type Role struct {
	Name  string
	Node  string // "": nobody
	Error string // why its holder does not serve
}

// Journal is a journal of the site as its holder sees it.
type Journal struct {
	Shard   int
	Node    string
	Failing bool   // the last append failed
	Lost    uint64 // events that are in no journal
}

// The bounds of clocks that differ and of copies that are old.
const (
	skewWarning = time.Second
	skewError   = 2 * time.Second
	lagWarning  = 5 * time.Second
	lagError    = time.Minute
	silentAfter = 10 * time.Second
)

// Findings returns what is wrong, the worst first.
func Findings(v View) []Finding {
	var d diagnosis
	d.names(v)
	d.store(v)
	if v.Health.Alone || v.Health.Site.OK { // else what is known of them is old
		d.roles(v)
		d.journals(v)
	}
	d.versions(v)
	d.clocks(v)
	d.files(v)
	d.sites(v)
	if v.Health.Site.OK {
		d.cores(v)
	}
	rank := map[Severity]int{Error: 0, Warning: 1, Note: 2}
	slices.SortStableFunc(d.found, func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return d.found
}

type diagnosis struct{ found []Finding }

func (d *diagnosis) add(s Severity, what, why, fix string) {
	d.found = append(d.found, Finding{s, what, why, fix})
}

func (d *diagnosis) names(v View) {
	if len(v.Hubs) > 0 {
		d.add(Error, "several sites are the hub: "+strings.Join(v.Hubs, ", "),
			"Each of them has coordinators, which decide about all rooms against the others: visitors may wait although slots are free, and the order of the queue is not that of arrival.",
			"Set cluster.nats.hub: false at all sites but one and restart their nodes. Write off a site that no longer runs: anteroom cluster forget SITE.")
	}
	if v.Namesake {
		d.add(Error, fmt.Sprintf("another site of the cluster has the name %s", v.Site),
			"This site holds no roles: it would be taken for the other one and admit visitors with that site's units.",
			"Give one of the two another cluster.site and restart its nodes. If this site lost its store, start it once with --new-journal.")
	}
	for _, node := range v.Namesakes {
		d.add(Error, fmt.Sprintf("several processes have the name of node %s", node),
			"The one that started last has the name. The others hold no roles and are missing from the status, so the site may stop when it loses another node.",
			"Give each process its own cluster.node, or stop the one that was started by mistake: another one has the name again within a minute.")
	}
}

func (d *diagnosis) store(v View) {
	if v.Health.Alone {
		return
	}
	if t := v.Health.Site; !t.OK {
		fix := "Start a core of the site, or make it reachable (cluster.join, port of cluster.listen)."
		if v.External {
			fix = "Start your NATS servers, or make them reachable (cluster.nats.url). If they refuse the credentials, put others into the same file (cluster.nats.credentials): nodes read it with each try."
		}
		d.add(Error, fmt.Sprintf("node %s does not reach the store of its site %s%s", v.Node, v.Site, since(t)),
			"It holds no roles, and what it shows about other nodes is out of date. Sessions that it knows continue for a session duration, waiting visitors keep their places, and on_failure decides about new visitors.", fix)
	}
	fix := "Make the cores of the hub reachable (cluster.hub, their port + 2), or start them: more than half of them must run."
	if v.External {
		fix = "Start the NATS servers of the hub, or make them reachable from those of this site (their leaf nodes, cluster.nats.shared_credentials, cluster.nats.shared_domain): more than half of them must run."
	}
	switch t := v.Health.Shared; {
	case !t.OK:
		d.add(Error, fmt.Sprintf("site %s does not reach the hub%s", v.Site, since(t)),
			"The configuration cannot be changed from here, and until the hub is back the site admits visitors with the units that it has.",
			fix)
	case t.Lag > lagError:
		d.add(Error, fmt.Sprintf("node %s reads data from the shared store that is %v old", v.Node, t.Lag.Round(time.Second)),
			"Changes of rooms, keys and tokens do not arrive here.", "Check the link to the hub: anteroom cluster status shows which stores answer.")
	case t.Lag > lagWarning:
		d.add(Warning, fmt.Sprintf("node %s reads data from the shared store that is %v old", v.Node, t.Lag.Round(time.Second)),
			"Changes of rooms, keys and tokens arrive late here.", "Check the link to the hub: it may be slow or overloaded.")
	}
	d.found = append(d.found, v.Store...)
}

func (d *diagnosis) roles(v View) {
	var free []string
	idle, why := map[string][]string{}, map[string]string{} // by holder
	for _, r := range v.Roles {
		switch {
		case r.Node == "":
			free = append(free, r.Name)
		case r.Error != "":
			idle[r.Node], why[r.Node] = append(idle[r.Node], r.Name), cmp.Or(why[r.Node], r.Error)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(idle)) {
		d.add(Error, fmt.Sprintf("node %s holds %s but does not serve: %s", node, listed(idle[node]), why[node]),
			"New visitors of these rooms wait, or on_failure decides about them.",
			"If it has just stopped, wait ten seconds: other nodes take its roles. If it runs, check its log and its disk; stopping it hands its roles over.")
	}
	if len(free) > 0 {
		d.add(Error, fmt.Sprintf("no node holds %d of %d roles: %s", len(free), len(v.Roles), listed(free)),
			"New visitors of these rooms wait, or on_failure decides about them; active users stay for a session duration.",
			"Wait ten seconds: other nodes take roles over by themselves. Then check whether any core runs, and whether nodes reach the store of the site.")
	}
	if len(v.Silent) > 0 {
		names := make([]string, len(v.Silent))
		for i, shard := range v.Silent {
			names[i] = fmt.Sprintf("coordinator.%02d", shard)
		}
		d.add(Error, fmt.Sprintf("%d of %d coordinators do not answer: %s", len(names), cluster.Shards, listed(names)),
			"Sites admit visitors with the units that they have, each from its own queue; meanwhile there is no order among sites.",
			"Check whether nodes of the hub run, and whether this site reaches them.")
	}
}

func (d *diagnosis) journals(v View) {
	for _, j := range v.Journals {
		switch {
		case j.Failing:
			d.add(Error, fmt.Sprintf("the journal of shard %02d cannot be written at node %s", j.Shard, j.Node),
				"No new visitor is admitted to its rooms, unless on_failure is admit_new.",
				"Check the log of that node: it says what is wrong with the disk or the cores.")
		case j.Lost > 0:
			d.add(Warning, fmt.Sprintf("%d events of shard %02d are not in any journal (node %s)", j.Lost, j.Shard, j.Node),
				"After a crash of that node, some sessions are known only from cookies.", "Check how long writes take there: the disk is too slow for the load.")
		}
	}
}

func (d *diagnosis) versions(v View) {
	versions := map[string]string{}
	for i, a := range v.Members {
		versions[a.Node] = a.Version
		for _, b := range v.Members[:i] {
			if a.Wire[1] < b.Wire[0] || b.Wire[1] < a.Wire[0] {
				d.add(Error, fmt.Sprintf("nodes %s (%s) and %s (%s) do not understand each other: they use message formats %d to %d and %d to %d",
					b.Node, b.Version, a.Node, a.Version, b.Wire[0], b.Wire[1], a.Wire[0], a.Wire[1]),
					"Each serves the same rooms as if the other did not exist.", "Upgrade the older one, release by release.")
			}
		}
	}
	if groups := byValue(versions); len(groups) > 1 {
		d.add(Note, "several versions run together: "+described(groups),
			"This is normal during an upgrade, but not meant to last.", "Upgrade the other nodes once the first ones work well.")
	}
}

// clocks compares each with the middle one, so that who is wrong is named, and not who looks.
func (d *diagnosis) clocks(v View) {
	if len(v.Members) < 2 {
		return
	}
	offsets := make([]time.Duration, len(v.Members))
	for i, m := range v.Members {
		offsets[i] = m.Offset
	}
	slices.Sort(offsets)
	middle := offsets[(len(offsets)-1)/2]
	for _, m := range v.Members {
		off, way, severity := m.Offset-middle, "ahead of", Warning
		if off < 0 {
			off, way = -off, "behind"
		}
		switch {
		case off <= skewWarning:
			continue
		case off > skewError:
			severity = Error
		}
		d.add(severity, fmt.Sprintf("the clock of node %s is %v %s the others", m.Node, off.Round(10*time.Millisecond), way),
			"Events start and end there at another time.", "Let NTP or chrony set the clock of that machine.")
	}
}

func (d *diagnosis) files(v View) {
	said := map[string]string{}
	for _, m := range v.Members {
		if m.State != "" { // else it leaves that to the others
			said[m.Node] = m.State
		}
	}
	if groups := byValue(said); len(groups) > 1 {
		d.add(Warning, "configuration files define different proxied sites or rooms: "+described(groups),
			"A room has other limits or routes at one node than at another.", "Make the files equal and reload, or remove sites and rooms from all but one.")
	}
}

func (d *diagnosis) sites(v View) {
	for _, s := range v.Sites {
		if s.Silent > 0 && s.Heard > silentAfter {
			d.add(Warning, fmt.Sprintf("site %s is silent in %d of %d rooms, the longest for %v, and has %d seats", s.Name, s.Silent, s.Rooms, s.Heard.Round(time.Second), s.Granted),
				"These seats count as taken until it is back.", "Check its link to the hub, or start its nodes. If its data is lost, see \"A site is lost\" in docs/cluster.md.")
		}
	}
}

// cores counts those of the configuration: which of them are away is among what the store says.
func (d *diagnosis) cores(v View) {
	embedded := slices.ContainsFunc(v.Members, func(m cluster.Member) bool { return m.Core })
	if embedded && v.Cores == 1 && !v.Health.Alone {
		d.add(Note, fmt.Sprintf("site %s has one core", v.Site),
			"When it stops, the site admits no new visitor until it is back; active users stay for a session duration.",
			"For high availability run three cores (cluster.cores).")
	}
}

func since(t cluster.Touch) string {
	text := ""
	if !t.Since.IsZero() {
		text += " since " + t.Since.UTC().Format(time.RFC3339)
	}
	if t.Detail != "" {
		text += ": " + t.Detail
	}
	return text
}

// byValue groups nodes by what they have.
func byValue(of map[string]string) map[string][]string {
	groups := map[string][]string{}
	for _, node := range slices.Sorted(maps.Keys(of)) {
		groups[of[node]] = append(groups[of[node]], node)
	}
	return groups
}

// described tells groups, the largest first.
func described(groups map[string][]string) string {
	values := slices.Sorted(maps.Keys(groups))
	slices.SortStableFunc(values, func(a, b string) int { return cmp.Compare(len(groups[b]), len(groups[a])) })
	parts := make([]string, len(values))
	for i, value := range values {
		parts[i] = fmt.Sprintf("%.16s at %s", value, listed(groups[value]))
	}
	return strings.Join(parts, "; ")
}

// listed names a few, and how many more there are.
func listed(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
