//go:build unix

package natslink

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// runNode is a process of a cluster: it says "joined" and ends at SIGTERM.
func runNode(config string) error {
	var cfg ClusterConfig
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := Join(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Println("joined")
	<-ctx.Done()
	return l.Close()
}

// node is a process of a cluster.
type node struct {
	cfg    ClusterConfig
	cmd    *exec.Cmd
	joined chan struct{} // closed when it said so, or ended
}

func startNode(t testing.TB, cfg ClusterConfig) *node {
	t.Helper()
	cfg.Log = nil
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{cfg: cfg, cmd: exec.Command(os.Args[0]), joined: make(chan struct{})}
	n.cmd.Env = append(os.Environ(), roleVariable+"=node", "NATSLINK_TEST_CONFIG="+string(text))
	n.cmd.Stderr = os.Stderr
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(n.joined)
		bufio.NewReader(out).ReadString('\n')
	}()
	t.Cleanup(func() { n.cmd.Process.Kill(); n.cmd.Wait() })
	return n
}

// end sends the signal and waits until the process is gone.
func (n *node) end(t testing.TB, s os.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	n.cmd.Wait()
}

// processSite is a site of three cores in processes of their own, and an edge in this one.
type processSite struct {
	nodes []*node
	edge  *joined
}

func startProcessSite(t testing.TB) *processSite {
	t.Helper()
	s := &processSite{}
	cfgs := members(t, "dublin")
	for _, c := range cfgs {
		s.nodes = append(s.nodes, startNode(t, c))
	}
	for _, n := range s.nodes {
		<-n.joined
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l, err := Join(ctx, edgeOf(t, cfgs...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s.edge = l.(*joined)
	return s
}

// leader returns which node leads the keys of the site, when all of them are current.
func (s *processSite) leader(t testing.TB) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	stream := s.edge.site.keys.stream
	for {
		f, err := s.edge.att.look(ctx)
		if ctx.Err() != nil {
			t.Fatalf("the site is not whole: %+v, %v", f, err)
		}
		for _, x := range f.Streams {
			if x.Name != stream || x.Leader == "" || len(x.Replicas) != len(s.nodes)-1 ||
				slices.ContainsFunc(x.Replicas, func(r ReplicaFacts) bool { return !r.Current || r.Offline }) {
				continue
			}
			if i := slices.IndexFunc(s.nodes, func(n *node) bool { return "dublin."+n.cfg.Node == x.Leader }); i >= 0 {
				return i
			}
		}
	}
}

// gap writes until a write is acknowledged, and returns how long that took.
func gap(t testing.TB, l cluster.Space) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
		_, err := l.Put(ctx, "gap", []byte("x"))
		cancel()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > 30*time.Second {
			t.Fatal(err)
		}
	}
}

// BenchmarkLeaderGone reports how long writes of a site have to wait when the core that
// leads its keys goes: the median and the worst, in seconds.
func BenchmarkLeaderGone(b *testing.B) {
	for _, how := range []struct {
		name   string
		signal os.Signal
	}{{"killed", syscall.SIGKILL}, {"stopped", syscall.SIGTERM}} {
		b.Run(how.name, func(b *testing.B) {
			s := startProcessSite(b)
			var gaps []float64
			for b.Loop() {
				i := s.leader(b)
				gap(b, s.edge.Site())
				ended := make(chan struct{})
				go func() { defer close(ended); s.nodes[i].end(b, how.signal) }()
				longest := time.Duration(0)
				// The last write begins after the process is gone.
				for last := false; !last; {
					select {
					case <-ended:
						last = true
					default:
					}
					longest = max(longest, gap(b, s.edge.Site()))
				}
				gaps = append(gaps, longest.Seconds())
				s.nodes[i] = startNode(b, s.nodes[i].cfg)
				<-s.nodes[i].joined
			}
			slices.Sort(gaps)
			b.ReportMetric(gaps[len(gaps)/2], "s-median")
			b.ReportMetric(gaps[len(gaps)-1], "s-worst")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkIdle reports what a core of one and of three takes that has nothing to do:
// resident memory in MB and processor time in percent of one core, over ten seconds.
func BenchmarkIdle(b *testing.B) {
	run := func(name string, cfgs ...ClusterConfig) {
		b.Run(name, func(b *testing.B) {
			var nodes []*node
			for _, c := range cfgs {
				nodes = append(nodes, startNode(b, c))
			}
			for _, n := range nodes {
				<-n.joined
			}
			before := cpu(b, nodes[0])
			const span = 10 * time.Second
			<-time.After(span)
			b.ReportMetric(100*(cpu(b, nodes[0])-before).Seconds()/span.Seconds(), "%cpu")
			b.ReportMetric(resident(b, nodes[0]), "MB-rss")
			b.ReportMetric(0, "ns/op")
		})
	}
	run("alone", single(b, "dublin"))
	run("of three", members(b, "dublin")...)
}

// cpu is the processor time that the process has used.
func cpu(t testing.TB, n *node) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	// Behind the name in parentheses, fields 14 and 15 are hundredths of a second.
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	var sum time.Duration
	for _, f := range fields[11:13] {
		ticks, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum
}

// resident is the memory of the process in MB.
func resident(t testing.TB, n *node) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / 1e6
}
