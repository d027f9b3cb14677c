package node

import (
	"os"
	"testing"
	"time"
)

// In a bubble of testing/synctest the time since the boot has to pass as fast as the time of day: else every restart would be one after which
// somebody had set the clock.
func TestMain(m *testing.M) {
	booted := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	uptime = func() (time.Duration, error) { return time.Since(booted), nil }
	os.Exit(m.Run())
}
