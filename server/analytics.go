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
)

// AnalyticsFile is where a process with this data directory keeps analytics.
func AnalyticsFile(data string) string { return filepath.Join(data, "analytics.db") }

// Subjects on the shared space.
const (
	analyticsSubject = "analytics"     // minutes, from everybody to every store
	askAnalytics     = "ask.analytics" // queries, to any store
)

const (
	// tellEvery is between two tellings of what was recorded.
	tellEvery = time.Second
	// askWithin bounds a question to a store elsewhere, or its answer.
	askWithin = 10 * time.Second
	// askedAtOnce is how many questions of other nodes are answered at once; more wait, up to
	// askedWaiting, beyond which they get no answer.
	askedAtOnce  = 4
	askedWaiting = 64
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
	s.analytics = store.Open(store.Config{Path: AnalyticsFile(cfg.Data), Retention: time.Duration(a.RetentionDays) * day, Minutes: time.Duration(a.MinuteDays) * day,
		MaxSize: int64(a.MaxSizeMiB) << 20, Log: s.log})
}

// Analytics is the store of this process; nil when it has none.
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

// runAnalytics tells what this process records, once a second, and keeps what all tell, until ctx
// ends; what was recorded up to then is kept.
func (s *Server) runAnalytics(ctx context.Context) {
	var keeping sync.WaitGroup
	defer keeping.Wait()
	if s.analytics != nil {
		kept, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		keeping.Go(func() { s.analytics.Run(kept) })
		if s.ring != nil {
			defer s.serveAnalytics(kept)()
		}
	}
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.tellAnalytics()
		case <-ctx.Done():
			s.tellAnalytics()
			return
		}
	}
}

// tellAnalytics takes what was recorded since the last time to the store of this process, and to
// those of others.
func (s *Server) tellAnalytics() {
	minutes := s.node.Minutes(s.ring != nil)
	if s.analytics != nil {
		s.analytics.Put(minutes)
	}
	if s.ring != nil {
		s.publishAnalytics(minutes)
	}
}

// publishAnalytics tells the stores of other processes.
func (s *Server) publishAnalytics(minutes []*analytics.Minute) {
	for _, message := range store.Frames(minutes) {
		if err := s.link.Publish(analyticsSubject, message); err != nil {
			s.log.Debug("analytics of this second do not reach other nodes; they are told again", "error", err)
			return
		}
	}
}

// serveAnalytics keeps what other processes tell and answers their questions, until stop is called.
func (s *Server) serveAnalytics(ctx context.Context) (stop func()) {
	var stops []func()
	hear := func(subject string, fn func(cluster.Message)) {
		end, err := s.link.Subscribe(subject, fn)
		if err != nil {
			s.log.Error("analytics of other nodes are not heard", "subject", subject, "error", err)
			return
		}
		stops = append(stops, end)
	}
	hear(analyticsSubject, func(m cluster.Message) {
		minutes, err := store.ParseFrames(m.Data)
		if err != nil {
			s.log.Warn("analytics of another node cannot be read; is it of another release?", "error", err)
		}
		s.analytics.Put(minutes)
	})
	waiting, busy := make(chan struct{}, askedWaiting), make(chan struct{}, askedAtOnce)
	hear(askAnalytics, func(m cluster.Message) {
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
			if answer := s.analytics.Serve(ctx, m.Data); ctx.Err() == nil && m.Reply != nil {
				if err := m.Reply(answer); err != nil {
					s.log.Debug("an answer about analytics was not sent", "error", err)
				}
			}
		}()
	})
	return func() {
		for _, end := range stops {
			end()
		}
	}
}

// analyticsStatus is the part of /-/status.
type analyticsStatus struct {
	Kept     bool       `json:"kept"` // by this process
	Failing  string     `json:"failing,omitempty"`
	Since    *time.Time `json:"failing_since,omitempty"`
	Bytes    int64      `json:"bytes"`
	MaxBytes int64      `json:"max_bytes"`
	Oldest   *time.Time `json:"oldest_minute,omitempty"`
	// Shortened says that minutes were dropped for the size before their time.
	Shortened bool   `json:"shortened,omitempty"`
	Waiting   int    `json:"waiting"` // minutes of processes, to be written
	Lost      uint64 `json:"lost"`
	Refused   uint64 `json:"refused"`
	Damaged   string `json:"damaged_file,omitempty"`
}

func (s *Server) analyticsStatus() (st analyticsStatus) {
	if s.analytics == nil {
		return st
	}
	h := s.analytics.Health()
	st = analyticsStatus{Kept: true, Failing: h.Failing, Bytes: h.Bytes, MaxBytes: h.MaxBytes, Shortened: h.Shortened,
		Waiting: h.Waiting, Lost: h.Lost, Refused: h.Refused, Damaged: h.Damaged}
	if !h.Since.IsZero() {
		since := h.Since.UTC()
		st.Since = &since
	}
	if oldest := h.Oldest[0]; !oldest.IsZero() {
		st.Oldest = &oldest
	}
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
