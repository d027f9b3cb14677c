package node

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/walltime"
)

// clock is room time: set once at the start, then driven by the process's monotonic clock. The wall clock may be
// stepped at any moment, and sessions must not end by that.
type clock struct {
	base  anteroom.Time
	start time.Time // with its monotonic reading
}

func (c *clock) now() anteroom.Time { return c.base.Add(time.Since(c.start)) }

// at returns the room time of a reading of the process's clock.
func (c *clock) at(t time.Time) anteroom.Time { return c.base.Add(t.Sub(c.start)) }

// mark is a point in time as the journal knows it: room time, and the machine's own clock, which tells the length of an
// interruption unless the machine was rebooted.
type mark struct {
	at   anteroom.Time
	boot [16]byte      // identity of the boot; zero when unknown
	up   time.Duration // since the boot

	ended  bool          // the process that wrote it has stopped in order, and this is its last record
	newest anteroom.Time // of this record and all events before it
}

// startClock continues room time after the last mark (zero: there is none). shift is the part of the interruption that
// cannot be known to have passed: all of it after a reboot, none without one. Older sessions and rate slots are held
// that much longer, so that no step of the wall clock can free them early.
func startClock(last mark) (c clock, shift time.Duration) {
	c = clock{base: anteroom.TimeOf(walltime.Now()), start: time.Now()}
	if last.at == 0 {
		return c, 0
	}
	var elapsed time.Duration
	if boot, up := bootClock(); boot != [16]byte{} && boot == last.boot && up >= last.up {
		// Both readings are cut to hundredths of a second, so a little less is certain to have passed.
		elapsed = max(0, up-last.up-10*time.Millisecond)
	}
	earliest := last.at.Add(elapsed)
	c.base = max(c.base, earliest+1)
	return c, c.base.Sub(earliest)
}

// bootClock identifies the boot and returns the time since. A zero boot means unknown.
func bootClock() (boot [16]byte, up time.Duration) {
	if boot = thisBoot(); boot == [16]byte{} {
		return boot, 0
	}
	since, err := uptime()
	if err != nil {
		return [16]byte{}, 0
	}
	return boot, since
}

var uptime = readUptime // tests have another

// readUptime returns the time since the boot, including time asleep, to a hundredth of a second.
func readUptime() (time.Duration, error) {
	seconds, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(seconds), " ")
	return time.ParseDuration(first + "s")
}

// thisBoot identifies the boot. It is read once: a process never sees two boots, and every record needs it.
var thisBoot = sync.OnceValue(func() (boot [16]byte) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return boot
	}
	digits := strings.ReplaceAll(strings.TrimSpace(string(raw)), "-", "")
	if len(digits) != 32 {
		return boot
	}
	for i := range boot {
		boot[i] = hexDigit(digits[2*i])<<4 | hexDigit(digits[2*i+1])
	}
	return boot
})

func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 0
}
