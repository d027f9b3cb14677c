//go:build linux && !race

package h1

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestRelayOf: a body takes the kernel's way where it can, and only there.
func TestRelayOf(t *testing.T) {
	const large = 1 << 20
	for _, c := range []struct {
		name   string
		head   string // of the origin's answer
		method string
		fast   bool
		read   int // how many bytes are read and sent before, at least
		want   bool
	}{
		{"large", "Content-Length: 1048576", "GET", true, 5_000, true},
		{"nothing sent", "Content-Length: 1048576", "GET", true, 0, false},
		{"little left", "Content-Length: 1048576", "GET", true, large - relayLeast + 1, false},
		{"length unknown", "Connection: close", "GET", true, 5_000, false},
		{"chunks", "Transfer-Encoding: chunked", "GET", true, 5_000, false},
		{"another's writer", "Content-Length: 1048576", "GET", false, 5_000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOrigin(t, func(_ int, conn net.Conn, in *bufio.Reader) {
				if readRequest(in) != nil {
					io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+c.head+"\r\n\r\n")
					if strings.Contains(c.head, "chunked") {
						io.WriteString(conn, "100000\r\n")
					}
					io.WriteString(conn, strings.Repeat("x", large))
				}
			})
			way := Over(newBase())
			got := make(chan bool, 1)
			addr := serving(t, c.fast, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				res, err := way.RoundTrip(o.request("GET", nil))
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				if res.ContentLength >= 0 {
					w.Header().Set("Content-Length", "1048576")
				}
				for buffer, sent := make([]byte, 32<<10), 0; sent < c.read; {
					n, err := res.Body.Read(buffer[:min(len(buffer), large-sent-1)]) // the last byte may come with io.EOF
					if err != nil {
						t.Error(err)
					}
					w.Write(buffer[:n])
					sent += n
				}
				relay := RelayOf(w, res.Body)
				got <- relay != nil
				if relay == nil {
					return
				}
				defer relay.End()
				for {
					err := relay.Take()
					if left, bad := relay.Send(large); left > 0 || bad != nil {
						t.Errorf("%d bytes left, %v", left, bad)
						return
					}
					if err != nil {
						if err != io.EOF {
							t.Error(err)
						}
						return
					}
				}
			}), nil)
			res, err := http.Get("http://" + addr)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if n, err := io.Copy(io.Discard, res.Body); c.want && (n != large || err != nil) {
				t.Errorf("%d bytes, %v", n, err)
			}
			if got := <-got; got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
