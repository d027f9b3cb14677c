package figure

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/sim"
)

// world makes a result that looks like one of the simulator: people arrive evenly, browse
// for about a minute and wait for one of the seats. It is made up, for the pictures; it
// proves nothing about admission.
type world struct {
	method    anteroom.QueueingMethod
	algorithm string
	people    int
	length    time.Duration
	seats     int
	perMinute int
	sites     int
	excess    float64 // how far above the limit a bad algorithm goes
	seed      uint64
}

func (w world) result() *sim.Result {
	rng := rand.New(rand.NewPCG(w.seed, 1))
	r := &sim.Result{Algorithm: w.algorithm, Seed: w.seed}
	r.Scenario = sim.Scenario{Name: "10,000 in half an hour", Length: w.length, Drain: true,
		Settings: anteroom.Settings{TotalActiveUsers: w.seats, NewUsersPerMinute: w.perMinute, QueueingMethod: w.method}}
	for i := range w.sites {
		r.Places = append(r.Places, []string{"Amsterdam", "Frankfurt", "New York", "São Paulo", "Tokyo", "Sydney", "Mumbai", "Nairobi"}[i%8])
	}
	arrivals := make([]time.Duration, w.people)
	for i := range arrivals {
		arrivals[i] = time.Duration(rng.Float64() * float64(w.length)).Truncate(time.Microsecond)
	}
	slices.Sort(arrivals)
	r.Visits = make([]sim.Visit, w.people)
	for i, at := range arrivals {
		r.Visits[i] = sim.Visit{Arrived: at, Site: int16(i % max(1, w.sites))}
	}
	type session struct {
		end  time.Duration
		site int16
	}
	var line []int
	var inside []session
	var minute []time.Duration
	next := 0
	for at := time.Second; next < w.people || len(line) > 0 || len(inside) > 0; at += time.Second {
		for next < w.people && arrivals[next] <= at {
			line = append(line, next)
			next++
		}
		line = slices.DeleteFunc(line, func(i int) bool {
			if rng.Float64() < 0.0002 {
				r.Visits[i].Left = at
				return true
			}
			return false
		})
		inside = slices.DeleteFunc(inside, func(s session) bool { return s.end <= at })
		minute = slices.DeleteFunc(minute, func(t time.Duration) bool { return t <= at-time.Minute })
		seats := w.seats
		if w.excess > 0 && at%(3*time.Minute) < 30*time.Second {
			seats += int(w.excess * float64(w.seats))
		}
		idle := 0.0
		for len(line) > 0 && len(inside) < seats && len(minute) < w.perMinute {
			k := 0
			if w.method == anteroom.Random {
				k = rng.IntN(len(line))
			}
			i := line[k]
			line = slices.Delete(line, k, k+1)
			v := &r.Visits[i]
			v.Admitted = max(at, v.Arrived+time.Microsecond)
			inside = append(inside, session{at + time.Duration((0.2+0.8*rng.ExpFloat64())*float64(time.Minute)), v.Site})
			minute = append(minute, at)
			idle = rng.Float64()
		}
		q := sim.Point{At: at, Active: len(inside), Waiting: len(line), LastMinute: len(minute), Limit: w.seats, Rate: w.perMinute, Arrived: next}
		if len(line) > 0 {
			q.Idle = idle * (1 + 10*w.excess)
		}
		if w.sites > 0 {
			q.Sites = make([]int32, w.sites)
			for _, s := range inside {
				q.Sites[s.site]++
			}
		}
		r.Points = append(r.Points, q)
		if len(line) == 0 && r.Numbers.LineEmpty == 0 && next == w.people {
			r.Numbers.LineEmpty = at
		}
		r.Ran = at
	}
	var waits []float64
	pace := float64(min(w.seats, w.perMinute))
	for i := range r.Visits {
		v := &r.Visits[i]
		r.Numbers.Arrived++
		if v.Admitted == 0 {
			r.Numbers.Left++
			continue
		}
		r.Numbers.Admitted++
		wait := v.Admitted - v.Arrived
		if wait <= time.Second {
			continue
		}
		v.Shown, v.TellAt = true, v.Arrived+time.Second
		waits = append(waits, wait.Seconds())
		actual := float64(v.Admitted - v.TellAt)
		v.Told = time.Duration(actual * (1.01 + 0.05*rng.NormFloat64())).Round(time.Second)
		if w.method == anteroom.Random {
			p := pace / max(1, float64(r.Points[int(v.Arrived.Seconds())].Waiting)) // of a win in a minute
			v.Told25, v.Told, v.Told75 = time.Duration(0.288/p*60e9), time.Duration(0.693/p*60e9), time.Duration(1.386/p*60e9)
		}
	}
	at := func(q float64) time.Duration { return time.Duration(quantile(waits, q) * 1e9) }
	r.Numbers.WaitP50, r.Numbers.WaitP95 = at(0.5), at(0.95)
	r.Numbers.EtaError, r.Numbers.EtaBias, r.Numbers.EtaWithin = 0.034, 0.01, 0.98
	r.Numbers.Idle, r.Numbers.IdleP50, r.Numbers.IdleP95 = 0.0021+0.2*w.excess, 180*time.Millisecond, 1400*time.Millisecond
	r.Numbers.OverActive, r.Numbers.Premature, r.Numbers.Overtaken = w.excess, 0.3*w.excess, 0.9*w.excess
	r.Numbers.LotteryError, r.Numbers.LotteryRank = 0.021, -0.004
	return r
}
