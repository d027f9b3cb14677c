// Package network is the network of the cluster rig: what lies between nodes that run as
// real processes on one machine, with delay, loss and cuts on demand.
//
// Two things do the same. [Namespaces] (Linux, root) gives every node a network namespace
// with two interfaces: one to the bridge on which visitors, operators and the origin are, and
// one that ends in this process, which carries every packet between nodes by itself: so a
// packet can be late, lost or cut, in one direction or both, without any help of the
// kernel's traffic control. [Proxies] works for everybody: nodes are addresses of the loopback
// interface, and see each other through TCP proxies of this process. A proxy cannot lose a
// packet; it holds what would have been sent again.
package network

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"time"
)

// Way is one direction between two nodes. The zero value is a perfect wire.
type Way struct {
	Delay  time.Duration
	Jitter time.Duration // up to so much more, for each packet; order is kept
	Loss   float64       // of the packets, 0 to 1
	Cut    bool          // nothing arrives
}

// Network holds the nodes apart. Safe for concurrent use.
type Network interface {
	// Kind says which one it is, in words.
	Kind() string
	// Host returns the host of the name.
	Host(name string) Host
	// Sees is the address under which one host reaches another's inner address.
	Sees(from, to string) netip.Addr
	// Set changes the way from one host to another; it was the zero value before.
	Set(from, to string, w Way)
	// Carried is what went from one host to another so far.
	Carried(from, to string) Traffic
	// Command prepares a program that runs at the host.
	Command(ctx context.Context, host, program string, args ...string) *exec.Cmd
	// Close takes everything down. Processes at hosts have to be gone.
	Close() error
}

// Host is where a node runs.
type Host struct {
	Front netip.Addr // visitors and operators reach it there
	Inner netip.Addr // other nodes reach it there; see Sees
	Back  netip.Addr // where it reaches the origin
}

// Traffic counts what went one way. Proxies count chunks for packets.
type Traffic struct{ Packets, Bytes, Dropped int64 }

// Open opens a network of the kind ("namespaces", "proxies" or "auto") for the hosts. Ports
// are those on which hosts listen for each other. What auto settled for is said to log.
func Open(ctx context.Context, kind string, hosts []string, ports []uint16, log io.Writer) (Network, error) {
	switch kind {
	case "namespaces":
		return Namespaces(ctx, hosts)
	case "proxies":
		return Proxies(hosts, ports)
	case "auto":
	default:
		return nil, fmt.Errorf("network: there is no kind %.20q; use namespaces, proxies or auto", kind)
	}
	n, err := Namespaces(ctx, hosts)
	if err == nil {
		return n, nil
	}
	fmt.Fprintf(log, "no network namespaces here (%v): nodes see each other through proxies\n", err)
	return Proxies(hosts, ports)
}

// pair is a direction.
type pair struct{ from, to int }

func indexes(hosts []string) (map[string]int, error) {
	if len(hosts) == 0 || len(hosts) > maxHosts {
		return nil, fmt.Errorf("network: %d hosts; 1 to %d fit", len(hosts), maxHosts)
	}
	out := make(map[string]int, len(hosts))
	for i, h := range hosts {
		if _, twice := out[h]; twice {
			return nil, fmt.Errorf("network: two hosts are called %q", h)
		}
		out[h] = i
	}
	return out, nil
}

// maxHosts is what fits into the last byte of an address.
const maxHosts = 200
