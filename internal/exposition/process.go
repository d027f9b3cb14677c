package exposition

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// What a Go program and its process say of themselves, by the names under which they are known everywhere.
var (
	goPauses     = New(Summary, "go_gc_duration_seconds", "Pauses of the garbage collector.")
	goInfo       = New(Gauge, "go_info", "Always 1; the label has the version of Go.", "version")
	goGoroutines = New(Gauge, "go_goroutines", "Goroutines.")
	goThreads    = New(Gauge, "go_threads", "Threads of the operating system that were created.")

	processCPU     = New(Counter, "process_cpu_seconds_total", "CPU time of the process in user and system mode.")
	processOpen    = New(Gauge, "process_open_fds", "Open file descriptors.")
	processMaxOpen = New(Gauge, "process_max_fds", "Maximum number of open file descriptors.")
	processVirtual = New(Gauge, "process_virtual_memory_bytes", "Virtual memory.")
	processMaxVirt = New(Gauge, "process_virtual_memory_max_bytes", "Maximum of virtual memory.")
	processRSS     = New(Gauge, "process_resident_memory_bytes", "Resident memory.")
	processStart   = New(Gauge, "process_start_time_seconds", "Start time of the process, as a Unix timestamp.")
)

// goMemory are figures of the heap.
var goMemory = []struct {
	family *Family
	value  func(*runtime.MemStats) float64
}{
	{New(Gauge, "go_memstats_alloc_bytes", "Bytes of objects on the heap."), func(m *runtime.MemStats) float64 { return float64(m.Alloc) }},
	{New(Counter, "go_memstats_alloc_bytes_total", "Bytes of objects ever allocated."), func(m *runtime.MemStats) float64 { return float64(m.TotalAlloc) }},
	{New(Gauge, "go_memstats_sys_bytes", "Bytes obtained from the operating system."), func(m *runtime.MemStats) float64 { return float64(m.Sys) }},
	{New(Counter, "go_memstats_mallocs_total", "Objects ever allocated."), func(m *runtime.MemStats) float64 { return float64(m.Mallocs) }},
	{New(Counter, "go_memstats_frees_total", "Objects ever freed."), func(m *runtime.MemStats) float64 { return float64(m.Frees) }},
	{New(Gauge, "go_memstats_heap_alloc_bytes", "Bytes of objects on the heap."), func(m *runtime.MemStats) float64 { return float64(m.HeapAlloc) }},
	{New(Gauge, "go_memstats_heap_sys_bytes", "Bytes of the heap obtained from the operating system."), func(m *runtime.MemStats) float64 { return float64(m.HeapSys) }},
	{New(Gauge, "go_memstats_heap_idle_bytes", "Bytes in spans that are not used."), func(m *runtime.MemStats) float64 { return float64(m.HeapIdle) }},
	{New(Gauge, "go_memstats_heap_inuse_bytes", "Bytes in spans that are used."), func(m *runtime.MemStats) float64 { return float64(m.HeapInuse) }},
	{New(Gauge, "go_memstats_heap_released_bytes", "Bytes returned to the operating system."), func(m *runtime.MemStats) float64 { return float64(m.HeapReleased) }},
	{New(Gauge, "go_memstats_heap_objects", "Objects on the heap."), func(m *runtime.MemStats) float64 { return float64(m.HeapObjects) }},
	{New(Gauge, "go_memstats_stack_inuse_bytes", "Bytes of stacks that are used."), func(m *runtime.MemStats) float64 { return float64(m.StackInuse) }},
	{New(Gauge, "go_memstats_stack_sys_bytes", "Bytes of stacks obtained from the operating system."), func(m *runtime.MemStats) float64 { return float64(m.StackSys) }},
	{New(Gauge, "go_memstats_mspan_inuse_bytes", "Bytes of the runtime's mspan structures that are used."), func(m *runtime.MemStats) float64 { return float64(m.MSpanInuse) }},
	{New(Gauge, "go_memstats_mspan_sys_bytes", "Bytes of the runtime's mspan structures."), func(m *runtime.MemStats) float64 { return float64(m.MSpanSys) }},
	{New(Gauge, "go_memstats_mcache_inuse_bytes", "Bytes of the runtime's mcache structures that are used."), func(m *runtime.MemStats) float64 { return float64(m.MCacheInuse) }},
	{New(Gauge, "go_memstats_mcache_sys_bytes", "Bytes of the runtime's mcache structures."), func(m *runtime.MemStats) float64 { return float64(m.MCacheSys) }},
	{New(Gauge, "go_memstats_buck_hash_sys_bytes", "Bytes of the profiler's table."), func(m *runtime.MemStats) float64 { return float64(m.BuckHashSys) }},
	{New(Gauge, "go_memstats_gc_sys_bytes", "Bytes of the garbage collector's own data."), func(m *runtime.MemStats) float64 { return float64(m.GCSys) }},
	{New(Gauge, "go_memstats_other_sys_bytes", "Bytes of the runtime's other data."), func(m *runtime.MemStats) float64 { return float64(m.OtherSys) }},
	{New(Gauge, "go_memstats_next_gc_bytes", "Size of the heap at which the next collection takes place."), func(m *runtime.MemStats) float64 { return float64(m.NextGC) }},
	{New(Gauge, "go_memstats_last_gc_time_seconds", "Time of the last collection, as a Unix timestamp."), func(m *runtime.MemStats) float64 { return float64(m.LastGC) / 1e9 }},
}

