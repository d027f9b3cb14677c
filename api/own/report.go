package own

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/anteroom/anteroom/analytics/report"
	"github.com/anteroom/anteroom/api"
)

// roomReport sends what happened in a room between two moments.
func (f *face) roomReport(w http.ResponseWriter, r *api.Request) error {
	q := report.Query{Zone: zoneID(r), Room: roomID(r)}
	var err error
	if q.From, q.To, err = f.analyticsRange(r); err != nil {
		return err
	}
	return f.sendReport(w, r, q)
}

// eventReport sends what happened in an occurrence of an event, with its prequeue: the latest that has
// begun, if the query names none.
func (f *face) eventReport(w http.ResponseWriter, r *api.Request) error {
	e, err := f.event(r)
	if err != nil {
		return err
	}
	q := report.Query{Zone: zoneID(r), Room: roomID(r), Event: e.ID}
	if r.Query.Has("number") {
		q.Number = integer(r, "number", 0)
	} else if o, ok := e.Latest(f.now()); ok {
		q.Number = o.Number
	}
	return f.sendReport(w, r, q)
}

func (f *face) sendReport(w http.ResponseWriter, r *api.Request, q report.Query) error {
	made, err := report.Collect(r.Context(), f.manage, r.By, q, f.now())
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(r.Query.Get("time_zone"))
	if err != nil {
		return api.Query("time_zone", "is not a time zone", "a name of the IANA database like Europe/Berlin")
	}
	format := r.Query.Get("format")
	if format == "" || format == "json" {
		api.SendAnswer(w, api.Answer{Result: made})
		return nil
	}
	var whole bytes.Buffer
	h := w.Header()
	name := fmt.Sprintf("report-%s-%s", made.Room.Name, made.From.Format("20060102T1504Z"))
	if format == "html" {
		err = made.WriteHTML(&whole, zone)
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Disposition", fmt.Sprintf("inline; filename=%q", name+".html"))
		policy := report.Policy + "; frame-ancestors 'self'; sandbox"
		// The dashboard gives its frame the height of the report, which it may measure only in its own origin. Nothing runs
		// in it, and nobody else may have such a frame. By itself, the report has no origin.
		if r.Header.Get("Sec-Fetch-Dest") == "iframe" {
			policy += " allow-same-origin"
		}
		h.Set("Content-Security-Policy", policy)
	} else {
		err = made.WriteCSV(&whole)
		h.Set("Content-Type", "text/csv; charset=utf-8")
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name+".csv"))
	}
	if err != nil {
		return err
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTime)) // what has none keeps its own
	w.Write(whole.Bytes())                                                       // whoever went away misses the rest
	return nil
}
