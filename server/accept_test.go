package server

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// exhausted is a listener without file descriptors.
type exhausted struct{ net.Listener }

func (exhausted) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// TestProcessWithoutFileDescriptorsIsNotReady: what net/http tries again in silence is in the log once, and load balancers
// hear of it until it has passed.
func TestProcessWithoutFileDescriptorsIsNotReady(t *testing.T) {
	r := startServer(t, oneRoom)
	states := func(want int) {
		t.Helper()
		if a := r.admin("GET", "/-/ready"); a.StatusCode != want {
			t.Errorf("ready: %d %q, want %d", a.StatusCode, a.body, want)
		}
		if a := r.visit(healthPath); a.StatusCode != want {
			t.Errorf("health: %d %q, want %d", a.StatusCode, a.body, want)
		}
	}
	states(200)
	mark := r.log.mark()
	l := watched{exhausted{r.s.visitors[0]}, r.s}
	for range 3 {
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
	}
	r.log.await(t, mark, "cannot accept connections: new visitors time out")
	states(503)
	if lines, _ := r.log.from(mark); len(lines) != 1 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	r.s.refusedAt.Store(time.Now().Add(-refusingFor).UnixNano())
	states(200)

	// What the admin address has to say is in the log, too, and not beside it.
	mark = r.log.mark()
	srv := r.s.adminServer()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- srv.Serve(exhausted{free}) }()
	r.log.await(t, mark, "http: Accept error")
	srv.Close()
	<-served
}
