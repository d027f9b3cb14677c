package manage

import (
	"context"
	"time"

	"github.com/anteroom/anteroom"
)

// ClusterStatus describes the nodes that serve the rooms, as one of them sees them. A standalone process has no Name
// and one node.
type ClusterStatus struct {
	Name string `json:"name" doc:"Name of the cluster; empty for a standalone process."`
	Site string `json:"site" doc:"Site of the node that answers."`
	Node string `json:"node" doc:"The node that answers."`
	Hub  bool   `json:"hub" doc:"Whether this site keeps the order of the queues of all sites."`

	Nodes    []ClusterNode    `json:"nodes" doc:"The nodes of this site, by name."`
	Roles    []ClusterRole    `json:"roles" doc:"The roles of this site, by name."`
	Sites    []ClusterSite    `json:"sites" doc:"The sites that have served a room, by name."`
	Store    ClusterStore     `json:"store"`
	Findings []ClusterFinding `json:"findings" doc:"What is wrong, worst first."`
}

// ClusterNode is a process of the site.
type ClusterNode struct {
	Node        string    `json:"node" doc:"Name of the node."`
	Version     string    `json:"version" doc:"Version of Anteroom that it runs."`
	Wire        [2]int    `json:"wire" doc:"Oldest and newest message format that it understands."`
	Core        bool      `json:"core" doc:"Whether it keeps the site's data."`
	Started     time.Time `json:"started"`
	ClockOffset float64   `json:"clock_offset_seconds" doc:"How far its clock is ahead of that of the node that answers, as far as the network lets it be measured."`
	Files       string    `json:"files" doc:"Digest of the sites and rooms in its configuration file."`
	Roles       int       `json:"roles" doc:"Number of roles that it holds."`
}

// ClusterRole is a role and who holds it.
type ClusterRole struct {
	Role  string `json:"role" doc:"site.NN decides for a part of the rooms in this site, coordinator.NN keeps their queues and units over all sites."`
	Node  string `json:"node" doc:"The node that holds it; empty for none."`
	Epoch uint64 `json:"epoch" doc:"Grows with each holder."`
}

// ClusterSite is a site as the coordinators see it, summed over the rooms that it serves.
type ClusterSite struct {
	Site        string  `json:"site" doc:"Name of the site."`
	Rooms       int     `json:"rooms" doc:"Number of rooms that it serves."`
	Heard       float64 `json:"heard_seconds_ago" doc:"The longest time since the last report about a room."`
	Trip        float64 `json:"trip_seconds" doc:"The shortest recent round trip; 0 while unknown."`
	Granted     uint64  `json:"seats_granted" doc:"Seats that it was granted and has not returned."`
	Used        uint64  `json:"seats_used" doc:"Seats in use."`
	IdlePermits uint64  `json:"idle_permits" doc:"Permits that it holds and does not use."`
}

// ClusterStore is this node's connection to the stores.
type ClusterStore struct {
	Site   ClusterTouch `json:"site" doc:"Connection to the store of its site."`
	Shared ClusterTouch `json:"shared" doc:"Connection to the store of the configuration."`
}

// ClusterTouch is the state of a connection.
type ClusterTouch struct {
	OK     bool       `json:"ok"`
	Since  *time.Time `json:"since" doc:"When the state last changed."`
	Lag    float64    `json:"lag_seconds" doc:"How old the data may be that is read from it."`
	Detail string     `json:"detail" doc:"The other end, or what is wrong."`
}

// ClusterFinding is something that is wrong.
type ClusterFinding struct {
	Severity string `json:"severity" enum:"error,warning,note"`
	What     string `json:"what" doc:"What is wrong."`
	Why      string `json:"why" doc:"How this is known, or what follows from it."`
	Fix      string `json:"fix" doc:"What to do."`
}

// Cluster returns the state of the cluster. It requires the permission to read everything.
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
