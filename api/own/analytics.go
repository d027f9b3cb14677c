package own

import (
	"encoding/csv"
	"encoding/json/jsontext"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
)

// maxAnalyticsPoints is the number of spans that one answer has at most: a week of minutes.
const maxAnalyticsPoints = 10_080

const defaultAnalyticsRange = 24 * time.Hour

// resolutionNames are the values of the parameter resolution, and resolutions what they mean; zero
// lets the store choose.
var (
	resolutionNames = []string{"auto", "minute", "quarter", "hour", "day"}
	resolutions     = []analytics.Resolution{0, analytics.EveryMinute, analytics.EveryQuarter, analytics.EveryHour, analytics.EveryDay}
)

// Analytics is what was recorded of a room.
type Analytics struct {
	Resolution   string          `json:"resolution" enum:"minute,quarter,hour,day"`
	EverySeconds int64           `json:"every_seconds" min:"60"`
	From         time.Time       `json:"from" doc:"As requested, rounded down to the resolution."`
	To           time.Time       `json:"to" doc:"Rounded up."`
	AsOf         *time.Time      `json:"as_of" doc:"Time of the newest figures."`
	Incomplete   string          `json:"incomplete" doc:"What is missing, in words; empty when nothing is."`
	Time         []int64         `json:"time" doc:"Start of each span between from and to, without gaps, in seconds since 1970."`
	Series       AnalyticsSeries `json:"series"`
	Total        AnalyticsTotal  `json:"total"`
}

// RoomAnalytics is the totals of a room.
type RoomAnalytics struct {
	Zone  schema.ZoneName `json:"zone"`
	ID    anteroom.RoomID `json:"id"`
	Name  string          `json:"name"`
	Total AnalyticsTotal  `json:"total"`
}

// AnalyticsSeries is an object with a list for each column, in their order.
type AnalyticsSeries [][]number

// MarshalJSONTo writes the object.
func (s AnalyticsSeries) MarshalJSONTo(e *jsontext.Encoder) error { return byColumn(s, e) }

// AnalyticsTotal is an object with a number for each column, in their order.
type AnalyticsTotal []number

// MarshalJSONTo writes the object.
func (t AnalyticsTotal) MarshalJSONTo(e *jsontext.Encoder) error { return byColumn(t, e) }

func byColumn[V any](values []V, e *jsontext.Encoder) error {
	out := make(api.Members, len(values))
	for i, v := range values {
		out[i] = api.Member{Name: columns[i].name, Value: v}
	}
	return out.MarshalJSONTo(e)
}

// analyticsRange reads from and to.
func (f *face) analyticsRange(r *api.Request) (from, to time.Time, err error) {
	to = dateTime(r, "to", f.now().UTC())
	from = dateTime(r, "from", to.Add(-defaultAnalyticsRange))
	if !from.Before(to) {
		return from, to, api.Query("from", "is not before to", "\"to\" is the later of the two")
	}
	return from, to, nil
}

// getAnalytics gives what was recorded of a room as one list of numbers for each name.
func (f *face) getAnalytics(w http.ResponseWriter, r *api.Request) error {
	room, err := f.room(r)
	if err != nil {
		return err
	}
	from, to, err := f.analyticsRange(r)
	if err != nil {
		return err
	}
	every := resolutions[max(0, slices.Index(resolutionNames, r.Query.Get("resolution")))]
	if every != 0 && to.Sub(from) > time.Duration(every)*maxAnalyticsPoints {
		return api.Query("resolution", "is too fine", fmt.Sprintf("at most %d spans at once; a coarser one, or a shorter time", maxAnalyticsPoints))
	}
	q := analytics.Query{Rooms: []anteroom.RoomID{room.ID}, From: floor(from, every), To: ceil(to, every), Every: every, Summaries: true}
	answer, err := f.kept(r, q)
	if err != nil {
		return err
	}
	s, err := newTimeline(answer, from, to)
	if err != nil {
		return err
	}
	q.From, q.To, q.Every, q.Total = s.from, s.to, 0, true
	total, err := f.manage.Analytics(r.Context(), r.By, q)
	if err != nil {
		return err
	}
	if r.Query.Get("format") == "csv" {
		return s.writeCSV(w)
	}
	api.SendAnswer(w, api.Answer{Result: Analytics{Resolution: resolutionNames[slices.Index(resolutions, answer.Every)],
		EverySeconds: int64(time.Duration(answer.Every).Seconds()), From: s.from.UTC(), To: s.to.UTC(), AsOf: moment(answer.AsOf), Incomplete: answer.Incomplete,
		Time: s.time, Series: s.series, Total: totalOf(total.Rows)}})
	return nil
}

