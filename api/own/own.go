// Package own is what the published API lacks, /anteroom/v1, over package manage: zones and
// rooms by name, the operator's hand on a line (admit, pause, drain, reset, find, revoke), live
// numbers in full, repeated events and their shuffles, tokens, keys, the audit log, backup.
//
// The envelope and the authentication are those of the published API. routes.go lists every operation,
// package schema has their bodies and answers, and go test ./api/own -update makes openapi.json, which
// the API serves, from both.
package own

import (
	_ "embed"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/internal/packed"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/rules"
)

// Prefix is where the API lives.
const Prefix = "/anteroom/v1"

// openapi.json.gz is openapi.json, packed by the test that makes it.
//
//go:embed openapi.json.gz
var packedDocument []byte

// document is kept from when somebody first asks.
var document = sync.OnceValue(func() []byte { return packed.Unpack(packedDocument) })

// Config configures the API. Manager and Log are required.
type Config struct {
	Manager *manage.Manager
	Now     func() time.Time // the wall clock; nil means time.Now
	Log     *slog.Logger
	// Preview stores a page for viewing, nil for the built-in one, and returns the path of its address; if nil, there
	// are no previews.
	Preview func(t *page.Template, bytes int) (path string)
	// Geo locates addresses; if nil, none has a location.
	Geo rules.Geo
}

type face struct {
	manage  *manage.Manager
	now     func() time.Time
	preview func(t *page.Template, bytes int) string
	geo     rules.Geo
}

// New returns the handler of everything below Prefix.
func New(c Config) http.Handler {
	f := &face{manage: c.Manager, now: c.Now, preview: c.Preview, geo: c.Geo}
	if f.now == nil {
		f.now = time.Now
	}
	operations := api.New(api.Config{Authenticate: c.Manager.Authenticate, Log: c.Log}, f.routes())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Prefix+"/openapi.json" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			w.Header().Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Write(document())
			return
		}
		operations.ServeHTTP(w, r)
	})
}

func (f *face) routes() []api.Route {
	var out []api.Route
	for _, o := range slices.Concat(f.operations()...) {
		out = append(out, o.Route)
	}
	return out
}

// moment is a moment of ours; nil when there is none.
func moment(t time.Time) *time.Time { return schema.Optional(t.UTC()) }

// roomMoment is a moment of room time; nil when there is none.
func roomMoment(t anteroom.Time) *time.Time {
	if t == 0 {
		return nil
	}
	return moment(t.Std())
}

func zoneID(r *api.Request) anteroom.ZoneID   { return anteroom.ZoneID(r.PathValue("zone")) }
func roomID(r *api.Request) anteroom.RoomID   { return anteroom.RoomID(r.PathValue("room")) }
func eventID(r *api.Request) anteroom.EventID { return anteroom.EventID(r.PathValue("event")) }

// deleted is the result of a deletion.
func deleted[T ~string](id T) schema.Deleted { return schema.Deleted{ID: string(id)} }
