//go:build unix

package natslink

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/anteroom/anteroom/cluster"
)

// Damage is done at so many positions of each file; 0 means at every one, which takes
// hours. The positions differ from run to run, the seed is said when something fails.
var (
	damagePositions = flag.Int("positions", 6, "positions of each file to damage")
	damageSeed      = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the positions")
)

// damageConfig gives files of 4 MiB, so that the journal has two.
func damageConfig(dir string) Config { return Config{Dir: dir, MaxJournal: 8 << 20} }

type content struct {
	keys    map[string]string
	journal []string
}

// writeContent fills the link with every kind of thing that a store can hold.
func writeContent(t *testing.T, l opened) content {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c := content{keys: map[string]string{}}
	for i := range 60 {
		r := fmt.Sprintf("record %d %s", i, strings.Repeat("r", i%7*i%7*900))
		if i%3 == 2 {
			r += strings.Repeat("long", 60<<10)
		}
		must(l.Append(t.Context(), []byte(r)))
		c.journal = append(c.journal, r)
		key, value := fmt.Sprintf("key.%d", i%17), fmt.Sprintf("value %d %s", i, strings.Repeat("v", i*5))
		_, err := l.Put(t.Context(), key, []byte(value))
		must(err)
		c.keys[key] = value
		if i%10 == 9 {
			must(l.Delete(t.Context(), key))
			delete(c.keys, key)
		}
	}
	return c
}

// judge opens the directory: what it holds must be the content, or damage is reported.
func judge(dir string, want content) (found bool, err error) {
	l, err := tryOpen(damageConfig(dir))
	if err != nil {
		return reported(err)
	}
	defer l.Close()
	ctx := context.Background()
	keys, err := l.Keys(ctx, "")
	if err != nil {
		return reported(err)
	}
	if len(keys) != len(want.keys) {
		return false, fmt.Errorf("%d keys instead of %d: %q", len(keys), len(want.keys), keys)
	}
	for _, k := range keys {
		e, err := l.Get(ctx, k)
		if err != nil {
			if found, err := reported(err); err != nil {
				return found, err
			}
			found = true
			continue
		}
		if string(e.Value) != want.keys[k] {
			return false, fmt.Errorf("key %s holds %.40q instead of %.40q", k, e.Value, want.keys[k])
		}
	}
	n := 0
	err = l.Replay(ctx, func(_ time.Time, r []byte) error {
		if n >= len(want.journal) || string(r) != want.journal[n] {
			return fmt.Errorf("record %d is %.40q", n, r)
		}
		n++
		return nil
	})
	if err != nil {
		return reported(err)
	}
	if n != len(want.journal) {
		return false, fmt.Errorf("%d records instead of %d", n, len(want.journal))
	}
	return found, nil
}

func reported(err error) (bool, error) {
	if d := (*cluster.DamagedError)(nil); errors.As(err, &d) && d.What != "" {
		return true, nil
	}
	return false, err
}

// TestDamageIsNeverAccepted damages every file of a store in many ways. The store then
// still holds everything, or says that it is damaged; it never holds anything else.
func TestDamageIsNeverAccepted(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	template := t.TempDir()
	l := open(t, damageConfig(template))
	want := writeContent(t, l)
	// What kill -9 leaves is what is in the files now.
	killed := image(t, template)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"closed": template, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(*damageSeed, 0))
			files := filesOf(t, dir)
			if len(files) < 8 {
				t.Fatalf("only %q", files)
			}
			tries, noticed := 0, 0
			try := func(what string, damage func(dir string) error) {
				t.Helper()
				work := image(t, dir)
				if err := damage(work); err != nil {
					t.Fatal(err)
				}
				found, err := judge(work, want)
				if err != nil {
					t.Errorf("%s (-seed %d): %v", what, *damageSeed, err)
				}
				if tries++; found {
					noticed++
				}
				os.RemoveAll(work)
			}
			try("nothing", func(string) error { return nil })
			if noticed > 0 {
				t.Fatal("damage is reported where there is none")
			}
			for i, name := range files {
				at := func(dir string) string { return filepath.Join(dir, name) }
				info, err := os.Stat(at(dir))
				if err != nil {
					t.Fatal(err)
				}
				for _, pos := range positions(rnd, int(info.Size())) {
					bit := byte(1) << rnd.IntN(8)
					try(fmt.Sprintf("%s: byte %d xor %d", name, pos, bit), func(dir string) error {
						return edit(at(dir), func(b []byte) []byte { b[pos] ^= bit; return b })
					})
					try(fmt.Sprintf("%s: cut to %d bytes", name, pos), func(dir string) error {
						return os.Truncate(at(dir), int64(pos))
					})
					try(fmt.Sprintf("%s: page of %d zeroed", name, pos), func(dir string) error {
						return edit(at(dir), func(b []byte) []byte {
							from := pos &^ 4095
							clear(b[from:min(from+4096, len(b))])
							return b
						})
					})
				}
				try(name+": removed", func(dir string) error { return os.Remove(at(dir)) })
				try(name+": doubled", func(dir string) error {
					return edit(at(dir), func(b []byte) []byte { return append(b, b...) })
				})
				other := filepath.Join(files[(i+1+rnd.IntN(len(files)-1))%len(files)])
				try(name+": swapped with "+other, func(dir string) error {
					tmp := filepath.Join(dir, "tmp")
					return errors.Join(os.Rename(at(dir), tmp), os.Rename(filepath.Join(dir, other), at(dir)), os.Rename(tmp, filepath.Join(dir, other)))
				})
			}
			t.Logf("%d files, %d damages, %d reported, the others did not matter", len(files), tries, noticed)
			if noticed < tries/4 {
				t.Errorf("%d of %d damages reported: the test damages what does not matter", noticed, tries)
			}
		})
	}
}

