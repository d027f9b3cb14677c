package gateway

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
)

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
