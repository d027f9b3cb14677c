//go:build unix

package natslink

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

const (
	configVariable = "NATSLINK_TEST_CONFIG"
	quietVariable  = "NATSLINK_TEST_QUIET"
	resizeVariable = "NATSLINK_TEST_RESIZE"
	sizeVariable   = "NATSLINK_TEST_FILE_SIZE" // of the largest file that the process may write, once it is ready
)

// breath is how long a process waits between its rounds of writes, each of which takes 1 to 7 ms. Without it, cores that write as fast as
// they can take more than twice the processor time, and keep the tests beside them from theirs.
const breath = 2 * time.Millisecond

// runCore is a process that joins, says "ready", and unless it is to be quiet counts up a
// key of the shared space, one of the site and a journal of its own, until it is killed. One that is quiet ends when it is removed. It
// says what was acknowledged: "shared <value> <revision>", "site <value> <revision>",
// "journal <number> 0".
func runCore() error {
	var cfg ClusterConfig
	if err := json.Unmarshal([]byte(os.Getenv(configVariable)), &cfg); err != nil {
		return err
	}
	ctx := context.Background()
	l, err := Join(ctx, cfg)
	if err != nil {
		return err
	}
	if size, err := strconv.ParseUint(os.Getenv(sizeVariable), 10, 64); err == nil {
		signal.Ignore(syscall.SIGXFSZ)
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		limit.Cur = size
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	if os.Getenv(quietVariable) != "" {
		<-Removed(l)
		return nil
	}
	if cores, ok := os.LookupEnv(resizeVariable); ok {
		go resize(ctx, l, strings.Fields(cores))
	}
	var j cluster.Journal
	for j == nil {
		if j, err = l.Journal(ctx, "of."+cfg.Node); err != nil && !errors.Is(err, cluster.ErrUnavailable) {
			return err
		}
	}
	for n := 0; ; n++ {
		for name, s := range map[string]cluster.Space{"shared": l, "site": l.Site()} {
			if err := countUp(ctx, name, s); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		err := j.Append(ctx, fmt.Append(nil, n))
		if err == nil {
			fmt.Println("journal", n, 0)
		} else if !errors.Is(err, cluster.ErrUnavailable) {
			return fmt.Errorf("append: %w", err)
		}
		pause(ctx, breath)
	}
}

// resize makes the core one of several, or the only one where there are no cores, and says "resized 1 0".
func resize(ctx context.Context, l cluster.Link, cores []string) {
	for {
		var err error
		if len(cores) == 0 {
			err = Shrink(ctx, l)
		} else {
			_, err = Grow(ctx, l, cores, agreed)
		}
		if (len(ListedCores(l)) > 0) == (len(cores) > 0) {
			fmt.Println("resized", 1, 0)
			return
		}
		fmt.Fprintln(os.Stderr, "resize:", err)
		pause(ctx, 100*time.Millisecond)
	}
}

func countUp(ctx context.Context, name string, s cluster.Space) error {
	e, err := s.Get(ctx, "count")
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		if errors.Is(err, cluster.ErrUnavailable) {
			return nil
		}
		return err
	}
	n := 0
	fmt.Sscan(string(e.Value), &n)
	rev, err := s.Update(ctx, "count", fmt.Append(nil, n+1), e.Revision)
	switch {
	case err == nil:
		fmt.Println(name, n+1, rev)
	case errors.Is(err, cluster.ErrRevision), errors.Is(err, cluster.ErrUnavailable):
	default:
		return err
	}
	return nil
}

// coreProcess is a process of runCore.
type coreProcess struct {
	killed atomic.Bool
	cfg    ClusterConfig
	cmd    *exec.Cmd
	ready  chan struct{} // it has joined
	done   chan struct{} // it has ended and everything it said was read
}

// history is what processes said to be acknowledged.
type history struct {
	mu    sync.Mutex
	acked map[string]map[int]string // by what, then value: who and revision
	twice []string
	total int
	more  chan struct{} // closed at the next one
}

func (h *history) add(node, what string, value, revision int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if what == "journal" {
		what += " " + node
	}
	if h.acked[what] == nil {
		h.acked[what] = map[int]string{}
	}
	if was := h.acked[what][value]; was != "" {
		h.twice = append(h.twice, fmt.Sprintf("%s %d: by %s, and by %s %d", what, value, was, node, revision))
	}
	h.acked[what][value] = fmt.Sprint(node, " ", revision)
	h.total++
	close(h.more)
	h.more = make(chan struct{})
}

// last returns the largest value of each.
func (h *history) last() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := map[string]int{}
	for what, values := range h.acked {
		for v := range values {
			last[what] = max(last[what], v)
		}
	}
	return last
}

// goesOn waits until n more of what were acknowledged, for each of the names.
func (h *history) goesOn(t *testing.T, n int, names ...string) {
	t.Helper()
	limit := time.After(40 * time.Second)
	began := map[string]int{}
	for first := true; ; first = false {
		h.mu.Lock()
		ok := true
		for _, name := range names {
			if first {
				began[name] = len(h.acked[name])
			}
			ok = ok && len(h.acked[name]) >= began[name]+n
		}
		more := h.more
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("no %d more of %q after 40 s; before: %v, now %v", n, names, began, h.last())
		}
	}
}

