package gateway

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
)

// written is a connection that remembers its writes.
type written struct {
	net.Conn
	writes [][]byte
}

func (w *written) Write(p []byte) (int, error) {
	w.writes = append(w.writes, bytes.Clone(p))
	return len(p), nil
}

func TestGatherHoldsAnAnswerTogether(t *testing.T) {
	head, body := "HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n", strings.Repeat("b", 6000)
	whole := head + body
	cases := []struct {
		name   string
		body   int
		writes []string
		want   []string
	}{
		{"nothing to gather", 0, []string{whole[:4096], whole[4096:]}, []string{whole[:4096], whole[4096:]}},
		{"in two parts", 6000, []string{whole[:4096], whole[4096:]}, []string{whole}},
		{"in many parts", 6000, []string{whole[:100], whole[100:101], whole[101:5000], whole[5000:]}, []string{whole}},
		{"the header alone first", 6000, []string{head, body}, []string{whole}},
		{"already whole", 6000, []string{whole}, []string{whole}},
		{"no header in the first part", 6000, []string{head[:20], whole[20:]}, []string{head[:20], whole[20:]}},
		{"then another answer", 6000, []string{whole[:4096], whole[4096:], "HTTP/1.1 204"}, []string{whole, "HTTP/1.1 204"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := &written{}
			v := &visitorConn{Conn: w}
			v.gather(c.body)
			for _, p := range c.writes {
				if n, err := v.Write([]byte(p)); n != len(p) || err != nil {
					t.Fatalf("Write of %d bytes = %d, %v", len(p), n, err)
				}
			}
			var got []string
			for _, p := range w.writes {
				got = append(got, string(p))
			}
			if strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("%d writes, want %d", len(got), len(c.want))
			}
		})
	}
}

// one is a listener of the connections that it is given.
type one chan net.Conn

func (l one) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l one) Close() error   { return nil }
func (l one) Addr() net.Addr { return &net.TCPAddr{} }

// TestWaitingPageLeavesInOneWrite asks twice on one connection: every answer is one write,
// and whole.
func TestWaitingPageLeavesInOneWrite(t *testing.T) {
	for _, accept := range []string{"text/html", "application/json"} {
		t.Run(accept, func(t *testing.T) {
			here, there := net.Pipe()
			counted := &counting{Conn: there}
			l := make(one, 1)
			l <- counted
			srv := newWorld(t, byCookie, withRoom(func(r *anteroom.Room) { r.JSONResponse = true })).gw.Server(nil)
			go srv.Serve(Limit(l, 10, nil))
			defer close(l)
			defer here.Close()
			in := bufio.NewReader(here)
			for i := range 2 {
				io.WriteString(here, "GET / HTTP/1.1\r\nHost: "+testHost+"\r\nAccept-Encoding: gzip\r\nAccept: "+accept+"\r\n\r\n")
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				n, err := io.Copy(io.Discard, res.Body)
				if err != nil || n != res.ContentLength || n < 500 {
					t.Fatalf("%d bytes of %d: %v", n, res.ContentLength, err)
				}
				if counted.writes != i+1 {
					t.Errorf("%d writes after %d answers", counted.writes, i+1)
				}
			}
		})
	}
}

type counting struct {
	net.Conn
	writes int
}

func (c *counting) Write(p []byte) (int, error) {
	c.writes++
	return c.Conn.Write(p)
}

// TestPageThatNobodyTakesEndsTheConnection holds the bound on sending a page where it is not
// a deadline of net/http but the connection's own timer.
func TestPageThatNobodyTakesEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		l := make(one, 1)
		l <- there
		g, s := roleGateway("127.0.0.1:9", anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: testHost}}}.WithDefaults(), line, true)
		srv := g.Server(nil)
		go srv.Serve(l)
		defer srv.Close()
		defer close(l)
		began := time.Now()
		io.WriteString(here, "GET / HTTP/1.1\r\nHost: "+testHost+"\r\n\r\n")
		io.ReadFull(here, make([]byte, 10)) // the answer has begun; nobody takes the rest
		synctest.Wait()
		<-time.After(s.Timeouts.Page - time.Millisecond - time.Since(began))
		if _, err := here.Read(make([]byte, 1)); err != nil {
			t.Fatalf("closed before its time: %v", err)
		}
		<-time.After(time.Second)
		if n, _ := io.Copy(io.Discard, here); n > 0 {
			t.Errorf("%d more bytes came after the time for a page", n)
		}
	})
}
