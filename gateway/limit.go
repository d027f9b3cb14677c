package gateway

import (
	"sync"
	"time"
)

// limit calls late at a moment, unless the moment is taken back before. A timer is set for it,
// or for an earlier moment, at which it looks again: so a busy connection costs no timer for
// every request, as a deadline in net/http would.
type limit struct {
	mu sync.Mutex
	// late is called with mu held, on a goroutine of its own. It returns how much later it wants
	// to be called again, or zero. Nil: nothing is bounded.
	late  func() time.Duration
	at    time.Time // zero: none
	timer *time.Timer
	set   time.Time // when the timer fires; zero: not set
}

// calls makes f what happens from now on.
func (l *limit) calls(f func() time.Duration) {
	l.mu.Lock()
	l.late = f
	l.mu.Unlock()
}

// until sets the moment and reports whether anything will happen at it.
func (l *limit) until(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late == nil {
		return false
	}
	l.setLocked(at)
	return true
}

// lift takes back what until has said. When it returns, late is not running.
func (l *limit) lift() {
	l.mu.Lock()
	l.at = time.Time{}
	l.mu.Unlock()
}

// end lifts the limit, stops its timer and forgets late.
func (l *limit) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.set, l.late = time.Time{}, time.Time{}, nil
	if l.timer != nil {
		l.timer.Stop()
	}
}

func (l *limit) setLocked(at time.Time) {
	l.at = at
	switch {
	case l.timer == nil:
		l.timer = time.AfterFunc(time.Until(at), l.look)
	case l.set.IsZero() || at.Before(l.set):
		l.timer.Reset(time.Until(at))
	default:
		return
	}
	l.set = at
}

// look is what the timer does.
func (l *limit) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set = time.Time{}
	switch {
	case l.at.IsZero() || l.late == nil:
	case time.Now().Before(l.at):
		l.setLocked(l.at)
	default:
		l.at = time.Time{}
		if again := l.late(); again > 0 {
			l.setLocked(time.Now().Add(again))
		}
	}
}
