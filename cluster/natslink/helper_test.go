//go:build unix

package natslink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

func wantText(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v; want it to say %q", err, part)
	}
}

// says asks until the answer says so: what a process waits for may be clear only after some steps, and a busy machine takes longer
// for them than one question does.
func says(t testing.TB, ask func(context.Context) error, part string) error {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := ask(ctx)
		cancel()
		if err == nil || strings.Contains(err.Error(), part) || time.Now().After(limit) {
			wantText(t, err, part)
			return err
		}
	}
}

// record keeps what a process says in its log.
type record struct {
	mu    sync.Mutex
	text  strings.Builder
	added chan struct{} // closed at the next line
}

func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Write(line)
	close(r.added)
	r.added = make(chan struct{})
	return len(line), nil
}

// all returns everything so far and what is closed when there is more.
func (r *record) all() (string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String(), r.added
}

// await waits until the text is said.
func (r *record) await(ctx context.Context, text string) error {
	for {
		all, more := r.all()
		if strings.Contains(all, text) {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("nobody said %q: %w; but:\n%s", text, ctx.Err(), all)
		}
	}
}

// recordLog returns a logger and the record of everything that is said to it.
func recordLog(t testing.TB, node string) (*slog.Logger, *record) {
	r := &record{added: make(chan struct{})}
	t.Cleanup(func() {
		if text, _ := r.all(); t.Failed() {
			t.Logf("%s said:\n%s", node, text)
		}
	})
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug})), r
}

func testLog(t testing.TB, node string) *slog.Logger {
	log, _ := recordLog(t, node)
	return log
}

// publishes stores what is not ours behind the message with the number last, and returns its number. As in the product, a write
// without an answer is repeated: one try waits for soonBound only.
func publishes(t *testing.T, s *store, subject string, data []byte, last uint64) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callBound)
	defer cancel()
	for {
		seq, err := s.publish(ctx, subject, data, last, 0)
		if errors.Is(err, errWrongLast) {
			// A try without an answer may have been done.
			if r, missing := s.last(ctx, subject); missing == nil && bytes.Equal(r.data, data) {
				return r.seq
			}
		}
		if err == nil {
			return seq
		}
		if !errors.Is(err, cluster.ErrUnavailable) || !pause(ctx, minBackoff) {
			t.Fatal(err)
		}
	}
}
