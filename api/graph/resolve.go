package graph

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	graphql "github.com/graph-gophers/graphql-go"

	"github.com/anteroom/anteroom"
)

// root answers the fields of the type Query.
type root struct{}

// Cost is the same for all: what a query may do is bounded otherwise.
func (*root) Cost() scalarUint64 { return 1 }

// Viewer is whoever asks.
func (*root) Viewer() *viewer { return &viewer{} }

type viewer struct{}

// Budget is what the token has left in this window.
func (*viewer) Budget(ctx context.Context) scalarUint64 { return scalarUint64(workOf(ctx).left) }

type zonesArgs struct {
	Filter *zoneFilter
	Limit  *scalarUint64
}

type zoneFilter struct {
	ZoneTag   *scalarString
	ZoneTagGt *scalarString
	ZoneTagIn *[]scalarString
}

// Zones are those that the caller may read, by their ids. One that was named and cannot be read is
// an error, so that nobody takes it for an idle one.
func (*viewer) Zones(ctx context.Context, a zonesArgs) ([]*zone, error) {
	w := workOf(ctx)
	limit := MaxZones
	if a.Limit != nil {
		if *a.Limit < 1 || *a.Limit > MaxZones {
			return nil, fault{codeLimit, fmt.Sprintf("limit must be positive number and not greater than %d", MaxZones)}
		}
		limit = int(*a.Limit)
	}
	all := w.graph.manage.Zones(w.by)
	slices.SortFunc(all, func(a, b anteroom.Zone) int { return strings.Compare(string(a.ID), string(b.ID)) })
	if f := a.Filter; f != nil {
		var named []scalarString
		if f.ZoneTag != nil {
			named = append(named, *f.ZoneTag)
		}
		if f.ZoneTagIn != nil {
			named = append(named, *f.ZoneTagIn...)
			if len(*f.ZoneTagIn) > MaxZones {
				return nil, fault{codeLimit, fmt.Sprintf("query is about more than %d zones", MaxZones)}
			}
		}
		for _, id := range named {
			if !slices.ContainsFunc(all, func(z anteroom.Zone) bool { return string(z.ID) == string(id) }) {
				return nil, fault{codeAuthz, fmt.Sprintf("zone %s does not exist, or the token may not read it", printed(string(id)))}
			}
		}
		all = slices.DeleteFunc(all, func(z anteroom.Zone) bool {
			id := scalarString(z.ID)
			return f.ZoneTag != nil && id != *f.ZoneTag || f.ZoneTagIn != nil && !slices.Contains(*f.ZoneTagIn, id) || f.ZoneTagGt != nil && id <= *f.ZoneTagGt
		})
	}
	out := []*zone{}
	for _, z := range all[:min(len(all), limit)] {
		if err := w.visit(z.ID); err != nil {
			return nil, err
		}
		out = append(out, &zone{z.ID})
	}
	return out, nil
}

type zone struct{ id anteroom.ZoneID }

// ZoneTag is the zone's id.
func (z *zone) ZoneTag() scalarString { return scalarString(z.id) }

type rawArgs struct {
	Filter  rawFilter
	Limit   scalarUint64
	OrderBy *[]string
}

// rawRow has the fields of the published row. fill puts the numbers in.
type rawRow struct {
	Datetime        scalarTime
	SampleInterval  scalarUint32
	WaitingRoomID   scalarString
	WaitingRoomName scalarString
	metricSet
	percentileSet[scalarInt64]
}

type metricSet struct {
	MaxEstimatedTimeMinutes, NewUsersPerMinute, NewUsersPerMinuteConfig, SessionDuration,
	SessionsRevoked, TotalActiveUsers, TotalActiveUsersConfig, TotalQueuedUsers,
	TurnstileFailures, TurnstileInfiniteQueueRefreshes, TurnstileIssued, TurnstileSuccesses, TurnstileUnsolved scalarInt64
}

