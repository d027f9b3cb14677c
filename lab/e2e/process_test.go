package e2e

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/freeport"
)

// process is a running program that writes what it says to a file: a process that takes
// over inherits it, as it could not inherit our end of a pipe.
type process struct {
	*exec.Cmd
	file  string
	ended chan struct{} // closed when it has ended
	err   error         // how; read it when it has
}

// spawn starts a command of the binary.
func spawn(t *testing.T, file string, environment []string, args ...string) *process {
	t.Helper()
	return spawnProgram(t, os.Getenv(binaryVariable), file, environment, args...)
}

func spawnProgram(t *testing.T, program, file string, environment []string, args ...string) *process {
	t.Helper()
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &process{Cmd: exec.Command(program, args...), file: file, ended: make(chan struct{})}
	p.Stdout, p.Stderr = out, out
	p.Env = append(os.Environ(), environment...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Process.Kill()
		<-p.ended
	})
	return p
}

func (p *process) said() string {
	b, err := os.ReadFile(p.file)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// waitSaid waits until the process has said something so many times.
func (p *process) waitSaid(t *testing.T, what string, times int) {
	t.Helper()
	eventually(t, 15*time.Second, func() string {
		if n := strings.Count(p.said(), what); n < times {
			return fmt.Sprintf("%q was said %d times, want %d", what, n, times)
		}
		return ""
	})
}

// waitEnd waits for the end and returns the exit code.
func (p *process) waitEnd(t *testing.T) int {
	t.Helper()
	eventually(t, 30*time.Second, func() string {
		select {
		case <-p.ended:
			return ""
		default:
			return "the process still runs: " + tail(p.said(), 1000)
		}
	})
	return p.ProcessState.ExitCode()
}

// gate is a running Anteroom process with its configuration and data.
type gate struct {
	t      *testing.T
	dir    string
	host   string // of the visitors' listener, with port
	scheme string
	admin  string
	origin *origin

	adminTLS bool // whether operators are served over HTTPS

	process *process
	pids    []int  // every process of this gate
	others  string // sections beside listeners, data and site
	rooms   string

	environment []string // of the process, beside the caller's
	program     string   // instead of the binary
}

// startGate starts a gateway before a new origin. Rooms is the list of rooms as YAML, without
// the key; others are further sections of the file, in which {admin} stands for the operators' address.
func startGate(t *testing.T, rooms string, others ...string) *gate {
	t.Helper()
	g := newGate(t, rooms, others...)
	g.start()
	t.Cleanup(g.end)
	return g
}

// newGate prepares a gateway that does not run yet.
func newGate(t *testing.T, rooms string, others ...string) *gate {
	t.Helper()
	g := &gate{t: t, dir: t.TempDir(), host: freeAddress(t), admin: freeAddress(t), scheme: "http",
		origin: startOrigin(t), rooms: rooms, others: strings.Join(others, "\n")}
	if strings.Contains("\n"+g.others, "\ntls:") {
		g.scheme = "https"
	}
	g.adminTLS = strings.Contains("\n"+g.others, "\nadmin_tls:")
	g.configure(rooms)
	return g
}

// freeAddress returns an address that nobody else is given, and that stays free while a gateway restarts.
func freeAddress(t *testing.T) string { return freeport.Address(t, 1) }

// freeCore is an address for a core, which takes the two ports after it as well.
func freeCore(t *testing.T) string { return freeport.Address(t, 3) }

func (g *gate) file() string { return filepath.Join(g.dir, "anteroom.yaml") }
func (g *gate) data() string { return filepath.Join(g.dir, "data") }

// configure writes the file anew, as an editor does: whole, by a rename.
func (g *gate) configure(rooms string) {
	g.t.Helper()
	text := fmt.Sprintf("listen: %s\nadmin: %s\ndata: %s\nsites:\n  - hosts: [\"*\"]\n    origins: [%s]\n%s\nrooms:\n%s\n",
		g.host, g.admin, g.data(), g.origin.url, strings.ReplaceAll(g.others, "{admin}", g.admin), rooms)
	temporary := g.file() + ".new"
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Rename(temporary, g.file()); err != nil {
		g.t.Fatal(err)
	}
}

// start starts the process and waits until it is ready.
func (g *gate) start() {
	g.t.Helper()
	g.process = spawnProgram(g.t, cmp.Or(g.program, os.Getenv(binaryVariable)), filepath.Join(g.dir, "log"), g.environment, "run", "--config", g.file())
	g.pids = append(g.pids, g.process.Process.Pid)
	g.waitReady()
}

func (g *gate) waitReady() {
	g.t.Helper()
	eventually(g.t, 20*time.Second, func() string {
		select {
		case <-g.process.ended:
			g.t.Fatalf("the gateway has ended: %v\n%s", g.process.err, g.log())
		default:
		}
		if status, body := g.ask("/-/ready"); status != http.StatusOK {
			return fmt.Sprintf("not ready: %d %s", status, body)
		}
		return ""
	})
}

// kill is kill -9.
func (g *gate) kill() {
	g.t.Helper()
	if err := g.process.Process.Kill(); err != nil {
		g.t.Fatal(err)
	}
	<-g.process.ended
}

func (g *gate) signal(sig syscall.Signal) {
	g.t.Helper()
	if err := g.process.Process.Signal(sig); err != nil {
		g.t.Fatal(err)
	}
}

// stands stops the process, for SIGCONT to let it go on, and returns when all of its threads stand: until then they answer.
func (g *gate) stands() {
	g.t.Helper()
	g.signal(syscall.SIGSTOP)
	eventually(g.t, 10*time.Second, func() string {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", g.process.Process.Pid))
		if err != nil || len(threads) == 0 {
			return fmt.Sprint("no threads are shown: ", err)
		}
		for _, file := range threads {
			// The state follows the name, which is in parentheses.
			text, _ := os.ReadFile(file)
			if _, rest, ok := strings.Cut(string(text), ") "); ok && !strings.HasPrefix(rest, "T") {
				return "a thread runs: " + rest[:1]
			}
		}
		return ""
	})
}

// end stops every process of the gate and shows the log of a failed test.
func (g *gate) end() {
	if g.t.Failed() {
		_, status := g.ask("/-/status")
		g.t.Logf("status: %s", tail(status, 1000))
	}
	handed := regexp.MustCompile(`"new_pid":(\d+)`)
	for _, m := range handed.FindAllStringSubmatch(g.log(), -1) {
		if pid, err := strconv.Atoi(m[1]); err == nil {
			g.pids = append(g.pids, pid)
		}
	}
	for _, pid := range slices.Compact(g.pids) {
		if g.owns(pid) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	<-g.process.ended
	if g.t.Failed() {
		g.t.Logf("the gateway's log:\n%s", tail(g.log(), 5000))
		g.t.Logf("the origin's requests:\n%s", tail(g.origin.String(), 1000))
	}
}

// owns reports whether the process is one of this gate: its number may be another's by now.
func (g *gate) owns(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(line, []byte(g.file()))
}

func tail(s string, most int) string {
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

func (g *gate) log() string { return g.process.said() }

func (g *gate) waitLog(what string, times int) {
	g.t.Helper()
	g.process.waitSaid(g.t, what, times)
}

// ask asks the admin listener; status 0 means that nobody answers.
func (g *gate) ask(path string) (int, string) { return get(g.operators() + path) }

// operators is the address of the operators' listener, without a path.
func (g *gate) operators() string {
	if g.adminTLS {
		return "https://" + g.admin
	}
	return "http://" + g.admin
}

func ask(address, path string) (int, string) { return get("http://" + address + path) }

func get(address string) (int, string) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	res, err := client.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}

// roomStatus is what /-/status says of a room.
type roomStatus struct {
	Name    string `json:"name"`
	Active  int    `json:"active_users"`
	Waiting int    `json:"waiting"`
	Away    int    `json:"away"`
}

// room returns the live numbers of a room.
func (g *gate) room(name string) roomStatus {
	g.t.Helper()
	status, body := g.ask("/-/status")
	var page struct {
		Rooms []roomStatus `json:"rooms"`
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != http.StatusOK {
		g.t.Fatalf("/-/status: %d %v %s", status, err, body)
	}
	for _, r := range page.Rooms {
		if r.Name == name {
			return r
		}
	}
	g.t.Fatalf("/-/status has no room %s: %s", name, body)
	return roomStatus{}
}

// url is an address of the site as visitors write it.
func (g *gate) url(path string) string { return g.scheme + "://" + g.host + path }

// command runs another command of the binary.
func (g *gate) command(args ...string) string {
	g.t.Helper()
	out, err := exec.Command(os.Getenv(binaryVariable), args...).CombinedOutput()
	if err != nil {
		g.t.Fatalf("anteroom %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
