//go:build unix

package natslink

import (
	"net"
	"sync"
	"testing"
)

// cable is a TCP connection's middle that can lose everything or break.
type cable struct {
	t       testing.TB
	l       net.Listener
	to      string
	mu      sync.Mutex
	changed *sync.Cond
	lossy   bool // bytes are taken and nothing comes out
	conns   map[net.Conn]bool
}

// newWire listens at an address of which the port for sites leads to the same port of to.
func newCable(t testing.TB, to string) (w *cable, listen string) {
	t.Helper()
	listen = freeAddress(t)
	from, err := parseAddress(listen)
	if err != nil {
		t.Fatal(err)
	}
	target, err := parseAddress(to)
	if err != nil {
		t.Fatal(err)
	}
	w = &cable{t: t, to: target.at(portSites), conns: map[net.Conn]bool{}}
	w.changed = sync.NewCond(&w.mu)
	if w.l, err = net.Listen("tcp", from.at(portSites)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := w.l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.carry(c) })
		}
	})
	t.Cleanup(func() {
		w.l.Close()
		w.set(false)
		w.breakAll()
		all.Wait()
	})
	return w, listen
}

func (w *cable) carry(in net.Conn) {
	out, err := net.Dial("tcp", w.to)
	if err != nil {
		in.Close()
		return
	}
	w.mu.Lock()
	w.conns[in], w.conns[out] = true, true
	w.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			defer in.Close()
			defer out.Close()
			b := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(b)
				// What is lost on a real cable is sent again: nothing goes on until the
				// loss ends.
				w.mu.Lock()
				for w.lossy {
					w.changed.Wait()
				}
				w.mu.Unlock()
				if err != nil {
					return
				}
				if _, err := way[1].Write(b[:n]); err != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

// set begins or ends the loss of everything, without a sign to either end.
func (w *cable) set(lossy bool) {
	w.mu.Lock()
	w.lossy = lossy
	w.mu.Unlock()
	w.changed.Broadcast()
}

func (w *cable) breakAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.Close()
	}
	clear(w.conns)
}