type percentileSet[T any] struct {
	TimeBetweenRefreshesP50, TimeBetweenRefreshesP75, TimeBetweenRefreshesP90, TimeBetweenRefreshesP95,
	TimeInQueueP50, TimeInQueueP75, TimeInQueueP90, TimeInQueueP95,
	TimeOnOriginP50, TimeOnOriginP75, TimeOnOriginP90, TimeOnOriginP95,
	TotalTimeWaitedP50, TotalTimeWaitedP75, TotalTimeWaitedP90, TotalTimeWaitedP95 T
}

// WaitingRoomAnalyticsAdaptive are the minutes of the zone's rooms.
func (z *zone) WaitingRoomAnalyticsAdaptive(ctx context.Context, a rawArgs) ([]*rawRow, error) {
	w := workOf(ctx)
	q := question{zone: z.id, filter: a.Filter.filter}
	if err := q.check(a.Limit, a.OrderBy, rawOrders); err != nil {
		return nil, err
	}
	if err := fewFields(graphql.SelectedFieldNames(ctx)); err != nil {
		return nil, err
	}
	all, err := w.raw(ctx, &q)
	if err == nil {
		err = w.give(len(all))
	}
	out := make([]*rawRow, len(all))
	for i, r := range all {
		out[i] = &rawRow{Datetime: scalarTime(r.at), SampleInterval: 1, WaitingRoomID: scalarString(r.room.id), WaitingRoomName: scalarString(r.room.name)}
		fillMeasures(&out[i].metricSet, &r.cell, aggRaw)
		v := reflect.ValueOf(&out[i].percentileSet).Elem()
		for i, p := range percentiles {
			v.Field(i).SetInt(int64(rawOrders[p.name].number(&r.cell)))
		}
	}
	return out, err
}

// fillMeasures relies on the fields of the struct standing in the order of the table; a test holds
// them together.
func fillMeasures(to *metricSet, c *cell, aggregate string) {
	v := reflect.ValueOf(to).Elem()
	for i, m := range measures {
		v.Field(i).SetInt(m.of(c, aggregate))
	}
}

type groupsArgs struct {
	Filter  groupsFilter
	Limit   scalarUint64
	OrderBy *[]string
}

// groupsRow has the objects that were asked for.
type groupsRow struct {
	Avg           *avgSet
	AvgWeighted   *percentileSet[scalarFloat64]
	Dimensions    *dimensionSet
	Max, Min, Sum *metricSet
}

type avgSet struct {
	metricSet
	SampleInterval scalarFloat64
}

type dimensionSet struct {
	Date                                                                                scalarDate
	Datetime, DatetimeFifteenMinutes, DatetimeFiveMinutes, DatetimeHour, DatetimeMinute scalarTime
	SampleInterval                                                                      scalarUint32
	WaitingRoomID                                                                       scalarString
}

// WaitingRoomAnalyticsAdaptiveGroups adds minutes up: to one row for each value of the dimensions
// that are asked for.
func (z *zone) WaitingRoomAnalyticsAdaptiveGroups(ctx context.Context, a groupsArgs) ([]*groupsRow, error) {
	w := workOf(ctx)
	q := question{zone: z.id, filter: a.Filter.filter}
	if err := q.check(a.Limit, a.OrderBy, groupsOrders); err != nil {
		return nil, err
	}
	names := graphql.SelectedFieldNames(ctx)
	if err := fewFields(names); err != nil {
		return nil, err
	}
	var unit time.Duration
	byRoom := false
	for _, d := range dimensions {
		if slices.Contains(names, "dimensions."+d.name) {
			byRoom = byRoom || d.kind == "string"
			if d.unit > 0 && (unit == 0 || d.unit < unit) {
				unit = d.unit
			}
		}
	}
	all, err := w.groups(ctx, &q, unit, byRoom)
	if err == nil {
		err = w.give(len(all))
	}
	out := make([]*groupsRow, len(all))
	for i, r := range all {
		out[i] = &groupsRow{}
		out[i].fill(r, names)
	}
	return out, err
}

