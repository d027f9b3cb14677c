package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"maps"
	"slices"
	"time"
)

//go:embed asset/report.css
var style string

//go:embed asset/report.html
var body string

// Words that somebody chose stand between tags only, where text/html escaping is all there is to
// know: the style is fixed, and attributes and pictures have nothing but numbers and words of ours.
var (
	head = template.Must(template.New("head").Parse(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title>`))
	// Never executed itself: every page is a copy of it, with the clocks of its zone.
	pages = template.Must(template.New("page").Funcs(template.FuncMap{
		"n": func(v int64) string { return grouped(float64(v)) }, "f": grouped, "dur": duration, "pct": percent, "at": moment, "clock": moment, "text": text,
	}).Parse(body))
)

// Policy is the Content-Security-Policy of the page. It allows its style and nothing else. The page repeats it, for
// readers who open it as a file.
var Policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

// WriteHTML writes the report as one page, with the times of a zone.
func (r *Report) WriteHTML(w io.Writer, zone *time.Location) error {
	there := *r
	there.zone = zone
	r = &there
	p := page{Report: r, Zone: zone, Title: r.title(), Summary: r.summary(), Charts: r.figures(), Table: r.table()}
	for _, one := range []struct {
		name   string
		counts map[string]int64
	}{{"Decisions", r.Decisions}, {"Tickets that were not accepted", r.TicketRefusals}, {"Requests that bypassed the room", r.Bypasses}} {
		if t := (tally{Name: one.name}); len(one.counts) > 0 {
			for _, word := range slices.Sorted(maps.Keys(one.counts)) {
				t.Rows = append(t.Rows, tallied{word, one.counts[word]})
			}
			p.Tallies = append(p.Tallies, t)
		}
	}
	if err := head.Execute(w, p); err != nil {
		return err
	}
	// Outside of the templates, which would take its comments and so change its hash.
	if _, err := io.WriteString(w, `<meta http-equiv="Content-Security-Policy" content="`+template.HTMLEscapeString(Policy)+`"><style>`+style+`</style>`); err != nil {
		return err
	}
	whole, err := pages.Clone()
	if err != nil {
		return err
	}
	return whole.Funcs(template.FuncMap{"at": func(t time.Time) string { return moment(t.In(zone)) }, "clock": r.clock}).Execute(w, p)
}

// page is what the template shows.
type page struct {
	*Report
	Zone    *time.Location
	Title   string
	Summary []string
	Charts  []figure
	Table   []tableRow
	Tallies []tally
}

type tally struct {
	Name string
	Rows []tallied
}

type tallied struct {
	Word  string
	Count int64
}

// title is what the page is called, and what a saved one is found by.
func (r *Report) title() string {
	if r.Event != nil {
		return r.Room.Name + ", event " + r.Event.Name + ", " + r.Event.Start.In(r.zone).Format("2 January 2006")
	}
	return r.Room.Name + ", " + r.From.In(r.zone).Format("2 January 2006")
}

// maxTable is how many rows the table below the charts has.
const maxTable = 48

// tableRow is several points put together.
type tableRow struct {
	At                     time.Time
	Active, Queued, Joined int64
	Abandoned              int64
	New                    float64
	WaitP50, WaitP95       float64
	People, Waited         bool
}

// table is the timeline in few rows: of each the most, and of the new users the mean.
func (r *Report) table() (rows []tableRow) {
	each := max(1, (len(r.Timeline)+maxTable-1)/maxTable)
	for part := range slices.Chunk(r.Timeline, each) {
		row := tableRow{At: part[0].At}
		for _, p := range part {
			if p.ActiveUsers != nil && p.QueuedUsers != nil {
				row.People, row.Active, row.Queued = true, max(row.Active, *p.ActiveUsers), max(row.Queued, *p.QueuedUsers)
			}
			if p.WaitP50 != nil && p.WaitP95 != nil {
				row.Waited, row.WaitP50, row.WaitP95 = true, max(row.WaitP50, *p.WaitP50), max(row.WaitP95, *p.WaitP95)
			}
			row.New += p.NewUsers / float64(len(part))
			row.Joined += p.Joined
			row.Abandoned += p.Abandoned
		}
		rows = append(rows, row)
	}
	return rows
}
