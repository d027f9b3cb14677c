package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/anteroom/anteroom/gateway/h1"
)

// A connection that was made before the end, and whose request arrives after it has begun,
// is answered.
func TestRequestsOnTheirWayAreAnsweredAtTheEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan struct{}, 10)
	idle := make(chan struct{}, 10)
	d := newDraining(h1.NewServer(&http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) }),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				made <- struct{}{}
			case http.StateIdle:
				idle <- struct{}{}
			}
		},
	}), l)
	served := make(chan error, 1)
	go func() { served <- d.Serve(l) }()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		<-made
		return c
	}
	ask := func(c net.Conn) {
		t.Helper()
		if _, err := io.WriteString(c, "GET /here HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != "/here" {
			t.Errorf("answer %q, %v", body, err)
		}
	}
	kept := dial()
	ask(kept)
	<-idle
	fresh := []net.Conn{dial(), dial(), dial()}
	spare := dial()
	ended := make(chan struct{})
	go func() {
		d.end(context.Background())
		close(ended)
	}()
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("Serve: %v", err)
	}
	for _, c := range fresh {
		ask(c)
	}
	for name, c := range map[string]net.Conn{"idle": kept, "spare": spare} {
		if n, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the %s connection is not closed: %d bytes, %v", name, n, err)
		}
	}
	<-ended
}
