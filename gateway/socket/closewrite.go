package socket

import (
	"errors"
	"net"
)

// CloseWrite closes the direction to the other end, where the connection can: errors.ErrUnsupported says that it cannot.
func CloseWrite(nc net.Conn) error {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
