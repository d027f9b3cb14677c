package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServiceManagerSeesHowEachProcessEnds plays systemd: it starts the program, is told of its successors, and has to be able to wait for each
// of them. A main process that it cannot wait for, systemd kills as soon as it is to stop.
func TestServiceManagerSeesHowEachProcessEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	name := filepath.Join(t.TempDir(), "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	main := func(other int) int { // the main process that systemd is told of next, which is none of before
		t.Helper()
		told.SetReadDeadline(time.Now().Add(patience))
		for b := make([]byte, 200); ; {
			n, err := told.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(b[:n])) {
				if text, ok := strings.CutPrefix(strings.TrimSpace(line), "MAINPID="); ok && text != strconv.Itoa(other) {
					pid, err := strconv.Atoi(text)
					if err != nil {
						t.Fatal(err)
					}
					return pid
				}
			}
		}
	}

	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer origin.Close()
	yaml := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: localhost:0\ndata: data\nsites: [{hosts: \"*\", origins: %q}]\n", origin.URL)
	p := startProcess(t, yaml)
	p.await("serving")
	ended := func(pid int) {
		t.Helper()
		var how syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &how, 0, nil); err != nil || how != 0 {
			t.Errorf("process %d: %v, %#x", pid, err, how)
		}
	}
	first := p.pid // which p waits for
	if pid := main(0); pid != first {
		t.Fatalf("process %d says that it is %d", first, pid)
	}
	for range 2 {
		before := p.pid
		syscall.Kill(before, syscall.SIGUSR2)
		p.pid = main(before)
		if _, err := syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil); err != nil {
			t.Fatalf("the new process, just named: %v", err)
		}
		p.await("new process takes over")
		p.await("serving")
		if before != first {
			ended(before)
		}
	}

	// One that cannot start changes nothing, and its own messages say why.
	p.write(yaml + "unknown: 1\n")
	syscall.Kill(p.pid, syscall.SIGUSR2)
	if text := fmt.Sprint(p.await("the restart failed")["error"]); !strings.HasSuffix(text, "it ended (see its messages in the log above)") {
		t.Errorf("a refused restart: %q", text)
	}
	syscall.Kill(p.pid, syscall.SIGTERM)
	p.await("stopped: sessions and places are kept")
	ended(p.pid)
}
