package server

import (
	"crypto/x509"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/api/own"
	"github.com/anteroom/anteroom/api/rest"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/dashboard"
	"github.com/anteroom/anteroom/dashboard/signin"
	"github.com/anteroom/anteroom/manage"
)

// newDashboard is the operators' pages over the APIs of the listener.
func (s *Server) newDashboard(apis http.Handler) *dashboard.Dashboard {
	return dashboard.New(dashboard.Config{SignIn: s.newSignIn(s.Config().SignIn),
		API: apis, APIs: []string{rest.Prefix, own.Prefix}, Authenticate: s.manage.Authenticate, Version: s.opts.Version, Log: s.log,
		Live: func(by manage.Caller) ([]dashboard.Room, error) {
			rooms, err := own.Live(s.manage, by, time.Now())
			out := make([]dashboard.Room, len(rooms))
			for i, r := range rooms {
				out[i] = dashboard.Room{ID: r.ID, Value: r}
			}
			return out, err
		},
	})
}

// newSignIn is the provider at which people sign in; nil if there is none. The configuration has been checked: a file that
// cannot be read any more is an empty one, and the provider refuses.
func (s *Server) newSignIn(c config.SignIn) *dashboard.SignIn {
	if !c.On() {
		return nil
	}
	secret, _ := os.ReadFile(c.ClientSecretFile)
	cfg := signin.Config{Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: strings.TrimSpace(string(secret)), Return: c.URL + dashboard.Return,
		Scopes: c.Scopes, Claim: c.Claim}
	if c.CAFile != "" {
		pem, _ := os.ReadFile(c.CAFile)
		cfg.CA = x509.NewCertPool()
		cfg.CA.AppendCertsFromPEM(pem)
	}
	return &dashboard.SignIn{Label: c.Label, Provider: signin.New(cfg), Lend: s.manage.Lend, Grants: func(has []string) (grants []manage.Grant) {
		for _, role := range c.Roles {
			if !slices.Contains(has, role.Value) {
				continue
			}
			grant := manage.Grant{Permission: manage.Permission(role.Permission)}
			if role.Zone != "" {
				zone, ok := s.manage.State().ZoneNamed(role.Zone)
				if !ok {
					s.log.Warn("a role for signing in is for a zone that does not exist", "value", role.Value, "zone", role.Zone)
					continue
				}
				grant.Zone = zone.ID
			}
			grants = append(grants, grant)
		}
		return grants
	}}
}