// kept asks for rows. Without a resolution it takes the finest of which there are any: minutes are not
// kept as long as the others.
func (f *face) kept(r *api.Request, q analytics.Query) (analytics.Answer, error) {
	answer, err := f.manage.Analytics(r.Context(), r.By, q)
	if err != nil || q.Every != 0 || len(answer.Rows) > 0 {
		return answer, err
	}
	for _, every := range []analytics.Resolution{analytics.EveryQuarter, analytics.EveryHour, analytics.EveryDay} {
		if every <= answer.Every {
			continue
		}
		coarser := q
		coarser.From, coarser.To, coarser.Every = floor(q.From, every), ceil(q.To, every), every
		if found, err := f.manage.Analytics(r.Context(), r.By, coarser); err != nil || len(found.Rows) > 0 {
			return found, err
		}
	}
	return answer, nil
}

// totalAnalytics gives the totals of every room that the caller may see.
func (f *face) totalAnalytics(r *api.Request) ([]RoomAnalytics, error) {
	from, to, err := f.analyticsRange(r)
	if err != nil {
		return nil, err
	}
	rooms, err := f.manage.Rooms(r.By, "")
	if err != nil {
		return nil, err
	}
	of := make(map[anteroom.RoomID][]analytics.Row, len(rooms))
	for rest := rooms; len(rest) > 0; {
		q := analytics.Query{From: from, To: to, Summaries: true, Total: true}
		for _, room := range rest[:min(len(rest), analytics.MaxQueryRooms)] {
			q.Rooms = append(q.Rooms, room.ID)
		}
		answer, err := f.manage.Analytics(r.Context(), r.By, q)
		if err != nil {
			return nil, err
		}
		for _, row := range answer.Rows {
			of[row.Room] = append(of[row.Room], row)
		}
		rest = rest[len(q.Rooms):]
	}
	s := f.manage.State()
	out := make([]RoomAnalytics, len(rooms))
	for i, room := range rooms {
		zone, _ := s.ZoneNamed(room.Zone)
		out[i] = RoomAnalytics{Zone: schema.ZoneName{ID: zone.ID, Name: room.Zone}, ID: room.ID, Name: room.Name, Total: totalOf(of[room.ID])}
	}
	return out, nil
}

func floor(t time.Time, every analytics.Resolution) time.Time {
	if every == 0 {
		return t
	}
	return t.Truncate(time.Duration(every))
}

func ceil(t time.Time, every analytics.Resolution) time.Time {
	down := floor(t, every)
	if down.Equal(t) {
		return t
	}
	return down.Add(time.Duration(every))
}

// number is a value of a series; NaN is written as null.
type number float64

var noNumber = number(math.NaN())

// String is empty for none. Seconds and means have three digits after the point.
func (n number) String() string {
	if math.IsNaN(float64(n)) {
		return ""
	}
	return strconv.FormatFloat(math.Round(float64(n)*1000)/1000, 'f', -1, 64)
}

// MarshalJSONTo writes the number, or null.
func (n number) MarshalJSONTo(e *jsontext.Encoder) error {
	if text := n.String(); text != "" {
		return e.WriteValue(jsontext.Value(text))
	}
	return e.WriteToken(jsontext.Null)
}

// column is a name with what it means and how its number comes from a row.
type column struct {
	name, doc string
	of        func(*analytics.Row) number
}

func highest(m analytics.Metric) func(*analytics.Row) number {
	return func(r *analytics.Row) number {
		if r.Stats[m].N == 0 {
			return noNumber
		}
		return number(r.Stats[m].Max)
	}
}

func mean(m analytics.Metric) func(*analytics.Row) number {
	return func(r *analytics.Row) number {
		if r.Stats[m].N == 0 {
			return noNumber
		}
		return number(r.Stats[m].Mean())
	}
}

func sum(m analytics.Metric) func(*analytics.Row) number {
	return func(r *analytics.Row) number { return number(r.Stats[m].Sum) }
}

func quantile(s analytics.Span, i int) func(*analytics.Row) number {
	return func(r *analytics.Row) number {
		if short := &r.Summaries[s]; short.N > 0 {
			return number(short.Quantiles[i].Seconds())
		}
		return noNumber
	}
}

// columns are the series, in their order.
var columns = makeColumns()

