package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/freeport"
)

// BenchmarkIdleCores reports what one of three cores with one room and no visitors takes, as processes on this machine, a minute after they
// have started and for a minute: processor time in percent of one core, how often a thread began to wait, and resident memory.
func BenchmarkIdleCores(b *testing.B) {
	const settle, span = time.Minute, time.Minute
	binary := build(b)
	var cores []string
	for range 3 {
		cores = append(cores, freeport.Address(b, corePorts))
	}
	pids := make([]int, 3)
	for i, listen := range cores {
		file := filepath.Join(b.TempDir(), "anteroom.yaml")
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "secret"), []byte("b0a5c93e17f24d68ae4c71d3920fb85e6d1a4c07f3b92e58\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		pids[i] = startBinary(b, binary, file, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: localhost:0
data: data
sites: [{hosts: "*", origins: "http://127.0.0.1:1"}]
rooms: [{name: shop, host: "*", total_active_users: 9, new_users_per_minute: 1000}]
cluster: {node: core-%d, listen: %q, cores: [%s], secret_file: secret}
`, i+1, listen, strings.Join(cores, ", "))).pid
	}
	for b.Loop() {
		<-time.After(settle)
		var before [3]spent
		for i, pid := range pids {
			before[i] = spentBy(b, pid)
		}
		<-time.After(span)
		var sum spent
		most := 0.0
		for i, pid := range pids {
			now := spentBy(b, pid)
			took := now.ticks - before[i].ticks
			sum = spent{sum.ticks + took, sum.waits + now.waits - before[i].waits, sum.kB + now.kB}
			most = max(most, took/span.Seconds())
		}
		// A tick is a hundredth of a second, so ticks per second are percent.
		b.ReportMetric(sum.ticks/3/span.Seconds(), "%-of-a-core")
		b.ReportMetric(most, "%-at-most")
		b.ReportMetric(sum.waits/3/span.Seconds(), "waits/s")
		b.ReportMetric(sum.kB/3/1000, "MB-rss")
	}
}

// spent is what a process has used so far, and its memory now.
type spent struct{ ticks, waits, kB float64 }

func spentBy(b *testing.B, pid int) (u spent) {
	read := func(name string) []byte {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		return text
	}
	// Behind the name in parentheses, fields 14 and 15.
	stat := read(fmt.Sprintf("/proc/%d/stat", pid))
	var user, system float64
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if _, err := fmt.Sscan(string(fields[11])+" "+string(fields[12]), &user, &system); err != nil {
		b.Fatal(err)
	}
	u.ticks = user + system
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range threads {
		var waits float64
		for line := range strings.Lines(string(read(name))) {
			if strings.HasPrefix(line, "VmRSS:") {
				fmt.Sscanf(line, "VmRSS: %f", &u.kB)
			}
			if strings.HasPrefix(line, "voluntary_ctxt_switches:") {
				fmt.Sscanf(line, "voluntary_ctxt_switches: %f", &waits)
			}
		}
		u.waits += waits
	}
	return u
}
