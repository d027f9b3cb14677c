package manage

import (
	"context"
	"time"

	"github.com/anteroom/anteroom"
)

// ClusterStatus is how the nodes that serve the rooms stand together, as one of them sees it.
// A process that is alone has no Name and one node.
type ClusterStatus struct {
	Name string `json:"name"`
	Site string `json:"site"`
	Node string `json:"node"` // who answers
	Hub  bool   `json:"hub"`  // its site keeps the order of the line over all sites

	Nodes    []ClusterNode    `json:"nodes"` // of this site, by name
	Roles    []ClusterRole    `json:"roles"` // of this site, by name
	Sites    []ClusterSite    `json:"sites"` // that have served a room, by name
	Store    ClusterStore     `json:"store"`
	Findings []ClusterFinding `json:"findings"` // what is wrong, the worst first
}

// ClusterNode is a process of the site.
type ClusterNode struct {
	Node    string    `json:"node"`
	Version string    `json:"version"`
	Wire    [2]int    `json:"wire"` // the oldest and the newest form of messages that it understands
	Core    bool      `json:"core"`
	Started time.Time `json:"started"`
	// ClockOffset is by how much its wall clock is ahead of that of the node that answers, as
	// far as the way between them lets it be known.
	ClockOffset float64 `json:"clock_offset_seconds"`
	// Files is the digest of what its configuration file says of sites and rooms.
	Files string `json:"files"`
	Roles int    `json:"roles"` // that it holds
}

// ClusterRole is a role and who holds it: "site.NN" decides for a part of the rooms in this
// site, "coordinator.NN" keeps their line and units over all sites.
type ClusterRole struct {
	Role  string `json:"role"`
	Node  string `json:"node"`  // empty: nobody
	Epoch uint64 `json:"epoch"` // grows with each holder
}

// ClusterSite is a site as the coordinators see it, summed over the rooms that it serves.
type ClusterSite struct {
	Site        string  `json:"site"`
	Rooms       int     `json:"rooms"`
	Heard       float64 `json:"heard_seconds_ago"` // the longest since a room's last report
	Trip        float64 `json:"trip_seconds"`      // the shortest round trip lately; 0 while unknown
	Granted     uint64  `json:"seats_granted"`     // and not returned
	Used        uint64  `json:"seats_used"`
	IdlePermits uint64  `json:"idle_permits"`
}

// ClusterStore is this node's touch with what is kept.
type ClusterStore struct {
	Site   ClusterTouch `json:"site"`   // with the store of its site
	Shared ClusterTouch `json:"shared"` // with the place where the configuration is written
}

// ClusterTouch is the state of a connection.
type ClusterTouch struct {
	OK     bool       `json:"ok"`
	Since  *time.Time `json:"since"`       // when that last changed
	Lag    float64    `json:"lag_seconds"` // how old what is read may be
	Detail string     `json:"detail"`
}

// ClusterFinding is something that is wrong.
type ClusterFinding struct {
	Severity string `json:"severity"` // "error", "warning" or "note"
	What     string `json:"what"`
	Why      string `json:"why"`
	Fix      string `json:"fix"`
}

// Cluster returns how the nodes stand together. It needs the permission to read everything.
func (m *Manager) Cluster(ctx context.Context, by Caller) (ClusterStatus, error) {
	if err := by.need(Read, "", ""); err != nil {
		return ClusterStatus{}, err
	}
	if m.cfg.Cluster == nil {
		return ClusterStatus{}, anteroom.Errorf(anteroom.Unavailable, "this process serves no rooms")
	}
	return m.cfg.Cluster(ctx)
}

// RemoveNode removes a core of this site that is gone for good, so that it no longer counts toward the
// majority. It requires the admin permission and refuses a running node.
func (m *Manager) RemoveNode(ctx context.Context, by Caller, node string) error {
	if err := by.need(Admin, "", ""); err != nil {
		return err
	}
	if m.cfg.RemoveNode == nil {
		return anteroom.Errorf(anteroom.Invalid, "this process is not part of a cluster: there is no node to remove")
	}
	st, err := m.Cluster(ctx, by)
	if err != nil {
		return err
	}
	for _, n := range st.Nodes {
		if n.Node == node {
			return anteroom.Errorf(anteroom.Conflict, "%s is running: stop it first", node)
		}
	}
	if err := m.act(ctx, by, "cluster.remove_node", "", "", node, nil); err != nil {
		return err
	}
	return m.cfg.RemoveNode(ctx, node)
}
