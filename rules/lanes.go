package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anteroom/anteroom"
)

// Lanes are the conditions of a room's lanes.
type Lanes struct {
	highestFirst []laneCondition
}

type laneCondition struct {
	priority uint8
	Expression
}

// NewLanes compiles the expressions of a room's lanes; nil if there are none. The faults of an error have paths like
// "lanes[0].expression".
func NewLanes(lanes []anteroom.Lane, lists *Lists) (*Lanes, error) {
	var all []laneCondition
	var faults anteroom.Faults
	for i, l := range lanes {
		if l.Expression == "" {
			continue
		}
		root, fault := parse(l.Expression, lists)
		if fault != nil {
			fault.Path = fmt.Sprintf("lanes[%d].%s", i, fault.Path)
			faults = append(faults, *fault)
			continue
		}
		all = append(all, laneCondition{uint8(l.Priority), Expression{root}})
	}
	if err := faults.Err(); err != nil || len(all) == 0 {
		return nil, err
	}
	slices.SortFunc(all, func(a, b laneCondition) int { return cmp.Compare(b.priority, a.priority) })
	return &Lanes{all}, nil
}

// Of returns the highest priority of a lane whose condition holds for every reading of the request's path; 0 if there is none. It takes
// what the rules have left of maxSetWork: conditions that come after that do not hold.
func (l *Lanes) Of(r *Request, readings []string) uint8 {
	if l == nil {
		return 0
	}
	for _, c := range l.highestFirst {
		holds := len(readings) > 0
		for _, r.Path = range readings {
			share := min(maxSetWork-r.used, maxWork)
			if holds = share > 0 && c.within(r, share); share > 0 {
				r.used += share - r.work
			}
			if !holds {
				break
			}
		}
		if holds {
			return c.priority
		}
	}
	return 0
}
