package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/walltime"
)

const warmUp = 5 * time.Second

// overview is what a node says of its cluster: nodes and roles are those of its site.
type overview struct {
	Nodes []struct {
		Node string
	}
	Roles []struct{ Role, Node string }
}

func (c *Cluster) overview(ctx context.Context, n *Node) (v overview, err error) {
	return v, c.Call(ctx, n, "GET", "/anteroom/v1/cluster", "", &v)
}

// settled waits until every role of every site has a holder and every node is known to its
// site: a cluster that has just started takes some seconds for that.
func (c *Cluster) settled(ctx context.Context) error {
	if c.o.Single {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for _, n := range c.Up() {
		for {
			v, err := c.overview(ctx, n)
			word := ""
			switch {
			case err != nil:
				word = err.Error()
			case len(v.Roles) == 0 || len(v.Nodes) < c.sites[n.site].Nodes:
				word = fmt.Sprintf("%d nodes and %d roles are known", len(v.Nodes), len(v.Roles))
			}
			for _, r := range v.Roles {
				if r.Node == "" {
					word = "nobody holds " + r.Role
				}
			}
			if word == "" {
				break
			}
			if !walltime.Sleep(ctx, 50*time.Millisecond) {
				return fmt.Errorf("rig: at %s, after %v: %s", n.name, startWithin, word)
			}
		}
	}
	// A new coordinator waits some seconds for somebody who knows the time. Runs are about what
	// comes then.
	walltime.Sleep(ctx, warmUp)
	return nil
}

// Holder is the node that holds the room's role ("coordinator" or "site") at the hub. Without
// an answer it is the hub's first.
func (c *Cluster) Holder(role string) *Node {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, n := range c.Up() {
		if n.site != 0 {
			continue
		}
		page, err := fetch(ctx, n.operators()+"/-/status")
		if err != nil {
			continue
		}
		shard, err := shardOf(page)
		if err != nil {
			continue
		}
		v, err := c.overview(ctx, n)
		if err != nil {
			continue
		}
		for _, r := range v.Roles {
			if r.Role == fmt.Sprintf("%s.%02d", role, shard) && r.Node != "" {
				return c.Node(r.Node[strings.LastIndexByte(r.Node, '/')+1:])
			}
		}
	}
	return c.Node(c.sites[0].Name + "1")
}

// shardOf is the part of the work to which the one room of a status page belongs.
func shardOf(page []byte) (int, error) {
	var v struct{ Rooms []struct{ ID string } }
	if err := json.Unmarshal(page, &v); err != nil {
		return 0, err
	}
	if len(v.Rooms) != 1 {
		return 0, fmt.Errorf("%d rooms, want one", len(v.Rooms))
	}
	return cluster.ShardOf(v.Rooms[0].ID), nil
}
