package outcome

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/sim"
)

// The JSON of a report. Names and meanings stay; members may be added. Durations and
// moments are in seconds, moments since the start of the plan; shares are of 0 to 1.
type (
	jsonReport struct {
		Name   string    `json:"name"`
		About  string    `json:"about,omitempty"`
		Length seconds   `json:"length_seconds"`
		Runs   []jsonRun `json:"runs"`
		WhatIf []jsonIf  `json:"what_if,omitempty"`
		Files  []string  `json:"files,omitempty"`
	}
	jsonRun struct {
		Algorithm string      `json:"algorithm"`
		Seed      uint64      `json:"seed"`
		Ran       seconds     `json:"ran_seconds"`  // of the plan's time
		Took      seconds     `json:"took_seconds"` // of this machine's
		Trace     string      `json:"trace"`        // equal runs have equal ones
		Checks    []jsonCheck `json:"checks"`
		Numbers   jsonNumbers `json:"numbers"`
		Origin    *jsonOrigin `json:"origin,omitempty"` // where the plan has one
		Sites     []string    `json:"sites"`
		Points    []jsonPoint `json:"points"`
	}
	jsonIf struct {
		Setting           string      `json:"setting"` // that was changed
		Factor            float64     `json:"factor,omitempty"`
		TotalActiveUsers  int         `json:"total_active_users"` // at the start
		NewUsersPerMinute int         `json:"new_users_per_minute"`
		QueueingMethod    string      `json:"queueing_method"`
		Numbers           jsonNumbers `json:"numbers"`
	}
	jsonCheck struct {
		Name   string `json:"name"`
		Looked int    `json:"looked"`
		Broken int    `json:"broken"`
		First  string `json:"first,omitempty"`
	}
	// jsonNumbers are sim.Numbers; what each means is said there.
	jsonNumbers struct {
		Arrived       int     `json:"arrived"`
		Admitted      int     `json:"admitted"`
		Left          int     `json:"left"`
		Refused       int     `json:"refused"`
		Waiting       int     `json:"waiting"`
		Queued        int     `json:"queued"`
		PeakActive    int     `json:"peak_active"`
		PeakPerMinute int     `json:"peak_per_minute"`
		PeakWaiting   int     `json:"peak_waiting"`
		LineEmpty     seconds `json:"line_empty_seconds"`
		OverActive    float64 `json:"over_active"`
		OverMinute    float64 `json:"over_minute"`
		OverAnyMinute float64 `json:"over_any_minute"`
		Premature     float64 `json:"premature"`
		Overtaken     float64 `json:"overtaken"`
		OvertakenMost seconds `json:"overtaken_most_seconds"`
		Idle          float64 `json:"idle"`
		IdleP50       seconds `json:"idle_p50_seconds"`
		IdleP95       seconds `json:"idle_p95_seconds"`
		WaitP50       seconds `json:"wait_p50_seconds"`
		WaitP80       seconds `json:"wait_p80_seconds"`
		WaitP95       seconds `json:"wait_p95_seconds"`
		WaitMax       seconds `json:"wait_max_seconds"`
		// null when nothing was told, or drawn: a 0 would say that it was exactly right.
		EtaError     *float64 `json:"eta_error"`
		EtaBias      *float64 `json:"eta_bias"`
		EtaWithin    *float64 `json:"eta_within"`
		EtaTold      int      `json:"eta_told"`
		LotteryError *float64 `json:"lottery_error"`
		LotteryTold  int      `json:"lottery_told"`
		LotteryRank  *float64 `json:"lottery_rank"`
		Draws        int      `json:"draws"`

		HeldMean     seconds `json:"held_mean_seconds"`
		HeldP99      seconds `json:"held_p99_seconds"`
		Outside      float64 `json:"outside"`
		Messages     float64 `json:"messages"`
		Bytes        float64 `json:"bytes"`
		Requests     float64 `json:"requests"`
		SentBack     float64 `json:"sent_back"`
		VisitorHours float64 `json:"visitor_hours"`

		Lanes []jsonLane `json:"lanes,omitempty"` // the highest first
	}
	// jsonLane is sim.LaneNumbers.
	jsonLane struct {
		Priority int      `json:"priority"`
		Arrived  int      `json:"arrived"`
		Admitted int      `json:"admitted"`
		WaitP50  seconds  `json:"wait_p50_seconds"`
		WaitP95  seconds  `json:"wait_p95_seconds"`
		EtaError *float64 `json:"eta_error"`
		EtaTold  int      `json:"eta_told"`
	}
	// jsonOrigin is sim.OriginNumbers.
	jsonOrigin struct {
		Requests         int     `json:"requests"`
		Failed           int     `json:"failed"`
		AdmittedDead     int     `json:"admitted_dead"`
		AdmittedDeadLate int     `json:"admitted_dead_late"`
		Recovered        seconds `json:"recovered_seconds"` // negative: never
	}
	jsonPoint struct {
		At         seconds `json:"at_seconds"`
		Active     int     `json:"active"`
		Waiting    int     `json:"waiting"`
		Arrived    int     `json:"arrived"`
		Admitted   int     `json:"admitted"`
		LastMinute int     `json:"last_minute"`
		Limit      int     `json:"limit"`
		Rate       int     `json:"rate"`
		Idle       float64 `json:"idle"`
		Sites      []int32 `json:"sites"`
		Pace       int     `json:"pace"`
		Took       seconds `json:"took_seconds"`
		Failed     float64 `json:"failed"`
	}
)

