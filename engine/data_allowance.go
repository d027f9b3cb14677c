package engine

import (
	"time"

	"github.com/anteroom/anteroom"
)

// allowance bounds what a machine sends to others on its own account to ten messages a
// second, however many visitors there are, and lets twenty follow each other at once: what
// comes when they are used up travels together. The zero value is full.
type allowance struct {
	used float64 // of lettersAtOnce
	at   anteroom.Time
}

const lettersAtOnce = 20

func (a *allowance) may(now anteroom.Time) bool { return a.left(now) <= lettersAtOnce-1 }

// left is what is still used at a moment.
func (a *allowance) left(now anteroom.Time) float64 {
	return max(0, a.used-max(0, now.Sub(a.at).Seconds())/flushEvery.Seconds())
}

func (a *allowance) take(now anteroom.Time) {
	a.used, a.at = min(a.left(now)+1, lettersAtOnce), now
}

// next is when one more may be sent.
func (a *allowance) next() anteroom.Time {
	return a.at.Add(time.Duration(max(0, a.used-(lettersAtOnce-1)) * float64(flushEvery)))
}
