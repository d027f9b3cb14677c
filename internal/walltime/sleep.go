package walltime

import (
	"context"
	"time"
)

// Sleep waits for a time, and reports whether it did to the end: false says that ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
