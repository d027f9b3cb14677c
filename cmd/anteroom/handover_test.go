//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// process is the built program serving, and those that take over from it.
type process struct {
	t      testing.TB
	binary string
	file   string
	pid    int
	lines  chan map[string]any // of the log of all of them
}

// build compiles the program; a hand-over starts whatever stands at its path.
func build(t testing.TB) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "anteroom")
	if err := buildInto(binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

func startProcess(t *testing.T, yaml string) *process {
	t.Helper()
	return startBinary(t, build(t), filepath.Join(t.TempDir(), "anteroom.yaml"), yaml)
}

func startBinary(t testing.TB, binary, file, yaml string) *process {
	t.Helper()
	p := &process{t: t, binary: binary, file: file, lines: make(chan map[string]any, 10_000)}
	p.write(yaml)
	// The successors inherit standard error, so the pipe has to be ours.
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(p.binary, "run", "--config", p.file)
	cmd.Stderr = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	p.pid = cmd.Process.Pid
	exited := make(chan struct{})
	go func() { defer close(exited); cmd.Process.Wait() }()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			line := map[string]any{}
			if json.Unmarshal(s.Bytes(), &line) != nil {
				line["msg"] = s.Text()
			}
			p.lines <- line
		}
		close(p.lines)
	}()
	t.Cleanup(func() {
		syscall.Kill(p.pid, syscall.SIGTERM)
		<-read // the last process has closed its standard error
		<-exited
		out.Close()
	})
	return p
}

func (p *process) write(yaml string) {
	p.t.Helper()
	if err := os.WriteFile(p.file+".new", []byte(yaml), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(p.file+".new", p.file); err != nil {
		p.t.Fatal(err)
	}
}

// await returns the next line of the log whose message holds the text.
func (p *process) await(text string) map[string]any {
	p.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	var seen []string
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				p.t.Fatalf("the log ended without %q:\n%s", text, strings.Join(seen, "\n"))
			}
			seen = append(seen, fmt.Sprint(line))
			if msg, _ := line["msg"].(string); strings.Contains(msg, text) {
				return line
			}
		case <-limit.C:
			p.t.Fatalf("no %q in the log:\n%s", text, strings.Join(seen, "\n"))
		}
	}
}

// handOver restarts and returns when the new process serves.
func (p *process) handOver() {
	p.t.Helper()
	syscall.Kill(p.pid, syscall.SIGUSR2)
	p.pid = int(p.await("a new process takes over")["new_pid"].(float64))
	p.await("serving")
}

// visitor asks again and again, each time on a kept or new connection as it comes.
func visitor(client *http.Client, url string) error {
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != 200 {
		err = fmt.Errorf("%s: %s", res.Status, body)
	}
	return err
}

func newVisitor() *http.Client {
	jar, _ := cookiejar.New(nil)
	return &http.Client{Jar: jar, Transport: &http.Transport{}, Timeout: patience}
}

func TestHandOverLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	hang := make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			io.WriteString(w, "begun ")
			w.(http.Flusher).Flush()
			<-hang
		}
		io.WriteString(w, "in "+r.URL.Path)
	}))
	defer origin.Close()
	yaml := fmt.Sprintf(`
listen: 127.0.0.1:0
admin: localhost:0
data: data
sites: [{hosts: "*", origins: %q}]
rooms:
  - {name: shop, host: "*", total_active_users: 9, new_users_per_minute: 1000}
`, origin.URL)
	p := startProcess(t, yaml)
	serving := p.await("serving")
	url := "http://" + serving["visitors"].([]any)[0].(string)
	admin := "http://" + serving["admin"].(string)

	// One who is inside, with a long answer under way; the room is full with the eight
	// who load it, and one waits.
	long := newVisitor()
	res, err := long.Get(url + "/long")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var clients []*http.Client
	for range 8 {
		c := newVisitor()
		if err := visitor(c, url); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	outside := newVisitor()
	if err := visitor(outside, url); err != nil {
		t.Fatal(err)
	}

	var asked atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for _, c := range clients {
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if n%10 == 9 {
					c.CloseIdleConnections()
				}
				if err := visitor(c, url+"/page"); err != nil {
					t.Errorf("request %d: %v", asked.Load(), err)
					return
				}
				asked.Add(1)
			}
		})
	}
	for round := range 3 {
		began := time.Now()
		p.handOver()
		t.Logf("hand-over %d took %v; %d requests so far", round, time.Since(began).Round(time.Millisecond), asked.Load())
		for before := asked.Load(); asked.Load() < before+200 && !t.Failed(); {
			if err := visitor(outside, url); err != nil {
				t.Errorf("who waits: %v", err)
			}
		}
	}
	close(stop)
	load.Wait()
	close(hang)
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "begun in /long" {
		t.Errorf("the answer under way: %q, %v", body, err)
	}
	status := new(struct {
		Rooms []struct {
			ActiveUsers int `json:"active_users"`
			Waiting     int `json:"waiting"`
		}
	})
	res, err = http.Get(admin + "/-/status")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(status); err != nil || len(status.Rooms) != 1 {
		t.Fatalf("status: %+v, %v", status, err)
	}
	if got := status.Rooms[0]; got.ActiveUsers != 9 || got.Waiting != 1 {
		t.Errorf("after three restarts: %+v, want 9 inside and 1 waiting", got)
	}
}

