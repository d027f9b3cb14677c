package e2e

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A laptop wakes up, or a router has forgotten the connection: the stream of the figures is neither there nor broken. The dashboard says that
// it hears nothing, and connects again by itself.
func TestDashboardConnectsAgainWhenItsStreamIsSilent(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.newRoom(fields{"name": "checkout"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var age atomic.Int64 // connections of an earlier age are forgotten: nothing comes on them, and who sends on them is told so
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(o.operators(), "http://"))
			if err != nil {
				near.Close()
				continue
			}
			t.Cleanup(func() { near.Close(); far.Close() })
			made := age.Load()
			go func() {
				buffer := make([]byte, 32<<10)
				for {
					n, err := near.Read(buffer)
					if err != nil || age.Load() != made {
						near.Close()
						far.Close()
						return
					}
					far.Write(buffer[:n])
				}
			}()
			go func() {
				buffer := make([]byte, 32<<10)
				for {
					n, err := far.Read(buffer)
					if err != nil {
						near.Close()
						return
					}
					if age.Load() == made {
						near.Write(buffer[:n])
					}
				}
			}()
		}
	}()
	d := comeIn(t, shell, o)
	d.visit("http://" + l.Addr().String() + "/#token=" + operatorToken)
	const isLive = `document.querySelector('.asof.live')`
	d.becomes(20*time.Second, isLive)
	age.Add(1)
	d.becomes(15*time.Second, `document.querySelector('.asof.stale') && document.querySelector('.banner')`)
	d.becomes(20*time.Second, isLive+` && !document.querySelector('.banner')`)
}
