package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/config"
)

func TestLogSettings(t *testing.T) {
	for _, c := range []struct {
		log  config.Log
		want string
	}{
		{config.Log{Level: "info", Format: "json"}, `{"time":`},
		{config.Log{Level: "info", Format: "text"}, "time="},
		{config.Log{Level: "error", Format: "text"}, ""},
	} {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr := os.Stderr
		os.Stderr = in
		log, flush := newLog(c.log)
		log.Info("hello")
		flush()
		os.Stderr = stderr
		in.Close()
		got, err := io.ReadAll(out)
		if err != nil || !strings.HasPrefix(string(got), c.want) || (c.want == "") != (len(got) == 0) {
			t.Errorf("%+v: %q, %v", c.log, got, err)
		}
		out.Close()
	}
}

// TestNobodyTakesTheLog: whoever logs waits for nobody, and what was lost is said when somebody takes the log again.
func TestNobodyTakesTheLog(t *testing.T) {
	out, in := io.Pipe()
	lost := make(chan int64, 1)
	w := newLateWriter(in, func(n int64) { lost <- n })
	const more = 100
	for i := range 1 + lateLines + more { // one is being written
		fmt.Fprintf(w, "line %d\n", i)
	}
	w.flush() // for a bounded time
	s := bufio.NewScanner(out)
	got := 0
	for ; got < lateLines; got++ {
		if !s.Scan() || s.Text() != fmt.Sprintf("line %d", got) {
			t.Fatalf("line %d is %q", got, s.Text())
		}
	}
	go func() { // one more, if it was being written before the others came
		for s.Scan() {
			got++
		}
		close(lost)
	}()
	n := <-lost
	in.Close()
	for range lost {
	}
	if int64(got)+n != 1+lateLines+more {
		t.Errorf("%d lines, %d lost", got, n)
	}
}
