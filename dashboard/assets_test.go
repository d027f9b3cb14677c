package dashboard

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"
)

var named = regexp.MustCompile(`/assets/[a-z]+-[0-9a-f]{16}\.[a-z]+`)

// TestThePageAndItsFiles: the page names its files by their content, so that browsers keep them
// for ever and never mix those of two versions.
func TestThePageAndItsFiles(t *testing.T) {
	w := newWorld(t)
	page := w.ask("GET", "/", "")
	if page.StatusCode != 200 || page.Header.Get("Cache-Control") != "no-cache" || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", page.StatusCode, page.Header)
	}
	if strings.Contains(page.body, "<script>") || strings.Contains(page.body, "style=") || strings.Contains(page.body, "://") {
		t.Error("the page has a script or a style in it, or names another host")
	}
	files := named.FindAllString(page.body, -1)
	if len(files) < 4 {
		t.Fatalf("files %q", files)
	}
	for _, path := range files {
		plain := w.ask("GET", path, "")
		small := w.ask("GET", path, "", "Accept-Encoding", "br, gzip;q=0.8")
		if plain.StatusCode != 200 || plain.Header.Get("Content-Encoding") != "" || small.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %d %v, %v", path, plain.StatusCode, plain.Header, small.Header)
		}
		z, err := gzip.NewReader(bytes.NewReader([]byte(small.body)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || string(got) != plain.body {
			t.Errorf("%s: the compressed form is another: %v", path, err)
		}
		for _, a := range []answer{plain, small} {
			if a.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || a.Header.Get("Vary") != "Accept-Encoding" || a.Header.Get("Content-Type") == "" {
				t.Errorf("%s: %v", path, a.Header)
			}
		}
		if plain.Header.Get("ETag") == small.Header.Get("ETag") {
			t.Errorf("%s: both forms have the tag %s", path, plain.Header.Get("ETag"))
		}
		if a := w.ask("GET", path, "", "If-None-Match", `"x", W/`+plain.Header.Get("ETag")); a.StatusCode != 304 || a.body != "" {
			t.Errorf("%s: %d with its tag", path, a.StatusCode)
		}
		if a := w.ask("GET", path, "", "If-None-Match", plain.Header.Get("ETag"), "Accept-Encoding", "gzip"); a.StatusCode != 200 {
			t.Errorf("%s: %d with the tag of the other form", path, a.StatusCode)
		}
		if a := w.ask("HEAD", path, ""); a.StatusCode != 200 || a.body != "" || a.Header.Get("Content-Length") != plain.Header.Get("Content-Length") {
			t.Errorf("HEAD %s: %d", path, a.StatusCode)
		}
	}
	if a := w.ask("GET", "/", "", "If-None-Match", page.Header.Get("ETag")); a.StatusCode != 304 {
		t.Errorf("the page with its tag: %d", a.StatusCode)
	}
}

func TestAcceptEncoding(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "br": false, "br, gzip": true, "gzip;q=0": false, "gzip; q=0.0": false, "*": true, "*;q=0": false, "deflate;q=1,gzip;q=0.1": true, "gzipped": false,
	} {
		if got := accepts(header); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

// TestNothingElseIsAFile: there is no way from the names of files to others.
func TestNothingElseIsAFile(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{
		"/assets/", "/assets/index.html", "/assets/dashboard.js", "/assets/../dist/index.html", "/assets/..%2fassets.go", "/assets/%2e%2e/assets.go", "/assets//etc/passwd",
		"/assets/..\\assets.go", "/assets/dashboard-0000000000000000.js", "/assets/%00", "/favicon.ico", "/robots.txt", "/nothing", "/-/nothing", "/../etc/passwd",
	} {
		if a := w.ask("GET", path, ""); a.StatusCode != 404 || strings.Contains(a.body, "package") || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %.60q", path, a.StatusCode, a.body)
		}
	}
	// A browser that goes to any place of the page gets it; the page says what there is.
	shell := w.ask("GET", "/", "").body
	for _, path := range []string{"/rooms/example.com/shop", "/rooms/%2A/demo", "/tokens", "/no/such/page"} {
		if a := w.ask("GET", path, "", "Accept", "text/html,*/*;q=0.8"); a.StatusCode != 200 || a.body != shell {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	if a := w.ask("GET", "/-/nothing", "", "Accept", "text/html"); a.StatusCode != 404 {
		t.Errorf("/-/nothing: %d", a.StatusCode)
	}
}
