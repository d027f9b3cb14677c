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

func TestAnswerIsSentWhole(t *testing.T) {
	head, body := "HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n", strings.Repeat("b", 6000)
	whole := head + body
	cases := []struct {
		name   string
		body   string // announced
		writes []string
		whole  bool // the header and body leave at the first write
	}{
		{"nothing announced", "", []string{whole[:4096], whole[4096:]}, false},
		{"in two parts", body, []string{whole[:4096], whole[4096:]}, true},
		{"in many parts", body, []string{whole[:100], whole[100:101], whole[101:5000], whole[5000:]}, true},
		{"the header alone first", body, []string{head, body}, true},
		{"in one part", body, []string{whole}, true},
		{"no header in the first part", body, []string{head[:20], whole[20:]}, false},
		{"another body", strings.Repeat("c", 6000), []string{whole[:4096], whole[4096:]}, false},
		{"then another answer", body, []string{whole[:4096], whole[4096:], "HTTP/1.1 204 No Content\r\n\r\n"}, true},
		{"another answer in the same part", body, []string{whole[:4096], whole[4096:] + "HTTP/1.1 204 No Content\r\n\r\n"}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := &written{}
			v := &visitorConn{Conn: w}
			if c.body != "" {
				v.sendWhole([]byte(c.body))
			}
			for i, p := range c.writes {
				if n, err := v.Write([]byte(p)); n != len(p) || err != nil {
					t.Fatalf("Write of %d bytes = %d, %v", len(p), n, err)
				}
				if sent := len(bytes.Join(w.writes, nil)); i == 0 && (sent == len(whole)) != c.whole {
					t.Errorf("%d bytes have left after the first write", sent)
				}
			}
			if got := string(bytes.Join(w.writes, nil)); got != strings.Join(c.writes, "") {
				t.Errorf("%d bytes have left, %d were written, or they differ", len(got), len(strings.Join(c.writes, "")))
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

// TestWaitingPageLeavesAtOnce asks twice on one connection, reads what has left with the
// first write, and finds the whole answer there.
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
