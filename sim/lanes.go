package sim

// Lanes: which visitors belong to them, and whether a room keeps what it says of them.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// Lane is a lane of the room and the share of the visitors, of 0 to 1, who belong to it. The lane of priority 0 is that of
// everybody else, whatever its share.
type Lane struct {
	Priority, Share, Reserved int // see [anteroom.Lane]
	Visitors                  float64
}

// LaneNumbers are the outcome for those who belong to a lane.
type LaneNumbers struct {
	Priority, Arrived, Admitted int
	WaitP50, WaitP95            time.Duration // of those admitted after waiting
	EtaError                    float64       // see Numbers
	EtaTold                     int
}

// lanes puts those of the scenario into all its settings.
func (sc *Scenario) lanes() {
	if len(sc.Lanes) == 0 {
		return
	}
	lanes := new(anteroom.Lanes)
	for _, l := range sc.Lanes {
		lanes.List = append(lanes.List, anteroom.Lane{Name: fmt.Sprintf("lane%d", l.Priority), Priority: l.Priority, Share: l.Share, Reserved: l.Reserved})
	}
	sc.Settings.Lanes = lanes
	for i := range sc.Changes {
		sc.Changes[i].Settings.Lanes = lanes
	}
}

func (sc Scenario) checkLanes() error {
	visitors, shares, reserves := 0.0, 0, 0
	seen := map[int]bool{}
	for _, l := range sc.Lanes {
		if l.Priority < 0 || l.Priority > 100 || seen[l.Priority] || l.Share < 0 || l.Reserved < 0 || !fine(l.Visitors) {
			return fmt.Errorf("scenario: a lane has a priority of its own, 0 to 100, and a share, a reserve and visitors of 0 or more: %+v", l)
		}
		seen[l.Priority] = true
		shares, reserves = shares+l.Share, reserves+l.Reserved
		if l.Priority > 0 {
			visitors += l.Visitors
		}
	}
	if visitors > 1 || shares > 100 || reserves > 90 || len(sc.Lanes) > anteroom.MaxLanes {
		return fmt.Errorf("scenario: at most %d lanes, and all visitors, 100 %% of the turns and 90 %% of the limits for all of them", anteroom.MaxLanes)
	}
	return nil
}

// belongs draws the lane of a visitor.
func (w *world) belongs() uint8 {
	if len(w.sc.Lanes) == 0 {
		return 0
	}
	x := w.crowd.Float64()
	for _, l := range w.sc.Lanes {
		if l.Priority > 0 {
			if x < l.Visitors {
				return uint8(l.Priority)
			}
			x -= l.Visitors
		}
	}
	return 0
}

// laneNumbers sums up what became of those of each lane.
func (w *world) laneNumbers() (out []LaneNumbers) {
	if len(w.sc.Lanes) == 0 {
		return nil
	}
	lanes := slices.Clone(w.sc.Lanes)
	if !slices.ContainsFunc(lanes, func(l Lane) bool { return l.Priority == 0 }) {
		lanes = append(lanes, Lane{})
	}
	slices.SortFunc(lanes, func(a, b Lane) int { return b.Priority - a.Priority })
	for _, l := range lanes {
		n, all := LaneNumbers{Priority: l.Priority}, Numbers{}
		var waits, errors []float64
		for i := range w.people {
			p := &w.people[i]
			if p.habits&clone != 0 || int(p.lane) != l.Priority {
				continue
			}
			if n.Arrived++; p.entered == 0 {
				continue
			}
			if n.Admitted++; p.marks&shown == 0 {
				continue
			}
			waits = append(waits, p.entered.Sub(p.arrived).Seconds())
			if e, told := w.toldWrong(p); told {
				errors = append(errors, e)
			}
		}
		all.Waited(waits)
		all.Told(errors)
		n.WaitP50, n.WaitP95, n.EtaError, n.EtaTold = all.WaitP50, all.WaitP95, all.EtaError, all.EtaTold
		out = append(out, n)
	}
	return out
}

// reserved is the part of the limits, of 0 to 1, that some visitors may not use.
func (w *world) reserved() (part float64) {
	for _, l := range w.sc.Lanes {
		part += float64(l.Reserved) / 100
	}
	return part
}

// heardBy is how long after the arrival of a visitor, and the first return, the room has to know of it.
const heardBy = 2 * time.Second

