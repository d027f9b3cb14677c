package shop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Request is one line of the origin's log. Times are microseconds of a monotonic clock
// that began at the log's start.
type Request struct {
	Seen    int64  `json:"us"`                // when the origin saw it
	Sent    int64  `json:"sent,omitempty"`    // when the visitor says he sent it; 0 if he does not
	Visitor string `json:"visitor,omitempty"` // VisitorHeader
	Session string `json:"session,omitempty"` // subject of the proof
	Method  string `json:"method"`
	Path    string `json:"path"`
}

const (
	maxLine   = 16 << 10
	maxField  = 128 // of a visitor's name and of a session's
	maxLogged = 512 // of a path
)

// Log writes one JSON object per line for every request. Safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	w     *bufio.Writer
	start time.Time
	err   error
	lines int
}

// NewLog returns a log whose clock began at start, which must come from [time.Now] in
// this process. Call Flush at the end.
func NewLog(w io.Writer, start time.Time) *Log {
	return &Log{w: bufio.NewWriterSize(w, 64<<10), start: start}
}

func (l *Log) add(r *http.Request, session string) {
	one := Request{
		Visitor: short(r.Header.Get(VisitorHeader), maxField),
		Session: short(session, maxField),
		Method:  short(r.Method, maxField),
		Path:    short(r.URL.Path, maxLogged),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Taken under the lock, so that the lines are in the order of their times.
	one.Seen = time.Since(l.start).Microseconds()
	if n, err := strconv.ParseInt(r.Header.Get(SentHeader), 10, 64); err == nil && n > 0 && n <= one.Seen {
		one.Sent = n
	}
	line, err := json.Marshal(one)
	if err == nil {
		_, err = l.w.Write(append(line, '\n'))
	}
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("shop: the origin's log: %w", err)
	}
	l.lines++
}

// Lines returns the number of requests so far.
func (l *Log) Lines() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

// Flush writes what is buffered and returns the first error since the start. A log with an
// error is not complete and proves nothing.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.w.Flush(); err != nil && l.err == nil {
		l.err = fmt.Errorf("shop: the origin's log: %w", err)
	}
	return l.err
}

// ReadLog reads a log back. Its errors name the line.
func ReadLog(r io.Reader) ([]Request, error) {
	var out []Request
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), maxLine)
	line := 0
	for sc.Scan() {
		line++
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var one Request
		if err := json.Unmarshal(sc.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("origin's log, line %d: %w", line, err)
		}
		if one.Seen < 0 || one.Sent < 0 || one.Sent > one.Seen {
			return nil, fmt.Errorf("origin's log, line %d: sent at %d, seen at %d: a request cannot be seen before it was sent; are both on one clock?", line, one.Sent, one.Seen)
		}
		out = append(out, one)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("origin's log, line %d: %w", line+1, err)
	}
	return out, nil
}

func short(s string, most int) string {
	if len(s) > most {
		return s[:most]
	}
	return s
}