// startCoreProcess returns at once: the process may have to wait for others until it is ready.
func startCoreProcess(t testing.TB, h *history, cfg ClusterConfig, quiet string, env ...string) *coreProcess {
	t.Helper()
	cfg.Log = nil
	config, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &coreProcess{cfg: cfg, cmd: child(t, "core", ""), ready: make(chan struct{}), done: make(chan struct{})}
	p.cmd.Env = append(append(p.cmd.Env, configVariable+"="+string(config), quietVariable+"="+quiet), env...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if lines.Text() == "ready" {
				close(p.ready)
				continue
			}
			var what string
			var value, revision int
			if _, err := fmt.Sscan(lines.Text(), &what, &value, &revision); err != nil {
				return // an unfinished line
			}
			h.add(cfg.Node, what, value, revision)
		}
	}()
	go func() {
		select {
		case <-p.ready:
		case <-p.done:
			select {
			case <-p.ready:
			default:
				if !p.killed.Load() {
					t.Errorf("%s ended by itself", cfg.Node)
				}
			}
		}
	}()
	return p
}

func (p *coreProcess) kill() {
	p.killed.Store(true)
	p.cmd.Process.Kill()
	<-p.done
	p.cmd.Wait()
}

// leader returns the node that leads the store's stream.
func leader(t *testing.T, s *store) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		var info struct {
			Cluster struct {
				Leader string `json:"leader"`
			} `json:"cluster"`
		}
		err := s.ask(ctx, "STREAM.INFO."+s.stream, nil, &info)
		if _, node, ok := strings.Cut(info.Cluster.Leader, "."); err == nil && ok {
			return node
		}
		if !pause(ctx, minBackoff) {
			t.Fatal(err)
		}
	}
}

// TestCoresAreKilled kills the leader of three writing cores, then all of them. What was
// acknowledged is there, and nobody's compare-and-set was done twice.
func TestCoresAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	h := &history{acked: map[string]map[int]string{}, more: make(chan struct{})}
	cores := map[string]*coreProcess{}
	for _, cfg := range cfgs {
		cores[cfg.Node] = startCoreProcess(t, h, cfg, "")
	}
	edge := join(t, edgeOf(t, cfgs...))
	h.goesOn(t, 20, "shared", "site", "journal dublin-1", "journal dublin-2", "journal dublin-3")

	told := watch(t, edge, "after")
	dead := leader(t, edge.hub)
	began := time.Now()
	cores[dead].kill()
	var others []string
	for node := range cores {
		if node != dead {
			others = append(others, "journal "+node)
		}
	}
	h.goesOn(t, 20, append(others, "shared", "site")...)
	t.Logf("%s led the shared keys; 20 more writes of everything were acknowledged %v after its kill", dead, time.Since(began).Round(time.Millisecond))

	for _, p := range cores {
		p.kill()
	}
	for _, cfg := range cfgs {
		startCoreProcess(t, h, cfg, "quiet")
	}
	began = time.Now()
	// The two stores elect their leaders each for itself.
	for name, s := range map[string]cluster.Space{"shared": edge, "site": edge.Site()} {
		for err := cluster.ErrUnavailable; err != nil; {
			if _, err = s.Put(t.Context(), "after", []byte("all")); err != nil && !errors.Is(err, cluster.ErrUnavailable) {
				t.Fatalf("%s: %v", name, err)
			}
			if time.Since(began) > 60*time.Second {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	t.Logf("all three were killed; the first writes of both stores were acknowledged %v after their start", time.Since(began).Round(time.Millisecond))
	told.holds(t, map[string]string{"after": "all"})

	last := h.last()
	for name, s := range map[string]cluster.Space{"shared": edge, "site": edge.Site()} {
		// What others wrote before they were killed may reach the edge's copy after its own write.
		ctx, found := context.WithTimeout(t.Context(), 60*time.Second)
		n := 0
		s.Watch(ctx, "count", func(c cluster.Change) {
			if c.Key != "count" {
				return
			}
			if fmt.Sscan(string(c.Value), &n); n >= last[name] {
				found()
			}
		})
		found()
		if n < last[name] {
			t.Errorf("%s: %d; %d was acknowledged", name, n, last[name])
		}
	}
	for _, cfg := range cfgs {
		there := map[string]bool{}
		before := -1
		for _, r := range pages(t, journal(t, edge, "of."+cfg.Node)) {
			there[r] = true
			n := 0
			if fmt.Sscan(r, &n); n <= before {
				t.Errorf("%s: record %d after record %d", cfg.Node, n, before)
			}
			before = n
		}
		for n := range h.acked["journal "+cfg.Node] {
			if !there[fmt.Sprint(n)] {
				t.Errorf("%s: record %d was acknowledged and is lost", cfg.Node, n)
			}
		}
	}
	for _, twice := range h.twice {
		t.Errorf("acknowledged twice: %s", twice)
	}
	t.Logf("%d writes were acknowledged", h.total)
}
