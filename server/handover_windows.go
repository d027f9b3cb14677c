package server

import (
	"errors"
	"net"
	"os"
)

// duplicate has no way to do it: Windows does not pass sockets to a new process as Unix does.
func duplicate(net.Listener) (*os.File, error) {
	return nil, errors.New("Windows cannot hand over a listener; stop and start Anteroom instead")
}
