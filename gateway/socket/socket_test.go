//go:build linux || darwin || freebsd || netbsd || openbsd

package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (a, b *Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	x, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	y, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	a, b = Of(x), Of(y)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// A Conn is a connection as others are, by the suite of x/net.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		a, b := pair(t)
		return a, b, func() { a.Close(); b.Close() }, nil
	})
}

func TestOf(t *testing.T) {
	a, _ := pair(t)
	if Of(a) != a || Wrap(a) != net.Conn(a) {
		t.Error("a Conn has another")
	}
	x, y := net.Pipe()
	defer x.Close()
	defer y.Close()
	if Of(x) != nil || Wrap(x) != x || Wrap(nil) != nil {
		t.Error("what is no TCP connection has a Conn")
	}
}

// More than the kernel takes at once arrives whole, in both parts, while the reader takes its time.
func TestWriteBoth(t *testing.T) {
	a, b := pair(t)
	head, body := bytes.Repeat([]byte("head"), 100_000), bytes.Repeat([]byte("the body"), 2_000_000)
	done := make(chan error, 1)
	go func() {
		n, err := a.WriteBoth(head, body)
		if err == nil && n != len(head)+len(body) {
			err = io.ErrShortWrite
		}
		done <- errors.Join(err, a.CloseWrite())
	}()
	got, err := io.ReadAll(io.MultiReader(io.LimitReader(b, 3), b))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, append(head, body...)) {
		t.Errorf("%d bytes came of %d, or others", len(got), len(head)+len(body))
	}
}

// Errors are those of the net package.
func TestErrors(t *testing.T) {
	a, b := pair(t)
	b.SetLinger(0)
	b.Close()
	_, err := a.Read(make([]byte, 1))
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNRESET) || !errors.As(err, &op) || op.Addr == nil {
		t.Errorf("reading after a reset: %v", err)
	}
	if _, err = a.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("writing after a reset: %v", err)
	}
	a.Close()
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading what is closed: %v", err)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing what is closed: %v", err)
	}
	c, _ := pair(t)
	c.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading too late: %v", err)
	}
}

// lent notes whether the buffer is there.
type lent struct {
	b     [8]byte
	taken int
	there bool
}

func (l *lent) TakeBuffer() []byte { l.taken, l.there = l.taken+1, true; return l.b[:] }
func (l *lent) GiveBuffer()        { l.there = false }

// A reader that waits has no buffer.
func TestReadInto(t *testing.T) {
	a, b := pair(t)
	var l lent
	a.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := a.ReadInto(&l); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || l.taken == 0 || l.there {
		t.Errorf("nothing came: %d, %v, %+v", n, err, l)
	}
	a.SetReadDeadline(time.Time{})
	b.Write([]byte("hello"))
	if n, err := a.ReadInto(&l); n != 5 || err != nil || string(l.b[:n]) != "hello" || !l.there {
		t.Errorf("%d, %v, %+v", n, err, l)
	}
	b.Close()
	if n, err := a.ReadInto(&l); n != 0 || err != io.EOF {
		t.Errorf("the end: %d, %v", n, err)
	}
}

func TestLookAndWait(t *testing.T) {
	a, b := pair(t)
	if over, quiet := a.Look(); over || !quiet {
		t.Errorf("at the beginning: over %v, quiet %v", over, quiet)
	}
	b.Write([]byte("x"))
	if over, err := a.Wait(); over || err != nil {
		t.Errorf("something came: over %v, %v", over, err)
	}
	if over, quiet := a.Look(); over || quiet {
		t.Errorf("something came: over %v, quiet %v", over, quiet)
	}
	if n, err := a.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("what came was read by looking: %d, %v", n, err)
	}
	b.Close()
	if over, err := a.Wait(); !over || err != nil {
		t.Errorf("the end: over %v, %v", over, err)
	}
	a.Close()
	if over, quiet := a.Look(); over || quiet {
		t.Errorf("what is closed: over %v, quiet %v", over, quiet)
	}
}
