package server

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// notify tells the service manager about this process: sd_notify(3). Without NOTIFY_SOCKET
// nobody wants to know.
func (s *Server) notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	if strings.HasPrefix(name, "@") {
		name = "\x00" + name[1:] // abstract
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		s.log.Warn("the service manager cannot be notified", "state", state, "error", err)
		return
	}
	defer c.Close()
	c.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte(state)); err != nil {
		s.log.Warn("the service manager cannot be notified", "state", state, "error", err)
	}
}

// readyNow names the process too: after a hand-over it is another one.
func readyNow() string { return fmt.Sprintf("READY=1\nMAINPID=%d", os.Getpid()) }
