package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// columns of the CSV: a value in each line, so that a pivot table makes of it what it wants.
var columns = []string{"section", "at", "name", "value", "before", "by"}

// WriteCSV writes the report as lines of section, moment, name and value; lines of changes have the
// value before and who it was, too.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	line := func(section string, at time.Time, name, value, before, by string) {
		when := ""
		if !at.IsZero() {
			when = at.UTC().Format(time.RFC3339)
		}
		_ = c.Write([]string{section, when, plain(name), value, before, plain(by)}) // Flush tells
	}
	put := func(section string, at time.Time, name, value string) { line(section, at, name, value, "", "") }
	whole := func(v int64) string { return strconv.FormatInt(v, 10) }
	_ = c.Write(columns)
	put("report", r.Made, "made", "")
	put("report", r.From, "from", "")
	put("report", r.To, "to", "")
	put("report", r.AsOf, "as_of", "")
	put("report", time.Time{}, "room", plain(r.Room.Zone+"/"+r.Room.Name))
	put("report", time.Time{}, "room_id", plain(string(r.Room.ID)))
	if r.Event != nil {
		put("report", r.Event.Start, "event", plain(r.Event.Name))
	}
	for _, n := range r.Notes {
		put("note", time.Time{}, "", plain(n))
	}
	f := r.Figures
	for _, one := range []struct {
		name  string
		value int64
	}{{"let_in", f.LetIn}, {"let_in_at_once", f.AtOnce}, {"joined", f.Joined}, {"abandoned", f.Abandoned}, {"no_shows", f.NoShows}, {"turned_away", f.TurnedAway},
		{"revoked", f.Revoked}, {"bypassed", f.Bypassed}, {"refused", f.Refused}, {"overtakes", r.Order.Overtakes}} {
		put("figure", time.Time{}, one.name, whole(one.value))
	}
	for _, one := range []struct {
		name string
		peak *Peak
	}{{"active_users", r.Peaks.ActiveUsers}, {"queued_users", r.Peaks.QueuedUsers}, {"new_users_per_minute", r.Peaks.NewUsers}, {"estimate_seconds", r.Peaks.Estimate}} {
		if one.peak != nil {
			put("peak", one.peak.At, one.name, whole(one.peak.Value))
		}
	}
	spreads := r.Durations
	for _, s := range []*Spread{r.Estimates.Late, r.Estimates.Early} {
		if s != nil {
			spreads = append(spreads[:len(spreads):len(spreads)], *s)
		}
	}
	for _, s := range spreads {
		put("duration", time.Time{}, s.Name+"_count", whole(s.Count))
		for _, q := range []struct {
			name  string
			value float64
		}{{"mean", s.Mean}, {"p50", s.P50}, {"p75", s.P75}, {"p90", s.P90}, {"p95", s.P95}, {"p99", s.P99}, {"max", s.Max}} {
			put("duration", time.Time{}, s.Name+"_"+q.name+"_seconds", decimal(q.value))
		}
	}
	for _, s := range r.Order.Statement {
		put("order", time.Time{}, "", plain(s))
	}
	for _, d := range r.Draws {
		for _, one := range [][2]string{{"commitment", d.Commitment}, {"seed", d.Seed}, {"entries", d.Entries}, {"command", d.Command}} {
			put("draw", d.Start, d.Event+" "+one[0], plain(one[1]))
		}
	}
	for _, s := range r.InForce {
		put("in_force", s.From, "queueing_method", plain(string(s.Method)))
		put("in_force", s.From, "event", plain(s.Event))
		put("in_force", s.From, "total_active_users", whole(s.Active))
		put("in_force", s.From, "new_users_per_minute", whole(s.New))
		put("in_force", s.From, "queue_all", strconv.FormatBool(s.QueueAll))
		put("in_force", s.From, "suspended", strconv.FormatBool(s.Suspended))
	}
	for _, one := range r.Changes {
		if len(one.Fields) == 0 {
			line("change", one.At, one.Operation, plain(one.Name), "", one.By)
		}
		for _, f := range one.Fields {
			line("change", one.At, one.Operation+" "+f.Name, plain(text(f.After)), plain(text(f.Before)), one.By)
		}
	}
	r.writeTimeline(put, whole)
	c.Flush()
	return c.Error()
}

func (r *Report) writeTimeline(put func(section string, at time.Time, name, value string), whole func(int64) string) {
	for _, p := range r.Timeline {
		maybe := func(name string, v *int64) {
			if v != nil {
				put("timeline", p.At, name, whole(*v))
			}
		}
		maybe("active_users", p.ActiveUsers)
		maybe("queued_users", p.QueuedUsers)
		maybe("total_active_users", p.ActiveLimit)
		maybe("new_users_per_minute", p.NewLimit)
		put("timeline", p.At, "new_users", decimal(p.NewUsers))
		put("timeline", p.At, "joined", whole(p.Joined))
		put("timeline", p.At, "abandoned", whole(p.Abandoned))
		put("timeline", p.At, "no_shows", whole(p.NoShows))
		put("timeline", p.At, "overtakes", whole(p.Overtakes))
		if p.WaitP50 != nil && p.WaitP95 != nil {
			put("timeline", p.At, "waited_p50_seconds", decimal(*p.WaitP50))
			put("timeline", p.At, "waited_p95_seconds", decimal(*p.WaitP95))
		}
		maybe("estimate_seconds", p.Estimate)
	}
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// plain makes a cell that no spreadsheet runs as a formula: an apostrophe goes before what would
// begin one, also where a spreadsheet takes blanks or marks in front of it away.
func plain(s string) string {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, " \u00a0\u200b\ufeff\"'"))
	if strings.ContainsRune("=+-@|%\t\r\n＝＋－＠", first) && s != "" {
		return "'" + s
	}
	return s
}
