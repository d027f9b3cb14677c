//go:build !race

package gateway

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/anteroom/anteroom"
)

// TestWaitingPageLeavesAtOnce asks twice on one connection, reads what has left with the
// first write, and finds the whole answer there. Not with the race detector, under which h1 writes head and body apart
// (writesParts).
func TestWaitingPageLeavesAtOnce(t *testing.T) {
	for _, accept := range []string{"text/html", "application/json"} {
		t.Run(accept, func(t *testing.T) {
			w := newWorld(t, byCookie, withRoom(func(r *anteroom.Room) { r.JSONResponse = true }))
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			srv := w.gw.Server(nil)
			go srv.Serve(Limit(inner, 10, nil))
			defer srv.Close()
			c, err := net.Dial("tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			part := make([]byte, 64<<10)
			for range 2 {
				io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+testHost+"\r\nAccept-Encoding: gzip\r\nAccept: "+accept+"\r\n\r\n")
				n, err := c.Read(part)
				if err != nil {
					t.Fatal(err)
				}
				res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(part[:n])), nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.Copy(io.Discard, res.Body); err != nil || got != res.ContentLength || got < 500 {
					t.Fatalf("%d bytes of %d: %v", got, res.ContentLength, err)
				}
			}
		})
	}
}
