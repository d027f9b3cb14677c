package server

import (
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/ticket"
)

// scrapes is how many may be answered at once; more are told to come again.
const scrapes = 4

// newMetrics returns the handler of /metrics. Values are read from the parts' own counters
// when they are asked for; labels come from the configuration and from fixed lists, never
// from requests.
func (s *Server) newMetrics() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &collector{s: s})
	opts := promhttp.HandlerOpts{MaxRequestsInFlight: scrapes, EnableOpenMetrics: true,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError}
	both, today := promhttp.HandlerFor(bothNames{reg}, opts), promhttp.HandlerFor(reg, opts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("former") == "no" {
			today.ServeHTTP(w, r)
			return
		}
		both.ServeHTTP(w, r)
	})
}

// bothNames gives each of our metrics under its former name, too, for whoever has not changed dashboards and alerts yet.
type bothNames struct{ prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (b bothNames) Gather() ([]*dto.MetricFamily, error) {
	all, err := b.Gatherer.Gather()
	for _, f := range all {
		if name, ours := strings.CutPrefix(f.GetName(), prefix); ours {
			all = append(all, &dto.MetricFamily{Name: new(oldPrefix + name), Help: new("Deprecated: use " + f.GetName() + "."), Type: f.Type, Metric: f.Metric})
		}
	}
	return all, err
}

type collector struct{ s *Server }

// Describe sends nothing: the collector is unchecked, since its rooms change.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends every figure.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	to := sink(out)
	c.rooms(to)
	c.leases(to)
	c.requests(to)
	c.origins(to)
	c.process(to)
	c.analytics(to)
}

// sink takes figures.
type sink chan<- prometheus.Metric

func (to sink) gauge(f *family, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, v, labels...)
}

func (to sink) count(f *family, n uint64, labels ...string) {
	to <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue, float64(n), labels...)
}

// requests are the figures of the gateway.
func (c *collector) requests(to sink) {
	g := c.s.gateway.Stats()
	for i, n := range g.Refused {
		status := "other"
		if code := gateway.RefusedStatus(i); code != 0 {
			status = strconv.Itoa(code)
		}
		to.count(mRefused, n, status)
	}
	for i, n := range g.OriginErrors {
		to.count(mOriginErrors, n, gateway.OriginErrorWords[i])
	}
	to.count(mOriginAnswers, g.Origin.Count)
	cr := c.s.crawlers.Stats()
	to.count(mLookups, cr.Confirmed, "confirmed")
	to.count(mLookups, cr.Refuted, "refuted")
	to.count(mLookups, cr.Failed, "failed")
	to.count(mLookups, cr.Dropped, "dropped")
	to.gauge(mCrawlers, float64(cr.Verified))
	to.count(mExhausted, g.RulesExhausted)
	to.count(mRequests, g.Requests)
	to.count(mUncovered, g.Uncovered)
	to.count(mPreflights, g.Preflights)
	to.count(mPasses, g.Passes)
	for i, n := range g.PassesShown {
		to.count(mPassesShown, n, gateway.PassWords[i])
	}
	for i, n := range g.Questions {
		to.count(mQuestions, n, gateway.EdgeKinds[i])
	}
	for i, n := range g.SharedSessions {
		to.count(mShared, n, gateway.SharedWords[i])
	}
	to.count(mForeignHops, g.ForeignHops)
	to.count(mSuppressed, g.LogSuppressed)
	to.gauge(mInFlight, float64(g.InFlight))
	to.gauge(mHeldBack, float64(g.Waiting))
	to.gauge(mStreams, float64(g.Streams))
	to.gauge(mTunnels, float64(g.Tunnels))
	to <- exemplified(newDistribution(mGate.desc, instants, g.Gate, nil), g.GateExample)
	to <- exemplified(newDistribution(mOrigin.desc, instants, g.Origin, nil), g.OriginExample)
}

// process are the figures of everything else that there is once.
func (c *collector) process(to sink) {
	j := c.s.node.JournalStats()
	to.count(mRecords, j.Records)
	to.count(mBytes, j.Bytes)
	to.count(mFailures, j.Failures)
	to.count(mLate, j.Late)
	to.count(mLost, j.Lost)
	to.gauge(mFailing, oneIf(j.Failing))

	s := &c.s.state
	s.Lock()
	failed, reloads := s.reloadErr != nil, s.reloads
	s.Unlock()
	to.gauge(mReload, oneIf(!failed))
	to.count(mReloads, reloads)
	to.gauge(mReady, oneIf(c.s.isReady()))
	to.gauge(mStarted, float64(c.s.started.UnixNano())/float64(time.Second))
	to.gauge(mBuild, 1, c.s.opts.Version, runtime.Version())
	to.gauge(mSkew, c.s.node.Skew().Seconds())
	if ring := c.s.keyring.Load(); ring != nil {
		for _, k := range ring.Keys() {
			if k.State == ticket.Current {
				to.gauge(mKeyAge, time.Since(k.Created).Seconds())
			}
		}
	}
	to.count(mTraceFailures, c.s.traceFailures.Load())
	if expires := c.s.certs.expires(); !expires.IsZero() {
		to.gauge(mCertificate, float64(expires.Unix()))
	}
}

// exemplified adds the newest trace of a distribution to it.
func exemplified(m prometheus.Metric, e *gateway.Example) prometheus.Metric {
	if e == nil {
		return m
	}
	with, err := prometheus.NewMetricWithExemplars(m, prometheus.Exemplar{Value: e.Took.Seconds(), Timestamp: e.At, Labels: prometheus.Labels{"trace_id": e.TraceID}})
	if err != nil {
		return m
	}
	return with
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
