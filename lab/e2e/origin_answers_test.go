package e2e

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What nginx does with a request, it does the same behind the gateway: the answers agree in
// status, body and every header that is not about the connection.
func TestAdmittedAnswersAreNginxsOwn(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	v := newVisitor(t, g).enter()
	first := v.get("/files/long.txt")
	etag, modified := first.Header.Get("ETag"), first.Header.Get("Last-Modified")
	if etag == "" || modified == "" {
		t.Fatalf("nginx sent no ETag or Last-Modified: %v", first.Header)
	}
	for _, c := range []struct {
		name, method, path string
		headers            []string
		status             int
	}{
		{"plain", "GET", "/files/long.txt", nil, 200},
		{"head", "HEAD", "/files/long.txt", nil, 200},
		{"gzip", "GET", "/files/long.txt", []string{"Accept-Encoding", "gzip"}, 200},
		{"not a gzip", "GET", "/files/long.txt", []string{"Accept-Encoding", "identity"}, 200},
		{"not modified by ETag", "GET", "/files/long.txt", []string{"If-None-Match", etag}, 304},
		{"not modified by date", "GET", "/files/long.txt", []string{"If-Modified-Since", modified}, 304},
		{"precondition", "GET", "/files/long.txt", []string{"If-Match", `"other"`}, 412},
		{"range", "GET", "/files/long.txt", []string{"Range", "bytes=100-199"}, 206},
		{"last bytes", "GET", "/files/long.txt", []string{"Range", "bytes=-10"}, 206},
		{"several ranges", "GET", "/files/long.txt", []string{"Range", "bytes=0-9,20-29"}, 206},
		{"range beyond the end", "GET", "/files/long.txt", []string{"Range", "bytes=999999999-"}, 416},
		{"range of a changed file", "GET", "/files/long.txt", []string{"Range", "bytes=0-9", "If-Range", `"other"`}, 200},
		{"missing", "GET", "/files/none.txt", nil, 404},
		{"wrong method", "DELETE", "/files/long.txt", nil, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			direct, err := http.NewRequest(c.method, g.origin.url+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			direct.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
			for i := 0; i < len(c.headers); i += 2 {
				direct.Header.Set(c.headers[i], c.headers[i+1])
			}
			res, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(direct)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			got := v.do(c.method, c.path, "", c.headers...)
			if got.StatusCode != res.StatusCode || res.StatusCode != c.status {
				t.Fatalf("%s, nginx itself says %s, want %d", got.Status, res.Status, c.status)
			}
			want, have := bare(res.Header), bare(got.Header)
			wantBody, haveBody := body, got.body
			if kind := res.Header.Get("Content-Type"); strings.HasPrefix(kind, "multipart/") {
				// The boundary is another each time.
				wantBody, haveBody = unbound(kind, body), unbound(got.Header.Get("Content-Type"), got.body)
				delete(want, "Content-Type")
				delete(have, "Content-Type")
			}
			if !maps.EqualFunc(have, want, slices.Equal) {
				t.Errorf("headers\n%v\nnginx's own are\n%v", have, want)
			}
			if !bytes.Equal(haveBody, wantBody) {
				t.Errorf("%d bytes, nginx itself sends %d", len(haveBody), len(wantBody))
			}
		})
	}
}

// bare is a header without what belongs to the connection or changes by the second.
func bare(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{"Date", "Connection", "Keep-Alive"} {
		h.Del(name)
	}
	return h
}

func unbound(kind string, body []byte) []byte {
	_, boundary, _ := strings.Cut(kind, "boundary=")
	return bytes.ReplaceAll(body, []byte(boundary), []byte("boundary"))
}

// The answers of the gate itself are nobody's to store, and know no conditions.
func TestWaitingPageIsNeverStored(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	v := newVisitor(t, g).wait()
	for _, headers := range [][]string{nil, {"If-None-Match", "*"}, {"If-Modified-Since", "Mon, 01 Jan 2035 00:00:00 GMT"},
		{"Range", "bytes=0-9"}, {"Accept-Language", "xx"}, {"X-Forwarded-Host", "evil.example"}} {
		for _, method := range []string{"GET", "HEAD"} {
			a := v.do(method, "/files/long.txt", "", headers...)
			h := a.Header
			if a.StatusCode != http.StatusOK || !strings.Contains(h.Get("Cache-Control"), "no-store") || h.Get("CDN-Cache-Control") != "no-store" ||
				h.Get("Surrogate-Control") != "no-store" || h.Get("ETag")+h.Get("Last-Modified")+h.Get("Age") != "" ||
				!strings.Contains(h.Get("X-Robots-Tag"), "noindex") || !strings.Contains(h.Get("Vary"), "Cookie") || h.Get("Refresh") == "" {
				t.Errorf("%s with %v: %s %v", method, headers, a.Status, h)
			}
			if strings.Contains(string(a.body), "evil") {
				t.Errorf("the page reflects a header")
			}
		}
	}
}
