package schema

import (
	"time"

	"github.com/anteroom/anteroom"
)

// ZoneSpec is a zone to be made.
type ZoneSpec struct {
	Name string `json:"name" doc:"A host name, or * for rooms of every host."`
}

// ZoneSettings are the settings of a zone.
type ZoneSettings struct {
	SearchEngineCrawlerBypass bool `json:"search_engine_crawler_bypass" optional:"true" setting:"zone"`
}

// Zone is a zone.
type Zone struct {
	ZoneName
	SearchEngineCrawlerBypass bool       `json:"search_engine_crawler_bypass" setting:"zone"`
	Rooms                     int        `json:"rooms" doc:"Number of rooms that the token may read."`
	CreatedOn                 *time.Time `json:"created_on"`
	ModifiedOn                *time.Time `json:"modified_on"`
}

// Room is a room in brief.
type Room struct {
	_                 struct{}                `doc:"A room in brief. The published API has all of its settings."`
	ID                anteroom.RoomID         `json:"id"`
	Name              string                  `json:"name"`
	Zone              ZoneName                `json:"zone"`
	File              bool                    `json:"file" doc:"Whether the room comes from the configuration file or from flags: its settings are changed there, its controls here."`
	Routes            []Route                 `json:"routes"`
	TotalActiveUsers  int                     `json:"total_active_users" setting:"room" min:"0"`
	NewUsersPerMinute int                     `json:"new_users_per_minute" setting:"room" min:"0"`
	QueueingMethod    anteroom.QueueingMethod `json:"queueing_method" setting:"room"`
	QueueAll          bool                    `json:"queue_all" setting:"room"`
	Suspended         bool                    `json:"suspended" setting:"room"`
	Shadow            bool                    `json:"shadow" setting:"room"`
	LotteryPercent    int                     `json:"lottery_percent" setting:"room" min:"0"`
	Controls          Controls                `json:"controls"`
	Events            int                     `json:"events" doc:"Number of events."`
	Rules             int                     `json:"rules" doc:"Number of bypass rules."`
}

// Route is a host and path that a room covers.
type Route struct {
	Host string `json:"host"`
	Path string `json:"path"`
}

// Controls are what an operator does to a room by hand.
type Controls struct {
	_         struct{}   `doc:"What an operator set by hand. Changing settings does not undo it."`
	Paused    bool       `json:"paused" doc:"Visitors without a session wait."`
	Draining  bool       `json:"draining" doc:"The queue is closed to new visitors; visitors in it are admitted."`
	ResetAt   *time.Time `json:"reset_at" doc:"Places from before this time are void."`
	Message   *string    `json:"message" max:"280" doc:"Message on the waiting page; null for none."`
	Remaining *int       `json:"remaining" min:"0" max:"1000000000" doc:"How many items are left; at 0 the room is closed. null: not set."`
}

// Crowd is a crowd of simulated visitors, to try a room with.
type Crowd struct {
	Visitors    int `json:"visitors" min:"1" max:"2000" doc:"How many visitors come."`
	OverSeconds int `json:"over_seconds" min:"0" max:"600" optional:"true" doc:"The time over which they arrive, 0 by default: all at once."`
}

// CrowdStatus is how a crowd does.
type CrowdStatus struct {
	_           struct{}   `doc:"The last simulated visitors that the answering process sent to the room."`
	Visitors    int        `json:"visitors"`
	OverSeconds int        `json:"over_seconds"`
	BeganAt     *time.Time `json:"began_at" doc:"null: none was sent since the process started."`
	EndedAt     *time.Time `json:"ended_at" doc:"null while it runs."`
	Arrived     int        `json:"arrived" doc:"Visitors who have arrived so far."`
	Waiting     int        `json:"waiting" doc:"Visitors who wait now."`
	Active      int        `json:"active" doc:"Visitors who look at pages now; their sessions last longer."`
	Admitted    int        `json:"admitted" doc:"Visitors who have been admitted so far."`
	GaveUp      int        `json:"gave_up" doc:"Visitors who have left the queue: 5% lose patience."`
	Failed      int        `json:"failed" doc:"Requests without a proper answer."`
	Failure     *string    `json:"failure" doc:"What the first of them got; null until the simulation has ended, and without failures."`
}