// seconds is a duration in JSON: a number of seconds, to the millisecond.
type seconds time.Duration

// MarshalJSON writes seconds.
func (s seconds) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

func (s seconds) String() string {
	return strconv.FormatFloat(float64(time.Duration(s).Round(time.Millisecond).Milliseconds())/1000, 'f', -1, 64)
}

// known is nil for a number of nothing.
func known(v float64, of int) *float64 {
	if of == 0 {
		return nil
	}
	return &v
}

func numbersOf(n sim.Numbers) jsonNumbers {
	var lanes []jsonLane
	for _, l := range n.Lanes {
		lanes = append(lanes, jsonLane{l.Priority, l.Arrived, l.Admitted, seconds(l.WaitP50), seconds(l.WaitP95), known(l.EtaError, l.EtaTold), l.EtaTold})
	}
	return jsonNumbers{
		Lanes:   lanes,
		Arrived: n.Arrived, Admitted: n.Admitted, Left: n.Left, Refused: n.Refused, Waiting: n.Waiting, Queued: n.Queued,
		PeakActive: n.PeakActive, PeakPerMinute: n.PeakPerMinute, PeakWaiting: n.PeakWaiting, LineEmpty: seconds(n.LineEmpty),
		OverActive: n.OverActive, OverMinute: n.OverMinute, OverAnyMinute: n.OverAnyMinute,
		Premature: n.Premature, Overtaken: n.Overtaken, OvertakenMost: seconds(n.OvertakenMost),
		Idle: n.Idle, IdleP50: seconds(n.IdleP50), IdleP95: seconds(n.IdleP95),
		WaitP50: seconds(n.WaitP50), WaitP80: seconds(n.WaitP80), WaitP95: seconds(n.WaitP95), WaitMax: seconds(n.WaitMax),
		EtaError: known(n.EtaError, n.EtaTold), EtaBias: known(n.EtaBias, n.EtaTold), EtaWithin: known(n.EtaWithin, n.EtaTold), EtaTold: n.EtaTold,
		LotteryError: known(n.LotteryError, n.LotteryTold), LotteryTold: n.LotteryTold, LotteryRank: known(n.LotteryRank, n.Draws), Draws: n.Draws,
		HeldMean: seconds(n.HeldMean), HeldP99: seconds(n.HeldP99), Outside: n.Outside, Messages: n.Messages, Bytes: n.Bytes,
		Requests: n.Requests, SentBack: n.SentBack, VisitorHours: n.VisitorHours,
	}
}

func pointOf(p sim.Point) jsonPoint {
	return jsonPoint{At: seconds(p.At), Active: p.Active, Waiting: p.Waiting, Arrived: p.Arrived, Admitted: p.Admitted,
		LastMinute: p.LastMinute, Limit: p.Limit, Rate: p.Rate, Idle: p.Idle, Sites: p.Sites, Pace: p.Pace, Took: seconds(p.Took), Failed: p.Failed}
}

