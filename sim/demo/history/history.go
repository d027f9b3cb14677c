// Package history makes up what a room might have seen in the weeks before: days with their
// nights, a limit that was raised, and sales at which more came than the room lets in. The demo
// fills its analytics with it. Every visitor is played, second by second, so that the figures fit
// together: who was inside, who waited and for how long, who gave up.
package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// Config says what was. Room, From, To, Visitors and Settings are required.
type Config struct {
	Room     anteroom.RoomID
	From, To time.Time // whole minutes; the room is empty at both ends
	Settings anteroom.Settings
	// Before are the limits that held until Raised; zero Raised means that they never changed.
	Before anteroom.Settings
	Raised time.Time
	// Visitors come in a minute of an ordinary day at its busiest hour; a twentieth of them at night.
	Visitors float64
	// Stay is how long a visitor looks around, on average, from the first request to the last.
	Stay time.Duration
	// Patience is how long those who give up wait before they do; a fifth of all would. Zero means that nobody does.
	Patience time.Duration
	Sales    []Sale
	// Fine is the time before To that is told by minutes; what was earlier, by quarters of an hour.
	Fine time.Duration
	Seed uint64
}

// Sale is a moment at which many come.
type Sale struct {
	At       time.Time
	Visitors int
	Over     time.Duration    // in which half of them come; the others trickle in
	Event    anteroom.EventID // the planned event; empty means that nobody had planned for it
	Length   time.Duration    // of the event
}

// impatient is the share of visitors who give up after a while.
const impatient = 0.2

// visitor waits in line.
type visitor struct {
	arrived, leaves int64 // seconds since From; leaves is 0 for the patient
	told            int64 // the wait that was announced, in seconds; negative: none
}

// world is the room at a second.
type world struct {
	cfg     Config
	rnd     *rand.Rand
	line    []visitor
	inside  int
	ends    map[int64][]int64 // second in which sessions lapse: how long their visitors were active
	entered [60]int           // in each of the last 60 seconds
	lately  int               // their sum
	minute  *analytics.Minute
}

// Rows returns what was recorded, in the order of time, as analytics/store keeps it.
func Rows(cfg Config) []analytics.Row {
	w := &world{cfg: cfg, rnd: rand.New(rand.NewPCG(cfg.Seed, 0x68697374)), ends: map[int64][]int64{}}
	fine := cfg.To.Add(-cfg.Fine).Truncate(15 * time.Minute)
	var rows []analytics.Row
	for at := cfg.From; at.Before(cfg.To); at = at.Add(time.Minute) {
		if !w.play(at) {
			continue
		}
		row := w.minute.Row()
		if !at.Before(fine) {
			rows = append(rows, row)
			continue
		}
		quarter := at.Truncate(15 * time.Minute)
		if len(rows) == 0 || !rows[len(rows)-1].Start.Equal(quarter) {
			rows = append(rows, analytics.Row{Room: cfg.Room, Start: quarter, Every: analytics.EveryQuarter})
		}
		rows[len(rows)-1].Add(&row)
	}
	return rows
}

// play plays a minute, and reports whether there was anybody.
func (w *world) play(at time.Time) bool {
	w.minute = &analytics.Minute{Room: w.cfg.Room, Start: at, Seq: 1, Reasons: map[string]int64{}}
	m := w.minute
	set, event := w.inForce(at)
	m.InForce = analytics.InForce{At: anteroom.TimeOf(at), Method: anteroom.FIFO, Event: event}
	perSecond := w.coming(at) / 60
	anybody := false
	begin := int64(at.Sub(w.cfg.From) / time.Second)
	for now := begin; now < begin+60; now++ {
		w.end(now)
		w.lately -= w.entered[now%60]
		w.entered[now%60] = 0
		w.admit(now, set)
		for range w.poisson(perSecond) {
			w.arrive(now, set)
		}
		anybody = anybody || w.inside > 0 || len(w.line) > 0
		m.Gauges[analytics.ActiveUsers].Record(int64(w.inside))
		m.Gauges[analytics.QueuedUsers].Record(int64(len(w.line)))
		m.Gauges[analytics.Estimate].Record(w.estimate(set))
		m.Gauges[analytics.ActiveLimit].Record(int64(set.TotalActiveUsers))
		m.Gauges[analytics.NewLimit].Record(int64(set.NewUsersPerMinute))
		m.Gauges[analytics.SessionDuration].Record(int64(set.SessionDuration.Seconds()))
	}
	return anybody
}

// inForce are the settings of a minute, and the event.
func (w *world) inForce(at time.Time) (anteroom.Settings, anteroom.EventID) {
	set := w.cfg.Settings
	if at.Before(w.cfg.Raised) {
		set = w.cfg.Before
	}
	for _, s := range w.cfg.Sales {
		if s.Event != "" && !at.Before(s.At) && at.Before(s.At.Add(s.Length)) {
			return set, s.Event
		}
	}
	return set, ""
}

