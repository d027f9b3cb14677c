package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// BenchmarkConnections reports the bytes that a connection needs between two requests, and one with an open stream: heap
// and stacks, after garbage collections; and what is left of each once all have closed. The visitor's end of the connections is in
// the same process and counts too.
func BenchmarkConnections(b *testing.B) {
	const many = 2000
	room := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: testHost}}}.WithDefaults()
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration = 1, 1, time.Hour
	g, _ := roleNode("127.0.0.1:9", false, room)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := g.Server(nil)
	go srv.Serve(Limit(l, 2*many, nil))
	defer srv.Close()
	used := func() (heap, stacks int64) {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc), int64(m.StackInuse)
	}
	cookies := make([]string, many+1) // the first is let in
	for i := range cookies {
		rec := httptest.NewRecorder()
		g.ServeHTTP(rec, httptest.NewRequest("GET", "http://"+testHost+"/", nil))
		cookies[i], _, _ = strings.Cut(rec.Header().Get("Set-Cookie"), ";")
	}
	for b.Loop() {
		for _, name := range []string{"idle", "stream"} {
			path := "/"
			if name == "stream" {
				path = "/?" + reservedParam + "=stream"
			}
			heap, stacks := used()
			var conns []net.Conn
			for _, cookie := range cookies[1:] {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					b.Fatal(err)
				}
				conns = append(conns, c)
				fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", path, testHost, cookie)
				res, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
				if err != nil || res.StatusCode != 200 {
					b.Fatal(res, err)
				}
				if name == "idle" {
					io.Copy(io.Discard, res.Body)
				}
			}
			<-time.After(time.Second) // longer than the loop waits until it gives the buffers of a stream back
			h, s := used()
			b.ReportMetric(float64(h-heap)/many, name+"-heap-B")
			b.ReportMetric(float64(s-stacks)/many, name+"-stack-B")
			for _, c := range conns {
				c.Close()
			}
			<-time.After(time.Second)
			h, s = used()
			b.ReportMetric(float64(h+s-heap-stacks)/many, name+"-left-B")
		}
	}
}