// owes bounds by how many turns a lane may be behind its share: what the room saves up for it at most, and as many as are given until
// the room has heard of the visitor.
func (j *judge) owes(share int) float64 {
	return 4 + float64(share)/100*float64(j.set.NewUsersPerMinute)/60*heardBy.Seconds()
}

// inLanes looks at a turn: nobody has it before somebody of a higher lane who is here, but for the share of the lane; and the other lanes
// whose visitors are here get their shares. who is -1 for a visitor who has left: perhaps one who came back, and went before all lanes.
func (j *judge) inLanes(who int32, mine uint8) {
	w := j.w
	if len(w.sc.Lanes) == 0 || mine == anteroom.LaneBack || who >= 0 && w.people[who].ticket.Lane == anteroom.LaneBack {
		return
	}
	here := map[uint8]int32{}
	for i := j.touch.next(0); i >= 0 && i < int32(len(w.people)) && len(here) <= len(w.sc.Lanes); i = j.touch.next(i + 1) {
		p := &w.people[i]
		if _, known := here[p.lane]; !known && p.arrived.Add(heardBy) < w.now && j.proved[i].Add(heardBy) < w.now && p.habits&clones == 0 && p.marks&undated == 0 && w.present(p) {
			here[p.lane] = i
		}
	}
	var own Lane
	for _, l := range w.sc.Lanes {
		if l.Priority == int(mine) {
			own = l
		}
	}
	for lane, one := range here {
		if who >= 0 && lane > mine && own.Share == 0 && own.Reserved == 0 && j.ordered() {
			j.look(checkOrder, false, func() string {
				return fmt.Sprintf("visitor %d of lane %d gets a turn before visitor %d of lane %d, who is here", who, mine, one, lane)
			})
		}
	}
	for i, l := range w.sc.Lanes {
		one, waits := here[uint8(l.Priority)]
		higher := false
		for lane := range here {
			higher = higher || int(lane) > l.Priority
		}
		switch o := &j.over[i]; { // what a lane gets more than its share while somebody of a higher one is here
		case !higher || l.Reserved > 0 || !j.ordered():
			*o = 0
		case l.Priority == int(mine):
			*o += 1 - float64(l.Share)/100
			j.look(checkOrder, *o < j.owes(100), func() string {
				return fmt.Sprintf("lane %d gets %.1f turns more than its share while visitors of higher lanes are here", l.Priority, *o)
			})
		default:
			*o = max(0, *o-float64(l.Share)/100)
		}
		switch o := &j.owed[i]; {
		case !waits || !j.ordered():
			*o = 0
		case l.Priority == int(mine):
			*o = max(0, *o-1+float64(l.Share)/100)
		default:
			*o += float64(l.Share) / 100
			j.look(checkOrder, *o < j.owes(l.Share), func() string {
				return fmt.Sprintf("lane %d gets %.1f turns fewer than its share while visitor %d is here", l.Priority, *o, one)
			})
		}
	}
}

// drawLanes gives one of five worlds lanes. It has numbers of its own, so that the other worlds are what they were.
func drawLanes(sc *Scenario, rng *rand.Rand) {
	if rng.IntN(5) != 0 {
		return
	}
	for _, priority := range rng.Perm(4)[:1+rng.IntN(3)] {
		l := Lane{Priority: 10 * priority, Visitors: 0.3 * rng.Float64()}
		if rng.IntN(2) == 0 {
			l.Share = rng.IntN(33)
		}
		if rng.IntN(4) == 0 {
			l.Reserved = rng.IntN(30)
		}
		sc.Lanes = append(sc.Lanes, l)
	}
}

// reserves looks at who is inside when somebody of a lane has come in: what is reserved for other lanes is theirs.
func (j *judge) reserves(lane uint8) {
	if len(j.owed) == 0 || lane == anteroom.LaneBack || j.loose() || !j.flows() || j.cap != j.set.TotalActiveUsers {
		return
	}
	most := j.set.TotalActiveUsers
	for _, l := range j.w.sc.Lanes {
		if l.Priority != int(lane) {
			most -= j.set.TotalActiveUsers * l.Reserved / 100
		}
	}
	j.look(checkCap, j.byLane[lane] <= most, func() string {
		return fmt.Sprintf("%d visitors of lane %d are active, and what is reserved for others leaves %d", j.byLane[lane], lane, most)
	})
}
