package server

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// A restart without a lost connection: the old process starts the new binary with its
// listening sockets (systemd's protocol for socket activation: they are the file
// descriptors from 3 on, LISTEN_FDS their number, LISTEN_FDNAMES the addresses), stops
// accepting, finishes its requests and lets go of the data directory, for which the new
// process waits. In between, new connections wait in the kernel.
const (
	firstFD   = 3
	handedEnv = "ANTEROOM_HANDED_OVER" // the sockets come from an Anteroom that is stopping
)

// Inherited returns the listeners that were passed to this process, by address, and whether
// another Anteroom process handed them over. They are taken once: the environment no
// longer names them afterwards. Sockets of systemd are named by FileDescriptorName, which
// must be the configured address; a single unnamed one serves the first address.
func Inherited(first string) (files map[string]net.Listener, handed bool, err error) {
	defer func() {
		for _, k := range []string{"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", handedEnv} {
			os.Unsetenv(k)
		}
	}()
	n, _ := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	handed = os.Getenv(handedEnv) != ""
	if n <= 0 || n > 64 {
		return nil, false, nil
	}
	if pid := os.Getenv("LISTEN_PID"); !handed && pid != strconv.Itoa(os.Getpid()) {
		return nil, false, nil // meant for another process
	}
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), "|")
	if !handed {
		names = strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	}
	files = map[string]net.Listener{}
	for i := range n {
		name := first
		if i < len(names) && names[i] != "" && names[i] != "unknown" && n > 1 || handed && i < len(names) {
			name = names[i]
		}
		f := os.NewFile(uintptr(firstFD+i), name)
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return nil, false, fmt.Errorf("the inherited socket %d (%s) is no listener: %w", firstFD+i, name, err)
		}
		files[name] = l
	}
	return files, handed, nil
}

// HandOver starts the program anew with this server's listeners. When it returns nil, end
// the context of Run: the new process serves as soon as this one has let go of the data
// directory.
func (s *Server) HandOver() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the program cannot be found for the restart: %w", err)
	}
	// A replaced binary shows as "/path (deleted)": the new one stands at the old path.
	self = strings.TrimSuffix(self, " (deleted)")
	if _, err := s.opts.Load(); err != nil {
		return fmt.Errorf("no restart, because the configuration has faults:\n%w", err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var names []string
	for address, l := range s.listeners {
		t, ok := l.(*net.TCPListener)
		if !ok {
			return fmt.Errorf("the listener %s cannot be handed over", address)
		}
		f, err := t.File()
		if err != nil {
			return fmt.Errorf("the listener %s cannot be handed over: %w", address, err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		names = append(names, address)
	}
	cmd.Env = append(os.Environ(), "LISTEN_FDS="+strconv.Itoa(len(names)), "LISTEN_FDNAMES="+strings.Join(names, "|"), handedEnv+"=1")
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the new process cannot be started: %w", err)
	}
	s.log.Info("handed the listeners over; this process finishes its requests", "new_pid", cmd.Process.Pid)
	go cmd.Wait()
	return nil
}
