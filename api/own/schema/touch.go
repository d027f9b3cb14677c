package schema

import "github.com/anteroom/anteroom"

// Touches are requests of a room that an edge has let in.
type Touches struct {
	Room    anteroom.RoomID `json:"room" pattern:"^[0-9a-f]{32}$"`
	Touches []Touch         `json:"touches" max:"1000"`
}

// Touch is one of them, the newest of its visitor.
type Touch struct {
	Ticket     string `json:"ticket" min:"1" doc:"Value of the ticket cookie (__cfwaitingroom, with the room's suffix) that came with the request."`
	SecondsAgo int    `json:"seconds_ago" optional:"true" doc:"When the request came; 0 by default. After 10 seconds it counts no more."`
}

// Touched is what came of them.
type Touched struct {
	Taken   int            `json:"taken"`
	Refused []RefusedTouch `json:"refused"`
}

// RefusedTouch is one that does not count.
type RefusedTouch struct {
	Index  int    `json:"index" doc:"In the list that was sent, from 0."`
	Reason string `json:"reason" enum:"ticket,age,session,rate" doc:"ticket: it is none of the room, or one of the queue; age: more than 10 seconds ago; session: it has ended, or the node does not know it and does not reach its site; rate: too many in this second."`
}
