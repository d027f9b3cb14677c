//go:build unix

package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// full has the role of a process with a full disk among the others.
var _ = func() bool { roles["cramped"] = cramped; return true }()

// cramped is a process that may not let files grow for a while, as on a full disk: it says what it sees.
func cramped(path string) {
	c := &clock{now: began}
	s := Open(Config{Path: path, Now: c.Now})
	ctx := context.Background()
	put := func(n int) {
		c.now = tick(n)
		s.Put([]*analytics.Minute{seen(n)})
		s.Step(ctx)
	}
	limit := func(bytes uint64) {
		l := syscall.Rlimit{}
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			panic(err)
		}
		l.Cur = bytes
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			panic(err)
		}
	}
	say := func(what string) {
		a, err := s.Query(ctx, analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: began.Truncate(time.Hour), To: c.now.Add(time.Hour), Every: analytics.EveryMinute})
		if err != nil {
			panic(err)
		}
		h := s.Health()
		fmt.Printf("%s: rows %d failing %v waiting %d lost %d\n", what, len(a.Rows), h.Failing != "", h.Waiting, h.Lost)
	}
	for n := range 10 {
		put(n)
	}
	say("before")
	log, err := os.Stat(path + "-wal")
	if err != nil {
		panic(err)
	}
	limit(uint64(log.Size()))
	for n := 10; n < 30; n++ {
		put(n)
	}
	say("full")
	limit(^uint64(0))
	put(30)
	c.now = c.now.Add(time.Minute) // it tries again at the latest after a minute
	s.Step(ctx)
	say("after")
	if err := s.Close(); err != nil {
		panic(err)
	}
	s = Open(Config{Path: path, Now: c.Now})
	say("again")
}

// On a full disk what is new stays in memory and can be asked for; when there is space again,
// nothing is missing. The disk is one on which files cannot grow: every write beyond fails.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	cmd, lines := child(t, "cramped", filepath.Join(t.TempDir(), "analytics.db"))
	var got []string
	for lines.Scan() {
		got = append(got, lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	want := `before: rows 10 failing false waiting 0 lost 0
full: rows 30 failing true waiting 20 lost 0
after: rows 31 failing false waiting 0 lost 0
again: rows 31 failing false waiting 0 lost 0`
	if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
