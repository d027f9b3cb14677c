package analytics

import "math"

// Record adds a value.
func (s *Stat) Record(v int64) { s.Add(Stat{N: 1, Sum: v, Min: v, Max: v}) }

// Add adds the values of o.
func (s *Stat) Add(o Stat) {
	switch {
	case o.N == 0:
		return
	case s.N == 0:
		*s = o
		return
	}
	s.N += o.N
	s.Sum += o.Sum
	s.Min, s.Max = min(s.Min, o.Min), max(s.Max, o.Max)
}

// Mean returns the average; 0 if there are no values.
func (s Stat) Mean() float64 {
	if s.N == 0 {
		return 0
	}
	return float64(s.Sum) / float64(s.N)
}

// Add adds the minutes of o.
func (w *Weighted) Add(o Weighted) {
	w.Weight += o.Weight
	for i := range w.Sum {
		w.Sum[i] += o.Sum[i]
	}
}

// Mean is the weighted mean of the i-th of Quantiles, in seconds. ok is false when nothing has
// weight.
func (w Weighted) Mean(i int) (seconds float64, ok bool) {
	if w.Weight == 0 {
		return 0, false
	}
	return w.Sum[i] / float64(w.Weight), true
}

// Summarize makes the summaries of the histograms.
func (r *Row) Summarize() {
	for i, h := range r.Histograms {
		r.Summaries[i] = h.Summary()
	}
}

// weigh is what the distribution of one minute weighs; at least 1 when there is one, so that it is
// not lost.
func weigh(s Summary, weight float64) (w Weighted) {
	if s.N == 0 {
		return w
	}
	w.Weight = max(1, int64(math.Round(weight)))
	for i, q := range s.Quantiles {
		w.Sum[i] = float64(w.Weight) * q.Seconds()
	}
	return w
}

// weights says by what the minutes of a distribution are weighed.
var weights = [Spans]Metric{Waited: NewUsers, OnOrigin: ActiveUsers, BetweenRefreshes: ActiveUsers,
	InQueue: QueuedUsers, Late: QueuedUsers, Early: QueuedUsers}

// Row returns the row of a minute, in which the minutes of all processes were added up. It shares
// the histograms and maps.
func (m *Minute) Row() Row {
	r := Row{Room: m.Room, Start: m.Start, Every: EveryMinute, Minutes: 1, Histograms: m.Histograms,
		Method: m.InForce.Method, QueueAll: m.InForce.QueueAll, Suspended: m.InForce.Suspended, Event: m.InForce.Event,
		Reasons: m.Reasons, TicketRefusals: m.TicketRefusals, BypassReasons: m.BypassReasons}
	copy(r.Stats[:], m.Gauges[:])
	for i, n := range m.Counts {
		r.Stats[int(gauges)+i].Record(n)
	}
	r.Summarize()
	for s := range Spans {
		r.Weighted[s] = weigh(r.Summaries[s], r.Stats[weights[s]].Mean())
	}
	return r
}

// Add rolls a row of a shorter span of the same room up into r, whose Room, Start and Every do not change. Rows have to
// come in the order of time, because the last one says what is in force. o does not change and shares nothing with r
// afterwards. Summaries cannot be added up: r has none until Summarize.
func (r *Row) Add(o *Row) {
	r.Summaries = [Spans]Summary{}
	r.Minutes += o.Minutes
	for i := range r.Stats {
		r.Stats[i].Add(o.Stats[i])
	}
	for i := range r.Weighted {
		r.Weighted[i].Add(o.Weighted[i])
		r.Histograms[i] = merged(r.Histograms[i], o.Histograms[i])
	}
	if o.Method != "" {
		r.Method, r.QueueAll, r.Suspended, r.Event = o.Method, o.QueueAll, o.Suspended, o.Event
	}
	r.Reasons = added(r.Reasons, o.Reasons)
	r.TicketRefusals = added(r.TicketRefusals, o.TicketRefusals)
	r.BypassReasons = added(r.BypassReasons, o.BypassReasons)
}
