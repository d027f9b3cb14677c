package h1

import (
	"context"
	"sync"
)

// life is the context of the requests of a visitor's connection. It can end one connection to an origin with it, and
// costs nothing for that, which context.AfterFunc does for every request.
type life struct {
	context.Context // ends with the visitor's connection

	mu    sync.Mutex
	abort func() // nil: nothing is to be ended
	over  bool
}

// end ends the context.
func (l *life) end(cancel context.CancelFunc) {
	cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.abort != nil {
		l.abort()
		l.abort = nil
	}
}

// watch has abort called when the context ends, until forget. It reports whether it has: something else is to be ended
// already otherwise.
func (l *life) watch(abort func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.abort != nil:
		return false
	case l.over:
		abort()
	default:
		l.abort = abort
	}
	return true
}

// forget takes back what watch has said. It reports whether abort has not been called.
func (l *life) forget() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.abort = nil
	return !l.over
}
