package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/cluster/coordinator"
	"github.com/anteroom/anteroom/cluster/doctor"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/node"
)

// lookFor bounds the time for what others have to be asked.
const lookFor = 8 * time.Second

// diagnose adds to the status how the coordinators see the sites, and what is wrong.
func (s *Server) diagnose(ctx context.Context, st *manage.ClusterStatus, seen node.ClusterStatus) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	v := doctor.View{Node: seen.Node, Site: seen.Site, Members: seen.Members, Health: seen.Link, Namesake: seen.Namesake, Namesakes: seen.Namesakes, Hubs: seen.Hubs}
	// Without a majority, each of the two waits until it gives up: an operator waits for the longer one only.
	var facts natslink.Facts
	var err error
	var looking sync.WaitGroup
	looking.Go(func() { facts, err = natslink.Look(ctx, s.link) })
	v.Sites, v.Silent = coordinator.NewClient(s.link).Sites(ctx)
	for _, one := range v.Sites {
		st.Sites = append(st.Sites, manage.ClusterSite{Site: one.Name, Rooms: one.Rooms, Heard: one.Heard.Seconds(), Trip: one.Trip.Seconds(),
			Granted: one.Granted, Used: one.Used, IdlePermits: one.Idle})
	}
	shard := 0
	for _, r := range seen.Roles {
		v.Roles = append(v.Roles, doctor.Role{Name: r.Role, Node: r.Node, Error: r.Error})
		if r.State == nil {
			continue
		}
		if _, err := fmt.Sscanf(r.Role, "site.%d", &shard); err == nil {
			v.Journals = append(v.Journals, doctor.Journal{Shard: shard, Node: r.State.Node, Failing: r.State.Journal.Failing, Lost: r.State.Journal.Lost})
		}
	}
	looking.Wait()
	if err != nil {
		s.log.Debug("the store reports only part of its state", "error", err)
	}
	v.Cores, v.External = facts.Cores(), facts.External
	v.Store = examineStore(facts, seen.Link.Site.OK)
	v.Store = append(v.Store, examineOrigins(s.origins(), s.rooms())...)
	v.Store = append(v.Store, examineEdges(st.Edges)...)
	v.Store = append(v.Store, s.examineProxy()...)
	s.findings(st, doctor.Findings(v))
}

// examineStore says what is wrong with the store of a cluster; reached: this node reaches that of its site.
func examineStore(facts natslink.Facts, reached bool) (found []doctor.Finding) {
	if facts.Core == nil && facts.Server == "" && !reached {
		return nil // that no core answers is known
	}
	for _, f := range facts.Faults() {
		severity := doctor.Warning
		if f.Stops {
			severity = doctor.Error
		}
		found = append(found, doctor.Finding{Severity: severity, What: f.What, Why: f.Why, Fix: f.Fix})
	}
	return found
}

// examineJournal finds out whether a standalone process cannot record admissions. Nodes of a cluster ask about every shard.
func examineJournal(j node.JournalStats) []doctor.Finding {
	if !j.Failing {
		return nil
	}
	return []doctor.Finding{{Severity: doctor.Error, What: "the journal cannot be written",
		Why: "No new visitor is admitted, unless on_failure is admit_new.",
		Fix: "Check the log: it says what is wrong. If the disk of the data directory is full, delete files there or enlarge it; Anteroom then continues by itself."}}
}

// examineClock says that the clock of a standalone process was set since its start, by how much it was set back.
func examineClock(back time.Duration) []doctor.Finding {
	if back.Abs() <= walltime.SetBack {
		return nil
	}
	way := "back"
	if back < 0 {
		way, back = "ahead", -back
	}
	return []doctor.Finding{{Severity: doctor.Warning, What: fmt.Sprintf("the clock of this machine was set %s by %v since Anteroom was started", way, back.Round(time.Second)),
		Why: "Limits, places and events do not suffer, but figures are recorded under the time that the clock had before, or not at all if that is more than an hour ahead.",
		Fix: "Restart Anteroom outside of an event: sessions and places last. Let NTP set the clock before it starts."}}
}

func (s *Server) findings(st *manage.ClusterStatus, found []doctor.Finding) {
	for _, f := range found {
		st.Findings = append(st.Findings, manage.ClusterFinding{Severity: string(f.Severity), What: f.What, Why: f.Why, Fix: f.Fix})
	}
}

// examineProxy tells of a proxy that this node does not know as one.
func (s *Server) examineProxy() []doctor.Finding {
	peer, ok := s.gateway.UnlistedProxy()
	if !ok {
		return nil
	}
	return []doctor.Finding{{Severity: doctor.Warning, What: fmt.Sprintf("%s brings requests of visitors, and is not in trusted_proxies", peer),
		Why: "Its visitors count as one address: they share the bounds of one, rules and bind see the proxy instead of them, and the first requests of two that come over one connection may get one place.",
		Fix: fmt.Sprintf("If it is a proxy of yours, write trusted_proxies: [%s], and have it send X-Forwarded-For and X-Forwarded-Proto (docs/deploy.md, Behind nginx, HAProxy or a load balancer).", peer)}}
}

// doubtfulHosts are findings about hosts of proxied sites and rooms of this node that do not go together.
func (s *Server) doubtfulHosts() (out []manage.ClusterFinding) {
	if s.gateway.NamedHostsOnly() {
		out = append(out, manage.ClusterFinding{Severity: string(doctor.Warning),
			What: "a site has hosts \"*\", but only hosts that rooms or sites name are served",
			Why:  "Rooms name hosts. Any other host name would bypass them, so it gets 421 unless a room for \"*\" covers the request.",
			Fix:  "List the hosts of the site, or set open_hosts: true if every host has to be served."})
	}
	state := s.manage.State()
	for r := range state.Rooms() {
		if hosts := state.Unreachable(&r.Room); len(hosts) > 0 {
			out = append(out, manage.ClusterFinding{Severity: string(doctor.Warning),
				What: fmt.Sprintf("room %s/%s covers %s, which no proxied site names", r.Zone, r.Name, strings.Join(hosts, ", ")),
				Why:  "Requests for a host without a site are answered with 421, so no visitor reaches the room there.",
				Fix:  "Add the host to the hosts of a site in the configuration, or remove the route."})
		}
	}
	return out
}
