package freeport

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// other is a variable for a second process of this test, which claims ports too.
const other = "ANTEROOM_FREEPORT_OTHER"

// Nobody listens on ports that were claimed, and yet they are claimed once only, by all processes together.
func TestPortsAreClaimedOnce(t *testing.T) {
	const each, ports = 150, 3
	seen := map[int]bool{}
	saw := func(first int) {
		for port := first; port < first+ports; port++ {
			if seen[port] {
				t.Errorf("port %d is claimed twice", port)
			}
			seen[port] = true
		}
	}
	for range each {
		first, held, err := Claim(ports)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if saw(first); os.Getenv(other) != "" {
			fmt.Println("claimed", first)
		}
	}
	if os.Getenv(other) != "" {
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), other+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	told := 0
	for line := range strings.Lines(string(out)) {
		var first int
		if _, err := fmt.Sscanf(line, "claimed %d", &first); err == nil {
			saw(first)
			told++
		}
	}
	if told != each {
		t.Errorf("the other process claimed %d times, want %d: %s", told, each, out)
	}
}

// A claim leaves the ports to those who listen there, again and again, and ends.
func TestClaimedPortsCanBeListenedOn(t *testing.T) {
	first, held, err := Claim(1)
	if err != nil {
		t.Fatal(err)
	}
	at := Addr(first)
	for range 2 {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	if c, err := claimed(first, 1); err == nil {
		t.Error("claimed while it is held")
		c.Close()
	}
	held.Close()
	if c, err := claimed(first, 1); err != nil {
		t.Errorf("not to be had after the claim: %v", err)
	} else {
		c.Close()
	}
}
