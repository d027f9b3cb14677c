// Package freeport finds ports for processes that have to know their port before they listen, and listen there again after a
// restart, as in tests of clusters.
package freeport

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports lie below those that outgoing connections and listeners on port 0 get, so that none of them takes one.
const lowest, highest = 10_000, 30_000

// claim holds the UDP ports of the same numbers. Nobody here needs them, and the kernel gives each to one process only, until it
// ends; so they show to other processes that the TCP ports are taken while nobody listens there.
type claim []io.Closer

func (c claim) Close() error {
	for _, port := range c {
		port.Close()
	}
	return nil
}

// Claim finds so many ports in a row on 127.0.0.1 where nobody listens, and returns the first. No other Claim, in this process or
// another, returns any of them until the claim is closed.
func Claim(ports int) (first int, held io.Closer, err error) {
	for range 1000 {
		first = lowest + rand.IntN(highest-lowest)
		var c claim
		if c, err = claimed(first, ports); err == nil {
			return first, c, nil
		}
		c.Close()
	}
	return 0, nil, fmt.Errorf("no %d free ports in a row: %w", ports, err)
}

func claimed(first, ports int) (c claim, err error) {
	for port := first; port < first+ports; port++ {
		at := Addr(port)
		held, err := net.ListenPacket("udp", at)
		if err != nil {
			return c, err
		}
		c = append(c, held)
		l, err := net.Listen("tcp", at)
		if err != nil {
			return c, err
		}
		l.Close()
	}
	return c, nil
}

// Port claims so many ports in a row until the test has ended, and returns the first.
func Port(t testing.TB, ports int) int {
	t.Helper()
	first, held, err := Claim(ports)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	return first
}

// Address does what [Port] does, and returns the address of the first.
func Address(t testing.TB, ports int) string {
	t.Helper()
	return Addr(Port(t, ports))
}

// Addr is the address of a port.
func Addr(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
