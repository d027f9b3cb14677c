package store

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// roleEnv makes this program one of the processes below, on the file in fileEnv.
const (
	roleEnv = "STORE_TEST_ROLE"
	fileEnv = "STORE_TEST_FILE"
)

var roles = map[string]func(file string){"writer": writing}

func TestMain(m *testing.M) {
	if play := roles[os.Getenv(roleEnv)]; play != nil {
		play(os.Getenv(fileEnv))
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(100/fewer)); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// child starts this program in a role.
func child(t *testing.T, role, file string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, fileEnv+"="+file)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out)
}

// tick is the n-th minute of the writer's clock.
func tick(n int) time.Time { return began.Add(time.Duration(n) * time.Minute) }

// seen is what the writer's process saw in its n-th minute.
func seen(n int) *analytics.Minute {
	return minuteOfVisitors(rand.New(rand.NewPCG(uint64(n), 7)), room(1), tick(n).Truncate(time.Minute), 1, 1+n%9)
}

// writing goes on where the file ends, and says after each write how far it is.
func writing(path string) {
	c := &clock{now: began.AddDate(0, 0, 3)}
	s := Open(Config{Path: path, Now: c.Now})
	a, err := s.Query(context.Background(), analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: began.Truncate(time.Minute), To: c.now, Every: analytics.EveryMinute})
	if err != nil {
		panic(err)
	}
	for n := len(a.Rows); ; n++ {
		c.now = tick(n)
		s.Put([]*analytics.Minute{seen(n)})
		if n%3 == 0 { // sometimes one write has several minutes
			s.Step(context.Background())
			if f := s.Health().Failing; f != "" {
				panic(f)
			}
			fmt.Println(n)
		}
	}
}

// A writer is killed again and again: what it had said is there, once, and every resolution is the
// sum of its minutes.
func TestKilledWhileWriting(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "analytics.db")
	last := -1
	r := rand.New(rand.NewPCG(1, 2))
	const kills = max(12/fewer, 3)
	for range kills {
		cmd, lines := child(t, "writer", path)
		for range 1 + r.IntN(120) {
			if !lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
			if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // said before it was killed
			if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
				t.Fatal(err)
			}
		}
		cmd.Wait()
	}
	c := &clock{now: tick(last)}
	s := Open(Config{Path: path, Now: c.Now})
	defer s.Close()
	all := told{}
	q := analytics.Query{Rooms: []anteroom.RoomID{room(1)}, From: began.Truncate(24 * time.Hour), To: c.now.Add(48 * time.Hour), Histograms: true, Details: true}
	q.Every = analytics.EveryMinute
	stored := ask(t, s, q).Rows
	if len(stored) <= last {
		t.Fatalf("%d minutes are there, and %d were acknowledged", len(stored), last+1)
	}
	for n := range stored {
		all.put(seen(n))
	}
	for _, l := range levels {
		q.Every = l.every
		if diff := cmp.Diff(all.rows(room(1), q.From, q.To, l.length()), ask(t, s, q).Rows, same); diff != "" {
			t.Errorf("every %s: (-seen, +stored)\n%s", l.word, diff)
		}
	}
	var check string
	if err := s.file.read.QueryRow(`PRAGMA integrity_check`).Scan(&check); err != nil || check != "ok" {
		t.Errorf("integrity: %q, %v", check, err)
	}
	t.Logf("%d minutes, %d kills", len(stored), kills)
}
