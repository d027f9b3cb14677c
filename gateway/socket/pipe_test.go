//go:build linux && !race

package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func pipe(t *testing.T) *Pipe {
	t.Helper()
	p := TakePipe()
	if p == nil {
		t.Fatal("no pipe")
	}
	return p
}

// What one connection gets leaves by another whole and in order, while the reader takes its time and also when it is told how much may leave.
func TestPipe(t *testing.T) {
	p := pipe(t)
	source, from := pair(t)
	to, sink := pair(t)
	sent := bytes.Repeat([]byte("0123456789abcdefg"), 300_000)
	go func() {
		source.Write(sent)
		source.CloseWrite()
	}()
	done := make(chan error, 1)
	go func() {
		defer to.CloseWrite()
		for {
			if _, err := p.Fill(from, int64(len(sent))); err != nil {
				done <- err
				return
			}
			left, err := p.Drain(to, 0)
			for left > 0 && err == nil {
				before := left
				if left, err = p.Drain(to, 1000); before-left > 1000 {
					t.Errorf("%d bytes left instead of 1000", before-left)
				}
			}
			if err != nil {
				done <- err
				return
			}
		}
	}()
	got, err := io.ReadAll(sink)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came of %d, or others: %v", len(got), len(sent), err)
	}
	if err := <-done; err != io.EOF {
		t.Errorf("the end: %v", err)
	}
	p.Give()
}

// A pipe takes no more than it may, waits no longer than its connections, and is not used again with something in it.
func TestPipeBounds(t *testing.T) {
	p := pipe(t)
	a, b := pair(t)
	to, _ := pair(t)
	a.Write([]byte("hello"))
	if n, err := p.Fill(b, 3); n != 3 || err != nil || p.Held() != 3 {
		t.Errorf("%d bytes, %v, %d held", n, err, p.Held())
	}
	p.Give()
	if other := pipe(t); other.Held() != 0 {
		t.Error("a pipe with something in it was used again")
	}
	p = pipe(t)
	p.Fill(b, 2)
	p.Drain(to, 10)
	b.SetReadDeadline(time.Now().Add(-time.Second))
	if n, err := p.Fill(b, 1); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("too late: %d bytes, %v", n, err)
	}
	b.SetReadDeadline(time.Time{})
	a.Write([]byte("more"))
	p.Fill(b, 10)
	to.Close()
	if left, err := p.Drain(to, 10); left != 4 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("to a closed connection: %d bytes left, %v", left, err)
	}
}

// There are so many pipes and no more; those that were given back are used again.
func TestPipesAreBounded(t *testing.T) {
	pipe(t).Give()
	var all []*Pipe
	for p := TakePipe(); p != nil; p = TakePipe() {
		all = append(all, p)
	}
	if len(all) == 0 || len(all) > 128 {
		t.Errorf("%d pipes", len(all))
	}
	for _, p := range all {
		p.Give()
	}
	if TakePipe() == nil {
		t.Error("none was given back")
	}
}

// Where the system refuses, nothing is lost, and nobody tries again.
func TestPipeRefused(t *testing.T) {
	defer refused.Store(false)
	p := pipe(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "file")) // splice(2) takes no two that are not pipes
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in := p.ends.in
	p.ends.in = int(file.Fd())
	a, b := pair(t)
	a.Write([]byte("hello"))
	if n, err := p.Fill(b, 5); n != 0 || err != errors.ErrUnsupported {
		t.Errorf("%d bytes, %v", n, err)
	}
	p.ends.in = in
	if TakePipe() != nil {
		t.Error("a pipe")
	}
	if n, err := b.Read(make([]byte, 10)); n != 5 || err != nil {
		t.Errorf("what had come: %d bytes, %v", n, err)
	}
}
