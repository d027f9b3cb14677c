package gateway

import (
	"bytes"
	"errors"
	"net"
)

// serverBuffer is how much of an answer net/http buffers before it writes, in bytes.
const serverBuffer = 4096

// visitorConn is a connection that [Limit] has accepted. It can send an answer in one go
// that net/http writes in several parts because it is larger than serverBuffer, as the
// waiting page is: a second write to the network costs more than making the page
// (docs/lab.md).
type visitorConn struct {
	net.Conn
	about *conn
	done  func() // gives back the place in the count; nil when it is not counted

	// Used by the goroutine that serves the connection, which also calls Write.
	body  []byte // of the answer that is to be sent in one go; nil: none
	early int    // bytes that will be written and have been sent already
	parts [2][]byte
}

// sendWhole says that the next answer has this body, larger than serverBuffer, which will
// be written as it is and at once, and that nothing comes before its header.
func (c *visitorConn) sendWhole(body []byte) { c.body = body }

func (c *visitorConn) Write(p []byte) (int, error) {
	if c.early > 0 {
		n := min(c.early, len(p))
		c.early -= n
		if n == len(p) {
			return n, nil
		}
		more, err := c.Conn.Write(p[n:])
		return n + more, err
	}
	body := c.body
	c.body = nil
	if body == nil {
		return c.Conn.Write(p)
	}
	head := bytes.Index(p, []byte("\r\n\r\n")) + 4
	if head < 4 || !bytes.HasPrefix(body, p[head:]) {
		return c.Conn.Write(p) // not what was announced
	}
	c.parts = [2][]byte{p[:head], body}
	all := net.Buffers(c.parts[:])
	if _, err := all.WriteTo(c.Conn); err != nil {
		return 0, err
	}
	c.early = head + len(body) - len(p)
	return len(p), nil
}

// NetConn returns the connection of the listener below.
func (c *visitorConn) NetConn() net.Conn { return c.Conn }

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
