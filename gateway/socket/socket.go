//go:build linux || darwin || freebsd || netbsd || openbsd

// Package socket reads and writes TCP connections without telling Go's scheduler of each call. The net package announces
// every read and write as a call that may block, and while such a call lasts, the scheduler's monitor looks every 20 µs whether
// somebody else should have the processor: a fifth of the time of a proxied request (ADR 0051). A call that never blocks, as it copies
// what there is or says that there is nothing, need not be announced. Waiting, deadlines and closing are the net package's.
package socket

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// Known says that there is a [Conn] on this system.
const Known = true

// most is how many bytes one call moves at most, so that it does not take long.
const most = 64 << 10

// Conn is a TCP connection.
type Conn struct {
	*net.TCPConn
	raw syscall.RawConn
	in  reading
	out writing
}

// A Lender has a buffer for what comes.
type Lender interface {
	TakeBuffer() []byte
	GiveBuffer() // nothing has come
}

// Of returns the Conn of a connection that is a Conn or a [net.TCPConn], otherwise nil.
func Of(nc net.Conn) *Conn {
	if c, ok := nc.(*Conn); ok {
		return c
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	c := &Conn{TCPConn: tcp, raw: raw}
	c.in.do, c.in.until, c.out.do = c.in.receive, c.in.look, c.out.send
	c.in.once = func(fd uintptr) { c.in.look(fd) }
	return c
}

// Wrap returns the Conn of a connection that has one, and every other connection as it is.
func Wrap(nc net.Conn) net.Conn {
	if c := Of(nc); c != nil {
		return c
	}
	return nc
}

// reading is what a call has to read, and has read. One goroutine at a time has it.
type reading struct {
	sync.Mutex
	p    []byte
	lend Lender
	n    int
	err  error
	do   func(fd uintptr) bool

	over, quiet bool
	once        func(fd uintptr)
	until       func(fd uintptr) bool
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return c.TCPConn.Read(p)
	}
	c.in.Lock()
	defer c.in.Unlock()
	c.in.p, c.in.lend = p, nil
	return c.read()
}

// ReadInto reads into a buffer that is lent only when something has come.
func (c *Conn) ReadInto(l Lender) (int, error) {
	c.in.Lock()
	defer c.in.Unlock()
	c.in.lend = l
	return c.read()
}

func (c *Conn) read() (int, error) {
	t := &c.in
	t.n, t.err = 0, nil
	err := c.raw.Read(t.do)
	t.p, t.lend = nil, nil
	switch {
	case t.err == io.EOF:
		return 0, io.EOF
	case t.err != nil:
		return 0, c.failed("read", t.err)
	}
	return t.n, err
}

func (t *reading) receive(fd uintptr) bool {
	p := t.p
	if t.lend != nil {
		p = t.lend.TakeBuffer()
	}
	for {
		switch t.n, t.err = receiveNow(fd, p[:min(most, len(p))], 0); {
		case t.err == syscall.EINTR:
			continue
		case t.err == syscall.EAGAIN:
			if t.n, t.err = 0, nil; t.lend != nil {
				t.lend.GiveBuffer()
			}
			return false
		case t.err == nil && t.n == 0:
			t.err = io.EOF
		}
		return true
	}
}

// Look reports whether the other end has closed the connection, and whether nothing has come that was not read. It does not wait.
func (c *Conn) Look() (over, quiet bool) {
	c.in.Lock()
	defer c.in.Unlock()
	c.in.over, c.in.quiet = false, false
	c.raw.Control(c.in.once)
	return c.in.over, c.in.quiet
}

// Wait returns when the other end has closed the connection (over), or something has come, which it does not read. An error says
// that neither is so, as with Read.
func (c *Conn) Wait() (over bool, err error) {
	c.in.Lock()
	defer c.in.Unlock()
	c.in.over = false
	err = c.raw.Read(c.in.until)
	return c.in.over, err
}

func (t *reading) look(fd uintptr) bool {
	var b [1]byte
	for {
		n, err := receiveNow(fd, b[:], syscall.MSG_PEEK)
		if err != syscall.EINTR {
			t.quiet = err == syscall.EAGAIN
			t.over = err == nil && n == 0 || err != nil && !t.quiet
			return !t.quiet
		}
	}
}

// writing is what a call has to write. One goroutine at a time has it.
type writing struct {
	sync.Mutex
	parts [2][]byte
	n     int
	err   error
	do    func(fd uintptr) bool
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) { return c.WriteBoth(p, nil) }

// WriteBoth writes two parts, in one call where the system can.
func (c *Conn) WriteBoth(head, body []byte) (int, error) {
	t := &c.out
	t.Lock()
	defer t.Unlock()
	t.parts, t.n, t.err = [2][]byte{head, body}, 0, nil
	err := c.raw.Write(t.do)
	t.parts = [2][]byte{}
	if t.err != nil {
		return t.n, c.failed("write", t.err)
	}
	return t.n, err
}

func (t *writing) send(fd uintptr) bool {
	for len(t.parts[0])+len(t.parts[1]) > 0 {
		a := t.parts[0][:min(most, len(t.parts[0]))]
		var b []byte
		if len(a) == len(t.parts[0]) {
			b = t.parts[1][:min(most-len(a), len(t.parts[1]))]
		}
		n, err := sendNow(fd, a, b)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return false
		case err != nil:
			t.err = err
			return true
		}
		t.n += n
		first := min(n, len(t.parts[0]))
		t.parts[0], t.parts[1] = t.parts[0][first:], t.parts[1][n-first:]
	}
	return true
}

// failed is an error as the net package has it.
func (c *Conn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, err)}
}
