package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spaces is a network of namespaces. Addresses are 10.block.0.x in front and 10.block.1.x
// between nodes; block and names come from the process's number, so that two rigs and what a
// killed one left behind do not meet.
type spaces struct {
	prefix string
	block  byte
	hosts  []string
	index  map[string]int
	wires  []*os.File // each host's interface, as we hold it
	lanes  map[pair]*lane
	work   sync.WaitGroup
}

// prefix of all interfaces and namespaces; the process's number follows, a dash, and the
// network's number in the process.
const prefix = "arig"

var opened atomic.Int64

// Namespaces makes a namespace for every host. It needs root (or CAP_NET_ADMIN and
// /dev/net/tun) and the program ip.
func Namespaces(ctx context.Context, hosts []string) (Network, error) {
	index, err := indexes(hosts)
	if err != nil {
		return nil, err
	}
	// What a network before this one had takes a moment to go away.
	number := strconv.FormatInt(opened.Add(1)%36, 36)
	s := &spaces{prefix: prefix + strconv.Itoa(os.Getpid()) + "-" + number, block: byte(100 + os.Getpid()%100), hosts: hosts, index: index, lanes: map[pair]*lane{}}
	sweep(ctx)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for i := range hosts {
		for j := range hosts {
			if i != j {
				wire := s.wires[j]
				s.lanes[pair{i, j}] = &lane{deliver: func(b []byte) { _, _ = wire.Write(b) }} // a host that is going down takes nothing
			}
		}
	}
	for i := range hosts {
		s.work.Go(func() { s.carry(i) })
	}
	return s, nil
}

// sweep removes what rigs that were killed have left behind.
func sweep(ctx context.Context) {
	out, err := exec.CommandContext(ctx, "ip", "netns", "list").Output()
	if err != nil {
		return
	}
	links, _ := filepath.Glob("/sys/class/net/" + prefix + "*")
	names := strings.Fields(string(out))
	for _, l := range links {
		names = append(names, filepath.Base(l))
	}
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, prefix)
		number, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(number)
		if !ours || err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		_ = exec.CommandContext(ctx, "ip", "netns", "del", name).Run() // either is there
		_ = exec.CommandContext(ctx, "ip", "link", "del", name).Run()
	}
}

func (s *spaces) space(i int) string { return s.prefix + "n" + strconv.Itoa(i) }
func (s *spaces) bridge() string     { return s.prefix + "b" }
func (s *spaces) front(i int) string {
	return netip.AddrFrom4([4]byte{10, s.block, 0, byte(10 + i)}).String()
}
func (s *spaces) inner(i int) string {
	return netip.AddrFrom4([4]byte{10, s.block, 1, byte(10 + i)}).String()
}
func (s *spaces) backAddress() string { return netip.AddrFrom4([4]byte{10, s.block, 0, 1}).String() }

// ip runs commands of the program ip, one a line.
func ip(ctx context.Context, lines string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (s *spaces) open(ctx context.Context) error {
	b := s.bridge()
	if err := ip(ctx, fmt.Sprintf("link add %[1]s type bridge\naddr add %[2]s/24 dev %[1]s\nlink set %[1]s up\n", b, s.backAddress())); err != nil {
		return err
	}
	for i := range s.hosts {
		space, outside, inside := s.space(i), s.prefix+"v"+strconv.Itoa(i), s.prefix+"w"+strconv.Itoa(i)
		wire, err := tun(inside)
		if err != nil {
			return err
		}
		s.wires = append(s.wires, wire)
		if err := ip(ctx, fmt.Sprintf(`netns add %[1]s
link add %[2]s type veth peer name front netns %[1]s
link set %[2]s master %[3]s
link set %[2]s up
link set %[4]s netns %[1]s
`, space, outside, b, inside)); err != nil {
			return err
		}
		lines := fmt.Sprintf(`link set lo up
addr add %[1]s/24 dev front
link set front up
link set %[2]s name wan
addr add %[3]s/24 dev wan
link set wan up
`, s.front(i), inside, s.inner(i))
		cmd := exec.CommandContext(ctx, "ip", "-n", space, "-batch", "-")
		cmd.Stdin = strings.NewReader(lines)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ip in %s: %w: %s", space, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// tun makes an interface whose packets are ours to read and write.
func tun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("/dev/net/tun: interface %s: %w", name, err)
	}
	// Opened here, after it is an interface: only then it can be waited for.
	return os.NewFile(uintptr(fd), name), nil
}

// carry takes the packets of one host to the others.
func (s *spaces) carry(from int) {
	b := make([]byte, 1<<16)
	for {
		n, err := s.wires[from].Read(b)
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				return
			}
			if errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EBADFD) { // not up yet, or being moved
				time.Sleep(time.Millisecond)
				continue
			}
			return
		}
		if n < 20 || b[0]>>4 != 4 {
			continue
		}
		to := binary.BigEndian.Uint32(b[16:20])
		if byte(to>>24) != 10 || byte(to>>16) != s.block || byte(to>>8) != 1 {
			continue
		}
		if l := s.lanes[pair{from, int(byte(to)) - 10}]; l != nil {
			l.send(append([]byte(nil), b[:n]...))
		}
	}
}

func (s *spaces) Kind() string {
	return "namespaces, with every packet between nodes carried by the rig"
}

func (s *spaces) Host(name string) Host {
	i := s.index[name]
	return Host{netip.MustParseAddr(s.front(i)), netip.MustParseAddr(s.inner(i)), netip.MustParseAddr(s.backAddress())}
}

func (s *spaces) Sees(_, to string) netip.Addr { return s.Host(to).Inner }

func (s *spaces) lane(from, to string) *lane { return s.lanes[pair{s.index[from], s.index[to]}] }

func (s *spaces) Set(from, to string, w Way) {
	if l := s.lane(from, to); l != nil {
		l.set(w)
	}
}

func (s *spaces) Carried(from, to string) Traffic {
	if l := s.lane(from, to); l != nil {
		return l.carried()
	}
	return Traffic{}
}

func (s *spaces) Command(ctx context.Context, host, program string, args ...string) *exec.Cmd {
	// ip becomes the program, so that its number is the program's.
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", s.space(s.index[host]), program}, args...)...)
}

func (s *spaces) Close() error {
	for _, w := range s.wires {
		w.Close()
	}
	s.work.Wait()
	// With the context of whoever ended the run nothing would be taken down.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var errs []error
	for i := range s.wires {
		if out, err := exec.CommandContext(ctx, "ip", "netns", "del", s.space(i)).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("ip netns del: %w: %s", err, strings.TrimSpace(string(out))))
		}
	}
	// The last namespace's end of the pair goes with it, in the background; the bridge is ours to remove.
	if out, err := exec.CommandContext(ctx, "ip", "link", "del", s.bridge()).CombinedOutput(); err != nil {
		errs = append(errs, fmt.Errorf("ip link del: %w: %s", err, strings.TrimSpace(string(out))))
	}
	return errors.Join(errs...)
}
