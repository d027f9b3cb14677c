package rest

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
	waiting "github.com/anteroom/anteroom/page"
)

// PreviewPath is the path of previews: pages of the admin address that need no token, because their addresses cannot be
// guessed.
const PreviewPath = "/preview/"

// Bounds of previews. When one is reached, those made first go first.
const (
	maxPreviews     = 100
	maxPreviewBytes = 16 << 20 // of all their templates
	previewLife     = time.Hour
)

// preview is an operator's page to be looked at; nil is the built-in one.
type preview struct {
	id       string
	template *waiting.Template
	bytes    int
	made     time.Time
}

// previews are those alive, in the order of their making.
type previews struct {
	mu  sync.Mutex
	all []preview
}

func (p *previews) add(one preview) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expire(one.made)
	p.all = append(p.all, one)
	bytes := 0
	for _, o := range p.all {
		bytes += o.bytes
	}
	for len(p.all) > maxPreviews || bytes > maxPreviewBytes {
		bytes -= p.all[0].bytes
		p.all = slices.Delete(p.all, 0, 1)
	}
}

func (p *previews) get(id string, now time.Time) (preview, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expire(now)
	i := slices.IndexFunc(p.all, func(o preview) bool { return o.id == id })
	if i < 0 {
		return preview{}, false
	}
	return p.all[i], true
}

func (p *previews) expire(now time.Time) {
	p.all = slices.DeleteFunc(p.all, func(o preview) bool { return now.Sub(o.made) >= previewLife })
}

// MakePreview stores an operator's page for viewing, nil for the built-in one, and returns the path of its address on
// this listener. The caller must check the permission: the result is public.
func (a *API) MakePreview(t *waiting.Template, bytes int) (path string) {
	one := preview{id: newUUID(), template: t, bytes: bytes, made: a.now()}
	a.previews.add(one)
	return PreviewPath + one.id
}

// createPreview needs no less than changing a room does: what it makes is public.
func (a *API) createPreview(r *api.Request) (api.Answer, error) {
	z, err := a.zoneOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	if !r.By.May(manage.Edit, z.ID, "") {
		return api.Answer{}, anteroom.Errorf(anteroom.Denied, "a preview needs the permission %q in the zone", manage.Edit)
	}
	o, err := r.Object()
	if err != nil {
		return api.Answer{}, err
	}
	given := o.Get("custom_html")
	html, err := given.Text()
	if err != nil {
		return api.Answer{}, err
	}
	if given.Null() {
		return api.Answer{}, given.Fault("is missing", "send the page's HTML, or an empty text for the built-in page")
	}
	var template *waiting.Template
	if html != "" {
		if template, err = waiting.Compile(html); err != nil {
			return api.Answer{}, api.Rename(err, func(string) string { return "custom_html" })
		}
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return api.Answer{Result: api.Members{{Name: "preview_url", Value: scheme + "://" + r.Host + a.MakePreview(template, len(html))}}}, nil
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Preview is the handler of everything below PreviewPath. The page contains an operator's own markup: the sandbox keeps
// its scripts away from everything else on this listener. Only pages of this listener may frame it.
func (a *API) Preview(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "sandbox allow-scripts; frame-ancestors 'self'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	say := func(status int, text string) {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprintln(w, text)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		say(http.StatusMethodNotAllowed, "a preview is read-only")
		return
	}
	one, ok := a.previews.get(strings.TrimPrefix(r.URL.Path, PreviewPath), a.now())
	if !ok || r.URL.RawPath != "" {
		say(http.StatusNotFound, fmt.Sprintf("there is no such preview, or it has expired after %v: make a new one", previewLife))
		return
	}
	options, err := waiting.ParsePreview(r.URL.Query())
	if err != nil {
		say(http.StatusBadRequest, err.Error())
		return
	}
	view, through := options.View(one.template, r.URL.Query().Get("language"), a.now())
	h.Set("Content-Type", waiting.HTMLType)
	if through {
		w.Write(waiting.AppendWelcome(nil))
		return
	}
	w.Write(waiting.AppendPage(nil, &view, false))
}
