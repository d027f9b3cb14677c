package server

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config"
)

// listen binds every address of the configuration, or takes the listener that was inherited
// for it.
func (s *Server) listen(cfg config.Config) error {
	bind := func(key, address string) (net.Listener, error) {
		if l := s.opts.Inherited.listener(address, key == "listen[0]"); l != nil {
			s.listeners[address] = l
			return l, nil
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, anteroom.Errorf(anteroom.Unavailable, "%s: cannot listen on %s: %w%s", key, address, err, listenHint(err))
		}
		s.listeners[address] = l
		return l, nil
	}
	for i, a := range cfg.Listen {
		l, err := bind(fmt.Sprintf("listen[%d]", i), a)
		if err != nil {
			return err
		}
		s.visitors = append(s.visitors, l)
	}
	var err error
	if s.admin, err = bind("admin", cfg.Admin); err != nil {
		return err
	}
	if a := cfg.TLS.RedirectHTTP; a != "" && cfg.TLS.On() {
		if s.redirect, err = bind("tls.redirect_http", a); err != nil {
			return err
		}
	}
	if a := cfg.ForwardAuth.Listen; a != "" {
		if s.askers, err = bind("forward_auth.listen", a); err != nil {
			return err
		}
	}
	if unused := s.opts.Inherited.close(); len(unused) > 0 {
		return anteroom.Errorf(anteroom.Invalid, "the socket unit passes %s, but the configuration listens on %s: make them agree",
			strings.Join(unused, ", "), strings.Join(addresses(cfg), ", "))
	}
	return nil
}

// addresses are those that a configuration listens on.
func addresses(cfg config.Config) []string {
	all := append(slices.Clone(cfg.Listen), cfg.Admin)
	if cfg.TLS.RedirectHTTP != "" && cfg.TLS.On() {
		all = append(all, cfg.TLS.RedirectHTTP)
	}
	if cfg.ForwardAuth.Listen != "" {
		all = append(all, cfg.ForwardAuth.Listen)
	}
	return all
}

// listenHint says what helps against the two usual causes.
func listenHint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return " (another process has it; stop that one or choose another port)"
	case errors.Is(err, syscall.EACCES):
		return " (ports below 1024 need a privilege: AmbientCapabilities=CAP_NET_BIND_SERVICE in a systemd unit, or a port above)"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return " (this machine has no such address)"
	}
	return ""
}

// needRestart names the keys whose change a reload cannot put in force.
func (s *Server) needRestart(cfg config.Config) (keys []string) {
	have := map[string]bool{}
	for a := range s.listeners {
		have[a] = true
	}
	want := addresses(cfg)
	if len(want) != len(have) {
		keys = append(keys, "listen")
	} else {
		for _, a := range want {
			if !have[a] {
				keys = append(keys, "listen")
				break
			}
		}
	}
	first := s.first.Load()
	if cfg.Data != first.Data {
		keys = append(keys, "data")
	}
	if cfg.TLS.On() != first.TLS.On() {
		keys = append(keys, "tls")
	}
	if cfg.AdminTLS.On() != first.AdminTLS.On() {
		keys = append(keys, "admin_tls")
	}
	if !reflect.DeepEqual(cfg.SignIn, first.SignIn) {
		keys = append(keys, "sign_in")
	}
	if !reflect.DeepEqual(cfg.AWS, first.AWS) {
		keys = append(keys, "aws")
	}
	if !reflect.DeepEqual(cfg.QueueIt, first.QueueIt) {
		keys = append(keys, "queue_it")
	}
	if cfg.Analytics != first.Analytics {
		keys = append(keys, "analytics")
	}
	if cfg.Log != first.Log {
		keys = append(keys, "log")
	}
	if cfg.Timeouts.ReadHeader != first.Timeouts.ReadHeader || cfg.Timeouts.Idle != first.Timeouts.Idle {
		keys = append(keys, "timeouts")
	}
	if cfg.Limits.ConnectionsPerAddress != first.Limits.ConnectionsPerAddress {
		keys = append(keys, "limits.connections_per_address")
	} else if first.Limits.ConnectionsPerAddress > 0 && !slices.Equal(cfg.TrustedProxies, first.TrustedProxies) {
		keys = append(keys, "trusted_proxies (for limits.connections_per_address)")
	}
	if cfg.TLS.ACME.CA != first.TLS.ACME.CA || cfg.TLS.ACME.Email != first.TLS.ACME.Email {
		keys = append(keys, "tls.acme")
	}
	return keys
}
