package server

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/exposition"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/account"
)

// scrapes is how many may be answered at once; more are told to come again.
const scrapes = 4

// newMetrics returns the handler of /metrics. Values are read from the parts' own counters
// when they are asked for; labels come from the configuration and from fixed lists, never
// from requests.
func (s *Server) newMetrics() http.Handler {
	return exposition.Handler(exposition.Config{AtOnce: scrapes, Former: formerName, Collect: func(to *exposition.Scrape) {
		to.Runtime()
		to.Process()
		(&collector{s}).collect(sink{to})
	}})
}

// formerName gives each of our metrics under its former name, too, for whoever has not changed dashboards and alerts yet.
func formerName(name string) string {
	if rest, ours := strings.CutPrefix(name, prefix); ours {
		return oldPrefix + rest
	}
	return ""
}

type collector struct{ s *Server }

// collect adds every figure.
func (c *collector) collect(to sink) {
	c.rooms(to)
	c.leases(to)
	c.requests(to)
	c.origins(to)
	c.process(to)
	c.analytics(to)
}

// sink takes figures.
type sink struct{ *exposition.Scrape }

func (to sink) gauge(f *exposition.Family, v float64, labels ...string) { to.Value(f, v, labels...) }

func (to sink) count(f *exposition.Family, n uint64, labels ...string) {
	to.Value(f, float64(n), labels...)
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
	for i, result := range gateway.InviteWords {
		to.count(mInvites, g.Invites[i], result)
		to.count(mMoves, g.Moves[i], result)
	}
	for i, result := range pushWords {
		to.count(mPushes, c.s.pushes.sent[i].Load(), result)
	}
	to.gauge(mSubscriptions, float64(c.s.pushes.book.Len()))
	for i, result := range account.ResultWords {
		to.count(mAccounts, g.AccountTokens[i], result)
	}
	to.count(mPasses, g.Passes)
	for i, n := range g.PassesShown {
		to.count(mPassesShown, n, gateway.PassWords[i])
	}
	for i, n := range g.Touches {
		to.count(mTouches, n, gateway.TouchWords[i])
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
	to.distribution(mGate, instants, g.Gate, nil, g.GateExample)
	to.distribution(mOrigin, instants, g.Origin, nil, g.OriginExample)
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
