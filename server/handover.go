package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A restart without a lost connection: the old process starts the new binary with its
// listening sockets (systemd's protocol for socket activation: they are the file
// descriptors from 3 on, LISTEN_FDS their number, LISTEN_FDNAMES the addresses) and the end
// of a pipe. The new one reads its configuration and whatever else can fail, says through the
// pipe that it is ready, and waits for the data directory. Only then the old one stops:
// it decides the requests that have arrived, lets go of the directory, and finishes them
// while the new one serves already. In between, new connections wait in the kernel.
const (
	firstFD   = 3
	handedEnv = "ANTEROOM_HANDED_OVER" // file descriptor of the pipe
	readyWord = "ready\n"

	// startTime is how long the new process may take until it is ready.
	startTime = 30 * time.Second
	// takeOverTime is how long the new process waits for the data directory.
	takeOverTime = 30 * time.Second
)

// Inheritance is what another process has passed to this one: systemd, or an Anteroom that
// is being replaced.
type Inheritance struct {
	named   map[string]net.Listener // by configured address
	unnamed []net.Listener
	ready   io.WriteCloser // to the process that is being replaced; nil when it is systemd
}

// Inherited returns the listeners that were passed to this process. They are taken once: the
// environment no longer names them afterwards.
func Inherited() (*Inheritance, error) {
	env := func(k string) string { v := os.Getenv(k); os.Unsetenv(k); return v }
	n, _ := strconv.Atoi(env("LISTEN_FDS"))
	names, pid := strings.Split(env("LISTEN_FDNAMES"), "|"), env("LISTEN_PID")
	pipe, _ := strconv.Atoi(env(handedEnv))
	in := &Inheritance{named: map[string]net.Listener{}}
	if n < 0 || n > 64 || pipe == 0 && pid != strconv.Itoa(os.Getpid()) {
		return in, nil // none, or meant for another process
	}
	for i := range n {
		f := os.NewFile(uintptr(firstFD+i), "inherited")
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			in.close()
			return nil, fmt.Errorf("the inherited socket %d is not a listener: %w (in a systemd socket unit, use ListenStream)", firstFD+i, err)
		}
		if pipe != 0 && i < len(names) {
			in.named[names[i]] = l
		} else {
			in.unnamed = append(in.unnamed, l)
		}
	}
	if pipe != 0 {
		in.ready = os.NewFile(uintptr(pipe), "hand-over")
	}
	return in, nil
}

func (in *Inheritance) handedOver() bool { return in != nil && in.ready != nil }

// takeOver tells the other process that this one is ready.
func (in *Inheritance) takeOver() error {
	defer in.ready.Close()
	if _, err := io.WriteString(in.ready, readyWord); err != nil {
		return fmt.Errorf("the process that this one should replace is gone: %w", err)
	}
	return nil
}

// listener returns the inherited listener for a configured address, and forgets it. A single
// socket of systemd serves the first address, whatever its own.
func (in *Inheritance) listener(address string, first bool) net.Listener {
	if in == nil {
		return nil
	}
	if l := in.named[address]; l != nil {
		delete(in.named, address)
		return l
	}
	for i, l := range in.unnamed {
		if first && len(in.unnamed) == 1 || serves(l, address) {
			in.unnamed = append(in.unnamed[:i], in.unnamed[i+1:]...)
			return l
		}
	}
	return nil
}

// serves reports whether a socket is bound to what a configured address means.
func serves(l net.Listener, address string) bool {
	have, ok := l.Addr().(*net.TCPAddr)
	want, err := net.ResolveTCPAddr("tcp", address)
	if !ok || err != nil || have.Port != want.Port {
		return false
	}
	return have.IP.Equal(want.IP) || have.IP.IsUnspecified() && (want.IP == nil || want.IP.IsUnspecified())
}

// close closes what nobody asked for, and returns the addresses of systemd's among it. A
// listener that was handed over and is no longer configured ends here.
func (in *Inheritance) close() (unused []string) {
	if in == nil {
		return nil
	}
	for _, l := range in.unnamed {
		unused = append(unused, l.Addr().String())
		l.Close()
	}
	for _, l := range in.named {
		l.Close()
	}
	in.unnamed, in.named = nil, nil
	return unused
}

// HandOver starts the program again with this server's listeners. It returns nil once the new process has its
// configuration, its listeners and its keys; Run then ends. After an error, this process continues as if
// nothing had happened.
func (s *Server) HandOver(ctx context.Context) error {
	if s.handed.Load() {
		return errors.New("the listeners are already being handed over")
	}
	if s.program == "" {
		return errors.New("the path of this program is not known")
	}
	listen, tell, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("no restart: %w", err)
	}
	defer listen.Close()
	defer tell.Close()
	cmd := exec.Command(s.program, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = successor()
	var names []string
	for address, l := range s.listeners {
		f, err := duplicate(l)
		if err != nil {
			return fmt.Errorf("the listener %s cannot be handed over: %w", address, err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		names = append(names, address)
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, tell)
	cmd.Env = append(os.Environ(), "LISTEN_FDS="+strconv.Itoa(len(names)), "LISTEN_FDNAMES="+strings.Join(names, "|"),
		handedEnv+"="+strconv.Itoa(firstFD+len(names)))
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the new process cannot be started: %w", err)
	}
	tell.Close() // so that the pipe ends when the new process does
	if err := readyFrom(ctx, listen); err != nil {
		cmd.Process.Kill()
		err = fmt.Errorf("the new process did not become ready: %w (see its messages in the log above)", err)
		if ended := cmd.Wait(); !errors.Is(ended, syscall.ECHILD) { // otherwise only the service manager knows how it ended
			err = fmt.Errorf("%w; %v", err, ended)
		}
		return err
	}
	s.handed.Store(true)
	close(s.over)
	s.notify("MAINPID=" + strconv.Itoa(cmd.Process.Pid))
	s.log.Info("a new process takes over; this one finishes its requests", "new_pid", cmd.Process.Pid)
	go cmd.Wait()
	return nil
}

// readyFrom waits for the new process to say that it is ready.
func readyFrom(ctx context.Context, pipe *os.File) error {
	pipe.SetReadDeadline(time.Now().Add(startTime))
	defer context.AfterFunc(ctx, func() { pipe.SetReadDeadline(time.Now()) })()
	word := make([]byte, len(readyWord))
	_, err := io.ReadFull(pipe, word)
	switch {
	case err == nil && string(word) == readyWord:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("it took too long")
	case err == nil:
		return fmt.Errorf("it said %q", word)
	}
	return errors.New("it ended")
}