// Left says how many are left of what visitors wait for.
type Left struct {
	Remaining int `json:"remaining" min:"0" max:"1000000000" doc:"At 0 the room is closed: visitors see that it is sold out, and no one new is admitted."`
}

// Sold says how many were sold.
type Sold struct {
	Sold int `json:"sold" min:"1" max:"1000000000" doc:"Taken from what is left, down to 0."`
}

// PageMessage is a message for the waiting page.
type PageMessage struct {
	Text string `json:"text" min:"1" doc:"One line of plain text, at most 280 characters."`
}

// Reset confirms a reset.
type Reset struct {
	Confirm string `json:"confirm" doc:"The name of the room, as a protection against a wrong path."`
}

// Admission says how many visitors to admit.
type Admission struct {
	Count int `json:"count" min:"1" max:"1000000"`
}

// Admitted is the answer to an admission.
type Admitted struct {
	Admitted int `json:"admitted" doc:"Number of visitors who got a turn."`
}

// InForce is what a room is at the moment.
type InForce struct {
	_                      struct{}                `doc:"The room's settings, overridden by the active event, overridden by the operator's controls."`
	Phase                  string                  `json:"phase" enum:"none,prequeueing,started"`
	Event                  *ActiveEvent            `json:"event" doc:"The active event."`
	Until                  *time.Time              `json:"until" doc:"When this changes next."`
	QueueingMethod         anteroom.QueueingMethod `json:"queueing_method" setting:"room"`
	QueueAll               bool                    `json:"queue_all" setting:"room"`
	Draining               bool                    `json:"draining" doc:"The queue is closed to new visitors."`
	Suspended              bool                    `json:"suspended" setting:"room"`
	SessionDurationSeconds float64                 `json:"session_duration_seconds" min:"0"`
	DisableSessionRenewal  bool                    `json:"disable_session_renewal" setting:"room"`
	Message                *string                 `json:"message" max:"280" doc:"Message on the waiting page; null for none."`
}

// ActiveEvent is an occurrence of an event.
type ActiveEvent struct {
	ID         anteroom.EventID `json:"id"`
	Name       string           `json:"name"`
	Occurrence int              `json:"occurrence" doc:"0 for the first occurrence."`
	Prequeue   *time.Time       `json:"prequeue"`
	Start      time.Time        `json:"start"`
	End        time.Time        `json:"end"`
}

// Status is the live figures of a room.
type Status struct {
	RoomID             anteroom.RoomID `json:"room_id"`
	At                 *time.Time      `json:"at,omitzero" required:"true"`
	Mode               string          `json:"mode" enum:"open,queue,cut" doc:"open: new visitors are admitted at once; queue: visitors wait; cut: this site has lost its connection to the others."`
	ActiveUsers        int             `json:"active_users" doc:"Number of sessions."`
	TotalActiveUsers   int             `json:"total_active_users" doc:"The limit in force."`
	AdmittedLastMinute int             `json:"admitted_last_minute" doc:"Sessions that began in the last 60 seconds."`
	NewUsersPerMinute  int             `json:"new_users_per_minute" doc:"The limit in force."`
	PacePerMinute      int             `json:"pace_per_minute" doc:"New users per minute that the room admits at the moment: the limit, or less while it protects its origin."`
	PaceReason         *string         `json:"pace_reason" enum:"origin_down,origin_errors,origin_slow,origin_recovering" doc:"Why that is less than the limit; null when it is not."`
	Waiting            int             `json:"waiting" doc:"Visitors in the queue who are present."`
	Dormant            int             `json:"dormant" doc:"Visitors in the queue who are away; their places are kept."`
	Offered            int             `json:"offered" doc:"Turns that were offered and are not taken yet."`
	Streams            int             `json:"streams" doc:"Visitors with an open stream."`
	OldestWaitingSince *time.Time      `json:"oldest_waiting_since" doc:"Arrival of the first visitor in the queue."`
	WaitOfNewcomer     *float64        `json:"wait_of_newcomer_seconds" min:"0" doc:"Estimated wait of a new visitor; null while it is unknown."`
	WaitAtLeast        *float64        `json:"wait_of_newcomer_at_least_seconds" min:"0" doc:"While it is unknown: how long a new visitor waits at least, by the limits, if no visitor ahead leaves; null if nothing can be said."`
	WaitAtMost         *float64        `json:"wait_of_newcomer_at_most_seconds" min:"0" doc:"Likewise, at most: known where sessions end by themselves."`
	Lanes              []LaneStatus    `json:"lanes" doc:"Those of the room, the highest priority first; empty for a room without lanes."`
	InForce            *InForce        `json:"in_force" doc:"null until the first visit of the room."`
}

