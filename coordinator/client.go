package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

// Client asks the coordinators of rooms, wherever in the cluster they are. Its errors have
// kinds of package anteroom: Unavailable when nobody answers in time, and the one that the
// coordinator's host gave otherwise. Safe for concurrent use.
type Client struct {
	link cluster.Link
}

// NewClient returns a client.
func NewClient(link cluster.Link) *Client { return &Client{link: link} }

// Status is what the coordinator of a room knows, over all sites.
type Status struct {
	anteroom.Status
	Epoch uint64        // of this coordinator of the room
	Pool  [2]int64      // seats and rate slots that are not granted to any site; negative after a limit was lowered
	Sites []SiteStatus  // those with an account, by name
	Since anteroom.Time // room time: when this coordinator began
}

// SiteStatus is a site as the coordinator of a room sees it.
type SiteStatus struct {
	Name        string
	Incarnation uint64
	Heard       time.Duration // since its last report; negative when it has not reported to this coordinator
	Trip        time.Duration // the shortest round trip lately, as it says; 0: unknown
	Granted     [2]uint64     // seats and rate slots ever granted
	Returned    [2]uint64     // of those, returned
	Used        [2]uint64     // in use or offered, by its last report
	Idle        uint64        // free permits there, by its last report
	Lost        bool          // was replaced by a newer incarnation
}

// AdmitNow gives turns to the next n in line of a room (see engine.Coordinator.AdmitNow) and
// returns how many got one.
func (c *Client) AdmitNow(ctx context.Context, room anteroom.RoomID, n int) (int, error) {
	return 0, errUnavailable
}

// Status returns the live numbers of a room.
func (c *Client) Status(ctx context.Context, room anteroom.RoomID) (Status, error) {
	return Status{}, errUnavailable
}

var errUnavailable = errors.New("coordinator: nobody answers")
