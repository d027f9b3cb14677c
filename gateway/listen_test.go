package gateway

import (
	"net"
	"net/netip"
	"testing"
)

func TestConnectionsPerAddress(t *testing.T) {
	l := &limited{most: 2, exempt: prefixes("10.0.0.0/8"), open: make(map[netip.Addr]int)}
	key := addressKey(netip.MustParseAddr("2001:db8::3"))
	same := addressKey(netip.MustParseAddr("2001:db8::4"))
	if !l.take(key) || !l.take(same) || l.take(key) {
		t.Error("two connections from one /64, and no third")
	}
	if !l.take(addressKey(netip.MustParseAddr("2001:db8:0:1::3"))) {
		t.Error("another /64 is another address")
	}
	l.give(same)
	if !l.take(key) || l.take(key) {
		t.Error("what closes makes place for one")
	}
	for range 3 {
		l.give(key)
	}
	if len(l.open) != 1 {
		t.Errorf("remembered: %v", l.open)
	}
	if !l.isExempt(netip.MustParseAddr("10.1.1.1")) || l.isExempt(netip.MustParseAddr("11.1.1.1")) {
		t.Error("trusted proxies, and nobody else, are not counted")
	}
}

// TestRefusedConnection: one too many is closed and the next is served.
func TestRefusedConnection(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Limit(inner, 1, nil)
	defer l.Close()
	accepted := make(chan net.Conn, 3)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	first := <-accepted
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("the second connection is open")
	}
	if err := first.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	first.Close()
	dial()
	<-accepted
	if Limit(inner, -1, nil) != inner {
		t.Error("no bound is no listener of ours")
	}
}
