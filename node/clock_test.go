package node

import (
	"runtime"
	"testing"
	"time"
)

// In a bubble of testing/synctest the time since the boot has to pass as fast as the time of day: else every restart would be one after which
// somebody had set the clock.
func init() {
	booted := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	uptime = func() (time.Duration, error) { return time.Since(booted), nil }
}

func TestUptimeOfThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc/uptime")
	}
	before, err := readUptime()
	if err != nil || before <= 0 {
		t.Fatalf("%v, %v", before, err)
	}
	began := time.Now()
	for time.Since(began) < 20*time.Millisecond {
	}
	if after, err := readUptime(); err != nil || after <= before || after-before > time.Minute {
		t.Errorf("%v, 20 ms after %v: %v", after, before, err)
	}
}