// image copies a directory as an image of the disk would: what is in it does not notice.
func image(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range filesOf(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestNewJournalWhateverIsWrongWithIt: any damage of the journal's files can be left behind, and the keys
// are kept.
func TestNewJournalWhateverIsWrongWithIt(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	template := t.TempDir()
	l := open(t, damageConfig(template))
	want := writeContent(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(*damageSeed, 1))
	tries := 0
	for _, name := range filesOf(t, template) {
		if !strings.Contains(name, "/"+journalStream+"/") {
			continue
		}
		for way, damage := range map[string]func(b []byte) []byte{
			"a flipped bit": func(b []byte) []byte { b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8); return b },
			"its half":      func(b []byte) []byte { return b[:len(b)/2] },
			"nothing":       func([]byte) []byte { return nil },
		} {
			dir := image(t, template)
			if err := edit(filepath.Join(dir, name), damage); err != nil {
				t.Fatal(err)
			}
			for _, fresh := range []bool{false, true, false} {
				cfg := damageConfig(dir)
				cfg.NewJournal = fresh
				l, err := tryOpen(cfg)
				if err != nil {
					t.Fatalf("%s of %s, new journal %v (-seed %d): %v", way, name, fresh, *damageSeed, err)
				}
				if keys, err := l.Keys(t.Context(), ""); err != nil || len(keys) != len(want.keys) {
					t.Errorf("%s of %s: %d keys, %v; want %d", way, name, len(keys), err, len(want.keys))
				}
				if fresh {
					if err := l.Append(t.Context(), []byte("new")); err != nil {
						t.Errorf("%s of %s (-seed %d): a new journal is not written: %v", way, name, *damageSeed, err)
					}
				}
				l.Close()
			}
			l, err := tryOpen(damageConfig(dir))
			if err != nil {
				t.Fatal(err)
			}
			last := ""
			if err := l.Replay(t.Context(), func(_ time.Time, r []byte) error { last = string(r); return nil }); err != nil || last != "new" {
				t.Errorf("%s of %s (-seed %d): the last record is %.40q, %v; want the one of the new journal", way, name, *damageSeed, last, err)
			}
			l.Close()
			tries++
		}
	}
	if tries < 6 {
		t.Errorf("%d damages: the journal has more files", tries)
	}
}

// TestCopiesAreNotBelieved: a directory that was put back from a copy has all keys, and a journal that is
// not believed, until a new one is begun.
func TestCopiesAreNotBelieved(t *testing.T) {
	t.Parallel()
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	l := open(t, Config{Dir: dir})
	known := birth(filepath.Join(dir, bornName)) != 0 // some file systems do not tell when a file was made
	want := writeContent(t, l)
	l.Close()
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fresh, refused bool
	}{{false, known}, {false, known}, {true, false}, {false, false}} {
		l, err := tryOpen(Config{Dir: backup, NewJournal: c.fresh})
		if err != nil {
			t.Fatal(err)
		}
		if keys, err := l.Keys(t.Context(), ""); err != nil || len(keys) != len(want.keys) {
			t.Errorf("%d keys, %v; want %d", len(keys), err, len(want.keys))
		}
		n := 0
		err = l.Replay(t.Context(), func(time.Time, []byte) error { n++; return nil })
		damage, damaged := errors.AsType[*cluster.DamagedError](err)
		if damaged != c.refused || damaged && !damage.Copy || known && n != 0 {
			t.Errorf("new journal %v: %d records, %v", c.fresh, n, err)
		}
		l.Close()
	}
}