func makeColumns() []column {
	all := []column{
		{"active_users", "The highest value.", highest(analytics.ActiveUsers)},
		{"active_users_avg", "Average over time.", mean(analytics.ActiveUsers)},
		{"queued_users", "The highest number of visitors in the queue who were present.", highest(analytics.QueuedUsers)},
		{"queued_users_avg", "Average over time.", mean(analytics.QueuedUsers)},
		{"active_limit", "The highest total_active_users in force; null where there was none, as with passthrough.", highest(analytics.ActiveLimit)},
		{"new_limit", "The highest new_users_per_minute in force.", highest(analytics.NewLimit)},
		{"new_users", "Sessions that began, per minute: the average of the minutes.", mean(analytics.NewUsers)},
		{"new_users_max", "Sessions that began in the busiest minute.", highest(analytics.NewUsers)},
		{"joined", "Visitors who joined the queue.", sum(analytics.Joined)},
		{"abandoned", "Places in the queue that were given up or expired.", sum(analytics.Abandoned)},
		{"no_shows", "Turns that were not taken in time.", sum(analytics.NoShows)},
		{"overtakes", "Visitors admitted without a turn while another one who was present waited at the same site.", sum(analytics.Overtakes)},
		{"revoked", "Sessions ended by the origin or an operator.", sum(analytics.Revoked)},
		{"bypassed", "Requests that bypassed the room by a rule, as a crawler, or in shadow mode.", sum(analytics.Bypassed)},
		{"refused", "Tickets that were not accepted.", sum(analytics.Refused)},
		{"turned_away", "Requests that were refused.", sum(analytics.TurnedAway)},
		{"estimate_seconds", "The longest estimated wait of a new visitor.", highest(analytics.Estimate)},
	}
	for s, name := range [analytics.Spans]string{"waited", "in_queue", "on_origin", "between_refreshes", "late", "early"} {
		for i, q := range analytics.Quantiles {
			all = append(all, column{fmt.Sprintf("%s_p%.0f", name, q), "", quantile(analytics.Span(s), i)})
		}
	}
	return all
}

// totalOf is all null where nothing was recorded.
func totalOf(rows []analytics.Row) AnalyticsTotal {
	out := make(AnalyticsTotal, len(columns))
	for i, c := range columns {
		out[i] = noNumber
		if len(rows) > 0 {
			out[i] = c.of(&rows[0])
		}
	}
	return out
}

// timeline is the rows of a room in a grid without gaps.
type timeline struct {
	from, to time.Time
	time     []int64 // Unix seconds
	series   AnalyticsSeries
}

func newTimeline(a analytics.Answer, from, to time.Time) (*timeline, error) {
	if a.Every == 0 {
		return nil, anteroom.Errorf(anteroom.Unavailable, "the store of analytics chose no resolution")
	}
	every := time.Duration(a.Every)
	t := &timeline{from: floor(from, a.Every), to: ceil(to, a.Every), series: make(AnalyticsSeries, len(columns))}
	n := int(t.to.Sub(t.from) / every)
	if n > maxAnalyticsPoints {
		return nil, api.Query("from", "is too long ago", fmt.Sprintf("at most %d spans at once", maxAnalyticsPoints))
	}
	t.time = make([]int64, n)
	for i := range t.time {
		t.time[i] = t.from.Add(time.Duration(i) * every).Unix()
	}
	for c := range columns {
		t.series[c] = make([]number, n)
		for i := range n {
			t.series[c][i] = noNumber
		}
	}
	for i := range a.Rows {
		at := int(a.Rows[i].Start.Sub(t.from) / every)
		if a.Rows[i].Start.Before(t.from) || at >= n {
			continue
		}
		for c := range columns {
			t.series[c][at] = columns[c].of(&a.Rows[i])
		}
	}
	return t, nil
}

// writeCSV writes a line for each span. All cells are moments and numbers: nothing that a
// spreadsheet could take for a formula.
func (t *timeline) writeCSV(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", "attachment; filename=\"analytics.csv\"")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	out := csv.NewWriter(w)
	line := make([]string, 1, len(columns)+1)
	line[0] = "time"
	for _, c := range columns {
		line = append(line, c.name)
	}
	out.Write(line)
	for i, at := range t.time {
		line = append(line[:0], time.Unix(at, 0).UTC().Format(time.RFC3339))
		for c := range columns {
			line = append(line, t.series[c][i].String())
		}
		out.Write(line)
	}
	out.Flush()
	return nil
}
