package rig

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/lab/cluster/network"
	"github.com/anteroom/anteroom/lab/judge"
)

// Cluster is what runs: nodes before one origin. Its methods are what scripts use.
type Cluster struct {
	o      Options
	kase   Case
	sites  []Site
	room   Room
	dir    string
	net    network.Network
	nodes  []*Node
	start  time.Time // zero of all times that are written down
	began  time.Time // when the visitors came
	length time.Duration
	rnd    *rand.Rand
	origin *origin
	ids    struct{ zone, room string } // of the API

	mu      sync.Mutex
	outages []judge.Outage
	marks   []Mark
	changes []judge.Change
}

// Mark is something that was done to the cluster. Times are µs since the start.
type Mark struct {
	From, Until int64
	What        string
}

// newCluster prepares the nodes of a case; none runs yet.
func newCluster(ctx context.Context, o Options, kase Case) (*Cluster, error) {
	c := &Cluster{o: o, kase: kase, sites: kase.Sites, room: kase.Room, dir: filepath.Join(o.Dir, kase.Name), start: time.Now(),
		length: scaled(kase.Length, o.Scale), rnd: rand.New(rand.NewPCG(o.Seed, 1))}
	err := os.RemoveAll(c.dir) // of an earlier run
	if err == nil {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	var names []string
	add := func(site, number int, core bool) {
		n := &Node{c: c, name: fmt.Sprintf("%s%d", c.sites[site].Name, number), site: site, core: core}
		n.dir = filepath.Join(c.dir, n.name)
		c.nodes = append(c.nodes, n)
		names = append(names, n.name)
	}
	for i, s := range c.sites {
		for k := range s.Nodes {
			add(i, k+1, k < s.Cores)
		}
	}
	for _, name := range kase.Spare {
		i := slices.IndexFunc(c.sites, func(s Site) bool { return s.Name == name })
		add(i, c.sites[i].Nodes+1, false)
	}
	if c.net, err = network.Open(ctx, o.Network, names, []uint16{clusterPort, clusterPort + 1, clusterPort + 2}, o.Out); err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		n.host = c.net.Host(n.name)
	}
	for _, n := range c.nodes {
		for _, m := range c.nodes {
			if n != m {
				c.net.Set(n.name, m.name, c.way(n.site, m.site))
			}
		}
	}
	if c.origin, err = newOrigin(c); err != nil {
		return nil, errors.Join(err, c.net.Close())
	}
	err = c.secrets(ctx)
	for _, n := range c.nodes {
		if err == nil {
			err = c.configure(n)
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// secrets writes the secret of the cluster for its cores, and one for each edge.
func (c *Cluster) secrets(ctx context.Context) error {
	ofCores := filepath.Join(c.dir, "secret")
	if err := os.WriteFile(ofCores, []byte(cryptorand.Text()+cryptorand.Text()+"\n"), 0o600); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	for _, n := range c.nodes {
		if n.core {
			continue
		}
		made, err := exec.CommandContext(ctx, c.o.Binary, "cluster", "edge", n.name, "--secret-file", ofCores, "--cluster-name", clusterName).Output()
		if err == nil {
			err = os.MkdirAll(n.dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(n.secret(), made, 0o600)
		}
		if err != nil {
			return fmt.Errorf("rig: secret of %s: %w", n.name, err)
		}
	}
	return nil
}

// way is what lies between two sites when nothing is wrong. All ways lead through the hub.
func (c *Cluster) way(from, to int) network.Way {
	if from == to {
		return network.Way{}
	}
	d := c.sites[from].Delay + c.sites[to].Delay
	return network.Way{Delay: d, Jitter: d / 10, Loss: c.kase.Loss}
}

// now is µs since the start. It begins at 1, for 0 means never.
func (c *Cluster) now() int64 { return max(1, time.Since(c.start).Microseconds()) }

// open starts all nodes and waits until they are ready.
func (c *Cluster) open(ctx context.Context) error {
	var first []*Node
	for _, n := range c.nodes {
		if !slices.Contains(c.kase.Spare, c.sites[n.site].Name) || !c.spare(n) {
			first = append(first, n)
		}
	}
	for _, n := range first {
		if c.kase.Clocks {
			if err := n.Clock(c.wrong()); err != nil {
				return err
			}
		}
		if err := n.launch(); err != nil {
			return err
		}
	}
	for _, n := range first {
		if err := n.ready(ctx); err != nil {
			return err
		}
	}
	if err := c.settled(ctx); err != nil || !c.kase.Rooms {
		return err
	}
	return c.makeRoom(ctx)
}

// wrong is by how much a clock may be off: up to five seconds either way.
func (c *Cluster) wrong() time.Duration {
	return time.Duration(c.rnd.Int64N(int64(10*time.Second))) - 5*time.Second
}

// spare: the last node of its site, beyond those that it has.
func (c *Cluster) spare(n *Node) bool {
	return n.name == fmt.Sprintf("%s%d", c.sites[n.site].Name, c.sites[n.site].Nodes+1)
}

// close ends everything, whatever state it is in.
func (c *Cluster) close() error {
	for _, n := range c.nodes {
		n.end()
	}
	c.origin.close()
	return c.net.Close()
}

// faults of the processes: those that ended by themselves, and what their logs say that
// nobody may overlook.
func (c *Cluster) faults() []string {
	var out []string
	for _, n := range c.nodes {
		if err := n.fault(); err != nil {
			out = append(out, err.Error())
		}
		b, err := os.ReadFile(n.log())
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "DATA RACE") || strings.Contains(line, `"msg":"panic`) {
				out = append(out, n.name+": "+strings.TrimSpace(line))
				break
			}
		}
	}
	return out
}

// Complaints counts the warnings and errors of all logs by their message.
func (c *Cluster) complaints() map[string]int {
	out := map[string]int{}
	for _, n := range c.nodes {
		b, err := os.ReadFile(n.log())
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if level, msg := logLine(line); level == "WARN" || level == "ERROR" {
				out[level+" "+msg]++
			}
		}
	}
	return out
}

func (c *Cluster) outage(n *Node, from int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outages = append(c.outages, judge.Outage{From: from, Until: c.now(), To: n.visitors()})
}

// Mark notes that something is done; call what it returns when it is over.
func (c *Cluster) Mark(what string) (over func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := len(c.marks)
	c.marks = append(c.marks, Mark{From: c.now(), What: what})
	fmt.Fprintf(c.o.Out, "%6s  %s\n", time.Since(c.began).Round(time.Second), what)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.marks[i].Until = c.now()
	}
}

