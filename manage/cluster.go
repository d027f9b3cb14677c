package manage

import (
	"context"
	"slices"
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
	Edges    []EdgeSeen       `json:"edges_seen" doc:"The edges and proxies in front that the node that answers has seen since its start, the last 100."`
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

// EdgeSeen is what a node has seen of an edge in front of it, or of a proxy that asks about requests. What an edge sends straight to
// the origin, no node sees.
type EdgeSeen struct {
	Kind        string    `json:"kind" doc:"nginx, haproxy, caddy, traefik or envoy: a proxy that asks about each request (forward_auth). pass: an edge that verifies passes."`
	Zone        string    `json:"zone,omitempty" doc:"Zone whose passes it verifies."`
	Name        string    `json:"name,omitempty" doc:"Its name in pass_edge of the rooms; left out for edges that verify with the public keys."`
	Peer        string    `json:"peer,omitempty" doc:"Address of the proxy that asks."`
	LastSeen    time.Time `json:"last_seen" doc:"When it last asked, or a request with a pass last came."`
	Requests    uint64    `json:"requests_last_minute" doc:"Questions in the last minute, or requests that came with a pass."`
	FreshShare  float64   `json:"fresh_share" min:"0" max:"1" doc:"Share of these whose pass had more than half of its time left. An edge that verifies passes sends few such requests here."`
	LateShare   float64   `json:"late_share" min:"0" max:"1" doc:"Share of these whose pass had half of its time or less left."`
	OverShare   float64   `json:"over_share" min:"0" max:"1" doc:"Share of these whose pass had expired, or was for another key or room."`
	ClockOffset *float64  `json:"clock_offset_seconds" doc:"How far its clock is ahead of that of the node that answers; null while it is not known. Only Envoy sends its time, by gRPC."`
}

// ClusterTouch is the state of a connection.
type ClusterTouch struct {
	OK     bool       `json:"ok"`
	Since  *time.Time `json:"since" doc:"When the state last changed."`
	Lag    float64    `json:"lag_seconds" doc:"How old data read from it can be."`
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
	st, err := m.cfg.Cluster(ctx)
	if err != nil {
		return st, err
	}
	st.Findings = append(st.Findings, m.soon(ctx, by)...)
	slices.SortStableFunc(st.Findings, func(a, b ClusterFinding) int {
		return slices.Index(checkResults, b.Severity) - slices.Index(checkResults, a.Severity)
	})
	return st, nil
}

// Sites changes what a cluster consists of. Each method calls sure once nothing speaks against the change, and makes none
// if that fails.
type Sites interface {
	// RemoveNode removes a core of the site that answers: itself, or one that does not run. With force, it removes one
	// that runs too.
	RemoveNode(ctx context.Context, node string, force bool, sure func() error) error
	// ReplaceNode removes a core that does not run and whose place another core has taken, and waits a while for the
	// copies there. complete reports whether they are.
	ReplaceNode(ctx context.Context, node, by string, force bool, sure func() error) (complete bool, err error)
	// AddCores makes the only core of a site one of those that the configuration lists, or a standalone process a core.
	AddCores(ctx context.Context, sure func() error) (AddedCores, error)
	// ShrinkCores makes the core that answers the only one of its site.
	ShrinkCores(ctx context.Context, sure func() error) error
	// ForgetSite writes off another site that is lost.
	ForgetSite(ctx context.Context, site string, sure func() error) (ForgottenSite, error)
}

// AddedCores is what a process has become.
type AddedCores struct {
	Cores    int  `json:"cores" doc:"Number of cores that the site has now."`
	Complete bool `json:"complete" doc:"Whether all cores have a complete copy of everything. If not, copying continues."`
	Restarts bool `json:"restarts" doc:"Whether a standalone process is being replaced by one that is a core. It is ready when the cluster has a name."`
}

// ForgottenSite is what a site was charged for when it was written off.
type ForgottenSite struct {
	Site  string `json:"site" doc:"Name of the site."`
	Rooms int    `json:"rooms" doc:"Number of rooms that it had units of."`
	Seats uint64 `json:"seats" doc:"Seats that it was granted, had not returned, and that are free now."`
}

// RemoveNode removes a core of this site, see [Sites]. It requires the admin permission.
func (m *Manager) RemoveNode(ctx context.Context, by Caller, node string, force bool) error {
	sites, sure, err := m.changeSites(ctx, by, "cluster.remove_node", node, map[string]bool{"force": force})
	if err != nil {
		return err
	}
	return sites.RemoveNode(ctx, node, force, sure)
}

// ReplaceNode removes a core of this site whose place another has taken, see [Sites]. It requires the admin permission.
func (m *Manager) ReplaceNode(ctx context.Context, by Caller, node, with string, force bool) (complete bool, err error) {
	sites, sure, err := m.changeSites(ctx, by, "cluster.replace_node", node, map[string]any{"by": with, "force": force})
	if err != nil {
		return false, err
	}
	return sites.ReplaceNode(ctx, node, with, force, sure)
}

// AddCores makes this process one of several cores, see [Sites]. It requires the admin permission.
func (m *Manager) AddCores(ctx context.Context, by Caller) (AddedCores, error) {
	sites, sure, err := m.changeSites(ctx, by, "cluster.add_cores", "", nil)
	if err != nil {
		return AddedCores{}, err
	}
	return sites.AddCores(ctx, sure)
}

// ShrinkCores makes this core the only one of its site, see [Sites]. It requires the admin permission.
func (m *Manager) ShrinkCores(ctx context.Context, by Caller) error {
	sites, sure, err := m.changeSites(ctx, by, "cluster.shrink_cores", "", nil)
	if err != nil {
		return err
	}
	return sites.ShrinkCores(ctx, sure)
}

// ForgetSite writes off a site of the cluster, see [Sites]. It requires the admin permission.
func (m *Manager) ForgetSite(ctx context.Context, by Caller, site string) (ForgottenSite, error) {
	sites, sure, err := m.changeSites(ctx, by, "cluster.forget_site", site, nil)
	if err != nil {
		return ForgottenSite{}, err
	}
	return sites.ForgetSite(ctx, site, sure)
}

// changeSites returns who changes the cluster, and what records a change just before it is made.
func (m *Manager) changeSites(ctx context.Context, by Caller, operation, object string, what any) (Sites, func() error, error) {
	if err := by.need(Admin, "", ""); err != nil {
		return nil, nil, err
	}
	if m.cfg.Sites == nil {
		return nil, nil, anteroom.Errorf(anteroom.Unavailable, "this process serves no rooms")
	}
	return m.cfg.Sites, func() error { return m.act(ctx, by, operation, "", "", object, what) }, nil
}
