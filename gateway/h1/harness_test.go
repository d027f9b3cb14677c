package h1

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// newBase is the transport that package gateway uses.
func newBase() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 60 * time.Second,
		ExpectContinueTimeout: time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 1024, MaxResponseHeaderBytes: 256 << 10,
		DisableCompression: true, Protocols: &protocols,
	}
}

// ways are ours and net/http's, for what must be the same over both.
func ways(t testing.TB) map[string]http.RoundTripper {
	base, own := newBase(), Over(newBase())
	t.Cleanup(base.CloseIdleConnections)
	t.Cleanup(own.CloseIdleConnections)
	return map[string]http.RoundTripper{"h1": own, "net/http": base}
}

// origin is a server whose connections are played by a function, each with its number from 0 on.
type origin struct {
	url   *url.URL
	conns atomic.Int32
}

func newOrigin(t testing.TB, play func(number int, c net.Conn, in *bufio.Reader)) *origin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{url: &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}}
	var all sync.WaitGroup
	var open sync.Map
	t.Cleanup(func() {
		l.Close()
		open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(c, nil)
			number := int(o.conns.Add(1)) - 1
			all.Go(func() {
				defer c.Close()
				play(number, c, bufio.NewReader(c))
			})
		}
	})
	return o
}

// answering is an origin that reads whole requests and answers each with the same bytes.
func answering(t testing.TB, answer string) *origin {
	return newOrigin(t, func(_ int, c net.Conn, in *bufio.Reader) {
		for readRequest(in) != nil {
			io.WriteString(c, answer)
		}
	})
}

// readRequest reads a request with its body; nil at the end of the connection.
func readRequest(in *bufio.Reader) *http.Request {
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return r
}

func (o *origin) request(method string, body io.Reader) *http.Request {
	r, err := http.NewRequest(method, o.url.String(), body)
	if err != nil {
		panic(err)
	}
	r.GetBody = nil // visitors' bodies come once
	return r
}

// send makes a round trip and reads the answer's body.
func send(way http.RoundTripper, r *http.Request) (*http.Response, string, error) {
	res, err := way.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

// over runs a test over our transport and over net/http's.
func over(t *testing.T, f func(t *testing.T, way http.RoundTripper)) {
	for name, way := range ways(t) {
		t.Run(name, func(t *testing.T) { f(t, way) })
	}
}
