package server

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/ticket"
)

const taken = "configuration reloaded"

func TestWatchedFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, r *running)
		limit  int
	}{
		{"replaced", func(t *testing.T, r *running) { r.write(listenAnywhere + fmt.Sprintf(shopFor, 2)) }, 2},
		{"written in place", func(t *testing.T, r *running) {
			mustWrite(t, r.file, listenAnywhere+fmt.Sprintf(shopFor, 3)+r.site())
		}, 3},
		{"written in steps", func(t *testing.T, r *running) {
			f, err := os.Create(r.file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, part := range []string{listenAnywhere, fmt.Sprintf(shopFor, 4), r.site()} {
				f.WriteString(part)
			}
		}, 4},
		{"removed and made anew", func(t *testing.T, r *running) {
			if err := os.Remove(r.file); err != nil {
				t.Fatal(err)
			}
			r.write(listenAnywhere + fmt.Sprintf(shopFor, 5))
		}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := startServer(t, fmt.Sprintf(shopFor, 1))
			mark := r.log.mark()
			c.change(t, r)
			r.log.await(t, mark, taken)
			if got := r.room("shop").TotalActiveUsers; got != c.limit {
				t.Errorf("limit %d, want %d", got, c.limit)
			}
		})
	}
}

// TestWatchedLinkIsSwapped is a mounted ConfigMap of Kubernetes: the file is a link through
// the link ..data, which is replaced. Size and time of the file need not differ.
// A log, or whatever else is written all the time, may stand beside the configuration.
func TestWatchedFileIsReadInABusyDirectory(t *testing.T) {
	r := startServer(t, fmt.Sprintf(shopFor, 1))
	done := make(chan struct{})
	var writing sync.WaitGroup
	defer writing.Wait()
	defer close(done)
	writing.Go(func() {
		tick := time.NewTicker(settleTime / 10)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-tick.C:
				mustWrite(t, filepath.Join(r.dir, "log"), fmt.Sprint(i))
			}
		}
	})
	mark := r.log.mark()
	r.write(listenAnywhere + fmt.Sprintf(shopFor, 2))
	r.log.await(t, mark, taken)
	if got := r.room("shop").TotalActiveUsers; got != 2 {
		t.Errorf("limit %d, want 2", got)
	}
}

func TestWatchedLinkIsSwapped(t *testing.T) {
	r := prepareServer(t, "")
	when := time.Now().Add(-time.Hour)
	put := func(dir string, limit int) {
		t.Helper()
		path := filepath.Join(r.dir, dir)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(path, "anteroom.yaml")
		mustWrite(t, name, listenAnywhere+fmt.Sprintf(shopFor, limit)+r.site())
		if err := os.Chtimes(name, when, when); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(r.dir, "..data")
		if err := os.Symlink(dir, link+"_tmp"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+"_tmp", link); err != nil {
			t.Fatal(err)
		}
	}
	put("..2026_1", 1)
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..data/anteroom.yaml", r.file); err != nil {
		t.Fatal(err)
	}
	r.start()
	mark := r.log.mark()
	put("..2026_2", 2)
	r.log.await(t, mark, taken)
	if got := r.room("shop").TotalActiveUsers; got != 2 {
		t.Errorf("limit %d, want 2", got)
	}
}

func TestWatchedTemplateAndKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := prepareServer(t, "")
	page := filepath.Join(r.dir, "pages", "page.html")
	if err := os.Mkdir(filepath.Dir(page), 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, page, "<p>first")
	r.write(listenAnywhere + `
rooms:
  - {name: shop, host: "*", total_active_users: 1, new_users_per_minute: 100, custom_page_file: pages/page.html}
`)
	r.start()
	inside := r.visit("/")
	mark := r.log.mark()
	r.replace(page, "<p>second")
	r.log.await(t, mark, taken)
	if a := r.visit("/"); a.body != "<p>second" {
		t.Errorf("got %q", a.body)
	}
	mark = r.log.mark()
	if _, err := ticket.RotateFile(KeyFile(filepath.Join(r.dir, "data")), time.Now(), 0); err != nil {
		t.Fatal(err)
	}
	r.log.await(t, mark, taken)
	again := r.visit("/", inside.Cookies()...)
	if !again.isIn() || len(again.Cookies()) != 1 {
		t.Errorf("after the rotation: in %v, %d cookies; want the session under a new key", again.isIn(), len(again.Cookies()))
	}
	mark = r.log.mark()
	r.replace(page, "<p>{{#unclosed}}")
	r.log.await(t, mark, "last good one stays")
	if a := r.visit("/"); a.body != "<p>second" {
		t.Errorf("a broken template: %q", a.body)
	}
}
