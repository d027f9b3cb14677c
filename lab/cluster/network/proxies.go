package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"
)

// proxies is a network of TCP proxies between addresses of the loopback interface: a host is
// 127.block.0.x in front and 127.block.1.x inside; host i sees host j at 127.block.2+i.x.
type proxies struct {
	block     byte
	index     map[string]int
	lanes     map[pair]*gap
	listeners []net.Listener
	work      sync.WaitGroup
	done      chan struct{}
	once      sync.Once
}

// Proxies makes a proxy for each port of each pair of hosts.
func Proxies(hosts []string, ports []uint16) (Network, error) {
	index, err := indexes(hosts)
	if err != nil {
		return nil, err
	}
	p := &proxies{block: byte(20 + os.Getpid()%200), index: index, lanes: map[pair]*gap{}, done: make(chan struct{})}
	for i := range hosts {
		for j := range hosts {
			if i != j {
				p.lanes[pair{i, j}] = &gap{changed: make(chan struct{})}
			}
		}
	}
	for i := range hosts {
		for j := range hosts {
			if i == j {
				continue
			}
			for _, port := range ports {
				l, err := net.Listen("tcp", netip.AddrPortFrom(p.seen(i, j), port).String())
				if err != nil {
					p.Close()
					return nil, fmt.Errorf("network: a proxy: %w", err)
				}
				p.listeners = append(p.listeners, l)
				p.work.Go(func() { p.accept(l, i, j, port) })
			}
		}
	}
	return p, nil
}

func (p *proxies) address(third, i int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, p.block, byte(third), byte(10 + i)})
}
func (p *proxies) seen(from, to int) netip.Addr { return p.address(2+from, to) }

func (p *proxies) accept(l net.Listener, from, to int, port uint16) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.join(c, from, to, port) })
	}
}

// join carries one connection.
func (p *proxies) join(near net.Conn, from, to int, port uint16) {
	defer near.Close()
	there, back := p.lanes[pair{from, to}], p.lanes[pair{to, from}]
	// A connection comes about only when both directions work.
	if !there.open(p.done) || !back.open(p.done) {
		return
	}
	far, err := net.DialTimeout("tcp", netip.AddrPortFrom(p.address(1, to), port).String(), 5*time.Second)
	if err != nil {
		if t, ok := near.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // refused there is refused here
		}
		return
	}
	defer far.Close()
	stop := make(chan struct{})
	go func() {
		select {
		case <-p.done:
			near.Close()
			far.Close()
		case <-stop:
		}
	}()
	var both sync.WaitGroup
	both.Go(func() { pump(far, near, there, p.done) })
	both.Go(func() { pump(near, far, back, p.done) })
	both.Wait()
	close(stop)
}

// chunk is what was read at once, and when it may be written.
type chunk struct {
	due  time.Time
	data []byte
}

// pump carries bytes one way until either end closes.
func pump(to, from net.Conn, g *gap, done chan struct{}) {
	chunks := make(chan chunk, 1024)
	ended := make(chan struct{})
	go func() {
		defer close(chunks)
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			if n > 0 {
				select {
				case chunks <- chunk{time.Now().Add(g.late()), b[:n]}:
				case <-ended:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	defer close(ended)
	defer from.Close()
	defer to.Close()
	for c := range chunks {
		if !sleep(time.Until(c.due), done) || !g.open(done) {
			return
		}
		if _, err := to.Write(c.data); err != nil {
			return
		}
		g.count(len(c.data))
	}
}

func sleep(d time.Duration, done chan struct{}) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-done:
		return false
	}
}

func (p *proxies) Kind() string { return "TCP proxies on the loopback interface" }

func (p *proxies) Host(name string) Host {
	i := p.index[name]
	return Host{p.address(0, i), p.address(1, i), netip.AddrFrom4([4]byte{127, 0, 0, 1})}
}

func (p *proxies) Sees(from, to string) netip.Addr {
	if from == to {
		return p.Host(to).Inner
	}
	return p.seen(p.index[from], p.index[to])
}

func (p *proxies) Set(from, to string, w Way) {
	if g := p.lanes[pair{p.index[from], p.index[to]}]; g != nil {
		g.set(w)
	}
}

func (p *proxies) Carried(from, to string) Traffic {
	if g := p.lanes[pair{p.index[from], p.index[to]}]; g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.traffic
	}
	return Traffic{}
}

func (p *proxies) Command(ctx context.Context, _, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, program, args...)
}

func (p *proxies) Close() error {
	var errs []error
	p.once.Do(func() {
		close(p.done)
		for _, l := range p.listeners {
			if err := l.Close(); err != nil && !errors.Is(err, io.EOF) {
				errs = append(errs, err)
			}
		}
		p.work.Wait()
	})
	return errors.Join(errs...)
}
