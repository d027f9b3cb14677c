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

var offset atomic.Int64 // seconds

// start begins to read the file that the environment variable ANTEROOM_FAULT_CLOCK names: the
// seconds by which the wall clock is wrong, anew ten times a second.
var start = sync.OnceFunc(func() {
	name := os.Getenv("ANTEROOM_FAULT_CLOCK")
	if name == "" {
		return
	}
	read := func() {
		text, err := os.ReadFile(name)
		if s, perr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && perr == nil {
			offset.Store(s)
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
// time.Time does: Add moves both. The word that is changed holds the seconds from bit 30 on
// when there is a monotonic reading (see time.Time).
func wrong(t time.Time) time.Time {
	start()
	word := (*uint64)(unsafe.Pointer(&t))
	*word += uint64(offset.Load()) << 30
	return t
}
