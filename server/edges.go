package server

import (
	"fmt"
	"math"
	"strings"

	"github.com/anteroom/anteroom/cluster/doctor"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/manage"
)

// edgesSeen is what the gateway of this process has seen of edges.
func (s *Server) edgesSeen() []manage.EdgeSeen {
	out := []manage.EdgeSeen{}
	for _, e := range s.gateway.Edges() {
		shown := manage.EdgeSeen{Kind: e.Kind, Zone: e.Zone, Name: e.Name, LastSeen: e.Seen, Requests: e.Questions}
		if e.Peer.IsValid() {
			shown.Peer = e.Peer.String()
		}
		for _, n := range e.Passes {
			shown.Requests += n
		}
		if e.Kind == gateway.KindPass && shown.Requests > 0 {
			share := func(state int) float64 { return float64(e.Passes[state]) / float64(shown.Requests) }
			shown.FreshShare, shown.LateShare, shown.OverShare = share(gateway.PassFresh), share(gateway.PassLate), share(gateway.PassOver)
		}
		if e.ClockOffset != nil {
			shown.ClockOffset = new(e.ClockOffset.Seconds())
		}
		out = append(out, shown)
	}
	return out
}

// manyAhead is how far the clock of an edge may be off, in seconds, before doctor says so.
const manyAhead = 2

// examineEdges says what is wrong with the edges that were seen.
func examineEdges(edges []manage.EdgeSeen) (found []doctor.Finding) {
	for _, e := range edges {
		if e.Requests >= fewRequests && e.FreshShare > 0.5 {
			found = append(found, doctor.Finding{Severity: doctor.Warning,
				What: fmt.Sprintf("%.0f%% of the passes of %s that reached Anteroom in the last minute were fresh", 100*e.FreshShare, strings.TrimSpace(e.Zone+" "+e.Name)),
				Why:  "An edge that verifies passes sends such requests straight to the origin. Passes that no edge verifies hold seats longer and save nothing.",
				Fix:  "Check that the edge verifies passes with the keys of this installation, and that its clock is right. If there is no edge, set pass of the rooms to 0."})
		}
		// A question that is long on its way makes a clock look late, so one that looks late needs many questions.
		if o := e.ClockOffset; o != nil && (*o >= manyAhead || *o <= -manyAhead && e.Requests >= fewRequests) {
			found = append(found, doctor.Finding{Severity: doctor.Warning,
				What: fmt.Sprintf("the clock of %s at %s differs by %.1f s from that of this node", e.Kind, e.Peer, math.Abs(*o)),
				Why:  "Its log uses that clock, and so does its check of passes, if it verifies any.", Fix: "Let NTP or chrony set the clock of both machines."})
		}
	}
	return found
}
