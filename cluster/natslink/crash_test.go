//go:build unix

package natslink

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// The test binary starts itself again as a child that this variable sends into a role.
const roleVariable = "NATSLINK_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		// Most tests of a cluster wait for others; more of them than processors can.
		flag.Set("test.parallel", sideBySide)
		os.Exit(m.Run())
	case "writer":
		exit(writeUntilKilled(os.Getenv("NATSLINK_TEST_DIR")))
	case "node":
		exit(runNode(os.Getenv("NATSLINK_TEST_CONFIG")))
	case "core":
		exit(runCore())
	case "small files of a core":
		exit(fillCore(os.Getenv("NATSLINK_TEST_DIR")))
	case "closed directories of a core":
		exit(closeCore(os.Getenv("NATSLINK_TEST_DIR")))
	case "small files":
		exit(writeIntoFileLimit(os.Getenv("NATSLINK_TEST_DIR")))
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(t testing.TB, role, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "NATSLINK_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// writeUntilKilled appends and puts from several goroutines and says on standard output
// what was acknowledged: "a <writer> <number>" or "p <writer> <number>".
func writeUntilKilled(dir string) error {
	l, err := tryOpen(Config{Dir: dir, LockWait: 10 * time.Second})
	if err != nil {
		return err
	}
	next := map[int]int{}
	if err := l.Replay(context.Background(), func(_ time.Time, r []byte) error {
		var w, n int
		if _, err := fmt.Sscanf(string(r), "%d %d", &w, &n); err != nil {
			return err
		}
		next[w] = n + 1
		return nil
	}); err != nil {
		return err
	}
	failed := make(chan error)
	for w := range 3 {
		n := next[w]
		go func() {
			for ; ; n++ {
				record := fmt.Sprintf("%d %d %s", w, n, strings.Repeat("x", rand.IntN(3000)))
				if err := l.Append(context.Background(), []byte(record)); err != nil {
					failed <- err
					return
				}
				fmt.Printf("a %d %d\n", w, n)
				if n%4 == w {
					if _, err := l.Put(context.Background(), fmt.Sprintf("key.%d", w), fmt.Append(nil, n)); err != nil {
						failed <- err
						return
					}
					fmt.Printf("p %d %d\n", w, n)
				}
			}
		}()
	}
	return <-failed
}

// TestAcknowledgedWritesSurviveKill kills a writing process at moments of chance. What it
// had said to be acknowledged must be there.
func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	dir := t.TempDir()
	acked := map[string]map[int]int{"a": {}, "p": {}} // newest number by writer
	for round := range 6 {
		cmd := child(t, "writer", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		read := func() bool {
			line, err := lines.ReadString('\n')
			if err == io.EOF {
				return false // an unfinished line says nothing
			}
			var what string
			var w, n int
			if _, err := fmt.Sscanf(line, "%s %d %d", &what, &w, &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			acked[what][w] = n
			return true
		}
		for range 1 + rand.IntN(400) {
			if !read() {
				t.Fatalf("round %d: the writer ended by itself: %v", round, cmd.Wait())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for read() {
		}
		cmd.Wait()

		l := open(t, Config{Dir: dir})
		next := map[int]int{}
		if err := l.Replay(t.Context(), func(_ time.Time, r []byte) error {
			var w, n int
			fmt.Sscanf(string(r), "%d %d", &w, &n)
			if n != next[w] {
				return fmt.Errorf("writer %d: record %d where %d was due", w, n, next[w])
			}
			next[w]++
			return nil
		}); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for w, n := range acked["a"] {
			if next[w] <= n {
				t.Errorf("round %d: writer %d: record %d was acknowledged and is lost; the journal ends before %d", round, w, n, next[w])
			}
		}
		for w, n := range acked["p"] {
			e, err := l.Get(t.Context(), fmt.Sprintf("key.%d", w))
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			var got int
			fmt.Sscan(string(e.Value), &got)
			if got < n {
				t.Errorf("round %d: key.%d holds %d; %d was acknowledged", round, w, got, n)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAcknowledgedWritesSurviveClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	revision := uint64(0)
	for round := range 3 {
		l := open(t, Config{Dir: dir})
		n := 0
		if err := l.Replay(t.Context(), func(_ time.Time, r []byte) error {
			if string(r) != fmt.Sprint(n) {
				return fmt.Errorf("%q where %d was due", r, n)
			}
			n++
			return nil
		}); err != nil || n != 10*round {
			t.Fatalf("round %d: %d records, %v", round, n, err)
		}
		if e, err := l.Get(t.Context(), "a"); round > 0 && (err != nil || e.Revision != revision || string(e.Value) != fmt.Sprint(n-1)) {
			t.Fatalf("round %d: %v, %v; want revision %d", round, e, err, revision)
		}
		if _, err := l.Get(t.Context(), "gone"); err != cluster.ErrNotFound {
			t.Fatalf("round %d: a deleted key: %v", round, err)
		}
		for range 10 {
			if err := l.Append(t.Context(), fmt.Append(nil, n)); err != nil {
				t.Fatal(err)
			}
			r, err := l.Put(t.Context(), "a", fmt.Append(nil, n))
			if err != nil || r <= revision {
				t.Fatalf("revision %d after %d, %v", r, revision, err)
			}
			revision = r
			n++
		}
		if _, err := l.Put(t.Context(), "gone", nil); err != nil {
			t.Fatal(err)
		}
		if err := l.Delete(t.Context(), "gone"); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
