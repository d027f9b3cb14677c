//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/freeport"
)

// A standalone process becomes one of three cores by a command, while visitors come: no request fails, sessions and places
// continue, and nobody is admitted to a full room. It may be killed in the middle, and goes on when it is started again.
func TestStandaloneProcessBecomesThreeCores(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "in") }))
	defer origin.Close()
	t.Setenv("ANTEROOM_API_TOKEN", adminToken)
	binary := build(t)
	for name, kill := range map[string]bool{"in peace": false, "killed": true} {
		t.Run(name, func(t *testing.T) { becomesThreeCores(t, binary, origin.URL, kill) })
	}
}

func becomesThreeCores(t *testing.T, binary, origin string, kill bool) {
	alone := fmt.Sprintf(`
listen: 127.0.0.1:0
admin: localhost:0
data: data
sites: [{hosts: "*", origins: %q}]
rooms: [{name: shop, host: "*", total_active_users: 9, new_users_per_minute: 1000}]
`, origin)
	var cores []string
	for range 3 {
		cores = append(cores, freeport.Address(t, corePorts))
	}
	member := func(i int) string {
		return alone + fmt.Sprintf("cluster: {node: core-%d, listen: %q, cores: [%s], secret_file: secret}\n", i+1, cores[i], strings.Join(cores, ", "))
	}
	files := make([]string, 3)
	for i := range files {
		files[i] = filepath.Join(t.TempDir(), "anteroom.yaml")
		if err := os.WriteFile(filepath.Join(filepath.Dir(files[i]), "secret"), []byte("b0a5c93e17f24d68ae4c71d3920fb85e6d1a4c07f3b92e58\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := startBinary(t, binary, files[0], alone)
	serving := p.await("serving")
	url, admin := "http://"+serving["visitors"].([]any)[0].(string), "http://"+serving["admin"].(string)
	add := func() (string, error) {
		out, err := exec.Command(binary, "cluster", "add", "--api", admin).CombinedOutput()
		return string(out), err
	}
	refused := func(want string) {
		t.Helper()
		if out, err := add(); err == nil || !strings.Contains(out, want) {
			t.Errorf("cluster add says %q, %v; want %q", out, err, want)
		}
	}
	refused("the configuration has no cluster")
	p.write(member(0))
	refused("start it first")

	// Nine visitors fill the room, and one waits.
	room := make([]*http.Client, 10)
	look := func(i int) (in bool, err error) {
		res, err := room[i].Get(url)
		if err != nil {
			return false, err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", res.Status, body)
		}
		return string(body) == "in", err
	}
	for i := range room {
		room[i] = newVisitor()
		if in, err := look(i); err != nil || in != (i < 9) {
			t.Fatalf("visitor %d is in: %v, %v", i, in, err)
		}
	}

	startBinary(t, binary, files[1], member(1)).await("waiting for the site's store")
	startBinary(t, binary, files[2], member(2)).await("waiting for the site's store")
	stop := make(chan struct{})
	var coming sync.WaitGroup
	longest := make([]time.Duration, len(room))
	if !kill {
		for i := range room {
			coming.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					began := time.Now()
					if in, err := look(i); err != nil || in != (i < 9) {
						t.Errorf("meanwhile visitor %d is in: %v, %v", i, in, err)
						return
					}
					longest[i] = max(longest[i], time.Since(began))
				}
			})
		}
	}
	type answer struct {
		out string
		err error
	}
	answered := make(chan answer, 1)
	go func() { out, err := add(); answered <- answer{out, err} }()
	p.pid = int(p.await("a new process takes over")["new_pid"].(float64))
	if kill {
		syscall.Kill(p.pid, syscall.SIGKILL)
		for range p.lines { // until the one before has ended, too
		}
		p = startBinary(t, binary, files[0], member(0))
	}
	p.await("the data of the standalone process is in the cluster now")
	serving = p.await("serving")
	if kill {
		url, admin = "http://"+serving["visitors"].([]any)[0].(string), "http://"+serving["admin"].(string)
	} else if a := <-answered; a.err != nil || !strings.Contains(a.out, "This core is one of 3 now") {
		t.Errorf("cluster add says %q, %v", a.out, a.err)
	}
	for limit := time.Now().Add(patience); ; {
		out, err := exec.Command(binary, "cluster", "status", "--api", admin).CombinedOutput()
		if err == nil && strings.Count(string(out), " core ") == 3 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the cores are not three: %v\n%s", err, out)
		}
	}
	close(stop)
	coming.Wait()
	t.Logf("the longest request took %v", longest)
	for i := range room {
		if in, err := look(i); err != nil || in != (i < 9) {
			t.Errorf("afterwards visitor %d is in: %v, %v", i, in, err)
		}
	}
	refused("this core is one of 3 already")
}