func positions(rnd *rand.Rand, size int) []int {
	if size == 0 {
		return nil
	}
	if *damagePositions == 0 || *damagePositions >= size {
		all := make([]int, size)
		for i := range all {
			all[i] = i
		}
		return all
	}
	some := []int{0, size - 1}
	for range *damagePositions - 2 {
		some = append(some, rnd.IntN(size))
	}
	return some
}

func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != lockName && d.Name() != reserveName && d.Name() != bornName {
			names = append(names, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func edit(name string, change func([]byte) []byte) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, change(b), 0o600)
}

// TestDamagedNumberTakesNoMemory: with its summary JetStream would fill the gap up to a
// record's damaged number in memory.
func TestDamagedNumberTakesNoMemory(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir})
	for i := range 20 {
		if _, err := l.Put(t.Context(), fmt.Sprintf("key.%d", i), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	// The second record's number begins 4 bytes into it, least significant byte first.
	block := filepath.Join(dir, "jetstream/$G/streams", keysStream, "msgs/1.blk")
	if err := edit(block, func(b []byte) []byte {
		second := binary.LittleEndian.Uint32(b)
		b[second+4+3] ^= 1 << 3
		return b
	}); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := tryOpen(Config{Dir: dir}); !errors.As(err, new(*cluster.DamagedError)) {
		t.Errorf("%v, want a DamagedError", err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
		t.Errorf("opening it took %d MiB", took>>20)
	}
}

// TestLossInTheMiddleIsNoticed: something is gone and what was written last is there.
func TestLossInTheMiddleIsNoticed(t *testing.T) {
	t.Parallel()
	fill := func(t *testing.T) (string, opened) {
		dir := t.TempDir()
		l := open(t, Config{Dir: dir})
		for i := range 10 {
			if _, err := l.Put(t.Context(), fmt.Sprintf("key.%d", i), []byte("value")); err != nil {
				t.Fatal(err)
			}
			if err := l.Append(t.Context(), []byte("record")); err != nil {
				t.Fatal(err)
			}
		}
		return dir, l
	}
	damaged := new(*cluster.DamagedError)
	t.Run("a key", func(t *testing.T) {
		dir, l := fill(t)
		if err := l.eng.purge(t.Context(), keysStream, 6, jetstream.WithPurgeSubject(keysSubject+"key.4")); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Get(t.Context(), "key.4"); !errors.As(err, damaged) {
			t.Errorf("Get: %v, want a DamagedError", err)
		}
		l.Close()
		if _, err := tryOpen(Config{Dir: dir}); !errors.As(err, damaged) {
			t.Errorf("Open: %v, want a DamagedError", err)
		}
	})
	t.Run("the head of the journal", func(t *testing.T) {
		dir, l := fill(t)
		if err := l.eng.purge(t.Context(), journalStream, 4); err != nil {
			t.Fatal(err)
		}
		l.Close()
		l = open(t, Config{Dir: dir})
		if err := l.Replay(t.Context(), func(time.Time, []byte) error { return nil }); !errors.As(err, damaged) {
			t.Errorf("Replay: %v, want a DamagedError", err)
		}
	})
	t.Run("a record", func(t *testing.T) {
		dir, l := fill(t)
		js, err := jetstream.New(l.eng.nc)
		if err != nil {
			t.Fatal(err)
		}
		s, err := js.Stream(t.Context(), journalStream)
		if err == nil {
			err = s.DeleteMsg(t.Context(), 5)
		}
		if err != nil {
			t.Fatal(err)
		}
		replay := func() error { return l.Replay(t.Context(), func(time.Time, []byte) error { return nil }) }
		if err := replay(); !errors.As(err, damaged) {
			t.Errorf("Replay while open: %v, want a DamagedError", err)
		}
		l.Close()
		l = open(t, Config{Dir: dir})
		if err := replay(); !errors.As(err, damaged) {
			t.Errorf("Replay: %v, want a DamagedError", err)
		}
	})
}
