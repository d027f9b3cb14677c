package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/doctor"
	"github.com/anteroom/anteroom/manage"
)

// origins is what the gateway of this process sees of the proxied sites.
func (s *Server) origins() []manage.ProxiedSite {
	out := []manage.ProxiedSite{}
	for _, site := range s.gateway.Origins() {
		one := manage.ProxiedSite{Hosts: site.Hosts, Origins: []manage.Origin{}}
		for _, o := range site.Origins {
			shown := manage.Origin{URL: o.URL, Healthy: o.Healthy, Requests: o.Requests, InFlight: o.InFlight}
			if o.Requests > 0 {
				shown.ErrorShare = float64(o.Failed) / float64(o.Requests)
			}
			if o.P95 > 0 {
				shown.P50, shown.P95 = new(o.P50.Seconds()), new(o.P95.Seconds())
			}
			one.Origins = append(one.Origins, shown)
		}
		out = append(out, one)
	}
	return out
}

// The bounds of an origin of which doctor says something.
const (
	fewRequests = 20
	manyErrors  = 0.05
)

// examineOrigins says what is wrong with the origins of rooms.
func examineOrigins(sites []manage.ProxiedSite, rooms []anteroom.Room) (found []doctor.Finding) {
	for _, site := range sites {
		name := strings.Join(site.Hosts, ", ")
		var ill []string
		for _, o := range site.Origins {
			switch {
			case !o.Healthy:
				ill = append(ill, o.URL)
			case o.Requests >= fewRequests && o.ErrorShare >= manyErrors:
				found = append(found, doctor.Finding{Severity: doctor.Warning,
					What: fmt.Sprintf("%.0f%% of the requests to %s, an origin of %s, failed in the last minute", 100*o.ErrorShare, o.URL, name),
					Why:  "Visitors see these errors, and newly admitted visitors use a seat for them.",
					Fix:  "Look at the log of that server. Rooms with protect admit fewer visitors meanwhile."})
			}
		}
		switch {
		case len(ill) == 0:
		case len(ill) < len(site.Origins):
			found = append(found, doctor.Finding{Severity: doctor.Warning,
				What: fmt.Sprintf("%d of %d origins of %s do not answer: %s", len(ill), len(site.Origins), name, strings.Join(ill, ", ")),
				Why:  "The others get all requests.", Fix: "Start them, or take them out of the site's origins. The log has the error."})
		default:
			found = append(found, doctor.Finding{Severity: doctor.Error, What: downWords(name, ill),
				Why: whyDown(site, rooms), Fix: "Start it, and check that this machine can reach it: its address, its port, its health path, and where the URL begins with https, its certificate. The log has the error."})
		}
	}
	return found
}

func downWords(name string, ill []string) string {
	if len(ill) == 1 {
		return fmt.Sprintf("the only origin of %s does not answer: %s", name, ill[0])
	}
	return fmt.Sprintf("none of the %d origins of %s answers: %s", len(ill), name, strings.Join(ill, ", "))
}

// whyDown says what visitors see, which depends on whether the rooms of the site protect it.
func whyDown(site manage.ProxiedSite, rooms []anteroom.Room) string {
	var open []string
	for _, r := range rooms {
		covers := slices.ContainsFunc(r.Routes, func(rt anteroom.Route) bool { return site.Serves(rt.Host) })
		if covers && !r.Protect {
			open = append(open, r.Name)
		}
	}
	if len(open) == 0 {
		return "Active users get a page that tries again, and nobody new is admitted until an origin answers."
	}
	return fmt.Sprintf("Active users get an error, and room %s continues to admit visitors, who use a seat for it: set protect.", strings.Join(open, ", "))
}

// origins are the figures of each origin, as this process sees it.
func (c *collector) origins(to sink) {
	for _, site := range c.s.gateway.Origins() {
		host := site.Hosts[0]
		for _, o := range site.Origins {
			to.gauge(mOriginUp, oneIf(o.Healthy), host, o.URL)
			to.gauge(mOriginInFlight, float64(o.InFlight), host, o.URL)
			to.gauge(mOriginRequests, float64(o.Requests), host, o.URL)
			to.gauge(mOriginFailed, float64(o.Failed), host, o.URL)
			if o.P95 > 0 {
				to.gauge(mOriginMedian, o.P50.Seconds(), host, o.URL)
				to.gauge(mOriginTail, o.P95.Seconds(), host, o.URL)
			}
		}
	}
}
