//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package socket

import (
	"errors"
	"net"
)

// Known says that there is a [Conn] on this system.
const Known = false

// Conn is a TCP connection. Nobody has one on this system.
type Conn struct{ *net.TCPConn }

// A Lender has a buffer for what comes.
type Lender interface {
	TakeBuffer() []byte
	GiveBuffer() // nothing has come
}

// Of returns nil.
func Of(net.Conn) *Conn { return nil }

// Wrap returns a connection as it is.
func Wrap(nc net.Conn) net.Conn { return nc }

// ReadInto has an error.
func (c *Conn) ReadInto(Lender) (int, error) { return 0, errors.ErrUnsupported }

// WriteBoth has an error.
func (c *Conn) WriteBoth(_, _ []byte) (int, error) { return 0, errors.ErrUnsupported }

// Look has nothing to say.
func (c *Conn) Look() (over, quiet bool) { return false, false }

// Wait has an error.
func (c *Conn) Wait() (over bool, err error) { return false, errors.ErrUnsupported }
