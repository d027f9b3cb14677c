package server

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/ticket"
)

// newMetrics returns the handler of /metrics. Values are read from the parts' own counters
// when they are asked for; labels come from the configuration and from fixed lists, never
// from requests.
func (s *Server) newMetrics() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &collector{s: s})
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}

type collector struct{ s *Server }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("wr_"+name, help, labels, nil)
}

// Describe sends nothing: the collector is unchecked, since its rooms change.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends every figure.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	var (
		active   = desc("active_sessions", "Sessions that hold a seat.", "room")
		limit    = desc("limit_active", "Sessions at once that the room allows.", "room")
		rate     = desc("limit_new_sessions_per_minute", "New sessions in any 60 seconds that the room allows.", "room")
		recent   = desc("new_sessions_last_minute", "Sessions that began in the last 60 seconds.", "room")
		waiting  = desc("waiting", "Visitors in line: in touch, or away with their place kept.", "room", "state")
		offered  = desc("offered_turns", "Turns that were given and not taken yet.", "room")
		forecast = desc("wait_forecast_seconds", "Forecast of the wait of somebody who joins now; absent while unknown.", "room")
	)
	for _, r := range c.s.rooms() {
		n := c.s.node.Room(r.ID)
		if n == nil {
			continue
		}
		st, name := n.Status(), r.Zone+"/"+r.Name
		gauge(active, float64(st.ActiveUsers), name)
		gauge(limit, float64(st.TotalActiveUsers), name)
		gauge(rate, float64(st.NewPerMinute), name)
		gauge(recent, float64(st.AdmittedLastMin), name)
		gauge(waiting, float64(st.Waiting), name, "present")
		gauge(waiting, float64(st.Dormant), name, "away")
		gauge(offered, float64(st.Offered), name)
		if st.WaitKnown {
			gauge(forecast, st.WaitOfNewcomer.Seconds(), name)
		}
	}
	g := c.s.gateway.Stats()
	decisions := desc("decisions_total", "Decisions about requests to a room.", "verdict", "reason")
	for _, reason := range anteroom.Reasons() {
		for v := range gateway.Verdicts {
			if n := g.Decisions[v][reason]; n > 0 {
				count(decisions, n, anteroom.Verdict(v).String(), reason.String())
			}
		}
	}
	tickets := desc("tickets_total", "Cookies that were read as tickets, by what came of it.", "result")
	for _, r := range ticket.Results() {
		count(tickets, g.Tickets[r], r.String())
	}
	refused := desc("refused_requests_total", "Requests refused before any decision, by status.", "status")
	for i, n := range g.Refused {
		status := "other"
		if code := gateway.RefusedStatus(i); code != 0 {
			status = strconv.Itoa(code)
		}
		count(refused, n, status)
	}
	originErrors := desc("origin_errors_total", "Requests that an origin did not answer.", "kind")
	for i, n := range g.OriginErrors {
		count(originErrors, n, gateway.OriginErrorWords[i])
	}
	bypassed := desc("bypassed_total", "Requests that passed a room untouched and uncounted.", "reason")
	for i, n := range g.Bypassed {
		count(bypassed, n, gateway.BypassWords[i])
	}
	count(desc("rules_exhausted_total", "Requests for which rules did not match because they would have taken too long."), g.RulesExhausted)
	looked := desc("crawler_lookups_total", "Addresses of claimed search-engine crawlers, by what the DNS said; dropped ones were not asked for because there were too many.", "result")
	cr := c.s.crawlers.Stats()
	count(looked, cr.Confirmed, "confirmed")
	count(looked, cr.Refuted, "refuted")
	count(looked, cr.Failed, "failed")
	count(looked, cr.Dropped, "dropped")
	gauge(desc("crawlers_verified", "Addresses known as search-engine crawlers."), float64(cr.Verified))
	count(desc("requests_total", "Requests of visitors."), g.Requests)
	count(desc("uncovered_requests_total", "Requests outside every room."), g.Uncovered)
	count(desc("preflight_requests_total", "CORS preflights that passed uncounted."), g.Preflights)
	count(desc("revoked_sessions_total", "Sessions ended by a command of the origin."), g.Revoked)
	count(desc("ignored_forwarding_headers_total", "Requests with forwarding headers from a peer that is not among trusted_proxies."), g.ForeignHops)
	gauge(desc("requests_in_flight", "Requests being served."), float64(g.InFlight))
	gauge(desc("streams_open", "Waiting pages with an open stream."), float64(g.Streams))
	gauge(desc("tunnels_open", "WebSocket connections."), float64(g.Tunnels))

	buckets, total := map[float64]uint64{}, uint64(0)
	for i, n := range g.Gate.Counts {
		total += n
		if i < len(gateway.HistogramBounds) {
			buckets[gateway.HistogramBounds[i]] = total
		}
	}
	out <- prometheus.MustNewConstHistogram(desc("gate_seconds", "From the start of a request to its decision."), total, g.Gate.Sum, buckets)

	j := c.s.node.JournalStats()
	count(desc("journal_records_total", "Journal records written."), j.Records)
	count(desc("journal_bytes_total", "Bytes of journal records written."), j.Bytes)
	count(desc("journal_failures_total", "Journal writes that failed and were tried again."), j.Failures)
	count(desc("journal_late_total", "Admissions that did not wait for their journal record."), j.Late)
	count(desc("journal_lost_events_total", "Events dropped because the journal could not be written for too long."), j.Lost)
	gauge(desc("journal_failing", "1 while the journal cannot be written."), oneIf(j.Failing))

	s := &c.s.state
	s.Lock()
	failed, reloads := s.reloadErr != nil, s.reloads
	s.Unlock()
	gauge(desc("config_reload_success", "1 unless the last reload was refused."), oneIf(!failed))
	count(desc("config_reloads_total", "Reloads since the start."), reloads)
	gauge(desc("ready", "1 while the process serves."), oneIf(c.s.isReady()))
	gauge(desc("start_time_seconds", "When the process started."), float64(c.s.started.UnixNano())/float64(time.Second))
	gauge(desc("build_info", "1, with the version.", "version", "go"), 1, c.s.opts.Version, runtime.Version())
	if expires := c.s.certs.expires(); !expires.IsZero() {
		gauge(desc("certificate_expiry_seconds", "When the first of the configured certificates runs out."), float64(expires.Unix()))
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s *Server) isReady() bool {
	s.state.Lock()
	defer s.state.Unlock()
	return s.state.ready
}
