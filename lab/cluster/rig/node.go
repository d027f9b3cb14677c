package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/lab/child"
	"github.com/anteroom/anteroom/lab/cluster/network"
)

const (
	visitorPort  = 18080
	operatorPort = 18081
	clusterPort  = 17222 // and the two after it

	startWithin = 60 * time.Second
	stopWithin  = 40 * time.Second
	// noticed is how long what stands before the nodes goes on sending visitors to a dead one.
	noticed = time.Second
)

// Node is one process of the product.
type Node struct {
	c    *Cluster
	name string // site and number, like "a1"
	site int
	core bool
	host network.Host
	dir  string
	next bool // runs the second build

	mu      sync.Mutex
	process *child.Process // the last one; nil before the first
	wanted  bool           // should run
	since   int64          // when it stopped serving, µs; 0 while it serves
	until   time.Time
	orderly bool // it was asked to stop: nobody's request may fail for that
	faulted error
}

func (n *Node) visitors() string  { return fmt.Sprintf("%s:%d", n.host.Front, visitorPort) }
func (n *Node) operators() string { return fmt.Sprintf("%s:%d", n.host.Front, operatorPort) }
func (n *Node) log() string       { return filepath.Join(n.dir, "log") }

func (n *Node) faultClock() string { return filepath.Join(n.dir, "clock") }

func (n *Node) secret() string {
	if n.core {
		return filepath.Join(n.c.dir, "secret")
	}
	return filepath.Join(n.dir, "secret")
}

// Start starts the process and waits until it is ready.
func (n *Node) Start(ctx context.Context) error {
	if err := n.launch(); err != nil {
		return err
	}
	return n.ready(ctx)
}

func (n *Node) launch() error {
	out, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	defer out.Close()
	binary := n.c.o.Binary
	if n.next {
		binary = n.c.o.Next
	}
	cmd := n.c.net.Command(context.Background(), n.name, binary, "run", "--config", filepath.Join(n.dir, "anteroom.yaml"))
	cmd.Stdout, cmd.Stderr = out, out
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := child.Start(cmd, spawn, func(p *child.Process) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.wanted && n.process == p {
			n.faulted = fmt.Errorf("rig: %s ended by itself (%v): see %s", n.name, cmd.ProcessState, n.log())
		}
	}, "ANTEROOM_API_TOKEN="+token, "ANTEROOM_FAULT_CLOCK="+n.faultClock())
	if err != nil {
		return fmt.Errorf("rig: %s: %w", n.name, err)
	}
	n.process, n.wanted = p, true
	return nil
}

// running returns the last process that was started; nil before the first.
func (n *Node) running() *child.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

func (n *Node) ready(ctx context.Context) error {
	if err := n.running().Ready(ctx, n.operators(), startWithin); err != nil {
		return fmt.Errorf("rig: %s %w: see %s", n.name, err, n.log())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.since != 0 && !n.orderly {
		n.c.outage(n, n.since)
	}
	n.since, n.orderly = 0, false
	return nil
}

// leaves takes note that the node does not serve from now on.
func (n *Node) leaves(at int64, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.since == 0 {
		n.since = at
	}
	n.until = until
	n.wanted = false
}

// Kill is kill -9.
func (n *Node) Kill() error {
	n.leaves(n.c.now(), time.Now().Add(noticed))
	p := n.running()
	if !p.Running() {
		return n.fault()
	}
	if err := p.Process.Kill(); err != nil {
		return fmt.Errorf("rig: kill %s: %w", n.name, err)
	}
	<-p.Exited
	return nil
}

// Wipe forgets all that the node has stored. It must not run.
func (n *Node) Wipe() error {
	if err := os.RemoveAll(filepath.Join(n.dir, "data")); err != nil {
		return fmt.Errorf("rig: wipe %s: %w", n.name, err)
	}
	return nil
}

// Stop takes the node out of the visitors' way and asks it to end.
func (n *Node) Stop(ctx context.Context) error {
	n.leaves(n.c.now(), time.Time{})
	n.mu.Lock()
	n.orderly = !n.c.o.Single // there, nobody else takes the visitors
	n.mu.Unlock()
	walltime.Sleep(ctx, noticed)
	p := n.running()
	if err := p.Stop(syscall.SIGTERM, stopWithin); err != nil {
		return fmt.Errorf("rig: %s %w: see %s", n.name, err, n.log())
	}
	if code := p.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("rig: %s ended with %d when asked to: see %s", n.name, code, n.log())
	}
	return nil
}

// Signal stops (SIGSTOP) the node or lets it go on (SIGCONT).
func (n *Node) Signal(sig syscall.Signal) error {
	n.mu.Lock()
	p := n.process
	switch {
	case sig == syscall.SIGSTOP:
		n.since = n.c.now()
		n.until = time.Now().Add(noticed)
	case sig == syscall.SIGCONT && n.since != 0:
		n.c.outage(n, n.since)
		n.since = 0
	}
	n.mu.Unlock()
	if err := p.Process.Signal(sig); err != nil {
		return fmt.Errorf("rig: %v to %s: %w", sig, n.name, err)
	}
	return nil
}

// Clock moves the node's wall clock off the machine's by so much.
func (n *Node) Clock(by time.Duration) error {
	return replace(n.faultClock(), strconv.FormatInt(by.Milliseconds(), 10)+"\n")
}

// serves reports whether visitors are sent to the node.
func (n *Node) serves() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil && (n.since == 0 || time.Now().Before(n.until))
}

// up reports whether the node serves for certain.
func (n *Node) up() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil && n.since == 0
}

func (n *Node) fault() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faulted
}

// end kills the process group, whatever state it is in.
func (n *Node) end() {
	n.mu.Lock()
	p := n.process
	n.wanted = false
	n.mu.Unlock()
	if p == nil || !p.Running() {
		return
	}
	syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
	<-p.Exited
}
