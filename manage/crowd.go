package manage

import (
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom"
)

// Bounds of a crowd.
const (
	// MaxCrowd is how many visitors a crowd has at most.
	MaxCrowd = 2000
	// MaxCrowdTime is the longest time over which they arrive; that long after the last arrival, all have left.
	MaxCrowdTime = 10 * time.Minute
)

// Crowd is a crowd of simulated visitors, with which an operator tries a room.
type Crowd struct {
	Visitors int           // 1 to MaxCrowd
	Over     time.Duration // the time over which they arrive, 0 to MaxCrowdTime
}

// CrowdStatus is how a crowd does.
type CrowdStatus struct {
	Crowd
	Began    time.Time
	Ended    time.Time // zero while it runs
	Arrived  int       // so far
	Waiting  int       // now
	Active   int       // now
	Admitted int       // so far
	GaveUp   int       // left the queue before their turn
	Failed   int       // requests without a proper answer
	Failure  string    // the first of them
}

// Crowds sends crowds to the rooms of this process, one at a time.
type Crowds interface {
	// Send starts one. It fails while another one runs.
	Send(room anteroom.Room, c Crowd) error
	// Running reports whether one runs.
	Running() bool
	// Status returns how the last crowd of a room does; the zero value if there was none since the process started.
	Status(room anteroom.RoomID) CrowdStatus
	// Stop ends the crowd of a room, if one runs; its visitors stay away from then on.
	Stop(room anteroom.RoomID)
}

func (m *Manager) crowds(by Caller, p Permission, zone anteroom.ZoneID, room anteroom.RoomID) (Crowds, anteroom.Room, error) {
	r, err := m.State().room(by, p, zone, room)
	if err != nil {
		return nil, anteroom.Room{}, err
	}
	if m.cfg.Crowds == nil {
		return nil, anteroom.Room{}, anteroom.Errorf(anteroom.Unavailable, "this process serves no rooms")
	}
	return m.cfg.Crowds, r.Room, nil
}

// SendCrowd sends a crowd to a room in which nobody waits: its visitors queue like any others.
func (m *Manager) SendCrowd(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, c Crowd) (CrowdStatus, error) {
	crowds, r, err := m.crowds(by, Edit, zone, room)
	if err != nil {
		return CrowdStatus{}, err
	}
	var faults anteroom.Faults
	if c.Visitors < 1 || c.Visitors > MaxCrowd {
		faults = append(faults, anteroom.Fault{Path: "visitors", Problem: fmt.Sprintf("%d is out of range", c.Visitors), Fix: fmt.Sprintf("1 to %d", MaxCrowd)})
	}
	if c.Over < 0 || c.Over > MaxCrowdTime {
		faults = append(faults, anteroom.Fault{Path: "over_seconds", Problem: fmt.Sprintf("%v is out of range", c.Over), Fix: fmt.Sprintf("0 to %.0f seconds", MaxCrowdTime.Seconds())})
	}
	if err := faults.Err(); err != nil {
		return CrowdStatus{}, err
	}
	st, err := m.Status(by, zone, room)
	if err != nil {
		return CrowdStatus{}, err
	}
	if n := st.Waiting + st.Dormant; n > 0 {
		return CrowdStatus{}, anteroom.Errorf(anteroom.Conflict, "visitors are waiting in room %q (%d), and simulated visitors would queue with them: try a quiet room", r.Name, n)
	}
	if in := st.InForce; r.AccountIssuer != "" || r.InviteOnly || in != nil && in.InviteOnly {
		return CrowdStatus{}, anteroom.Errorf(anteroom.Conflict, "visitors of room %q need an account or an invite code, and simulated visitors have none: try a room with the same limits that asks for neither", r.Name)
	}
	if crowds.Running() {
		return CrowdStatus{}, anteroom.Errorf(anteroom.Conflict, "this process is already sending simulated visitors: stop them first")
	}
	if err := m.act(ctx, by, "room.send_crowd", zone, room, string(room), map[string]int{"visitors": c.Visitors}); err != nil {
		return CrowdStatus{}, err
	}
	if err := crowds.Send(r, c); err != nil {
		return CrowdStatus{}, err
	}
	return crowds.Status(room), nil
}

// CrowdOf returns how the last crowd of a room does. Each process knows of its own.
func (m *Manager) CrowdOf(by Caller, zone anteroom.ZoneID, room anteroom.RoomID) (CrowdStatus, error) {
	crowds, _, err := m.crowds(by, Read, zone, room)
	if err != nil {
		return CrowdStatus{}, err
	}
	return crowds.Status(room), nil
}

// StopCrowd ends the crowd of a room.
func (m *Manager) StopCrowd(by Caller, zone anteroom.ZoneID, room anteroom.RoomID) (CrowdStatus, error) {
	crowds, _, err := m.crowds(by, Edit, zone, room)
	if err != nil {
		return CrowdStatus{}, err
	}
	crowds.Stop(room)
	return m.CrowdOf(by, zone, room)
}
