package graph

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// measure is a number of a row.
type measure struct {
	name, about string
	metric      analytics.Metric
	unit        int64 // of the metric's own in one of this; 0 means 1. Parts are rounded up
	limit       bool  // a limit in force: none in passthrough
	summed      bool  // has a sum
	highest     bool  // a raw row has the highest of its samples, not their mean
}

// measures are the numbers, in the order of the published schema.
var measures = []measure{
	{name: "maxEstimatedTimeMinutes", about: "Longest estimated wait of a new visitor, in minutes", metric: analytics.Estimate, unit: 60, highest: true},
	{name: "newUsersPerMinute", about: "Visitors admitted to the origin in the minute", metric: analytics.NewUsers, summed: true},
	{name: "newUsersPerMinuteConfig", about: "Configured limit; negative in passthrough", metric: analytics.NewLimit, limit: true},
	{name: "sessionDuration", about: "Configured session duration, in minutes", metric: analytics.SessionDuration, unit: 60},
	{name: "sessionsRevoked", about: "Sessions ended by the origin or an operator", metric: analytics.Revoked, summed: true},
	{name: "totalActiveUsers", about: "Active users", metric: analytics.ActiveUsers},
	{name: "totalActiveUsersConfig", about: "Configured limit; negative in passthrough", metric: analytics.ActiveLimit, limit: true},
	{name: "totalQueuedUsers", about: "Queued users", metric: analytics.QueuedUsers},
	{name: "turnstileFailures", about: "Wrong answers to challenges", metric: analytics.ChallengesFailed, summed: true},
	{name: "turnstileInfiniteQueueRefreshes", about: "Requests of users in the infinite queue", metric: analytics.ChallengesHeld, summed: true},
	{name: "turnstileIssued", about: "Challenges in pages", metric: analytics.ChallengesIssued, summed: true},
	{name: "turnstileSuccesses", about: "Challenges solved", metric: analytics.ChallengesSolved, summed: true},
	{name: "turnstileUnsolved", about: "Requests without an answer to the challenge", metric: analytics.ChallengesUnsolved, summed: true},
}

// abandoning can be ordered by, as published, and is in no answer.
var abandoning = measure{name: "abandoningUsersPerMinute", metric: analytics.Abandoned}

// percentile is a quantile of a distribution, in seconds.
type percentile struct {
	name, about string
	span        analytics.Span
	quantile    int // index in analytics.Quantiles
}

// percentiles are the sixteen of the published schema.
var percentiles = makePercentiles()

func makePercentiles() (all []percentile) {
	for _, f := range []struct {
		name, about string
		span        analytics.Span
	}{
		{"timeBetweenRefreshes", "Time between refreshes of a session", analytics.BetweenRefreshes},
		{"timeInQueue", "Time in the queue, of those in it", analytics.InQueue},
		{"timeOnOrigin", "Time on the origin", analytics.OnOrigin},
		{"totalTimeWaited", "Time waited in total by visitors who were queued and then admitted", analytics.Waited},
	} {
		for i, p := range []string{"P50", "P75", "P90", "P95"} {
			all = append(all, percentile{f.name + p, f.about + ", in seconds", f.span, i})
		}
	}
	return all
}

// The aggregates. A raw row is the aggregate of its minute's samples.
const (
	aggRaw = "raw"
	aggAvg = "avg"
	aggMax = "max"
	aggMin = "min"
	aggSum = "sum"
)

// noData is what stands for none.
const noData = -1

// cell is rows added up.
type cell struct {
	analytics.Row
	passthrough bool // in some of them
}

func (c *cell) add(r *analytics.Row) {
	c.passthrough = c.passthrough || r.Method == anteroom.Passthrough
	c.Row.Add(r)
}

func (m measure) of(c *cell, aggregate string) int64 {
	s := c.Stats[m.metric]
	if aggregate == aggSum {
		return s.Sum
	}
	if s.N == 0 || m.limit && c.passthrough && (aggregate == aggRaw || aggregate == aggMin) {
		return noData
	}
	v := s.Mean()
	switch {
	case aggregate == aggMax || aggregate == aggRaw && m.highest:
		v = float64(s.Max)
	case aggregate == aggMin:
		v = float64(s.Min)
	}
	if m.unit > 1 {
		return int64(math.Ceil(v / float64(m.unit)))
	}
	return int64(math.Round(v))
}

// of returns the weighted mean of the minutes' quantiles.
func (p percentile) of(c *cell) float64 {
	if seconds, ok := c.Weighted[p.span].Mean(p.quantile); ok {
		return math.Round(seconds*1000) / 1000
	}
	return noData
}

// dimension is what groups can be told apart by.
type dimension struct {
	name, about string
	kind        string        // its scalar
	unit        time.Duration // of times: to what they are truncated
}

