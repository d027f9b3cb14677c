package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"slices"
	"time"
)

//go:embed asset/report.css
var style string

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
	_, err := w.Write(there.page())
	return err
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
