package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestDraw: every time that was measured stands in the picture, and one that was not is named.
func TestDraw(t *testing.T) {
	var output strings.Builder
	fmt.Fprintln(&output, "goos: linux\nBenchmarkProxy-2  1  5 ns/op  1.0 on-µs")
	number := 10.0
	times := make(map[string][]string)
	for _, g := range groups {
		for _, b := range g.bars {
			number += 1.1
			times[b.benchmark] = append(times[b.benchmark], fmt.Sprintf("%.2f %s-µs", number, b.role))
		}
	}
	for name, all := range times {
		fmt.Fprintf(&output, "Benchmark%s-2  1  9251748633 ns/op  26.00 bare-allocs  %s  0.99 on/off\n", name, strings.Join(all, "  "))
	}
	took, err := read(strings.NewReader(output.String()))
	if err != nil {
		t.Fatal(err)
	}
	var picture bytes.Buffer
	if err := draw(&picture, took); err != nil {
		t.Fatal(err)
	}
	number = 10.0
	for _, g := range groups {
		for _, b := range g.bars {
			number += 1.1
			if !strings.Contains(picture.String(), fmt.Sprintf(">%.1f<", number)) {
				t.Errorf("%s of %s, %.1f µs, is not in the picture", b.name, b.benchmark, number)
			}
		}
	}
	delete(took, "Peers/1kB fasthttp")
	if err := draw(&picture, took); err == nil || !strings.Contains(err.Error(), "fasthttp") {
		t.Errorf("without fasthttp: %v", err)
	}
}
