//go:build faultclock

package walltime

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

var offset atomic.Int64 // milliseconds

// start begins to read the file that the environment variable ANTEROOM_FAULT_CLOCK names: the
// milliseconds by which the wall clock is wrong, anew ten times a second.
var start = sync.OnceFunc(func() {
	name := os.Getenv("ANTEROOM_FAULT_CLOCK")
	if name == "" {
		return
	}
	read := func() {
		text, err := os.ReadFile(name)
		if ms, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && perr == nil {
			offset.Store(ms)
		}
	}
	read()
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			read()
		}
	}()
})

// wrong moves the wall clock reading and leaves the monotonic one as it is, which no method of
// time.Time does: Add moves both. Where there is a monotonic reading (see time.Time), the first
// word holds the nanoseconds in its lower 30 bits and the seconds above.
func wrong(t time.Time) time.Time {
	start()
	moved := t.Round(0).Add(time.Duration(offset.Load()) * time.Millisecond)
	word := (*uint64)(unsafe.Pointer(&t))
	*word = *word&^(1<<30-1) + uint64(moved.Unix()-t.Unix())<<30 + uint64(moved.Nanosecond())
	return t
}
