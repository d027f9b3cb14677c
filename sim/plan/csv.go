package plan

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/field"
	"github.com/anteroom/anteroom/sim"
)

const (
	maxCSVBytes  = 64 << 20
	maxCSVFaults = 20 // of one file; then it is the wrong file
)

// row is what came in one stretch of a past sale.
type row struct {
	at       time.Duration // since the first row
	visitors float64
}

// pastSale makes flows of a CSV file. Each row's visitors spread evenly over the time until
// the next row, or over the usual distance of rows where the next is farther.
func (b *builder) pastSale(at string, a arrival) []sim.Flow {
	data, ok := b.readBeside(at+".csv", a.CSV)
	if !ok {
		return nil
	}
	rows := b.rows(at+".csv", filepath.Join(filepath.Dir(b.file), a.CSV), data)
	if len(rows) == 0 {
		return nil
	}
	var steps []time.Duration
	for i := range rows[1:] {
		steps = append(steps, rows[i+1].at-rows[i].at)
	}
	slices.Sort(steps)
	return b.flows(at+".csv", a, rows, usual(steps))
}

// flows makes flows of rows that each say what came within width.
func (b *builder) flows(at string, a arrival, rows []row, width time.Duration) []sim.Flow {
	if last := a.At + rows[len(rows)-1].at; last > b.doc.Length || last == b.doc.Length && rows[len(rows)-1].visitors > 0 {
		b.At(at, fmt.Sprintf("has rows up to %s, and the plan ends at %s", field.Short(last), field.Short(b.doc.Length)), "make length longer than that, or at earlier")
		return nil
	}
	var out []sim.Flow
	// Whole visitors, with the remainder carried on, so that the total is right.
	exact, whole := 0.0, 0
	for i, r := range rows {
		exact += r.visitors * a.Scale
		if exact > sim.MaxVisitors {
			b.At(at, fmt.Sprintf("has more than %d visitors up to row %d", sim.MaxVisitors, i+1), "a smaller scale")
			return nil
		}
		n := int(math.Round(exact)) - whole
		if whole += n; n <= 0 {
			continue
		}
		over := width
		if i+1 < len(rows) {
			over = min(width, rows[i+1].at-r.at)
		}
		from := a.At + r.at
		out = append(out, sim.Flow{From: from, To: min(from+over, b.doc.Length), Visitors: n, Site: a.Site})
	}
	return out
}

// openBeside opens a plain file in the folder of the plan or below, or adds a fault.
func (b *builder) openBeside(at, name string) (io.ReadCloser, bool) {
	clean := path.Clean(filepath.ToSlash(name))
	if !fs.ValidPath(clean) || clean == "." {
		b.At(at, field.Quote(name)+" is not a file beside the plan", "put the file into the plan's folder or below, and write its path from there")
		return nil, false
	}
	folder, done, err := b.beside()
	if err != nil {
		b.cannotRead(at, name, err)
		return nil, false
	}
	defer done()
	// First look, then open: opening a pipe would wait for its writer.
	info, err := fs.Stat(folder, clean)
	if err == nil && !info.Mode().IsRegular() {
		b.At(at, field.Quote(name)+" is not a plain file", "name a CSV file or a log")
		return nil, false
	}
	var in fs.File
	if err == nil {
		in, err = folder.Open(clean)
	}
	if err != nil {
		b.cannotRead(at, name, err)
		return nil, false
	}
	return in, true
}

func (b *builder) cannotRead(at, name string, err error) {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	b.At(at, fmt.Sprintf("%s cannot be read: %v", field.Quote(name), err), "the path starts at the plan's folder and does not leave it")
}

// readBeside reads a plain file in the folder of the plan or below, or adds a fault.
func (b *builder) readBeside(at, name string) ([]byte, bool) {
	in, ok := b.openBeside(at, name)
	if !ok {
		return nil, false
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxCSVBytes+1))
	if err != nil {
		b.cannotRead(at, name, err)
		return nil, false
	}
	if len(data) > maxCSVBytes {
		b.At(at, fmt.Sprintf("%s has more than %d MiB", field.Quote(name), maxCSVBytes>>20), "sum the visitors by the minute")
		return nil, false
	}
	return data, true
}

// faultsIn returns what adds a fault in a file of data, of which it counts all and tells the first.
func (b *builder) faultsIn(at, file string, count *int) func(line, column int, problem, fix string) {
	return func(line, column int, problem, fix string) {
		if *count++; *count < maxCSVFaults {
			b.In(file, line, column, at, problem, fix)
		} else if *count == maxCSVFaults {
			b.In(file, line, column, at, "has more faults from here on", "check that it is the right file")
		}
	}
}