// coming is how many visitors a minute brings: by the hour, the weekday and the sales.
func (w *world) coming(at time.Time) float64 {
	hour := float64(at.Hour()) + float64(at.Minute())/60
	day := 0.5 - 0.5*math.Cos((hour-3)/24*2*math.Pi) // 0 at three in the night, 1 at three in the afternoon
	n := w.cfg.Visitors * (0.05 + 0.95*day*day)
	if wd := at.Weekday(); wd == time.Saturday || wd == time.Sunday {
		n *= 1.25
	}
	for _, s := range w.cfg.Sales {
		switch since := at.Sub(s.At); {
		case since < 0 || since > 12*s.Over:
		case since < s.Over:
			n += float64(s.Visitors) / 2 / s.Over.Minutes()
		default:
			n += float64(s.Visitors) / 2 / s.Over.Minutes() / 3 * math.Exp(-float64(since-s.Over)/float64(3*s.Over))
		}
	}
	return n
}

// end ends the sessions that lapse.
func (w *world) end(now int64) {
	for _, active := range w.ends[now] {
		w.record(analytics.OnOrigin, seconds(active))
		w.inside--
	}
	delete(w.ends, now)
}

// free is how many may enter now.
func (w *world) free(set anteroom.Settings) int {
	return min(set.TotalActiveUsers-w.inside, set.NewUsersPerMinute-w.lately)
}

// admit lets in from the line, in its order.
func (w *world) admit(now int64, set anteroom.Settings) {
	m, free, in := w.minute, w.free(set), 0
	for ; in < len(w.line); in++ {
		v := w.line[in]
		if v.leaves != 0 && v.leaves <= now {
			w.count(analytics.Abandoned)
			continue
		}
		if free <= 0 {
			break
		}
		free--
		waited := now - v.arrived
		w.record(analytics.Waited, seconds(waited))
		switch {
		case v.told < 0:
		case waited > v.told:
			w.record(analytics.Late, seconds(waited-v.told))
		default:
			w.record(analytics.Early, seconds(v.told-waited))
		}
		m.Reasons[anteroom.ReasonTurn.String()]++
		w.enter(now, set)
	}
	w.line = slices.Delete(w.line, 0, in)
	if now%20 == 0 { // a check-in, of some
		for i := 0; i < len(w.line); i += 1 + len(w.line)/20 {
			w.record(analytics.InQueue, seconds(now-w.line[i].arrived))
		}
	}
}

// arrive brings somebody, who enters or joins the line.
func (w *world) arrive(now int64, set anteroom.Settings) {
	m := w.minute
	if len(w.line) == 0 && w.free(set) > 0 {
		m.Reasons[anteroom.ReasonFreeSlot.String()]++
		w.enter(now, set)
		return
	}
	w.count(analytics.Joined)
	m.Reasons[anteroom.ReasonLine.String()]++
	// What is announced is off by a few percent, as forecasts are.
	v := visitor{arrived: now, told: 1 + int64(float64(w.estimate(set))*(0.92+0.16*w.rnd.Float64()))}
	if w.cfg.Patience > 0 && w.rnd.Float64() < impatient {
		v.leaves = now + 1 + int64(w.rnd.ExpFloat64()*w.cfg.Patience.Seconds())
	}
	w.line = append(w.line, v)
}

// enter begins a session.
func (w *world) enter(now int64, set anteroom.Settings) {
	w.count(analytics.NewUsers)
	w.inside++
	w.lately++
	w.entered[now%60]++
	active := int64(min(w.rnd.ExpFloat64(), 6) * w.cfg.Stay.Seconds())
	lapses := now + active + int64(set.SessionDuration.Seconds())
	w.ends[lapses] = append(w.ends[lapses], active)
	for at := int64(0); at < active; at += 1 + active/3 {
		w.record(analytics.BetweenRefreshes, seconds(1+active/3))
	}
}

// estimate is the forecast for somebody who joins, in seconds.
func (w *world) estimate(set anteroom.Settings) int64 {
	if len(w.line) == 0 {
		return 0
	}
	perMinute := min(float64(set.NewUsersPerMinute), float64(set.TotalActiveUsers)*60/(w.cfg.Stay+set.SessionDuration).Seconds())
	return int64(float64(len(w.line)) / perMinute * 60)
}

// poisson is a number of arrivals.
func (w *world) poisson(mean float64) int {
	n, p, floor := 0, w.rnd.Float64(), math.Exp(-mean)
	for p > floor {
		p *= w.rnd.Float64()
		n++
	}
	return n
}

// count counts one.
func (w *world) count(m analytics.Metric) { w.minute.Counts[m-analytics.NewUsers]++ }

// record adds a duration.
func (w *world) record(s analytics.Span, d time.Duration) {
	h := &w.minute.Histograms[s]
	if *h == nil {
		*h = &analytics.Histogram{}
	}
	(*h).Record(d)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