// Node returns the node of the name; Any one that serves, by chance; Up all that do.
func (c *Cluster) Node(name string) *Node {
	i := slices.IndexFunc(c.nodes, func(n *Node) bool { return n.name == name })
	if i < 0 {
		return c.Any() // a single node stands for all
	}
	return c.nodes[i]
}

func (c *Cluster) Any() *Node { return c.oneOf(c.Up()) }

// AnyCore returns a core that serves, for what edges refuse to change.
func (c *Cluster) AnyCore() *Node {
	return c.oneOf(slices.DeleteFunc(c.Up(), func(n *Node) bool { return !n.core }))
}

func (c *Cluster) oneOf(nodes []*Node) *Node {
	if len(nodes) == 0 {
		return c.nodes[0]
	}
	return nodes[c.rnd.IntN(len(nodes))]
}

func (c *Cluster) Up() []*Node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *Node) bool { return !n.up() })
}

// Spare is a node that has not run yet.
func (c *Cluster) Spare() *Node {
	return c.nodes[max(0, slices.IndexFunc(c.nodes, c.spare))]
}

// Cut cuts a site off: with up nothing gets out of it, with downwards nothing into it.
func (c *Cluster) Cut(site string, up, downwards bool) {
	c.across(func(n *Node) bool { return c.sites[n.site].Name == site }, up, downwards)
}

// CutNode cuts a node off from all others, or puts its links in order.
func (c *Cluster) CutNode(n *Node, cut bool) {
	c.across(func(m *Node) bool { return m == n }, cut, cut)
}

// Heal puts the site's links in order.
func (c *Cluster) Heal(site string) { c.Cut(site, false, false) }

// across sets the links between those inside and all others.
func (c *Cluster) across(inside func(*Node) bool, up, downwards bool) {
	for _, in := range c.nodes {
		for _, out := range c.nodes {
			if !inside(in) || inside(out) {
				continue
			}
			w, back := c.way(in.site, out.site), c.way(out.site, in.site)
			w.Cut, back.Cut = up, downwards
			c.net.Set(in.name, out.name, w)
			c.net.Set(out.name, in.name, back)
		}
	}
}

// carried is what went between sites.
func (c *Cluster) carried() (t network.Traffic) {
	for _, n := range c.nodes {
		for _, m := range c.nodes {
			if n.site != m.site {
				one := c.net.Carried(n.name, m.name)
				t.Packets += one.Packets
				t.Bytes += one.Bytes
				t.Dropped += one.Dropped
			}
		}
	}
	return t
}

// Sleep waits for a time at scale 1 and reports whether it did to the end.
func (c *Cluster) Sleep(ctx context.Context, d time.Duration) bool {
	return walltime.Sleep(ctx, scaled(d, c.o.Scale))
}

// Left is how long visitors still come.
func (c *Cluster) Left() time.Duration { return c.length - time.Since(c.began) }

func scaled(d time.Duration, scale float64) time.Duration {
	return time.Duration(float64(d) * scale).Round(time.Millisecond)
}

// listen finds a port for the origin at the address.
func listen(host string) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("rig: the origin: %w", err)
	}
	return l, nil
}

// fetch reads a page of an operators' listener.
func fetch(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := operatorsClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", address, resp.Status)
	}
	return b, err
}

var operatorsClient = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