// rows reads the table. Nothing comes back with a fault.
func (b *builder) rows(at, file string, data []byte) []row {
	faults := 0
	fault := b.faultsIn(at, file, &faults)
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // spreadsheets begin so
	in := csv.NewReader(bytes.NewReader(data))
	in.ReuseRecord, in.FieldsPerRecord, in.TrimLeadingSpace = true, -1, true
	if first, _, _ := bytes.Cut(data, []byte("\n")); !bytes.ContainsRune(first, ',') && bytes.ContainsRune(first, ';') {
		in.Comma = ';'
	}
	next := func() ([]string, bool) {
		record, err := in.Read()
		if err == nil {
			return record, true
		}
		if e, ok := errors.AsType[*csv.ParseError](err); ok {
			fault(e.Line, max(1, e.Column), "is not CSV: "+e.Err.Error(), "quotes stand around a whole field, and are doubled inside")
		}
		return nil, false
	}
	head, ok := next()
	if !ok {
		if faults == 0 {
			fault(1, 1, "is empty", "a first line time,visitors and then a row for each minute")
		}
		return nil
	}
	timeAt, countAt := column(head, "time"), column(head, "visitors")
	if timeAt < 0 || countAt < 0 {
		fault(1, 1, "has no columns time and visitors", "a first line time,visitors; other columns may be there too")
		return nil
	}
	var out []row
	var clock clock
	for {
		record, ok := next()
		if !ok || faults >= maxCSVFaults {
			break
		}
		line, _ := in.FieldPos(0)
		if len(record) <= max(timeAt, countAt) {
			fault(line, 1, fmt.Sprintf("has %d fields in this row", len(record)), fmt.Sprintf("%d, as in the first line", len(head)))
			continue
		}
		moment, problem, fix := clock.read(strings.TrimSpace(record[timeAt]))
		if problem != "" {
			_, col := in.FieldPos(timeAt)
			fault(line, col, problem, fix)
			continue
		}
		count, err := strconv.ParseFloat(strings.TrimSpace(record[countAt]), 64)
		if err != nil || !(count >= 0 && count <= sim.MaxVisitors) {
			_, col := in.FieldPos(countAt)
			fault(line, col, field.Quote(record[countAt])+" is not a number of visitors", fmt.Sprintf("0 to %d, without separators", sim.MaxVisitors))
			continue
		}
		if n := len(out); n > 0 && out[n-1].at == moment {
			out[n-1].visitors += count
			continue
		}
		if len(out) == sim.MaxFlows {
			fault(line, 1, fmt.Sprintf("has more than %d rows", sim.MaxFlows), "sum the visitors by the minute")
			break
		}
		out = append(out, row{moment, count})
	}
	if faults == 0 && len(out) == 0 {
		fault(1, 1, "has no rows", "below the first line, a row for each minute")
	}
	if faults > 0 {
		return nil
	}
	return out
}

func column(head []string, name string) int {
	return slices.IndexFunc(head, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), name) })
}

// clock reads the times of a column, which are all of the first one's kind and never go
// back. The zero value is before the first.
type clock struct {
	kind        string
	first, last time.Duration // as read
	started     bool
}

var layouts = []struct {
	kind, layout string
}{
	{"a time of day", "15:04"}, {"a time of day", "15:04:05"},
	{"a date and time", time.RFC3339}, {"a date and time", "2006-01-02T15:04"}, {"a date and time", "2006-01-02 15:04"}, {"a date and time", "2006-01-02 15:04:05"},
}

// read returns the time since the first row, or what is wrong.
func (c *clock) read(text string) (time.Duration, string, string) {
	kind, at := "", time.Duration(0)
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if !(s >= 0 && s <= 9e9) { // more does not fit, and is no Unix time of our days
			return 0, field.Quote(text) + " is not a time", "seconds, 0 to 9000000000"
		}
		kind, at = "seconds", time.Duration(s*1000)*time.Millisecond
	}
	for _, l := range layouts {
		if t, err := time.Parse(l.layout, text); err == nil && kind == "" {
			if l.kind == "a time of day" {
				kind, at = l.kind, t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))
			} else if t.Year() >= 1970 && t.Year() < 2200 {
				kind, at = l.kind, time.Duration(t.UnixMilli())*time.Millisecond
			}
		}
	}
	switch {
	case kind == "":
		return 0, field.Quote(text) + " is not a time", "like 09:30, 09:30:15, 2026-11-20T09:30:00Z, or seconds"
	case c.started && kind != c.kind:
		return 0, fmt.Sprintf("%s is %s, and the first row has %s", field.Quote(text), kind, c.kind), "one way of writing times in the whole column"
	case !c.started:
		*c = clock{kind: kind, first: at, last: at, started: true}
	}
	for kind == "a time of day" && at < c.last-12*time.Hour {
		at += 24 * time.Hour // past midnight
	}
	if at < c.last {
		return 0, field.Quote(text) + " is before the row above", "sort the rows by time"
	}
	if at-c.first > sim.MaxLength {
		return 0, field.Quote(text) + " is more than a week after the first row", "take the part of the file that is the sale"
	}
	c.last = at
	return at - c.first, "", ""
}
