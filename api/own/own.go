// Package own is what the published API lacks, /anteroom/v1, over package manage: zones and
// rooms by name, the operator's hand on a line (admit, pause, drain, reset, find, revoke), live
// numbers in full, repeated events and their shuffles, tokens, keys, the audit log, backup.
//
// The envelope and the authentication are those of the published API. openapi.json, which is
// served too, describes every operation; tests hold the two together.
package own

import (
	_ "embed"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/rules"
)

// Prefix is where the API lives.
const Prefix = "/anteroom/v1"

//go:embed openapi.json
var document []byte

// Config is what the API stands on. Manager and Log are required.
type Config struct {
	Manager *manage.Manager
	Now     func() time.Time // the wall clock; nil means time.Now
	Log     *slog.Logger
	// Preview keeps a page to be looked at, nil for the built-in one, and returns the path of its
	// address; nil means that there are no previews.
	Preview func(t *page.Template, bytes int) (path string)
	// Geo knows where addresses are; nil means that nobody does.
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
			w.Write(document)
			return
		}
		operations.ServeHTTP(w, r)
	})
}

func (f *face) routes() []api.Route {
	const (
		tokens = Prefix + "/tokens"
		token  = tokens + "/{token}"
		hooks  = Prefix + "/webhooks"
		hook   = hooks + "/{webhook}"
		zones  = Prefix + "/zones"
		zone   = zones + "/{zone}"
		room   = zone + "/rooms/{room}"
		event  = room + "/events/{event}"
	)
	return []api.Route{
		{Method: "GET", Path: tokens, Do: f.listTokens},
		{Method: "POST", Path: tokens, Do: f.createToken},
		{Method: "GET", Path: token, Do: f.getToken},
		{Method: "DELETE", Path: token, Do: f.deleteToken},
		{Method: "POST", Path: token + "/rotate", Do: f.rotateToken},
		{Method: "GET", Path: hooks, Do: f.listWebhooks},
		{Method: "POST", Path: hooks, Do: f.createWebhook},
		{Method: "GET", Path: hook, Do: f.getWebhook},
		{Method: "PATCH", Path: hook, Do: f.changeWebhook},
		{Method: "DELETE", Path: hook, Do: f.deleteWebhook},
		{Method: "POST", Path: hook + "/rotate", Do: f.rotateWebhook},
		{Method: "POST", Path: hook + "/test", Do: f.testWebhook},
		{Method: "GET", Path: hook + "/deliveries", Do: f.listDeliveries},

		{Method: "POST", Path: Prefix + "/keys/rotate", Do: f.rotateKeys},

		{Method: "GET", Path: zones, Do: f.listZones},
		{Method: "POST", Path: zones, Do: f.createZone},
		{Method: "GET", Path: zone, Do: f.getZone},
		{Method: "PATCH", Path: zone, Do: f.changeZone},
		{Method: "DELETE", Path: zone, Do: f.deleteZone},

		{Method: "GET", Path: Prefix + "/rooms", Do: f.listRooms},
		{Method: "GET", Path: room, Do: f.getRoom},
		{Method: "GET", Path: room + "/status", Do: f.getStatus},
		{Method: "GET", Path: room + "/visitors/{reference}", Do: f.findVisitors},
		{Method: "DELETE", Path: room + "/sessions/{session}", Do: f.revokeSession},
		{Method: "POST", Path: room + "/admit", Do: f.admit},
		{Method: "POST", Path: room + "/pause", Do: f.control(func(c *anteroom.Controls) { c.Paused = true })},
		{Method: "POST", Path: room + "/drain", Do: f.control(func(c *anteroom.Controls) { c.Draining = true })},
		{Method: "POST", Path: room + "/resume", Do: f.control(func(c *anteroom.Controls) { c.Paused, c.Draining = false, false })},
		{Method: "POST", Path: room + "/reset", Do: f.reset},
		{Method: "PUT", Path: room + "/message", Do: f.putMessage},
		{Method: "DELETE", Path: room + "/message", Do: f.control(func(c *anteroom.Controls) { c.Message = "" })},

		{Method: "GET", Path: Prefix + "/analytics", Do: f.totalAnalytics},
		{Method: "GET", Path: room + "/analytics", Write: f.getAnalytics},

		{Method: "GET", Path: room + "/report", Write: f.roomReport},
		{Method: "GET", Path: event + "/report", Write: f.eventReport},

		{Method: "GET", Path: event + "/repeat", Do: f.getRepeat},
		{Method: "PUT", Path: event + "/repeat", Do: f.putRepeat},
		{Method: "DELETE", Path: event + "/repeat", Do: f.deleteRepeat},
		{Method: "GET", Path: event + "/shuffles/{number}", Do: f.getShuffle},
		{Method: "GET", Path: event + "/shuffles/{number}/ids", Write: f.getShuffleIDs},

		{Method: "POST", Path: Prefix + "/rules/test", Do: f.testRule},
		{Method: "POST", Path: Prefix + "/templates/check", Do: f.checkTemplate},

		{Method: "GET", Path: Prefix + "/audit", Do: f.listAudit},
		{Method: "GET", Path: Prefix + "/audit/verify", Do: f.verifyAudit},

		{Method: "GET", Path: Prefix + "/cluster", Do: f.getCluster},
		{Method: "DELETE", Path: Prefix + "/cluster/nodes/{node}", Do: f.removeNode},

		{Method: "GET", Path: Prefix + "/backup", Write: f.backup},
		{Method: "POST", Path: Prefix + "/restore", Write: f.restore},
	}
}

// moment writes a moment of ours; null when there is none.
func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// roomMoment writes a moment of room time; null when there is none.
func roomMoment(t anteroom.Time) any {
	if t == 0 {
		return nil
	}
	return moment(t.Std())
}

// optional writes a text; null when it is empty.
func optional[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return s
}

// body reads an object that has no members but those named: whoever misspells one would
// otherwise believe that it was heard.
func body(r *api.Request, names ...string) (api.Object, error) {
	o, err := r.Object()
	if err != nil {
		return o, err
	}
	return o, o.Only(names...)
}

// part returns the asked-for page of a list, in its JSON form.
func part[T any](r *api.Request, all []T, form func(T) api.Members) (api.Answer, error) {
	p, err := api.PageOf(r.Query)
	if err != nil {
		return api.Answer{}, err
	}
	some, info := api.Part(all, p)
	out := make([]api.Members, len(some))
	for i := range some {
		out[i] = form(some[i])
	}
	return api.Answer{Result: out, Info: info}, nil
}

func zoneID(r *api.Request) anteroom.ZoneID   { return anteroom.ZoneID(r.Param("zone")) }
func roomID(r *api.Request) anteroom.RoomID   { return anteroom.RoomID(r.Param("room")) }
func eventID(r *api.Request) anteroom.EventID { return anteroom.EventID(r.Param("event")) }

// deleted is the result of a deletion.
func deleted[T ~string](id T) api.Answer {
	return api.Answer{Result: api.Members{{Name: "id", Value: id}}}
}

// networks reads addresses and networks, each of which becomes a network.
func networks(v api.Value) ([]netip.Prefix, error) {
	values, err := v.Array(manage.MaxNetworks)
	if err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for _, one := range values {
		text, err := one.Text()
		if err != nil {
			return nil, err
		}
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, one.Fault("is not a network", "an address or CIDR, like 192.0.2.0/24")
		}
		out = append(out, n.Masked())
	}
	return out, nil
}