// startLogging starts the program and returns its addresses, once it serves, and the other end of the pipe to which it logs.
func startLogging(t *testing.T) (cmd *exec.Cmd, visitors, admin string, log *os.File) {
	t.Helper()
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(origin.Close)
	log, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(build(t), "run", "--origin", origin.URL, "--listen", "127.0.0.1:0", "--admin", "localhost:0", "--data", t.TempDir(),
		"--total-active-users", "10", "--new-users-per-minute", "10")
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() {
		cmd.Process.Kill()
		log.Close()
	})
	var serving struct {
		Msg      string
		Admin    string
		Visitors []string
	}
	for s := bufio.NewScanner(log); serving.Msg != "serving"; {
		if !s.Scan() {
			t.Fatalf("it ended: %v", cmd.Wait())
		}
		json.Unmarshal(s.Bytes(), &serving)
	}
	return cmd, "http://" + serving.Visitors[0], "http://" + serving.Admin, log
}

// stops ends the program in good order.
func stops(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Process.Signal(syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("at its end: %v", err)
		}
	case <-time.After(patience):
		t.Error("it does not end")
	}
}

// TestReaderOfTheLogEnds: a logger at the other end of a pipe ends, and visitors notice nothing.
func TestReaderOfTheLogEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	cmd, visitors, admin, log := startLogging(t)
	log.Close()
	cmd.Process.Signal(syscall.SIGHUP) // which it logs
	reloads := func() bool {
		res, err := http.Get(admin + "/metrics")
		if err != nil {
			t.Fatalf("after its log was closed: %v; %v", err, cmd.Wait())
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "\nanteroom_config_reloads_total 1\n")
	}
	for end := time.Now().Add(patience); !reloads(); {
		if time.Now().After(end) {
			t.Fatal("it does not reload")
		}
	}
	if err := visitor(newVisitor(), visitors); err != nil {
		t.Error(err)
	}
	stops(t, cmd)
}

// TestReaderOfTheLogStalls: it takes nothing any more, as a terminal that is held or journald on a disk that hangs. Visitors notice nothing.
func TestReaderOfTheLogStalls(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	cmd, visitors, _, _ := startLogging(t)
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range 1_000 { // a pipe holds 64 KiB, and 200 of these are logged in a second
		req, err := http.NewRequest("GET", visitors+"/"+strings.Repeat("long", 100), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html") // a new visitor, who is logged
		res, err := client.Do(req)
		if err != nil {
			t.Fatalf("visitor %d: %v", i, err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	stops(t, cmd)
}

func TestHandOverThatCannotBeGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "in") }))
	defer origin.Close()
	yaml := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: localhost:0\ndata: data\nsites: [{hosts: \"*\", origins: %q}]\n", origin.URL)
	p := startProcess(t, yaml)
	url := "http://" + p.await("serving")["visitors"].([]any)[0].(string)
	refused := func(why string) {
		t.Helper()
		syscall.Kill(p.pid, syscall.SIGUSR2)
		line := p.await("the restart failed")
		if text, _ := line["error"].(string); !strings.Contains(text, why) {
			t.Errorf("got %v, want %q", line["error"], why)
		}
		if err := visitor(newVisitor(), url); err != nil {
			t.Errorf("after a refused restart: %v", err)
		}
	}
	p.write(yaml + "unknown: 1\n")
	refused("did not become ready")
	p.write(strings.Replace(yaml, "data: data", "data: anteroom.yaml", 1))
	refused("did not become ready")
	p.write(strings.Replace(yaml, "127.0.0.1:0", "192.0.2.1:9", 1)) // no address of this machine
	refused("did not become ready")
	p.write(yaml)
	for _, script := range []string{"#!/bin/sh\nexit 3\n", "#!/bin/sh\necho hello >&$ANTEROOM_HANDED_OVER\n", "no program at all"} {
		if err := os.Rename(p.binary, p.binary+".good"); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.binary, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		refused("process")
		os.Rename(p.binary+".good", p.binary)
	}
	p.handOver()
	if err := visitor(newVisitor(), url); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}
