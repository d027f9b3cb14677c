package graph

import (
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/analytics"
)

// maxSpans is the number of separate spans of time that a filter can be about.
const maxSpans = 64

// span is from a moment up to another.
type span struct {
	from, to time.Time
}

// flips returns the whole minutes at which what a filter says of time can change: between two of
// them it says the same of every minute.
func (f *filter) flips() (all []time.Time) {
	for i := range f.conditions {
		c := &f.conditions[i]
		if c.key.unit == 0 {
			continue
		}
		for _, v := range c.values {
			down := v.time.Truncate(c.key.unit)
			up := down
			if !down.Equal(v.time) {
				up = down.Add(c.key.unit)
			}
			switch c.operator {
			case "lt", "geq":
				all = append(all, up)
			case "gt", "leq":
				all = append(all, down.Add(c.key.unit))
			default:
				if down.Equal(v.time) {
					all = append(all, down, down.Add(c.key.unit))
				}
			}
		}
	}
	for _, list := range [][]*filter{f.and, f.or} {
		for _, one := range list {
			all = append(all, one.flips()...)
		}
	}
	return all
}

// spans returns the spans within a time in which rows can pass, ascending. In each of them the filter says
// the same of every minute, unless they may be joined.
func (f *filter) spans(within span, join bool) ([]span, error) {
	edges := []time.Time{within.from, within.to}
	for _, t := range f.flips() {
		if t.After(within.from) && t.Before(within.to) {
			edges = append(edges, t)
		}
	}
	slices.SortFunc(edges, time.Time.Compare)
	edges = slices.CompactFunc(edges, time.Time.Equal)
	var all []span
	for i := 1; i < len(edges); i++ {
		one := span{edges[i-1], edges[i]}
		if !f.match(facts{at: one.from}) {
			continue
		}
		if last := len(all) - 1; join && last >= 0 && all[last].to.Equal(one.from) {
			all[last].to = one.to
			continue
		}
		all = append(all, one)
	}
	if len(all) > maxSpans {
		return nil, fault{code: codeLimit, message: fmt.Sprintf("filter covers %d separate spans of time; at most %d are allowed", len(all), maxSpans)}
	}
	return all, nil
}

// piece is a part of a span that rows of one resolution cover exactly.
type piece struct {
	span
	every analytics.Resolution
}

var resolutions = []analytics.Resolution{analytics.EveryDay, analytics.EveryHour, analytics.EveryQuarter, analytics.EveryMinute}

// cut appends as few rows as cover a span exactly, none longer than the resolution i.
func cut(all []piece, s span, i int) []piece {
	if !s.from.Before(s.to) {
		return all
	}
	every := resolutions[i]
	if every == analytics.EveryMinute {
		return append(all, piece{s, every})
	}
	from, to := up(s.from, every), s.to.Truncate(time.Duration(every))
	if !from.Before(to) {
		return cut(all, s, i+1)
	}
	all = cut(all, span{s.from, from}, i+1)
	all = append(all, piece{span{from, to}, every})
	return cut(all, span{to, s.to}, i+1)
}

func up(t time.Time, every analytics.Resolution) time.Time {
	down := t.Truncate(time.Duration(every))
	if down.Equal(t) {
		return t
	}
	return down.Add(time.Duration(every))
}

// coarsest is the longest resolution whose rows fall into one unit of time each; 0 is all time.
func coarsest(unit time.Duration) analytics.Resolution {
	for _, r := range resolutions {
		if unit == 0 || unit%time.Duration(r) == 0 {
			return r
		}
	}
	return analytics.EveryMinute
}
