// Package caddy is a handler for Caddy that verifies passes: requests with a good pass go on to the next handler, all others to
// Anteroom, which decides about them (docs/edges.md). Build Caddy with it:
//
//	xcaddy build --with github.com/anteroom/anteroom/caddy
//
// and give a site the directive, which comes before all that change the path:
//
//	shop.example.com {
//		anteroom 127.0.0.1:8080 {
//			zone shop.example.com
//			room 0123456789abcdef0123456789abcdef
//			ends /checkout/done
//			revoked
//			reports https://anteroom.example.com:8081
//			token {$ANTEROOM_TOKEN}
//		}
//		reverse_proxy 127.0.0.1:3000
//	}
package caddy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket/pass"
)

func init() { // Caddy knows its modules by what they register
	caddy.RegisterModule(Handler{})
	httpcaddyfile.RegisterHandlerDirective("anteroom", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		a := &Handler{}
		return a, a.UnmarshalCaddyfile(h.Dispenser)
	})
	httpcaddyfile.RegisterDirectiveOrder("anteroom", httpcaddyfile.Before, "redir")
}

// Handler is the module http.handlers.anteroom.
type Handler struct {
	// Anteroom is HOST:PORT where Anteroom listens for visitors. Required.
	Anteroom string `json:"anteroom"`
	// Zone and Room are those of passes, Room in 32 hexadecimal digits. Required.
	Zone string `json:"zone"`
	Room string `json:"room"`
	// Issuer is proof.issuer of Anteroom's configuration; empty means "anteroom".
	Issuer string `json:"issuer,omitempty"`
	// Suffix is the room's cookie_suffix.
	Suffix string `json:"suffix,omitempty"`
	// Ends are the paths at which the application ends sessions, with everything below them.
	Ends []string `json:"ends,omitempty"`
	// Revoked refuses passes of revoked sessions, whose list is fetched from Anteroom each second while requests come.
	Revoked bool `json:"revoked,omitempty"`
	// Reports is the address of Anteroom's API, to which the handler reports whom it lets in, for a room with pass_reported; Token is one
	// that may read the room.
	Reports string `json:"reports,omitempty"`
	Token   string `json:"token,omitempty"`

	edge *pass.Handler
}

// CaddyModule says what Caddy calls the module.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.anteroom", New: func() caddy.Module { return &Handler{} }}
}

// UnmarshalCaddyfile reads the directive.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if !d.AllArgs(&h.Anteroom) {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		option := d.Val()
		if option == "revoked" {
			if h.Revoked = true; d.NextArg() {
				return d.ArgErr()
			}
			continue
		}
		if option == "ends" {
			if h.Ends = append(h.Ends, d.RemainingArgs()...); len(h.Ends) == 0 {
				return d.ArgErr()
			}
			continue
		}
		field := map[string]*string{"zone": &h.Zone, "room": &h.Room, "issuer": &h.Issuer, "suffix": &h.Suffix, "reports": &h.Reports, "token": &h.Token}[option]
		if field == nil {
			return d.Errf("anteroom has no option %q: use zone, room, issuer, suffix, ends, revoked, reports or token", option)
		}
		if !d.AllArgs(field) {
			return d.ArgErr()
		}
	}
	return nil
}

// Provision makes the edge of what is configured.
func (h *Handler) Provision(ctx caddy.Context) error {
	var reports *url.URL
	if h.Reports != "" {
		var err error
		if reports, err = url.Parse(h.Reports); err != nil {
			return fmt.Errorf("anteroom: reports: %w", err)
		}
	}
	h.edge = &pass.Handler{
		Origin: http.HandlerFunc(goOn), Anteroom: &url.URL{Scheme: "http", Host: h.Anteroom},
		Want: pass.Want{Issuer: h.Issuer, Audience: h.Zone, Room: anteroom.RoomID(h.Room)}, Suffix: h.Suffix, Ends: h.Ends, Revoked: h.Revoked, Reports: reports, Token: h.Token, Log: ctx.Slogger(),
	}
	return nil
}

// Validate refuses what would accept passes of others, or none.
func (h *Handler) Validate() error {
	switch {
	case h.Anteroom == "" || strings.Contains(h.Anteroom, "/"):
		return fmt.Errorf("anteroom: %q is not HOST:PORT of Anteroom", h.Anteroom)
	case h.Zone == "":
		return fmt.Errorf("anteroom: zone is missing; anteroom room list shows it")
	case len(h.Room) != 32 || strings.Trim(h.Room, "0123456789abcdef") != "":
		return fmt.Errorf("anteroom: room %q is not the ID of a room, 32 hexadecimal digits; anteroom room list -o json shows it", h.Room)
	}
	if h.Reports != "" && (!strings.HasPrefix(h.Reports, "http://") && !strings.HasPrefix(h.Reports, "https://") || h.Token == "") || h.Reports == "" && h.Token != "" {
		return fmt.Errorf("anteroom: reports needs an address like https://anteroom.example.com:8081, and a token that may read the room")
	}
	for _, end := range h.Ends {
		if !strings.HasPrefix(end, "/") {
			return fmt.Errorf("anteroom: %q in ends does not begin with a slash", end)
		}
	}
	return nil
}

// step is the rest of a request's way through Caddy.
type step struct {
	next caddyhttp.Handler
	err  error
}

type stepKey struct{}

// goOn calls the next handler.
func goOn(w http.ResponseWriter, r *http.Request) {
	s := r.Context().Value(stepKey{}).(*step)
	s.err = s.next.ServeHTTP(w, r)
}

// ServeHTTP sends a request on, to the next handler or to Anteroom.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	s := &step{next: next}
	h.edge.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), stepKey{}, s)))
	return s.err
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
