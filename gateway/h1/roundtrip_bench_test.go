package h1

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
)

// bareOrigin answers every head with the same bytes and allocates nothing meanwhile.
func bareOrigin(b *testing.B, answer []byte) *url.URL {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := make([]byte, 4<<10)
				for {
					n, err := c.Read(in)
					if err != nil || !bytes.HasSuffix(in[:n], []byte("\r\n\r\n")) {
						return
					}
					c.Write(answer)
				}
			}()
		}
	}()
	return &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/products", RawQuery: "page=2"}
}

// BenchmarkRoundTrip is a GET with an answer of 1 kB over one connection, by way.
func BenchmarkRoundTrip(b *testing.B) {
	answer := append([]byte("HTTP/1.1 200 OK\r\nDate: Mon, 23 Nov 2026 12:00:00 GMT\r\nContent-Type: text/html\r\nCache-Control: no-cache\r\nContent-Length: 1024\r\n\r\n"), make([]byte, 1024)...)
	header := http.Header{"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}, "Accept": {"text/html"},
		"Accept-Language": {"en-US,en;q=0.5"}, "Cookie": {"theme=dark"}, "X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Proto": {"http"}}
	for name, way := range ways(b) {
		b.Run(name, func(b *testing.B) {
			to := bareOrigin(b, answer)
			rest := make([]byte, 2048)
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				res, err := way.RoundTrip((&http.Request{Method: "GET", URL: to, Header: header}).WithContext(ctx))
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = res.Body.Read(rest)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
				res.Body.Close()
			}
		})
	}
}
