//go:build linux && !race

package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestLargeAnswersPassInTheKernel: each of them that is under way has a pipe.
func TestLargeAnswersPassInTheKernel(t *testing.T) {
	const many, half = 20, 100_000
	goOn := make(chan struct{})
	w := newWorld(t, admit, withOrigin(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", strconv.Itoa(2*half))
		rw.Write(make([]byte, half))
		http.NewResponseController(rw).Flush()
		<-goOn
		rw.Write(make([]byte, half))
	}))
	var bodies []io.Reader
	for range many {
		c, err := net.Dial("tcp", w.addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.CopyN(io.Discard, res.Body, half) // the rest is waited for
		}
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, res.Body)
	}
	ends := 0
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range files {
		if to, _ := os.Readlink(name); strings.HasPrefix(to, "pipe:") {
			ends++
		}
	}
	if ends < 2*many {
		t.Errorf("%d answers have pipes with %d ends", many, ends)
	}
	close(goOn)
	for _, body := range bodies {
		if n, err := io.Copy(io.Discard, body); n != half || err != nil {
			t.Errorf("%d bytes more, %v", n, err)
		}
	}
}
