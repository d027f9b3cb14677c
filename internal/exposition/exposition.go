// Package exposition writes metrics as Prometheus reads them: as text, as OpenMetrics, and as protobuf, in which histograms are
// native. Series are written as they are collected, so that a scrape of a million series makes no million objects.
//
// It stands in for Prometheus's own client, which keeps all of protobuf in the binary ([ADR 0039]).
//
// [ADR 0039]: https://github.com/anteroom/anteroom/blob/main/docs/adr/0039-nothing-is-called-by-name.md
package exposition

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Kind of a metric.
type Kind string

// The kinds.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter" // its name ends in _total
	Histogram Kind = "histogram"
	Summary   Kind = "summary"
)

// Family is a metric with all its labels.
type Family struct {
	Name, Help string
	Kind       Kind
	Labels     []string // in the order in which series give their values

	order []int // of Labels, by name
}

// New returns a family. Names and labels are constants of the program and are not checked; texts are written in every
// format as they have to be.
func New(kind Kind, name, help string, labels ...string) *Family {
	f := &Family{Name: name, Help: help, Kind: kind, Labels: labels}
	for i := range labels {
		f.order = append(f.order, i)
	}
	slices.SortFunc(f.order, func(a, b int) int { return strings.Compare(labels[a], labels[b]) })
	return f
}

// Distribution is the value of a histogram: classic buckets for text, native ones for protobuf.
type Distribution struct {
	Count, Zero   uint64  // observations, and those of them around zero
	Sum           float64 // of all observations
	Schema        int32   // the native buckets grow by 2^(2^-Schema)
	ZeroThreshold float64
	// Positive and Negative are the native buckets that are not empty, in the order of their indexes.
	Positive, Negative []Bucket
	Classic            []Classic // in the order of their bounds
	Example            *Example  // nil for none
}

// Bucket is a native bucket.
type Bucket struct {
	Index int
	N     uint64
}

// Classic says how many observations are not above a bound.
type Classic struct {
	Bound float64
	Upto  uint64
}

// Example is an observation with the trace in which it was made.
type Example struct {
	TraceID string
	Value   float64
	At      time.Time
}

// Quantile of a summary.
type Quantile struct{ Quantile, Value float64 }

// Scrape takes the series of one scrape. The labels of a series are as many as its family has. Not safe for concurrent use.
type Scrape struct {
	format   format
	former   func(name string) string
	families map[*Family]*series
}

// series are all of a family, in the format of the scrape.
type series struct {
	formerName string // empty for none
	written    []byte
	former     []byte // the same under the former name, if series have names in the format
}

func newScrape(f format, former func(string) string) *Scrape {
	return &Scrape{format: f, former: former, families: map[*Family]*series{}}
}

func (s *Scrape) of(f *Family) *series {
	all := s.families[f]
	if all == nil {
		all = &series{}
		if s.former != nil {
			all.formerName = s.former(f.Name)
		}
		s.families[f] = all
	}
	return all
}

// Value adds a series of a gauge or a counter.
func (s *Scrape) Value(f *Family, v float64, labels ...string) {
	all := s.of(f)
	all.written = s.format.value(all.written, f, f.Name, v, labels)
	if all.formerName != "" && s.format.names() {
		all.former = s.format.value(all.former, f, all.formerName, v, labels)
	}
}

// Distribution adds a series of a histogram.
func (s *Scrape) Distribution(f *Family, d *Distribution, labels ...string) {
	all := s.of(f)
	all.written = s.format.distribution(all.written, f, f.Name, d, labels)
	if all.formerName != "" && s.format.names() {
		all.former = s.format.distribution(all.former, f, all.formerName, d, labels)
	}
}

// Summary adds a summary without labels.
func (s *Scrape) Summary(f *Family, count uint64, sum float64, quantiles []Quantile) {
	all := s.of(f)
	all.written = s.format.summary(all.written, f.Name, count, sum, quantiles)
}

// pieces are what the answer consists of, in the order of the names.
func (s *Scrape) pieces() [][]byte {
	type named struct {
		name  string
		bytes [][]byte
	}
	var all []named
	for f, of := range s.families {
		all = append(all, named{f.Name, s.format.family(f, f.Name, f.Help, of.written)})
		if name := of.formerName; name != "" {
			former := of.written
			if s.format.names() {
				former = of.former
			}
			all = append(all, named{name, s.format.family(f, name, "Deprecated: use "+f.Name+".", former)})
		}
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	var out [][]byte
	for _, one := range all {
		out = append(out, one.bytes...)
	}
	return append(out, s.format.end())
}
