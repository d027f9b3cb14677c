package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/config"
)

const (
	// lateLines is how many lines of the log wait for whoever reads it: about ten seconds of decisions. Further ones are lost, and counted.
	lateLines = 2048
	// lateTime is how long the end of a process waits for the last lines.
	lateTime = time.Second
)

// newLog returns the log of a process that serves, and what waits for its lines to be written.
func newLog(l config.Log) (log *slog.Logger, flush func()) {
	level := slog.LevelInfo
	level.UnmarshalText([]byte(l.Level)) // config has checked it
	to := func(w io.Writer) *slog.Logger {
		o := &slog.HandlerOptions{Level: level}
		if l.Format == "text" {
			return slog.New(slog.NewTextHandler(w, o))
		}
		return slog.New(slog.NewJSONHandler(w, o))
	}
	w := newLateWriter(os.Stderr, func(lost int64) {
		to(os.Stderr).Warn("lines of the log are lost, because nobody took them in time", "lines", lost)
	})
	return to(w), w.flush
}

// lateWriter writes lines in a goroutine of its own. Whoever reads the log may stall: a terminal that is held, a logger at a pipe, journald on a
// disk that hangs. No request waits for that.
type lateWriter struct {
	to    io.Writer
	tell  func(lost int64) // once there is room again
	queue chan lateLine
	lost  atomic.Int64
}

// lateLine is a line, or who wants to hear that all before it are written.
type lateLine struct {
	text    []byte
	written chan<- struct{}
}

func newLateWriter(to io.Writer, tell func(lost int64)) *lateWriter {
	w := &lateWriter{to: to, tell: tell, queue: make(chan lateLine, lateLines)}
	go w.run()
	return w
}

func (w *lateWriter) run() {
	for line := range w.queue {
		if line.written == nil {
			w.to.Write(line.text) // nobody is left to hear of an error
		}
		if len(w.queue) == 0 {
			if lost := w.lost.Swap(0); lost > 0 {
				w.tell(lost)
			}
		}
		if line.written != nil {
			close(line.written)
		}
	}
}

// Write takes one line.
func (w *lateWriter) Write(line []byte) (int, error) {
	select {
	case w.queue <- lateLine{text: bytes.Clone(line)}:
	default:
		w.lost.Add(1)
	}
	return len(line), nil
}

// flush waits until the lines up to here are written, for lateTime at most.
func (w *lateWriter) flush() {
	limit := time.After(lateTime)
	written := make(chan struct{})
	select {
	case w.queue <- lateLine{written: written}:
	case <-limit:
		return
	}
	select {
	case <-written:
	case <-limit:
	}
}
