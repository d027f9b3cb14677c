package figure

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/sim"
)

// FuzzFigures draws results of any names and numbers: no panic, always a well-formed picture
// with every text inside.
func FuzzFigures(f *testing.F) {
	f.Fuzz(func(t *testing.T, name string, at, wait, told int64, active, limit int, share float64, seed uint64) {
		r := &sim.Result{Algorithm: sim.Anteroom, Seed: seed, Ran: time.Duration(at), Places: []string{name, name}}
		r.Scenario.Name, r.Scenario.Length = name, time.Duration(wait)
		for i := range 12 {
			k := int64(i)
			r.Points = append(r.Points, sim.Point{At: time.Duration(at * k), Active: active * i, Waiting: limit - active, LastMinute: active, Limit: limit, Rate: limit * i, Idle: share * float64(i), Sites: []int32{int32(active), int32(limit)}})
			arrived := time.Duration(at * k)
			r.Visits = append(r.Visits, sim.Visit{Arrived: arrived, Admitted: arrived + time.Duration(wait), Left: time.Duration(told * k), Told: time.Duration(told),
				TellAt: arrived, Told25: time.Duration(told / 2), Told75: time.Duration(told * 2), Shown: i%2 == 0})
		}
		n := &r.Numbers
		n.Arrived, n.Admitted, n.LineEmpty, n.WaitP50 = active, limit, time.Duration(told), time.Duration(wait)
		n.Idle, n.EtaBias, n.LotteryError, n.OverActive = share, share, share, share
		random, even := *r, *r
		random.Scenario.QueueingMethod = anteroom.Random
		even.Algorithm = name
		if len(name)%2 == 0 {
			even.Algorithm = sim.Even
		}
		for _, f := range Of([]*sim.Result{r, &random, &even}) {
			inPicture(t, f)
		}
	})
}
