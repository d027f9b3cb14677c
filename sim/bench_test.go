//go:build unix

package sim

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// BenchmarkDay is what the speed of the simulator is quoted for: a line that lasts for nine
// hours. Its goal is one million visitor-hours per CPU-minute.
func BenchmarkDay(b *testing.B) { benchmark(b, "day") }

// BenchmarkBacklog is a small world: what one scenario among many costs.
func BenchmarkBacklog(b *testing.B) { benchmark(b, "backlog") }

// BenchmarkMillion is a large one: a million visitors at once.
func BenchmarkMillion(b *testing.B) { benchmark(b, "million") }

// benchmark measures the processor's time, not the clock's: the machine may be shared.
func benchmark(b *testing.B, name string) {
	sc, ok := Named(name)
	if !ok {
		b.Fatalf("there is no scenario %q", name)
	}
	var hours, requests float64
	began := processorTime(b)
	for i := range b.N {
		w, err := newWorld(sc, uint64(i+1), Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := w.run(context.Background()); err != nil {
			b.Fatal(err)
		}
		hours += w.result(uint64(i+1), 0).Numbers.VisitorHours
		requests += float64(w.judge.decisions)
	}
	took := processorTime(b) - began
	b.ReportMetric(hours/took.Minutes(), "visitor-h/CPU-min")
	b.ReportMetric(float64(took.Nanoseconds())/requests, "CPU-ns/request")
	b.ReportMetric(0, "ns/op")
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		b.ReportMetric(float64(u.Maxrss)/1024, "MB-peak")
	}
}

// processorTime is what this process has used of all processors so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