// dimensions are those of the groups.
var dimensions = []dimension{
	{"date", "The day, in UTC", "Date", 24 * time.Hour},
	{"datetime", "The minute", "Time", time.Minute},
	{"datetimeFifteenMinutes", "The beginning of the quarter of an hour", "Time", 15 * time.Minute},
	{"datetimeFiveMinutes", "The beginning of the five minutes", "Time", 5 * time.Minute},
	{"datetimeHour", "The beginning of the hour", "Time", time.Hour},
	{"datetimeMinute", "The minute", "Time", time.Minute},
	{"sampleInterval", "Always 1: nothing is sampled", "uint32", 0},
	{"waitingRoomId", "ID of the waiting room", "string", 0},
}

// rawDimensions are those of a raw row.
var rawDimensions = []dimension{
	{"datetime", "The minute", "Time", time.Minute},
	{"sampleInterval", "Always 1: nothing is sampled", "uint32", 0},
	{"waitingRoomId", "ID of the waiting room", "string", 0},
	{"waitingRoomName", "Name of the waiting room", "string", 0},
}

// result is an answered row of either node.
type result struct {
	at   time.Time // the beginning of its time; zero where groups are not told apart by time
	room *room     // without id where they are not told apart by room
	cell cell
}

// room is a waiting room that may be read.
type room struct {
	id, name string
}

// text is the value of a dimension with the type string.
func (d dimension) text(r *room) string {
	if d.name == "waitingRoomName" {
		return r.name
	}
	return r.id
}

// key is a field as a filter, an order or a selection names it.
type key struct {
	kind   string        // its scalar
	unit   time.Duration // of times
	text   func(*room) string
	number func(*cell) float64
}

func dimensionKeys(all []dimension) map[string]key {
	keys := map[string]key{}
	for _, d := range all {
		k := key{kind: d.kind, unit: d.unit}
		switch d.kind {
		case "string":
			k.text = d.text
		case "uint32":
			k.number = func(*cell) float64 { return 1 }
		}
		keys[d.name] = k
	}
	return keys
}

func measureKey(m measure, aggregate string) key {
	return key{kind: "int64", number: func(c *cell) float64 { return float64(m.of(c, aggregate)) }}
}

func rawKeys() map[string]key {
	keys := dimensionKeys(rawDimensions)
	for _, m := range measures {
		keys[m.name] = measureKey(m, aggRaw)
	}
	for _, p := range percentiles {
		keys[p.name] = key{kind: "int64", number: func(c *cell) float64 { return math.Round(p.of(c)) }}
	}
	return keys
}

func groupsOrderKeys() map[string]key {
	keys := dimensionKeys(dimensions)
	for _, a := range []string{aggAvg, aggMax, aggMin, aggSum} {
		for _, m := range measures {
			if a != aggSum || m.summed {
				keys[a+"_"+m.name] = measureKey(m, a)
			}
		}
	}
	keys["avg_sampleInterval"] = keys["sampleInterval"]
	keys["avg_"+abandoning.name] = measureKey(abandoning, aggAvg)
	keys["max_"+abandoning.name] = measureKey(abandoning, aggMax)
	for _, p := range percentiles {
		keys["avgWeighted_"+p.name] = key{kind: "float64", number: p.of}
	}
	return keys
}

func rawOrderKeys() map[string]key {
	keys := rawKeys()
	keys[abandoning.name] = measureKey(abandoning, aggRaw)
	return keys
}

// suffixes are the operators of a filter; none is equality.
var suffixes = []string{"", "_geq", "_gt", "_in", "_leq", "_like", "_lt", "_neq", "_notin", "_notlike"}

// inputType is the type of a filter field with a suffix, if it may have that one.
func inputType(k key, suffix string) (string, bool) {
	switch suffix {
	case "_in", "_notin":
		return "[" + k.kind + "!]", true
	case "_like", "_notlike":
		return k.kind, k.kind == "string"
	}
	return k.kind, slices.Contains(suffixes, suffix)
}

var (
	rawFilterKeys    = rawKeys()
	groupsFilterKeys = dimensionKeys(dimensions)
	rawOrders        = rawOrderKeys()
	groupsOrders     = groupsOrderKeys()
)

// nodes are the fields of a zone that are asked for rows.
var nodes = map[string]struct{ filters, orders map[string]key }{
	"waitingRoomAnalyticsAdaptive":       {rawFilterKeys, rawOrders},
	"waitingRoomAnalyticsAdaptiveGroups": {groupsFilterKeys, groupsOrders},
}

// orderOf reads a value of an orderBy enum.
func orderOf(orders map[string]key, value string) (k key, descending, ok bool) {
	name, ascending := strings.CutSuffix(value, "_ASC")
	if !ascending {
		if name, descending = strings.CutSuffix(value, "_DESC"); !descending {
			return k, false, false
		}
	}
	k, ok = orders[name]
	return k, descending, ok
}

// sorted returns the keys of a map in their order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
