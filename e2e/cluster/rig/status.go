package rig

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Holder is the node that holds a role, of those that serve; of several roles with the
// prefix the one that counts for the room. Without an answer it is the hub's first.
func (c *Cluster) Holder(role string) *Node {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, n := range c.Up() {
		b, err := fetch(ctx, n.operators()+"/-/status")
		if err != nil {
			continue
		}
		if name := holder(b, role); name != "" {
			return c.Node(name)
		}
	}
	return c.Node(c.sites[0].Name + "1")
}

// holder looks for the role in a status page.
func holder(page []byte, role string) string {
	var v struct {
		Cluster struct {
			Roles []struct{ Role, Node string }
		}
	}
	if json.Unmarshal(page, &v) != nil {
		return ""
	}
	for _, r := range v.Cluster.Roles {
		if strings.HasPrefix(r.Role, role) && r.Node != "" {
			return r.Node
		}
	}
	return ""
}
