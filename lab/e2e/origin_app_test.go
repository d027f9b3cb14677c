package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// appVariable makes the test binary an application: its value is where it listens and the file in which
// it notes every request, with a space between them.
const appVariable = "ANTEROOM_E2E_APP"

// appMark is a header of every answer of the application, with the status that it means to give.
const appMark = "X-App"

// serveApp answers one request after the other, each in the time that /speed was told last.
func serveApp(where string) error {
	address, file, _ := strings.Cut(where, " ")
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var one sync.Mutex
	var took, failing atomic.Int64
	var n int64
	took.Store(int64(2 * time.Millisecond))
	mux := http.NewServeMux()
	mux.HandleFunc("/speed", func(w http.ResponseWriter, r *http.Request) {
		d, _ := time.ParseDuration(r.URL.Query().Get("took"))
		every, _ := strconv.ParseInt(r.URL.Query().Get("failing"), 10, 64)
		took.Store(int64(d))
		failing.Store(every)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		fmt.Fprintf(log, "%d %s\n", time.Now().UnixMicro(), r.Header.Get("X-Visitor"))
		<-time.After(time.Duration(took.Load()))
		n++
		status := http.StatusOK
		if every := failing.Load(); every > 0 && n%every == 0 {
			status = http.StatusInternalServerError
		}
		w.Header().Set(appMark, strconv.Itoa(status))
		w.WriteHeader(status)
	})
	return http.ListenAndServe(address, mux)
}

// app is an application in a process of its own, which can be killed.
type app struct {
	t       *testing.T
	address string
	file    string
	process *exec.Cmd
}

func startApp(t *testing.T) *app {
	t.Helper()
	a := &app{t: t, address: freeAddress(t), file: t.TempDir() + "/requests"}
	a.start()
	t.Cleanup(a.kill)
	return a
}

func (a *app) start() {
	a.t.Helper()
	a.process = exec.Command(os.Args[0])
	a.process.Env = append(os.Environ(), appVariable+"="+a.address+" "+a.file)
	if err := a.process.Start(); err != nil {
		a.t.Fatal(err)
	}
	eventually(a.t, 10*time.Second, func() string {
		if status, word := ask(a.address, "/speed?took=2ms"); status != http.StatusOK {
			return word
		}
		return ""
	})
}

// kill is kill -9.
func (a *app) kill() {
	a.process.Process.Kill()
	a.process.Wait()
}

// speed sets how long each request takes, and that every so many fail; 0: none.
func (a *app) speed(took time.Duration, failing int) {
	a.t.Helper()
	if status, word := ask(a.address, fmt.Sprintf("/speed?took=%v&failing=%d", took, failing)); status != http.StatusOK {
		a.t.Fatal(word)
	}
}

// requested is when a visitor's requests came to the application, by its log.
func (a *app) requested() map[string][]time.Time {
	a.t.Helper()
	f, err := os.Open(a.file)
	if err != nil {
		a.t.Fatal(err)
	}
	defer f.Close()
	out := map[string][]time.Time{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		at, who, _ := strings.Cut(lines.Text(), " ")
		micro, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			a.t.Fatal(err)
		}
		if who != "" {
			out[who] = append(out[who], time.UnixMicro(micro))
		}
	}
	return out
}