func (g *groupsRow) fill(r *result, names []string) {
	if slices.Contains(names, "avg") {
		g.Avg = &avgSet{SampleInterval: 1}
		fillMeasures(&g.Avg.metricSet, &r.cell, aggAvg)
	}
	for _, one := range []struct {
		name string
		to   **metricSet
	}{{aggMax, &g.Max}, {aggMin, &g.Min}, {aggSum, &g.Sum}} {
		if slices.Contains(names, one.name) {
			*one.to = &metricSet{}
			fillMeasures(*one.to, &r.cell, one.name)
		}
	}
	if slices.Contains(names, "avgWeighted") {
		g.AvgWeighted = &percentileSet[scalarFloat64]{}
		v := reflect.ValueOf(g.AvgWeighted).Elem()
		for i, p := range percentiles {
			v.Field(i).SetFloat(p.of(&r.cell))
		}
	}
	if slices.Contains(names, "dimensions") {
		at := func(unit time.Duration) scalarTime { return scalarTime(r.at.Truncate(unit)) }
		g.Dimensions = &dimensionSet{Date: scalarDate(at(24 * time.Hour)), Datetime: at(time.Minute), DatetimeMinute: at(time.Minute),
			DatetimeFiveMinutes: at(5 * time.Minute), DatetimeFifteenMinutes: at(15 * time.Minute), DatetimeHour: at(time.Hour),
			SampleInterval: 1, WaitingRoomID: scalarString(r.room.id)}
	}
}

// fewFields refuses more fields than anybody needs.
func fewFields(names []string) error {
	inObjects := 0
	for _, name := range names {
		if strings.Contains(name, ".") {
			inObjects++
		}
	}
	n := inObjects
	if n == 0 {
		n = len(names)
	}
	if n > MaxNodeFields {
		return fault{codeLimit, fmt.Sprintf("number of fields can't be more than %d", MaxNodeFields)}
	}
	return nil
}

// Settings are the limits of the nodes.
func (z *zone) Settings() *zoneSettings { return &zoneSettings{} }

type zoneSettings struct{}

type settings struct {
	AvailableFields                                           []scalarString
	Enabled                                                   scalarBool
	MaxDuration, MaxNumberOfFields, MaxPageSize, NotOlderThan scalarInt64
}

func newSettings(kept time.Duration) *settings {
	seconds := scalarInt64(kept / time.Second)
	return &settings{Enabled: true, MaxDuration: seconds, NotOlderThan: seconds, MaxNumberOfFields: MaxNodeFields, MaxPageSize: MaxPageSize}
}

// WaitingRoomAnalyticsAdaptive are the limits of the raw node.
func (*zoneSettings) WaitingRoomAnalyticsAdaptive(ctx context.Context) *settings {
	s := newSettings(workOf(ctx).graph.Minutes)
	for _, name := range sorted(rawFilterKeys) {
		s.AvailableFields = append(s.AvailableFields, scalarString(name))
	}
	return s
}

// WaitingRoomAnalyticsAdaptiveGroups are the limits of the node of groups.
func (*zoneSettings) WaitingRoomAnalyticsAdaptiveGroups(ctx context.Context) *settings {
	s := newSettings(workOf(ctx).graph.Retention)
	for _, d := range dimensions {
		s.AvailableFields = append(s.AvailableFields, scalarString("dimensions."+d.name))
	}
	for _, name := range sorted(groupsOrders) {
		if strings.Contains(name, "_") && !strings.HasSuffix(name, abandoning.name) {
			s.AvailableFields = append(s.AvailableFields, scalarString(strings.Replace(name, "_", ".", 1)))
		}
	}
	slices.Sort(s.AvailableFields)
	return s
}
