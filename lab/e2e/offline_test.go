package e2e

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// cable is the network between a browser and the gateway. It can be cut.
type cable struct {
	host string // where the browser finds the gateway

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func layCable(t *testing.T, g *gate) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{host: l.Addr().String(), conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		l.Close()
		c.set(true)
	})
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", g.host)
			if err != nil || !c.join(near, far) {
				near.Close()
				continue
			}
			go pass(near, far)
			go pass(far, near)
		}
	}()
	return c
}

func pass(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
	from.Close()
}

// join adds a connection and reports whether the cable is whole.
func (c *cable) join(near, far net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		far.Close()
		return false
	}
	c.conns[near], c.conns[far] = true, true
	return true
}

// set cuts the cable, or mends it.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if cut {
		for conn := range c.conns {
			conn.Close()
		}
		clear(c.conns)
	}
}

func TestOfflineBrowserSaysSoAndRecovers(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	network := layCable(t, g)
	b := open(t)
	b.visit("http://" + network.host + "/cart?x=1")
	b.waits()
	reference := b.reference()
	// What happens to the place is read aloud, and once: only what comes into a region that is there is read, and each time it comes.
	eval[bool](b, `(e => e && (window.read = [], new MutationObserver(all => all.forEach(m => m.addedNodes.forEach(n => read.push(n.textContent)))).observe(e, {childList: true, subtree: true}), true))(document.querySelector('#note').closest('[aria-live]'))`)
	network.set(true)
	b.becomes(30*time.Second, saysOffline)
	b.becomes(30*time.Second, `performance.getEntriesByType('resource').filter(r => r.name.includes('__anteroom=status')).length >= 3`)
	if got := b.text("#note"); !strings.Contains(got, "Your place is kept until ") {
		t.Errorf("the page says %q", got)
	}
	if got := b.reference(); got != reference {
		t.Errorf("offline, the page shows the place %s, was %s", got, reference)
	}
	network.set(false)
	b.try(`dispatchEvent(new Event('online'))`) // as browsers do
	b.becomes(20*time.Second, "!("+saysOffline+")")
	if got := b.reference(); got != reference {
		t.Errorf("the place %s became %s", reference, got)
	}
	if read := eval[[]string](b, "read"); len(read) == 0 || len(slices.Compact(slices.Clone(read))) != len(read) {
		t.Errorf("read aloud: %q", read)
	}
	// Offline at the very moment of the turn: the turn is kept.
	network.set(true)
	b.becomes(30*time.Second, saysOffline)
	inside.leave()
	eventually(t, 30*time.Second, func() string {
		if r := g.room("shop"); r.Away != 1 {
			return fmt.Sprintf("the visitor did not miss the turn: %+v", r)
		}
		return ""
	})
	network.set(false)
	b.try(`dispatchEvent(new Event('online'))`)
	b.becomes(60*time.Second, `document.title.startsWith('Your cart')`)
}
