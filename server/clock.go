//go:build !faultclock

package server

import (
	"context"
	"time"
)

// wallClock is the process's clock; nil means the machine's. Builds with the tag faultclock
// have one that tests put wrong.
func wallClock(context.Context) func() time.Time { return nil }
