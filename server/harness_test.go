package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// logbook keeps what a server logs, as text, and lets tests wait for a line.
type logbook struct {
	mu    sync.Mutex
	lines []string
	news  chan struct{} // closed when a line is added
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, strings.TrimSuffix(string(p), "\n"))
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
	return len(p), nil
}

func (b *logbook) from(i int) ([]string, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.news == nil {
		b.news = make(chan struct{})
	}
	return b.lines[min(i, len(b.lines)):], b.news
}

func (b *logbook) String() string { l, _ := b.from(0); return strings.Join(l, "\n") }

// mark returns where the next line will stand.
func (b *logbook) mark() int { l, _ := b.from(0); return len(l) }

// await returns the first line after mark that holds the text.
func (b *logbook) await(t testing.TB, mark int, text string) string {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		lines, news := b.from(mark)
		for _, l := range lines {
			if strings.Contains(l, text) {
				return l
			}
		}
		select {
		case <-news:
		case <-limit.C:
			t.Fatalf("no line with %q in the log since then:\n%s", text, strings.Join(lines, "\n"))
		}
	}
}

// running is a server under test, with its configuration file and an origin behind it.
type running struct {
	t      testing.TB
	dir    string // of the file and the data
	file   string
	log    *logbook
	s      *Server
	origin *httptest.Server
	push   []netip.Prefix // networks of push services
	end    func() error   // stops it and returns what Run returned; safe to call twice
	broken bool           // the test has closed the store, and Run says that the end is not on record
}

// listenAnywhere are the addresses of every test.
const listenAnywhere = `
listen: 127.0.0.1:0
admin: localhost:0
data: data
`

const oneRoom = `
rooms:
  - {name: shop, host: "*", total_active_users: 1, new_users_per_minute: 100}
`

// prepareServer writes the configuration, in which ORIGIN stands for the origin's URL.
func prepareServer(t testing.TB, yaml string) *running {
	t.Helper()
	r := &running{t: t, dir: t.TempDir(), log: &logbook{}}
	r.file = filepath.Join(r.dir, "anteroom.yaml")
	r.origin = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "the shop: "+r.URL.Path)
	}))
	t.Cleanup(r.origin.Close)
	r.write(yaml)
	return r
}

func (r *running) site() string {
	return fmt.Sprintf("sites: [{hosts: \"*\", origins: %q}]\n", r.origin.URL)
}

// write replaces the configuration file in one step.
func (r *running) write(yaml string) {
	r.t.Helper()
	if !strings.Contains(yaml, "sites:") {
		yaml += r.site()
	}
	r.replace(r.file, strings.ReplaceAll(yaml, "ORIGIN", r.origin.URL))
}

func (r *running) replace(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) options() Options {
	return Options{
		PushNetworks: r.push,
		Load: func() (config.Config, error) {
			return config.Load(config.LoadOptions{File: r.file, Check: Check, CheckSecret: CheckSecret})
		},
		Log:     slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Version: "test",
	}
}

// start opens the server and serves until the test ends.
func (r *running) start() *running {
	r.t.Helper()
	s, err := New(r.t.Context(), r.options())
	if err != nil {
		r.t.Fatal(err)
	}
	r.serve(s)
	return r
}

func (r *running) serve(s *Server) {
	r.s = s
	mark := r.log.mark()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() { defer close(done); err = s.Run(ctx) }()
	r.end = func() error { stop(); <-done; return err }
	r.t.Cleanup(func() {
		if err := r.end(); (err != nil) != r.broken {
			r.t.Errorf("Run: %v", err)
		}
	})
	r.log.await(r.t, mark, "msg=serving")
}

func startServer(t testing.TB, yaml string) *running {
	t.Helper()
	return prepareServer(t, listenAnywhere+yaml).start()
}

// answer is a response with its body read.
type answer struct {
	*http.Response
	body string
}

func (r *running) do(req *http.Request, err error) answer {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{res, string(body)}
}

func (r *running) admin(method, path string, header ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.s.Addresses().Admin+path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	return r.do(req, err)
}

// visit is a request of a visitor with these cookies.
func (r *running) visit(path string, cookies ...*http.Cookie) answer {
	r.t.Helper()
	req, err := http.NewRequest("GET", "http://"+r.s.Addresses().Visitors[0]+path, nil)
	for _, c := range cookies {
		req.AddCookie(c)
	}
	req.Header.Set("Accept", "text/html")
	return r.do(req, err)
}

// isIn reports whether the origin answered.
func (a answer) isIn() bool { return strings.HasPrefix(a.body, "the shop") }

func (r *running) room(name string) *anteroom.Status {
	for i, room := range r.s.Config().Rooms {
		if room.Name == name {
			return &r.s.Status()[i]
		}
	}
	return nil
}

// reload has the file read and returns the error.
func (r *running) reload() error { return r.s.Reload(r.t.Context(), "test") }

func (r *running) mustReload(yaml string) {
	r.t.Helper()
	r.write(listenAnywhere + yaml)
	if err := r.reload(); err != nil {
		r.t.Fatal(err)
	}
}

func mustWrite(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b)
}
