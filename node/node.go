// Package node runs the rooms of one process: their doors, sites and coordinators, the
// lock of each room, the clock and the journal.
package node

import (
	"context"
	"log/slog"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

// Config says what a node works with.
type Config struct {
	// Link keeps what survives the process. Required.
	Link cluster.Link
	// Name is the node's name within its site; empty means "node".
	Name string
	// Log; nil means none.
	Log *slog.Logger
}

// Node is one process's rooms. Safe for concurrent use.
type Node struct{ cfg Config }

// New returns a node without rooms.
func New(cfg Config) (*Node, error) { return &Node{cfg: cfg}, nil }

// Apply makes the node serve these rooms: new ones start from what the journal knows of
// them, those with a known ID take their new settings and keep line and sessions, others
// stop. The rooms have passed [anteroom.Room.Check]. It returns when the rooms decide.
func (n *Node) Apply(ctx context.Context, rooms []anteroom.Room) error { return nil }

// Room returns the room with the ID, or nil.
func (n *Node) Room(id anteroom.RoomID) *Room { return nil }

// Now returns room time.
func (n *Node) Now() anteroom.Time { return 0 }

// Run works until ctx ends: ticks, journal, and at the end a last flush.
func (n *Node) Run(ctx context.Context) error { return nil }

// Room is one waiting room at this node. Safe for concurrent use.
type Room struct{}

// Decide decides about one request. It may hold a newcomer for up to half a second when a
// slot is about to come free; ctx ends that early (the visitor then keeps the place).
// With Verdict Admit the admission survives kill -9 when Decide returns.
func (r *Room) Decide(ctx context.Context, v anteroom.Visit) anteroom.Decision {
	return anteroom.Decision{}
}

// Best returns the index of the ticket that serves the visitor best: one with a session,
// else the one furthest ahead; -1 when none is usable. Used when a request carries several.
func (r *Room) Best(tickets []anteroom.Ticket) int { return -1 }

// Watch opens the visitor's stream: presence, and a turn that is announced at once. The
// decision that comes with it is as from Decide. Updates are sent about every two seconds
// while the place changes, and one with Verdict Admit when the turn has come (the next
// request takes it). The channel closes when ctx ends, when the visitor has been told to
// go, or when the room goes away. A nil channel means that no stream is to be had now (see
// the decision): poll.
func (r *Room) Watch(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan anteroom.Decision) {
	return anteroom.Decision{}, nil
}

// Touch renews the session of id, as a request would: for long connections (WebSocket).
// It reports whether there is such a session.
func (r *Room) Touch(id anteroom.ID) bool { return false }

// Revoke ends the session of id at once. It reports whether there was one.
func (r *Room) Revoke(id anteroom.ID) bool { return false }

// Ended returns a channel that is closed when the session of id ends (lapse or revoke); it
// is closed already when there is none. For tunnels, which must close with their session.
func (r *Room) Ended(ctx context.Context, id anteroom.ID) <-chan struct{} { return nil }

// Status returns the room's live numbers.
func (r *Room) Status() anteroom.Status { return anteroom.Status{} }

// Settings returns those in force.
func (r *Room) Settings() anteroom.Settings { return anteroom.Settings{} }
