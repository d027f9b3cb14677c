package ticket

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

func keyPath(t *testing.T) string { return filepath.Join(t.TempDir(), "keys.json") }

// sameRing reports how the ring in data differs from k.
func sameRing(k *Keyring, data []byte) error {
	got, err := parse(data)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(got.Keys(), k.Keys()) {
		return errors.New("keys differ")
	}
	if got.Fixed("x") != k.Fixed("x") || !reflect.DeepEqual(got.Derive("x"), k.Derive("x")) {
		return errors.New("secrets differ")
	}
	return nil
}

func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("the directory holds %v, %v; want the key file alone", entries, err)
	}
}

func TestFirstStartMakesTheFile(t *testing.T) {
	path := keyPath(t)
	if _, err := Load(path); anteroom.KindOf(err) != anteroom.NotFound {
		t.Fatalf("Load of nothing = %v, want not found", err)
	}
	ring, created, err := LoadOrCreate(path, morning)
	if err != nil || !created {
		t.Fatalf("LoadOrCreate = %v, %v", created, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("mode %v, %v; want -rw-------", info.Mode(), err)
	}
	onlyFile(t, path)
	want := sampleTicket()
	value := seal(sealerOf(ring), want)

	again, created, err := LoadOrCreate(path, morning.Add(time.Hour))
	if err != nil || created {
		t.Fatalf("second start: created %v, %v", created, err)
	}
	mustOpen(t, sealerOf(again), value, want)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := sameRing(ring, data); err != nil {
		t.Errorf("the file is not the ring: %v", err)
	}
}

func TestManyFirstStartsAgree(t *testing.T) {
	path := keyPath(t)
	rings := make([]*Keyring, 8)
	made := make([]bool, len(rings))
	var wg sync.WaitGroup
	for i := range rings {
		wg.Go(func() {
			var err error
			if rings[i], made[i], err = LoadOrCreate(path, morning); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	makers := 0
	for i, ring := range rings {
		if made[i] {
			makers++
		}
		if ring.current.id != rings[0].current.id {
			t.Error("two starts hold different keys")
		}
	}
	if makers != 1 {
		t.Errorf("%d starts made the file", makers)
	}
	onlyFile(t, path)
}

func TestOpenFileIsRefused(t *testing.T) {
	path := keyPath(t)
	if _, _, err := LoadOrCreate(path, morning); err != nil {
		t.Fatal(err)
	}
	for mode := os.FileMode(0); mode <= 0o777; mode++ {
		if mode&0o400 == 0 {
			continue // not readable for the owner: another story
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, _, err := LoadOrCreate(path, morning)
		if mode&0o077 == 0 {
			if err != nil {
				t.Errorf("mode %04o: %v", mode, err)
			}
			continue
		}
		if anteroom.KindOf(err) != anteroom.Denied || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Fatalf("mode %04o: %v; want to be denied and told how to mend it", mode, err)
		}
		if _, err := RotateFile(path, morning, 0); anteroom.KindOf(err) != anteroom.Denied {
			t.Fatalf("mode %04o: RotateFile = %v", mode, err)
		}
	}
	onlyFile(t, path)
}

// Cut at every length: an error or, without the last line break, the whole ring; and the
// file is left as it was.
func TestCutFile(t *testing.T) {
	ring, err := NewKeyring(morning).Rotate(morning, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ring, err = ring.Prepare(morning); err != nil {
		t.Fatal(err)
	}
	whole := ring.marshal()
	path := keyPath(t)
	for n := range len(whole) {
		cut := whole[:n]
		if err := os.WriteFile(path, cut, 0o600); err != nil {
			t.Fatal(err)
		}
		got, created, err := LoadOrCreate(path, morning)
		if n == len(whole)-1 {
			if err != nil || sameRing(got, whole) != nil {
				t.Errorf("without its last line break: %v", err)
			}
			continue
		}
		if anteroom.KindOf(err) != anteroom.Invalid || created || got != nil {
			t.Fatalf("cut at %d of %d: %v, %v, %v", n, len(whole), got, created, err)
		}
		noSecretIn(t, err, ring)
		if _, err := RotateFile(path, morning, 0); err == nil {
			t.Fatalf("cut at %d: rotated", n)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, cut) {
			t.Fatalf("cut at %d: the broken file was changed (%v)", n, err)
		}
	}
}

func noSecretIn(t *testing.T, err error, ring *Keyring) {
	t.Helper()
	var in []key
	in = append(append(in, ring.keys...), ring.fixed)
	for _, one := range in {
		for _, e := range []string{fmt.Sprintf("%x", one.secret[:4]), string(one.secret[:4])} {
			if strings.Contains(err.Error(), e) {
				t.Fatalf("error holds a secret: %v", err)
			}
		}
	}
	if len(err.Error()) > 600 {
		t.Fatalf("error of %d bytes", len(err.Error()))
	}
}

// Every single byte changed: an error or the same ring (a letter of "about"), never
// another ring of keys. Times may change unnoticed; they are for people.
func TestDamagedFile(t *testing.T) {
	ring, err := NewKeyring(morning).Rotate(morning, 0)
	if err != nil {
		t.Fatal(err)
	}
	whole := ring.marshal()
	for i := range whole {
		for bit := range 8 {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << bit
			got, err := parse(bad)
			if err != nil {
				noSecretIn(t, err, ring)
				continue
			}
			if got.Fixed("x") != ring.Fixed("x") || !reflect.DeepEqual(got.Derive("x"), ring.Derive("x")) {
				t.Fatalf("byte %d bit %d: another ring without an error:\n%s", i, bit, bad)
			}
		}
	}
}

func TestFaultsAreNamed(t *testing.T) {
	ring, err := NewKeyring(morning).Rotate(morning, 0)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(ring.marshal())
	current, previous := ring.Keys()[0].ID, ring.Keys()[1].ID
	next, err := ring.Prepare(morning)
	if err != nil {
		t.Fatal(err)
	}
	swap := func(old, new string) string {
		out := strings.Replace(whole, old, new, 1)
		if out == whole {
			t.Fatalf("the file has no %q", old)
		}
		return out
	}
	for _, c := range []struct{ data, want string }{
		{"", "is empty"},
		{"   \n", "cut"},
		{"null", "version 0"},
		{"[]", "kind of value"},
		{"{}", "version 0"},
		{"\x00\x01\x02", "no JSON"},
		{swap(`"version": 1`, `"version": 2`), "version 2"},
		{swap(`"version": 1`, `"version": "1"`), "version, at byte"},
		{swap(`"about"`, `"abuot"`), "unknown member"},
		{whole + whole, "after the closing brace"},
		{whole + "x", "after the closing brace"},
		{strings.Repeat(" ", keyFileMaxBytes) + whole, "larger than"},
		{swap(`"current"`, `"presiding"`), "keys[0].state"},
		{swap(`"current"`, `"next"`), "0 current and 1 next"},
		{swap(`"previous",`, `"current",`), "keys[1].replaced: belongs to previous"},
		{swap(`"fixed"`, `"next"`), "0 fixed"},
		{swap(current, previous), "keys[0].secret: does not belong to the id"},
		{swap(current, "0"+current), "keys[0].id: is not eight"},
		{swap(current, strings.Repeat("g", 8)), "keys[0].id: is not eight"},
		{swap("2026-03-02T08:00:00Z", "yesterday"), "keys[0].created: is not a moment"},
		{swap("2026-03-02T08:00:00Z", "2026-03-02T08:00:00+01:00"), "keys[0].created: is not a moment"},
		{swap(`"secret": "`, `"secret": "A`), "keys[0].secret: is not 32 bytes"},
		{swap(`"secret": "`, `"secret": "\n`), "keys[0].secret: is not 32 bytes"},
		{swap(`"replaced": "2026`, `"replaced": "20260`), "keys[1].replaced: is not a moment"},
		{twice(t, next), "is there twice"},
	} {
		ring, err := parse([]byte(c.data))
		if err == nil || ring != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q…: %v; want …%s…", c.data, err, c.want)
		}
	}
}

// twice returns a file that names its next key twice.
func twice(t *testing.T, ring *Keyring) string {
	t.Helper()
	doubled := *ring
	doubled.keys = append([]key{ring.keys[0]}, ring.keys...)
	return string(doubled.marshal())
}

func TestRotateFile(t *testing.T) {
	path := keyPath(t)
	ring, _, err := LoadOrCreate(path, morning)
	if err != nil {
		t.Fatal(err)
	}
	want := sampleTicket()
	value := seal(sealerOf(ring), want)
	for i := range 5 {
		written, err := RotateFile(path, morning.Add(time.Duration(i)*time.Hour), 0)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if loaded.current.id != written.current.id || loaded.current.id == ring.current.id {
			t.Fatal("the file does not hold the fresh key as current")
		}
		mustOpen(t, sealerOf(loaded), value, want)
	}
	list, err := ListFile(path)
	if err != nil || len(list) != 6 || list[0].State != Current || list[5].ID != ring.Keys()[0].ID {
		t.Fatalf("ListFile = %v, %v", list, err)
	}
	if !list[1].Replaced.Equal(morning.Add(4*time.Hour)) || !list[0].Created.Equal(morning.Add(4*time.Hour)) {
		t.Errorf("times are wrong: %v", list[:2])
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v after rotating", info.Mode(), err)
	}
	onlyFile(t, path)

	// A rotation leaves room for nobody else's: its file is there, nothing changes.
	if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	if _, err := RotateFile(path, morning, 0); anteroom.KindOf(err) != anteroom.Conflict || !strings.Contains(err.Error(), "delete that file") {
		t.Errorf("rotation beside another: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed all the same")
	}
}

// Many rotations at once: each either is in the file afterwards or says it was not done.
func TestRotationsAtOnceLoseNoKey(t *testing.T) {
	path := keyPath(t)
	if _, _, err := LoadOrCreate(path, morning); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	made := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				ring, err := RotateFile(path, morning, 0)
				if anteroom.KindOf(err) == anteroom.Conflict && err != nil {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				made[ring.Keys()[0].ID] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	list, err := ListFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(made)+1 || len(made) == 0 {
		t.Errorf("%d rotations succeeded and the file has %d keys", len(made), len(list))
	}
}

func TestRotateKeepsTheLink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "keys.json")
	if _, _, err := LoadOrCreate(real, morning); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if _, err := RotateFile(link, morning, 0); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if list, err := ListFile(real); err != nil || len(list) != 2 {
		t.Errorf("the file behind the link has %v, %v", list, err)
	}
	if _, err := RotateFile(filepath.Join(dir, "none"), morning, 0); anteroom.KindOf(err) != anteroom.NotFound {
		t.Errorf("rotating nothing: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	ring, err := ringOf(keyOf(Secret{1}, Fixed, morning, time.Time{}), []key{keyOf(Secret{2}, Current, morning, time.Time{})}).Rotate(morning, 0)
	if err != nil {
		f.Fatal(err)
	}
	whole := ring.marshal()
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(nil))
	f.Add([]byte(`{"version":1,"keys":[]}`))
	f.Add([]byte(`{"version":1,"keys":[{"id":"00000000","state":"current"}]}`))
	f.Add(append(bytes.Clone(whole), whole...))
	f.Fuzz(func(t *testing.T, data []byte) {
		ring, err := parse(data)
		if (ring == nil) == (err == nil) {
			t.Fatalf("parse = %v, %v", ring, err)
		}
		if err != nil {
			return
		}
		if err := sameRing(ring, ring.marshal()); err != nil {
			t.Fatalf("what was read is not what is written back: %v", err)
		}
		s := sealerOf(ring)
		mustOpen(t, s, seal(s, anteroom.Ticket{}), anteroom.Ticket{})
	})
}

// TestExportAndImport: a copy of the keys brings tickets back; what is no copy changes nothing.
func TestExportAndImport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	ring, _, err := LoadOrCreate(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	sealed := ring.Sealer("z", "r", "c").Seal(nil, anteroom.Ticket{ID: NewID(), Arrival: 1})
	copied, err := ExportFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := RotateFile(path, time.Now(), -1); err != nil {
		t.Fatal(err)
	}
	if err := ImportFile(path, copied[:len(copied)-9], time.Now()); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("half a copy: %v", err)
	}
	opens := func() bool {
		ring, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := ring.Sealer("z", "r", "c").Open(string(sealed))
		return !got.ID.IsZero()
	}
	if opens() {
		t.Error("a forgotten key opens tickets")
	}
	if err := ImportFile(path, copied, time.Now()); err != nil || !opens() {
		t.Errorf("the copy does not bring the ticket back: %v", err)
	}
}