// LaneStatus is a lane of a room at the moment.
type LaneStatus struct {
	Name           *string  `json:"name" doc:"null: that of all visitors who are in no other lane, if the room does not name it."`
	Priority       int      `json:"priority" min:"0" max:"100"`
	Share          int      `json:"share" min:"0" max:"100" doc:"Percentage of the turns that the lane gets at least while visitors wait in it."`
	Reserved       int      `json:"reserved" min:"0" max:"90" doc:"Percentage of both limits that only visitors of this lane can use."`
	Waiting        int      `json:"waiting" doc:"Visitors of the lane who are in the queue and present."`
	ActiveUsers    int      `json:"active_users" doc:"Sessions of visitors of the lane."`
	WaitOfNewcomer *float64 `json:"wait_of_newcomer_seconds" min:"0" doc:"Estimated wait of a new visitor of the lane; null while it is unknown."`
}

// Visitor is a visitor who waits or has a session.
type Visitor struct {
	ID         string     `json:"id" pattern:"^[0-9a-f]{32}$"`
	Reference  string     `json:"reference" pattern:"^[0-9a-f]{5}-[0-9a-f]{5}$" doc:"The code on the waiting page."`
	Standing   string     `json:"standing" enum:"waiting,active,used"`
	ArrivedAt  *time.Time `json:"arrived_at"`
	AcceptedAt *time.Time `json:"accepted_at"`
	LastSeenAt *time.Time `json:"last_seen_at"`
	Ahead      *int       `json:"ahead" doc:"Number of visitors ahead; null where there is no order or where it is unknown."`
}

// Repeat is when an event happens again.
type Repeat struct {
	_        struct{}        `doc:"When an event happens again."`
	Every    string          `json:"every" setting:"repeat" doc:"Unit of interval, day or week."`
	Interval int             `json:"interval" optional:"true" setting:"repeat"`
	Times    *int            `json:"times" optional:"true" setting:"repeat"`
	Until    *anteroom.Stamp `json:"until" optional:"true" setting:"repeat"`
	TimeZone string          `json:"time_zone" optional:"true" setting:"repeat"`
}

// Shuffle is the record of the shuffle at the start of an event.
type Shuffle struct {
	_          struct{}         `doc:"What anyone needs to recompute the places of a shuffle."`
	Room       anteroom.RoomID  `json:"room"`
	Event      anteroom.EventID `json:"event"`
	Name       string           `json:"name"`
	Number     int              `json:"number" doc:"Number of the occurrence, from 0."`
	Start      *time.Time       `json:"start" doc:"null when the event no longer has this occurrence."`
	Commitment string           `json:"commitment" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the seed, published since the prequeue."`
	Done       bool             `json:"done"`
	At         *time.Time       `json:"at"`
	Seed       *string          `json:"seed" pattern:"^[0-9a-f]{64}$" doc:"null until the shuffle is done."`
	Entries    *string          `json:"entries" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the ids, sorted and concatenated."`
	Count      *int             `json:"count" doc:"Number of ids."`
	IDs        *string          `json:"ids" doc:"Path of the list of ids."`
}