// JSON writes the report as one JSON object; jsonReport is its schema.
func JSON(w io.Writer, r Report) error {
	out := jsonReport{Runs: []jsonRun{}, Files: r.Files}
	for _, res := range r.Results {
		out.Name, out.About, out.Length = res.Scenario.Name, res.Scenario.About, seconds(res.Scenario.Length)
		run := jsonRun{Algorithm: cmp.Or(res.Algorithm, sim.Anteroom), Seed: res.Seed, Ran: seconds(res.Ran), Took: seconds(res.Took), Trace: res.Trace,
			Checks: []jsonCheck{}, Numbers: numbersOf(res.Numbers), Sites: res.Places, Points: []jsonPoint{}}
		if o := res.Origin; o != nil {
			run.Origin = &jsonOrigin{o.Requests, o.Failed, o.AdmittedDead, o.AdmittedDeadLate, seconds(o.Recovered)}
		}
		for _, c := range res.Checks {
			run.Checks = append(run.Checks, jsonCheck(c))
		}
		for _, p := range res.Points {
			run.Points = append(run.Points, pointOf(p))
		}
		out.Runs = append(out.Runs, run)
	}
	for _, v := range r.WhatIf {
		if v.Result == nil {
			continue
		}
		s := v.Scenario.Settings.WithDefaults()
		out.WhatIf = append(out.WhatIf, jsonIf{Setting: v.Setting, Factor: v.Factor, TotalActiveUsers: s.TotalActiveUsers,
			NewUsersPerMinute: s.NewUsersPerMinute, QueueingMethod: string(s.QueueingMethod), Numbers: numbersOf(v.Result.Numbers)})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(out)
}

// Points writes a table of every result over time, with a first line of names. Moments are
// in seconds since the start.
func Points(w io.Writer, results []*sim.Result) error {
	out := csv.NewWriter(w)
	header := []string{"algorithm", "seed", "at", "active", "waiting", "arrived", "admitted", "last_minute", "limit", "rate", "idle"}
	if len(results) > 0 {
		for _, place := range results[0].Places {
			header = append(header, "active_at_"+place)
		}
	}
	out.Write(header) // Flush keeps the first error
	for _, r := range results {
		for _, p := range r.Points {
			row := []string{cmp.Or(r.Algorithm, sim.Anteroom), strconv.FormatUint(r.Seed, 10), seconds(p.At).String(), strconv.Itoa(p.Active), strconv.Itoa(p.Waiting),
				strconv.Itoa(p.Arrived), strconv.Itoa(p.Admitted), strconv.Itoa(p.LastMinute), strconv.Itoa(p.Limit), strconv.Itoa(p.Rate),
				strconv.FormatFloat(p.Idle, 'g', 6, 64)}
			for i := range r.Places {
				n := int32(0)
				if i < len(p.Sites) {
					n = p.Sites[i]
				}
				row = append(row, strconv.Itoa(int(n)))
			}
			out.Write(row)
		}
	}
	out.Flush()
	return out.Error()
}

// Visits writes a table of the visitors that the results keep, with a first line of names.
// Moments and durations are in seconds; what never happened is empty.
func Visits(w io.Writer, results []*sim.Result) error {
	out := csv.NewWriter(w)
	out.Write([]string{"algorithm", "seed", "site", "arrived", "waited", "admitted", "left", "told_at", "told", "told_25", "told_75"}) // Flush keeps the first error
	some := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return seconds(d).String()
	}
	for _, r := range results {
		for _, v := range r.Visits {
			site := ""
			if v.Site >= 0 && int(v.Site) < len(r.Places) {
				site = inert(r.Places[v.Site])
			}
			waited := ""
			if v.Shown {
				waited = "yes"
			}
			out.Write([]string{cmp.Or(r.Algorithm, sim.Anteroom), strconv.FormatUint(r.Seed, 10), site, seconds(v.Arrived).String(), waited,
				some(v.Admitted), some(v.Left), some(v.TellAt), some(v.Told), some(v.Told25), some(v.Told75)})
		}
	}
	out.Flush()
	return out.Error()
}

// inert keeps spreadsheets from taking a name for a formula.
func inert(s string) string {
	if strings.ContainsAny(s[:min(1, len(s))], "=+-@\t\r") {
		return "'" + s
	}
	return s
}
