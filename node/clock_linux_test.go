package node

import (
	"testing"
	"time"
)

func TestUptimeOfThisMachine(t *testing.T) {
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
