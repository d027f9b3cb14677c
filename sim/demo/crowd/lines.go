package crowd

import (
	"io"
	"sync"
)

// Lines returns a writer that several may write lines to at once.
func Lines(w io.Writer) io.Writer { return &lines{w: w} }

type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
