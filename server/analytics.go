package server

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/analytics/store"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/internal/walltime"
)

// analyticsFile is where a process with this data directory keeps analytics.
func analyticsFile(data string) string { return filepath.Join(data, "analytics.db") }

// Subjects on the shared space.
const (
	askAnalytics  = "ask.analytics"      // queries, to any store
	copyAnalytics = "ask.analytics.copy" // what a store missed, to the others
)

const (
	// askWithin bounds a question to a store elsewhere, or its answer.
	askWithin = 10 * time.Second
	// askedAtOnce is how many questions of other nodes are answered at once; more wait, up to
	// askedWaiting, beyond which they get no answer.
	askedAtOnce  = 4
	askedWaiting = 64
	// catchUpAfter is from the start, and catchUpEvery between, looks for what was missed.
	catchUpAfter = 2 * time.Second
	catchUpEvery = time.Hour
)

// keepsAnalytics reports whether a process with this configuration has a store: one alone, a core,
// and a node on NATS servers of the operator's own, which have no cores.
func keepsAnalytics(cfg config.Config) bool {
	c := cfg.Cluster
	return cfg.Analytics.Store && (!c.On() || c.Listen != "" || len(c.NATS.URL) > 0)
}

// openAnalytics opens the store, where this process has one. It does not fail: a store that cannot
// be opened says so and tries again.
func (s *Server) openAnalytics(cfg config.Config) {
	if !keepsAnalytics(cfg) {
		return
	}
	const day = 24 * time.Hour
	a := cfg.Analytics
	s.analytics = store.Open(store.Config{Path: analyticsFile(cfg.Data), Retention: time.Duration(a.RetentionDays) * day, Minutes: time.Duration(a.MinuteDays) * day,
		MaxSize: int64(a.MaxSizeMiB) << 20, Log: s.log})
}

// Analytics returns the store of this process; nil if it has none.
func (s *Server) Analytics() *store.Store { return s.analytics }

// analyticsReader is where operators' questions go: to the store of this process, or to that of
// another; nil when there is neither.
func (s *Server) analyticsReader(cfg config.Config) analytics.Reader {
	switch {
	case s.analytics != nil:
		return s.analytics
	case s.ring != nil && cfg.Analytics.Store:
		return store.Remote{Ask: func(ctx context.Context, message []byte) ([]byte, error) {
			ctx, done := context.WithTimeout(ctx, askWithin)
			defer done()
			return s.link.Request(ctx, askAnalytics, message)
		}}
	}
	return nil
}

// keepMinutes is what the node tells of what is recorded; nil when this process has no store.
func (s *Server) keepMinutes(cfg config.Config) func([]*analytics.Minute) {
	if !keepsAnalytics(cfg) {
		return nil
	}
	return func(minutes []*analytics.Minute) { s.analytics.Put(minutes) }
}

// runAnalytics keeps what the node tells until it has ended, and answers what other processes ask.
func (s *Server) runAnalytics(node <-chan struct{}) {
	if s.analytics == nil {
		return
	}
	kept, stop := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer stop()
	keeping.Go(func() { s.analytics.Run(kept) })
	if s.ring != nil {
		defer s.serveAnalytics(kept)()
		keeping.Go(func() { s.catchUpAnalytics(kept) })
	}
	<-node
}

// serveAnalytics answers the questions of other processes, until stop is called.
func (s *Server) serveAnalytics(ctx context.Context) (stop func()) {
	waiting, busy := make(chan struct{}, askedWaiting), make(chan struct{}, askedAtOnce)
	reply := func(m cluster.Message, answer func(context.Context, []byte) ([]byte, bool)) {
		select {
		case waiting <- struct{}{}:
		default:
			return
		}
		go func() {
			defer func() { <-waiting }()
			ctx, done := context.WithTimeout(ctx, askWithin)
			defer done()
			select {
			case busy <- struct{}{}:
			case <-ctx.Done():
				return
			}
			defer func() { <-busy }()
			if text, ok := answer(ctx, m.Data); ok && ctx.Err() == nil && m.Reply != nil {
				if err := m.Reply(text); err != nil {
					s.log.Debug("a response with analytics was not sent", "error", err)
				}
			}
		}()
	}
	var stops []func()
	for subject, answer := range map[string]func(context.Context, []byte) ([]byte, bool){
		askAnalytics:  func(ctx context.Context, asked []byte) ([]byte, bool) { return s.analytics.Serve(ctx, asked), true },
		copyAnalytics: s.analytics.ServeCopy,
	} {
		end, err := s.link.Subscribe(subject, func(m cluster.Message) { reply(m, answer) })
		if err != nil {
			s.log.Error("requests of other nodes for analytics cannot be received", "subject", subject, "error", err)
			continue
		}
		stops = append(stops, end)
	}
	return func() {
		for _, end := range stops {
			end()
		}
	}
}

// catchUpAnalytics copies what this process missed from another store, soon after the start and then
// from time to time, until ctx ends.
func (s *Server) catchUpAnalytics(ctx context.Context) {
	for walltime.Sleep(ctx, catchUpAfter); ctx.Err() == nil; walltime.Sleep(ctx, catchUpEvery) {
		n, err := s.analytics.CatchUp(ctx, func(ctx context.Context, message []byte) ([]byte, error) {
			ctx, done := context.WithTimeout(ctx, askWithin)
			defer done()
			return s.link.Request(ctx, copyAnalytics, message)
		})
		switch {
		case n > 0:
			s.log.Info("analytics that this process missed were copied from another", "rows", n)
		case err != nil:
			s.log.Debug("could not ask another node for analytics that this process missed", "error", err)
		}
	}
}

// analyticsStatus is the part of /-/status.
type analyticsStatus struct {
	Kept bool `json:"kept"` // by this process
	store.Health
	OldestMinute time.Time `json:"oldest_minute,omitzero"`
}

func (s *Server) analyticsStatus() (st analyticsStatus) {
	if s.analytics == nil {
		return st
	}
	st = analyticsStatus{Kept: true, Health: s.analytics.Health()}
	st.Since, st.OldestMinute = st.Since.UTC(), st.Oldest[0]
	return st
}

// analytics are the figures of the store.
func (c *collector) analytics(to sink) {
	if c.s.analytics == nil {
		return
	}
	h := c.s.analytics.Health()
	to.gauge(mAnalyticsFailing, oneIf(h.Failing != ""))
	to.gauge(mAnalyticsBytes, float64(h.Bytes))
	to.gauge(mAnalyticsMaxBytes, float64(h.MaxBytes))
	to.gauge(mAnalyticsWaiting, float64(h.Waiting))
	to.count(mAnalyticsLost, h.Lost)
	to.count(mAnalyticsRefused, h.Refused)
}
