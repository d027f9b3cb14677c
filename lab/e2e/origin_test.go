package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/sim/demo/shop"
)

// origin is an nginx that serves files under /files/ and passes everything else to the demo
// shop, whose requests are recorded.
type origin struct {
	url string
	dir string // of the files

	prefix, address, app string // of nginx: its folder, where it listens, what is behind it
	stop                 func() // ends nginx

	mu       sync.Mutex
	requests []seen
}

// seen is a request as the application behind nginx saw it.
type seen struct {
	method, target string
	header         http.Header
	body           string // of a form
}

func startOrigin(t *testing.T) *origin {
	t.Helper()
	app, err := shop.New(shop.Config{})
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	o := &origin{url: "http://" + address, dir: filepath.Join(t.TempDir(), "files")}
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body []byte
		if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
			body, _ = io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		o.mu.Lock()
		o.requests = append(o.requests, seen{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
		o.mu.Unlock()
		app.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		behind.CloseClientConnections()
		behind.Close()
	})
	prefix := t.TempDir()
	if err := os.Mkdir(o.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o.add(t, "plain.html", "<!doctype html><title>plain</title><p>a file")
	o.add(t, "long.txt", strings.Repeat("All work and no play makes a dull line. ", 5000))
	o.prefix, o.address, o.app = prefix, address, strings.TrimPrefix(behind.URL, "http://")
	o.startNginx(t)
	return o
}

// add puts a file under /files/.
func (o *origin) add(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// startNginx starts nginx, again after stop.
func (o *origin) startNginx(t *testing.T) {
	t.Helper()
	nginx, err := find("nginx")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(o.prefix, "nginx.conf")
	text := fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	types { text/html html; text/plain txt; text/javascript js; image/svg+xml svg; }
	gzip on;
	gzip_types text/plain;
	map $http_upgrade $connection_header { default upgrade; "" ""; }
	server {
		listen %[2]s;
		location /files/ { alias %[3]s/; etag on; }
		location / {
			proxy_pass http://%[4]s;
			proxy_http_version 1.1;
			proxy_set_header Host $http_host;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection $connection_header;
			proxy_buffering off;
		}
	}
}
`, o.prefix, o.address, o.dir, o.app)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(nginx, "-p", o.prefix, "-e", "stderr", "-c", conf)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	o.stop = func() {
		cmd.Process.Kill()
		<-ended
	}
	t.Cleanup(o.stop)
	eventually(t, 10*time.Second, func() string {
		select {
		case <-ended:
			t.Fatalf("nginx has ended: %s", said.String())
		default:
		}
		res, err := http.Get(o.url + "/files/plain.html")
		if err != nil {
			return err.Error()
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return res.Status
		}
		return ""
	})
}

// seen returns the requests that the application got for a target, in their order.
func (o *origin) seen(method, target string) []seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []seen
	for _, r := range o.requests {
		if r.method == method && r.target == target {
			out = append(out, r)
		}
	}
	return out
}

// all returns every request that the application got.
func (o *origin) all() []seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.requests)
}

func (o *origin) String() string {
	var b strings.Builder
	for _, r := range o.all() {
		fmt.Fprintln(&b, r.method, r.target)
	}
	return b.String()
}
