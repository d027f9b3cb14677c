package rig

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/lab/judge"
)

const (
	// token is the operators' of every node.
	token = "rig-0123456789abcdefghijklmnopqrstuvwxyz_ABCDEF"
	// siteName is the name that visitors ask for.
	siteName = "shop.example"
	// clusterName is what the nodes call their cluster.
	clusterName = "rig"
)

// configure writes a node's file.
func (c *Cluster) configure(n *Node) error {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %q\nadmin: %q\nadmin_plain: true\ndata: %q\n", n.visitors(), n.operators(), filepath.Join(n.dir, "data"))
	b.WriteString("log: {level: info, format: json}\nlimits: {connections_per_address: 0, requests_per_address: 0}\ntimeouts: {drain: 5s}\n")
	if !c.o.Single {
		b.WriteString("cluster:\n")
		fmt.Fprintf(&b, "  name: %s\n  site: %s\n  node: %s\n  secret_file: %q\n", clusterName, c.sites[n.site].Name, n.name, n.secret())
		if n.core {
			fmt.Fprintf(&b, "  listen: %q\n  cores: [%s]\n", fmt.Sprintf("%s:%d", n.host.Inner, clusterPort), c.cores(n, n.site))
		} else {
			fmt.Fprintf(&b, "  join: [%s]\n", c.cores(n, n.site))
		}
		if n.core && n.site != 0 {
			fmt.Fprintf(&b, "  hub: [%s]\n", c.cores(n, 0))
		}
	}
	fmt.Fprintf(&b, "sites:\n  - hosts: [\"*\"]\n    origins: [%q]\n", c.origin.url(n))
	if !c.kase.Rooms {
		fmt.Fprintf(&b, "rooms:\n  - name: shop\n    zone: %s\n    host: \"*\"\n    total_active_users: %d\n    new_users_per_minute: %d\n    session_duration: %s\n    queueing_method: %s\n    json_response_enabled: true\n",
			siteName, c.room.Active, c.room.PerMinute, c.room.Session, method(c.room))
		if c.room.First > 0 {
			fmt.Fprintf(&b, "    first_session: %s\n", c.room.First)
		}
	}
	return replace(filepath.Join(n.dir, "anteroom.yaml"), b.String())
}

// replace writes a file as an editor does: whole, by a rename.
func replace(file, text string) error {
	err := os.WriteFile(file+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	return nil
}

// cores are the addresses of a site's cores, as a node sees them.
func (c *Cluster) cores(from *Node, site int) string {
	var out []string
	for _, n := range c.nodes {
		if n.core && n.site == site {
			out = append(out, fmt.Sprintf("%q", fmt.Sprintf("%s:%d", c.net.Sees(from.name, n.name), clusterPort)))
		}
	}
	return strings.Join(out, ", ")
}

// Call asks a node's API. Body is JSON, or empty; result may be nil.
func (c *Cluster) Call(ctx context.Context, n *Node, method, path, body string, result any) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	api, err := client.New(client.Config{URL: "http://" + n.operators(), Token: token, Transport: operatorsClient.Transport})
	if err == nil {
		var sent any
		if body != "" {
			sent = json.RawMessage(body)
		}
		err = api.Do(ctx, method, path, nil, sent, result)
	}
	if err != nil {
		return fmt.Errorf("rig: %s %s at %s: %w", method, path, n.name, err)
	}
	return nil
}

// makeRoom makes zone and room by the API of one node, and waits until all have them.
func (c *Cluster) makeRoom(ctx context.Context) error {
	n := c.nodes[0]
	var accounts []struct{ ID string }
	if err := c.Call(ctx, n, "GET", "/client/v4/accounts", "", &accounts); err != nil {
		return err
	}
	if len(accounts) != 1 {
		return fmt.Errorf("rig: %d accounts, want one", len(accounts))
	}
	var zone, room struct{ ID string }
	if err := c.Call(ctx, n, "POST", "/client/v4/zones", fmt.Sprintf(`{"name":%q,"account":{"id":%q},"type":"full"}`, siteName, accounts[0].ID), &zone); err != nil {
		return err
	}
	body := fmt.Sprintf(`{"name":"shop","host":%q,"json_response_enabled":true,"queueing_method":%q,"first_session":%q,%s}`, siteName, method(c.room), cmp.Or(c.room.First, 30*time.Second), limitFields(c.room))
	if err := c.Call(ctx, n, "POST", "/client/v4/zones/"+zone.ID+"/waiting_rooms", body, &room); err != nil {
		return err
	}
	c.ids.zone, c.ids.room = zone.ID, room.ID
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for _, m := range c.Up() {
		for {
			b, err := fetch(ctx, m.operators()+"/-/status")
			if err == nil && bytes.Contains(b, []byte(room.ID)) {
				break
			}
			if !walltime.Sleep(ctx, 20*time.Millisecond) {
				return fmt.Errorf("rig: %s has not heard of the room within %v (%v)", m.name, startWithin, err)
			}
		}
	}
	return nil
}

func method(r Room) string { return cmp.Or(r.Method, "fifo") }

func limitFields(r Room) string {
	return fmt.Sprintf(`"total_active_users":%d,"new_users_per_minute":%d,"session_duration":%d`, r.Active, r.PerMinute, int(r.Session.Minutes()))
}

// Limit sets other limits, by a node's API or in all files, and tells the judge.
func (c *Cluster) Limit(ctx context.Context, n *Node, to Room) error {
	before := c.now()
	raised := to.Active > c.room.Active
	c.room.Active, c.room.PerMinute = to.Active, to.PerMinute
	if c.kase.Rooms {
		if err := c.Call(ctx, n, "PATCH", "/client/v4/zones/"+c.ids.zone+"/waiting_rooms/"+c.ids.room, "{"+limitFields(to)+"}", nil); err != nil {
			return err
		}
	} else {
		for _, m := range c.nodes {
			if err := c.configure(m); err != nil {
				return err
			}
		}
	}
	at := c.now()
	if raised {
		at = before
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, judge.Change{At: at, Active: to.Active, PerMinute: to.PerMinute})
	return nil
}
