package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/anteroom/anteroom/internal/packed"
)

// What is large is in dist as a gzip member, under its name and packedSuffix.
//
//go:embed dist
var dist embed.FS

const packedSuffix = ".gz"

// types are the kinds of files that there are.
var types = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// file is a file in both codings that it is sent in. The one that is not stored is made when somebody first
// asks: most processes are never looked at.
type file struct {
	kind       string
	tag        string
	plain, zip func() []byte
}

func newFile(name string, content []byte) *file {
	stored := func() []byte { return content }
	sum := sha256.Sum256(content)
	f := &file{tag: hex.EncodeToString(sum[:8]), plain: stored, zip: stored}
	if base, is := strings.CutSuffix(name, packedSuffix); is {
		name, f.plain = base, sync.OnceValue(func() []byte { return packed.Unpack(content) })
	} else {
		f.zip = sync.OnceValue(func() []byte { return packed.Pack(content) })
	}
	f.kind = types[path.Ext(name)]
	return f
}

// files are served under names with a digest of their content, which therefore never change.
type files struct {
	assets map[string]*file
	shell  *file
}

// loadFiles reads dist. The page names the files as they are built; it gets them with their
// digests.
func loadFiles() *files {
	fs := &files{assets: map[string]*file{}}
	entries, err := dist.ReadDir("dist")
	if err != nil {
		panic(err) // the binary was built without the page
	}
	var page []byte
	var names []string
	for _, e := range entries {
		content, err := dist.ReadFile("dist/" + e.Name())
		if err != nil {
			panic(err)
		}
		if e.Name() == "index.html" {
			page = content
			continue
		}
		f := newFile(e.Name(), content)
		name := strings.TrimSuffix(e.Name(), packedSuffix)
		ext := path.Ext(name)
		hashed := strings.TrimSuffix(name, ext) + "-" + f.tag + ext
		fs.assets[hashed] = f
		names = append(names, assetsPrefix+"/"+name, assetsPrefix+"/"+hashed)
	}
	fs.shell = newFile("index.html", []byte(strings.NewReplacer(names...).Replace(string(page))))
	return fs
}

// serve answers with a file of that name.
func (fs *files) serve(w http.ResponseWriter, r *http.Request, name string) {
	f := fs.assets[name]
	if f == nil || r.URL.RawPath != "" {
		missing(w)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	f.write(w, r)
}

// page answers with the page itself, whose script reads the path. Only browsers that go
// somewhere get it; whoever misspells a path of a program is told that there is none.
func (fs *files) page(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" && (!strings.Contains(r.Header.Get("Accept"), "text/html") || strings.HasPrefix(r.URL.Path, "/-/")) {
		missing(w)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	fs.shell.write(w, r)
}

func (f *file) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		h.Del("Cache-Control")
		http.Error(w, "a page can only be looked at", http.StatusMethodNotAllowed)
		return
	}
	content, tag := f.plain, f.tag
	h.Add("Vary", "Accept-Encoding")
	if accepts(r.Header.Get("Accept-Encoding")) {
		content, tag = f.zip, f.tag+"-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", strconv.Quote(tag))
	for one := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == strconv.Quote(tag) {
			h.Del("Content-Encoding")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", f.kind)
	body := content()
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		w.Write(body)
	}
}

// accepts reports whether a client takes gzip.
func accepts(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(one, ";")
		if coding = strings.TrimSpace(coding); coding != "gzip" && coding != "*" {
			continue
		}
		q, found := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		v, err := strconv.ParseFloat(q, 64)
		return !found || err != nil || v > 0
	}
	return false
}

func missing(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "there is nothing here; the pages of the dashboard begin at /", http.StatusNotFound)
}
