package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/manage"
)

// facts are what a report is made from.
type facts struct {
	Made     time.Time
	Room     anteroom.Room
	Event    *anteroom.Event // what the report is about; nil for any other time
	Number   int             // of its occurrence
	From, To time.Time

	Rows  analytics.Answer // with histograms
	Total *analytics.Row   // of all the time, with details; nil when nothing was recorded

	History     manage.History
	Occurrences []occurrence
	MoreEvents  bool // there are more than these
	Draws       []drawFact
	Notes       []string
}

// occurrence is one of an event.
type occurrence struct {
	Event *anteroom.Event
	anteroom.Occurrence
}

// drawFact is an occurrence with its shuffle.
type drawFact struct {
	occurrence
	*anteroom.Shuffle
}

// makeReport makes the report.
func makeReport(f facts) *Report {
	r := &Report{zone: time.UTC, Made: f.Made, From: f.From, To: f.To, AsOf: f.Rows.AsOf.UTC(), Notes: f.Notes, Every: int64(time.Duration(f.Rows.Every).Seconds()),
		Room: Room{ID: f.Room.ID, Name: f.Room.Name, Zone: f.Room.Zone}}
	for _, rt := range f.Room.Routes {
		r.Room.Routes = append(r.Room.Routes, rt.Host+rt.Path)
	}
	for _, o := range f.Occurrences {
		e := o.shown()
		r.Events = append(r.Events, e)
		if f.Event != nil && f.Event.ID == e.ID && f.Number == e.Number {
			r.Event = &e
		}
	}
	if f.Event != nil && r.Event == nil {
		o, _ := f.Event.Occurrence(f.Number)
		e := occurrence{f.Event, o}.shown()
		r.Event = &e
	}
	slices.SortStableFunc(r.Events, func(a, b Event) int { return a.Start.Compare(b.Start) })
	total := f.Total
	if total == nil || total.Minutes == 0 {
		total = &analytics.Row{}
		r.Notes = append(r.Notes, "Nothing was recorded for the room in this time.")
	}
	r.sums(total)
	for i := range f.Rows.Rows {
		r.point(&f.Rows.Rows[i])
	}
	r.stretches(f)
	r.limits(f, total)
	for _, h := range f.History.Records {
		r.change(h)
	}
	for _, d := range f.Draws {
		r.Draws = append(r.Draws, drawn(f.Room, d))
	}
	r.order(f, total)
	r.missing(f)
	return r
}

func (o occurrence) shown() Event {
	e := Event{ID: o.Event.ID, Name: o.Event.Name, Number: o.Number, Start: o.Start.UTC(), End: o.End.UTC(), Shuffle: o.Event.ShuffleAtStart}
	if !o.Prequeue.IsZero() {
		e.Prequeue = new(o.Prequeue.UTC())
	}
	return e
}

// sums reads what is over all the time.
func (r *Report) sums(t *analytics.Row) {
	count := func(m analytics.Metric) int64 { return t.Stats[m].Sum }
	waited := t.Histograms[analytics.Waited].Count()
	f := &r.Figures
	*f = Figures{LetIn: count(analytics.NewUsers), Joined: count(analytics.Joined), Abandoned: count(analytics.Abandoned), NoShows: count(analytics.NoShows),
		TurnedAway: count(analytics.TurnedAway), Revoked: count(analytics.Revoked), Bypassed: count(analytics.Bypassed), Refused: count(analytics.Refused)}
	f.AtOnce = max(0, f.LetIn-waited)
	f.AbandonedOf = share(f.Abandoned, f.Joined)
	f.NoShowsOf = share(f.NoShows, f.NoShows+waited)
	for _, s := range []analytics.Span{analytics.Waited, analytics.InQueue, analytics.OnOrigin, analytics.BetweenRefreshes} {
		if one := spread(s, t); one != nil {
			r.Durations = append(r.Durations, *one)
		}
	}
	e := &r.Estimates
	e.Late, e.Early = spread(analytics.Late, t), spread(analytics.Early, t)
	late, early := t.Histograms[analytics.Late].Count(), t.Histograms[analytics.Early].Count()
	e.Compared, e.LateOf = late+early, share(late, late+early)
	r.Decisions, r.TicketRefusals, r.Bypasses = words(t.Reasons), words(t.TicketRefusals), words(t.BypassReasons)
}

// words leaves out what did not happen.
func words(counts map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for word, n := range counts {
		if n > 0 {
			out[word] = n
		}
	}
	return out
}

func share(part, whole int64) *float64 {
	if whole <= 0 {
		return nil
	}
	return new(float64(part) / float64(whole))
}

func spread(s analytics.Span, t *analytics.Row) *Spread {
	h := t.Histograms[s]
	if h.Count() == 0 {
		return nil
	}
	at := func(percent float64) float64 { return h.Quantile(percent).Seconds() }
	return &Spread{Name: s.String(), Count: h.Count(), Mean: h.Mean().Seconds(), P50: at(50), P75: at(75), P90: at(90), P95: at(95), P99: at(99), Max: h.Max().Seconds()}
}