// goLimits are metrics of the runtime that say how it was started.
var goLimits = []struct {
	family *Family
	name   string
}{
	{New(Gauge, "go_gc_gogc_percent", "Growth of the heap between collections (GOGC)."), "/gc/gogc:percent"},
	{New(Gauge, "go_gc_gomemlimit_bytes", "Limit of memory (GOMEMLIMIT)."), "/gc/gomemlimit:bytes"},
	{New(Gauge, "go_sched_gomaxprocs_threads", "Threads that run Go code at the same time (GOMAXPROCS)."), "/sched/gomaxprocs:threads"},
}

// Runtime adds what the Go runtime says.
func (s *Scrape) Runtime() {
	s.Value(goInfo, 1, runtime.Version())
	s.Value(goGoroutines, float64(runtime.NumGoroutine()))
	s.Value(goThreads, float64(pprof.Lookup("threadcreate").Count()))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for _, one := range goMemory {
		s.Value(one.family, one.value(&m))
	}
	sample := make([]metrics.Sample, len(goLimits))
	for i, one := range goLimits {
		sample[i].Name = one.name
	}
	metrics.Read(sample)
	for i, one := range goLimits {
		if sample[i].Value.Kind() == metrics.KindUint64 {
			s.Value(one.family, float64(sample[i].Value.Uint64()))
		}
	}
	gc := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&gc)
	var quantiles []Quantile
	for i, pause := range gc.PauseQuantiles {
		quantiles = append(quantiles, Quantile{float64(i) / 4, pause.Seconds()})
	}
	s.Summary(goPauses, uint64(gc.NumGC), gc.PauseTotal.Seconds(), quantiles)
}

// ticks is how many of the kernel's units of CPU time are a second, for programs of any architecture that Go knows.
const ticks = 100

// Process adds what the operating system says of the process. Only Linux says it, in /proc; elsewhere there is nothing.
func (s *Scrape) Process() {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return
	}
	// The second field, the program's name, may have any characters in its parentheses. The numbers of the fields are those
	// of proc_pid_stat(5).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	field := func(n int) float64 {
		if n-3 >= len(fields) {
			return 0
		}
		v, _ := strconv.ParseFloat(fields[n-3], 64)
		return v
	}
	s.Value(processCPU, (field(14)+field(15))/ticks)
	s.Value(processVirtual, field(23))
	s.Value(processRSS, field(24)*float64(os.Getpagesize()))
	if booted, ok := bootTime(); ok {
		s.Value(processStart, booted+field(22)/ticks)
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.Value(processOpen, float64(len(open)))
	}
	limits, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		return
	}
	for _, one := range []struct {
		name   string
		family *Family
	}{{"Max open files", processMaxOpen}, {"Max address space", processMaxVirt}} {
		_, rest, _ := strings.Cut(string(limits), one.name)
		soft, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		if v, err := strconv.ParseFloat(soft, 64); err == nil {
			s.Value(one.family, v)
		} else if soft == "unlimited" {
			s.Value(one.family, 1<<64)
		}
	}
}

// bootTime is when the machine was started, in seconds since 1970.
func bootTime() (float64, bool) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(stat), "\nbtime ")
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(line, 64)
	return v, err == nil
}
