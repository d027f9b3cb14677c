package anteroom

import "time"

// Lane is a class of visitors in a room's queue. Order within a lane is that of the queue. What a lane has not used goes to the others:
// of those who can be called, the highest priority comes first, but for the shares of the others.
type Lane struct {
	Name string `key:"name" required:"true" word:"true" max:"50" doc:"Name of the lane, shown to its visitors: letters, digits, hyphen and underscore."`
	// Priority 0 is the lane of everybody whom no other lane takes: what is said of it is a share and a reserve for them.
	Priority int `key:"priority" min:"0" max:"100" default:"0" doc:"Visitors of a lane are called before those of lanes with a smaller number. 0 is the lane of all visitors who are in no other."`
	Share    int `key:"share" unit:"%" min:"0" max:"100" default:"0" doc:"Part of the turns that the lane gets at least, as long as visitors of it wait. All shares together are 100 at most."`
	Reserved int `key:"reserved" unit:"%" min:"0" max:"90" default:"0" doc:"Part of both limits that only visitors of this lane can use. All reserves together are 90 at most."`
	// Expression and Claim say who belongs to the lane, beside those with an invite code for it.
	Expression string `key:"expression" max:"4096" doc:"Condition on the request, in the Rules language: who meets it joins this lane."`
	Claim      string `key:"claim" max:"128" doc:"Value of the claim account_lane_claim with which visitors join this lane."`
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
