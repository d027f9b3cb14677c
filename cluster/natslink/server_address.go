package natslink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Ports of a core, counted from that of its address.
const (
	portNodes = iota // processes of its site
	portCores        // other cores of its site
	portSites        // cores of other sites
)

// address is "host:port" as an operator writes it.
type address struct {
	host string // a name or an IP address; "" where every interface is meant
	port int
}

// parseAddress returns the address; its last port is 65533, for two more follow.
func parseAddress(text string) (address, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return address{}, fmt.Errorf("cluster: %q is not an address: host:port is wanted, as 10.0.0.1:7222 or [::1]:7222", text)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535-portSites {
		return address{}, fmt.Errorf("cluster: %q: the port must be 1 to %d, for the two above it are used too", text, 65535-portSites)
	}
	if strings.ContainsAny(host, "/@?# \t\"'") {
		return address{}, fmt.Errorf("cluster: %q: %q is not a host", text, host)
	}
	return address{host, n}, nil
}

func parseAddresses(texts []string) ([]address, error) {
	var all []address
	seen := map[address]bool{}
	for _, text := range texts {
		a, err := parseAddress(text)
		if err != nil {
			return nil, err
		}
		if a.host == "" {
			return nil, fmt.Errorf("cluster: %q has no host: give the address under which others reach it", text)
		}
		if seen[a] {
			return nil, fmt.Errorf("cluster: %q is given twice", text)
		}
		seen[a] = true
		all = append(all, a)
	}
	return all, nil
}

func (a address) at(which int) string { return net.JoinHostPort(a.host, strconv.Itoa(a.port+which)) }

// anywhere reports whether the host stands for every interface.
func (a address) anywhere() bool {
	ip, err := netip.ParseAddr(a.host)
	return a.host == "" || err == nil && ip.IsUnspecified()
}

// loopback reports whether only processes on this machine reach the address.
func (a address) loopback() bool {
	ip, err := netip.ParseAddr(a.host)
	return err == nil && ip.IsLoopback() || a.host == "localhost"
}

// ownAmong returns the one of the cores that this process is: the one it listens on, or,
// where it listens on every interface, the one with its port that leads to this machine.
func ownAmong(ctx context.Context, cores []address, listen address) (address, error) {
	for _, c := range cores {
		if c == listen {
			return c, nil
		}
	}
	if !listen.anywhere() {
		return address{}, fmt.Errorf("cluster: listen %s is not among cores: the list names every core of the site, this one too", listen.at(portNodes))
	}
	local, err := net.InterfaceAddrs()
	if err != nil {
		return address{}, fmt.Errorf("cluster: addresses of this machine: %w", err)
	}
	var found []address
	var failed error
	for _, c := range cores {
		if c.port != listen.port {
			continue
		}
		ips, err := net.DefaultResolver.LookupHost(ctx, c.host)
		failed = errors.Join(failed, err)
		if anyLocal(ips, local) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case failed != nil:
		return address{}, fmt.Errorf("cluster: which of cores this process is cannot be told: %w; let listen be its address in cores", failed)
	}
	return address{}, fmt.Errorf("cluster: %d of cores lead to this machine at port %d, one should; let listen be its address in cores", len(found), listen.port)
}

func anyLocal(ips []string, local []net.Addr) bool {
	for _, text := range ips {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		for _, a := range local {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == ip.Unmap().WithZone("") {
				return true
			}
		}
	}
	return false
}
