//go:build unix

package server

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkStart shows what a start costs with one room and with ten thousand: CPU time, and memory that is in use afterwards.
func BenchmarkStart(b *testing.B) {
	for _, rooms := range []int{1, 10_000} {
		b.Run(fmt.Sprint(rooms), func(b *testing.B) {
			for range b.N {
				heap, cpu := inUse(), cpuTime(b)
				startServer(b, manyRooms(rooms))
				cpu = cpuTime(b) - cpu
				b.ReportMetric(cpu.Seconds(), "cpu-s")
				b.ReportMetric(float64(inUse()-heap)/1e6, "MB")
			}
		})
	}
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
