package anteroom

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/anteroom/anteroom/internal/field"
)

// Lane is a class of visitors in a room's queue. The order within a lane is that of the queue. What a lane does not use goes to the
// others: of the visitors who can be called, those of the highest priority come first, except for the shares of the other lanes.
type Lane struct {
	Name string `key:"name" label:"Name" required:"true" word:"true" max:"50" doc:"1 to 50 letters, digits, _ and -; unique in the room. The waiting page shows it to the lane's visitors."`
	// Priority 0 is the lane of all visitors who are in no other one: such an entry gives them a name, a share and a reserve.
	Priority int `key:"priority" label:"Priority" min:"0" max:"100" default:"0" doc:"Visitors of a lane are called before those of lanes with a smaller number; unique in the room. 0 is the lane of all visitors who are in no other lane."`
	Share    int `key:"share" label:"Share" unit:"%" min:"0" max:"100" default:"0" doc:"Percentage of the turns that the lane gets at least, while visitors wait in it. The shares of a room add up to at most 100."`
	Reserved int `key:"reserved" label:"Reserved" unit:"%" min:"0" max:"90" default:"0" doc:"Percentage of both limits that only visitors of this lane can use. The reserves of a room add up to at most 90."`
	// Expression and Claim say which visitors belong to the lane. Those with an invite code for it belong to it, too.
	Expression string `key:"expression" label:"Expression" max:"4096" doc:"Condition on the request, in the Rules language. Visitors whose request meets it join this lane."`
	Claim      string `key:"claim" label:"Claim" max:"128" doc:"Visitors join this lane if the claim account_lane_claim of their token has this value."`
}

// Lanes are those of a room, in no order. They are shared and must not be changed.
type Lanes struct{ List []Lane }

// LaneBack is the lane of visitors who come back after an outage of the origin: before every other.
const LaneBack = 255

// LaneStatus is what an operator sees of a lane.
type LaneStatus struct {
	Name           string
	Priority       int
	Waiting        int // in line and in touch
	ActiveUsers    int // sessions of visitors who joined it
	WaitKnown      bool
	WaitOfNewcomer time.Duration
}

// withLanes returns settings that have a room's lanes. They stay the same ones while nothing has changed: whoever asks for the settings
// in force gets these, and no copy.
func (s Settings) withLanes(list []Lane) Settings {
	switch {
	case len(list) == 0:
		s.Lanes = nil
	case s.Lanes == nil || !slices.Equal(s.Lanes.List, list):
		s.Lanes = &Lanes{slices.Clone(list)}
	}
	return s
}

// LaneName is the name of the lane with a priority; empty if the room has none, as for [LaneBack].
func (r *Room) LaneName(priority uint8) string {
	for i := range r.Lanes {
		if r.Lanes[i].Priority == int(priority) {
			return r.Lanes[i].Name
		}
	}
	return ""
}

// CheckLanes returns the faults of a room's lanes, their expressions left aside: those are found by compiling them.
func (r Room) CheckLanes() (f Faults) {
	if len(r.Lanes) == 0 {
		return nil
	}
	add := func(path, problem, fix string) { f = append(f, Fault{Path: path, Problem: problem, Fix: fix}) }
	if len(r.Lanes) > MaxLanes {
		add("lanes", fmt.Sprintf("has %d lanes", len(r.Lanes)), fmt.Sprintf("at most %d", MaxLanes))
		return f
	}
	if r.LotteryPercent > 0 {
		add("lanes", "cannot go with lottery_percent: there is no queue", "leave it out, or set lottery_percent to 0")
	}
	shares, reserves := 0, 0
	for i, l := range r.Lanes {
		at := fmt.Sprintf("lanes[%d]", i)
		f = append(f, checkFields(ofLane, reflect.ValueOf(l)).under(at)...)
		for j, other := range r.Lanes[:i] {
			if l.Name == other.Name && l.Name != "" {
				add(at+".name", fmt.Sprintf("%s is also the name of lanes[%d]", field.Quote(l.Name), j), "names are unique in a room: rename one")
			}
			if l.Priority == other.Priority {
				add(at+".priority", fmt.Sprintf("%d is also the priority of lanes[%d]", l.Priority, j), "each lane has its own, from 1 to 100; 0 is the lane of all visitors who are in no other one")
			}
		}
		shares, reserves = shares+l.Share, reserves+l.Reserved
		if l.Priority == 0 && l.Expression+l.Claim != "" {
			path := "expression"
			if l.Expression == "" {
				path = "claim"
			}
			add(at+"."+path, "has no effect with priority 0: all visitors who are in no other lane are in this one", "leave it out, or set priority to 1 or more")
		}
		if l.Claim != "" && (r.AccountIssuer == "" || r.AccountLaneClaim == "") {
			add(at+".claim", "needs a token to be read from", "set account_issuer, and account_lane_claim to the name of the claim; or leave claim out")
		}
	}
	if shares > 100 {
		add("lanes", fmt.Sprintf("have shares of %d%% together", shares), "at most 100; what is not shared out goes to the highest priority")
	}
	if reserves > 90 {
		add("lanes", fmt.Sprintf("have reserves of %d%% together", reserves), "at most 90: the rest is for visitors of every lane")
	}
	return f
}