// point adds a row to the timeline, and to the peaks.
func (r *Report) point(row *analytics.Row) {
	at := row.Start.UTC()
	most := func(m analytics.Metric) *int64 {
		if row.Stats[m].N == 0 {
			return nil
		}
		return new(row.Stats[m].Max)
	}
	sum := func(m analytics.Metric) int64 { return row.Stats[m].Sum }
	wait := func(i int) *float64 {
		short := &row.Summaries[analytics.Waited]
		if short.N == 0 {
			return nil
		}
		return new(short.Quantiles[i].Seconds())
	}
	p := Point{At: at, ActiveUsers: most(analytics.ActiveUsers), QueuedUsers: most(analytics.QueuedUsers), ActiveLimit: most(analytics.ActiveLimit),
		NewLimit: most(analytics.NewLimit), NewUsers: row.Stats[analytics.NewUsers].Mean(), Joined: sum(analytics.Joined), Abandoned: sum(analytics.Abandoned),
		NoShows: sum(analytics.NoShows), Overtakes: sum(analytics.Overtakes), WaitP50: wait(0), WaitP95: wait(len(analytics.Quantiles) - 1), Estimate: most(analytics.Estimate)}
	r.Timeline = append(r.Timeline, p)
	peak := func(to **Peak, m analytics.Metric) {
		if v := most(m); v != nil && (*to == nil || *v > (*to).Value) {
			*to = &Peak{*v, at}
		}
	}
	peak(&r.Peaks.ActiveUsers, analytics.ActiveUsers)
	peak(&r.Peaks.QueuedUsers, analytics.QueuedUsers)
	peak(&r.Peaks.NewUsers, analytics.NewUsers)
	peak(&r.Peaks.Estimate, analytics.Estimate)
}

// stretches puts rows together in which the same was in force.
func (r *Report) stretches(f facts) {
	names := map[anteroom.EventID]string{}
	for _, e := range f.Room.Events {
		names[e.ID] = e.Name
	}
	for i := range f.Rows.Rows {
		row := &f.Rows.Rows[i]
		if row.Method == "" {
			continue
		}
		s := Stretch{From: row.Start.UTC(), To: row.Start.Add(time.Duration(row.Every)).UTC(), Method: row.Method, QueueAll: row.QueueAll, Suspended: row.Suspended,
			Active: row.Stats[analytics.ActiveLimit].Max, New: row.Stats[analytics.NewLimit].Max}
		if row.Event != "" {
			if s.Event = names[row.Event]; s.Event == "" {
				s.Event = string(row.Event) // it was deleted since
			}
		}
		if n := len(r.InForce); n > 0 && r.InForce[n-1].same(s) {
			r.InForce[n-1].To = s.To
			continue
		}
		r.InForce = append(r.InForce, s)
	}
}

// same reports whether another stretch goes on where this one ends.
func (s Stretch) same(next Stretch) bool {
	return s.To.Equal(next.From) && s.Method == next.Method && s.QueueAll == next.QueueAll && s.Suspended == next.Suspended && s.Event == next.Event &&
		s.Active == next.Active && s.New == next.New
}

// limits compares what was with what was allowed.
func (r *Report) limits(f facts, total *analytics.Row) {
	bounds := func(m analytics.Metric) *Bounds {
		if s := total.Stats[m]; s.N > 0 {
			return &Bounds{s.Min, s.Max}
		}
		return nil
	}
	r.Limits = Limits{ActiveUsers: bounds(analytics.ActiveLimit), NewUsers: bounds(analytics.NewLimit)}
	var over int64
	for i := range f.Rows.Rows {
		s := &f.Rows.Rows[i].Stats
		if s[analytics.ActiveLimit].N > 0 && s[analytics.ActiveUsers].Max > s[analytics.ActiveLimit].Max {
			r.Limits.OverActive++
		}
		if s[analytics.NewLimit].N > 0 && s[analytics.NewUsers].Max > s[analytics.NewLimit].Max {
			over++
		}
	}
	if f.Rows.Every == analytics.EveryMinute {
		r.Limits.OverNew = &over
	}
}

// change takes a record of the log.
func (r *Report) change(h manage.AuditRecord) {
	c := Change{At: h.At.UTC(), By: h.Actor, Operation: h.Operation, Name: h.Name, Omitted: h.Omitted}
	for _, one := range h.Changes {
		c.Fields = append(c.Fields, Field{strings.TrimPrefix(one.Field, "room."), one.Before, one.After})
	}
	r.Changes = append(r.Changes, c)
}

// fresh is how old figures are at most that are as good as those of now.
const fresh = 10 * time.Second

// missing says what is not in the report.
func (r *Report) missing(f facts) {
	note := func(text string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(text, args...)) }
	if r.AsOf.Before(r.To.Add(-fresh)) && !r.AsOf.IsZero() {
		note("The report was made before the end of its time: it shows what was known at %s.", moment(r.AsOf))
	}
	if f.Rows.Incomplete != "" {
		note("Figures are missing: %s.", strings.TrimSuffix(f.Rows.Incomplete, "."))
	}
	if slices.ContainsFunc(r.Draws, func(d Draw) bool { return d.Done }) {
		note("For visitors who took part in a shuffle, waits count from the start of the event, because their arrival times are not kept.")
	}
	if f.MoreEvents {
		note("Only the first %d occurrences of events are in the report.", maxEvents)
	}
	if f.History.Nameless {
		note("The report does not say who made the changes, because the token that asked may not read the audit log.")
	}
	if !f.History.Since.IsZero() {
		note("The audit log begins at %s; earlier changes are not in the report.", moment(f.History.Since.UTC()))
	}
	if f.History.Omitted {
		note("Only the last %d changes are in the report.", manage.MaxHistory)
	}
}

// moment writes a moment by the clocks of its zone.
func moment(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }
