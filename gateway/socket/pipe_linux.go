//go:build linux && !race

package socket

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// maxPipes is how many pipes there are at most. The kernel lets a user have 64 MB in the pipes of all processes, and gives what
// comes after them room for a page or two.
const maxPipes = 128

// pipeSize is the room of a pipe, in bytes.
const pipeSize = 256 << 10

// Pipe is room in the kernel, through which bytes pass from one connection to another without being copied into the process
// (splice(2)). One goroutine at a time uses it.
type Pipe struct {
	ends ends
	held int // bytes in it

	// Of the call in progress.
	most, moved, keep int // bytes
	err               error

	receive, send, sendNow func(fd uintptr) bool
}

// ends are the file descriptors of a pipe.
type ends struct{ out, in int }

var (
	pipes   sync.Pool
	opened  atomic.Int32
	refused atomic.Bool // the system does not let us
)

// TakePipe returns an empty pipe, nil if enough are in use or none can be had.
func TakePipe() *Pipe {
	if refused.Load() {
		return nil
	}
	if p, ok := pipes.Get().(*Pipe); ok {
		return p
	}
	if opened.Add(1) > maxPipes {
		opened.Add(-1)
		return nil
	}
	var fds [2]int
	if syscall.Pipe2(fds[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK) != nil {
		opened.Add(-1)
		return nil
	}
	syscall.Syscall(syscall.SYS_FCNTL, uintptr(fds[1]), syscall.F_SETPIPE_SZ, pipeSize) // otherwise it has what the system gives
	p := &Pipe{ends: ends{fds[0], fds[1]}}
	p.receive, p.send, p.sendNow = p.receiveFrom, p.sendTo, func(fd uintptr) bool { p.sendTo(fd); return true }
	runtime.AddCleanup(p, ends.close, p.ends)
	return p
}

func (e ends) close() {
	syscall.Close(e.out)
	syscall.Close(e.in)
	opened.Add(-1)
}

// Give gives the pipe back. One with something in it is left to the garbage collector, which closes it.
func (p *Pipe) Give() {
	if p.held == 0 {
		pipes.Put(p)
	}
}

// Fill has an empty pipe take what has come on a connection, at most so many bytes; it waits until something has. The
// error is io.EOF when the other end has closed the connection, and errors.ErrUnsupported when the system has no splice(2) for us:
// then nothing has happened, and there are no pipes any more.
func (p *Pipe) Fill(from *Conn, most int64) (int, error) {
	from.in.Lock()
	defer from.in.Unlock()
	p.most, p.moved, p.err = int(min(most, pipeSize)), 0, nil
	err := from.raw.Read(p.receive)
	switch {
	case p.err == io.EOF:
		return 0, io.EOF
	case p.err == syscall.EINVAL, p.err == syscall.ENOSYS, p.err == syscall.EPERM: // sandboxes
		refused.Store(true)
		return 0, errors.ErrUnsupported
	case p.err != nil:
		return 0, from.failed("splice", p.err)
	}
	p.held = p.moved
	return p.moved, err
}

func (p *Pipe) receiveFrom(fd uintptr) bool {
	p.moved, p.err = splice(int(fd), p.ends.in, p.most)
	switch {
	case p.err == syscall.EAGAIN: // the pipe is empty: nothing has come
		p.moved, p.err = 0, nil
		return false
	case p.err == nil && p.moved == 0:
		p.err = io.EOF
	}
	return true
}

// Held is how many bytes are in the pipe.
func (p *Pipe) Held() int { return p.held }

// Drain has a connection send at most so many bytes of what is in the pipe, and waits until it has taken them; with 0, it sends
// what the connection takes without waiting. It returns how many bytes are left in the pipe.
func (p *Pipe) Drain(to *Conn, most int) (left int, err error) {
	to.out.Lock()
	defer to.out.Unlock()
	p.keep, p.err = max(p.held-most, 0), nil
	do := p.send
	if most == 0 {
		p.keep, do = 0, p.sendNow
	}
	if err = to.raw.Write(do); p.err != nil {
		err = to.failed("splice", p.err)
	}
	return p.held, err
}

func (p *Pipe) sendTo(fd uintptr) bool {
	for p.held > p.keep {
		n, err := splice(p.ends.out, int(fd), p.held-p.keep)
		switch {
		case err == syscall.EAGAIN:
			return false
		case err != nil:
			p.err = err
			return true
		}
		p.held -= n
	}
	return true
}

// splice moves bytes without waiting, also when one of the two ends would.
func splice(from, to, most int) (int, error) {
	const move, noWait = 1, 2
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(most), move|noWait)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
