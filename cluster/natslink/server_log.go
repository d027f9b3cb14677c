package natslink

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// logger hands what the embedded server says to slog and remembers the last complaint.
// Its notices (start, stop, limits) are details to an operator of Anteroom.
type logger struct {
	log *slog.Logger

	mu        sync.Mutex
	complaint string
	on        func(complaint string) // nil means none
}

func (l *logger) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
func (l *logger) Tracef(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
func (l *logger) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l *logger) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v) }

func (l *logger) say(level slog.Level, format string, v []any) {
	text := fmt.Sprintf(format, v...)
	if level >= slog.LevelError {
		l.mu.Lock()
		l.complaint = text
		if l.on != nil {
			l.on(text)
		}
		l.mu.Unlock()
	}
	l.log.Log(context.Background(), level, text, "from", "nats")
}

// last returns the last complaint, or "".
func (l *logger) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.complaint
}

// onComplaint makes fn be called with every complaint, until it is called again.
func (l *logger) onComplaint(fn func(text string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = fn
}
