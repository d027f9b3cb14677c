package gateway

import (
	"bytes"
	"errors"
	"net"
	"sync"
)

// visitorConn is a connection that [Limit] has accepted. It can hold back the first part of
// an answer until the rest has come: a waiting page is larger than the 4 kB that net/http
// buffers, and the second write to the network would cost more than making the page
// (docs/performance.md).
type visitorConn struct {
	net.Conn
	done func() // gives back the place in the count; nil when it is not counted

	// Written by the goroutine that serves the connection, which also calls Write.
	body    int           // bytes of the body of the answer that is to be gathered; 0: none
	missing int           // bytes of it that have not come yet
	held    *bytes.Buffer // those that have; nil between answers
}

// gathered are buffers of answers; a waiting page has about 7 kB.
var gathered = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// gather says that the next answer has a body of n bytes, all of which will be written,
// and that nothing comes before its header.
func (c *visitorConn) gather(n int) { c.body = n }

func (c *visitorConn) Write(p []byte) (int, error) {
	if c.body == 0 && c.held == nil {
		return c.Conn.Write(p)
	}
	if c.held == nil {
		end := bytes.Index(p, []byte("\r\n\r\n"))
		size := end + 4 + c.body
		c.body = 0
		if end < 0 || len(p) >= size {
			return c.Conn.Write(p)
		}
		c.missing = size
		c.held = gathered.Get().(*bytes.Buffer)
	}
	c.held.Write(p)
	if c.missing -= len(p); c.missing > 0 {
		return len(p), nil
	}
	_, err := c.Conn.Write(c.held.Bytes())
	c.held.Reset()
	gathered.Put(c.held)
	c.held = nil
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements net.Conn.
func (c *visitorConn) Close() error {
	if c.done != nil {
		c.done()
	}
	return c.Conn.Close()
}

// CloseWrite lets net/http and tunnels close one direction.
func (c *visitorConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
