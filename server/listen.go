package server

import (
	"fmt"
	"net"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config"
)

// listen binds every address of the configuration, or takes the listener that was inherited
// for it.
func (s *Server) listen(cfg config.Config) error {
	bind := func(key, address string) (net.Listener, error) {
		if l := s.opts.Files[address]; l != nil {
			s.listeners[address] = l
			return l, nil
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, anteroom.Errorf(anteroom.Unavailable, "%s: cannot listen on %s: %w", key, address, err)
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
	return nil
}

// needRestart names the keys whose change a reload cannot put in force.
func (s *Server) needRestart(cfg config.Config) (keys []string) {
	have := map[string]bool{}
	for a := range s.listeners {
		have[a] = true
	}
	want := append([]string{cfg.Admin}, cfg.Listen...)
	if cfg.TLS.RedirectHTTP != "" && cfg.TLS.On() {
		want = append(want, cfg.TLS.RedirectHTTP)
	}
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
	if cfg.Log != first.Log {
		keys = append(keys, "log")
	}
	if cfg.Timeouts.ReadHeader != first.Timeouts.ReadHeader || cfg.Timeouts.Idle != first.Timeouts.Idle {
		keys = append(keys, "timeouts")
	}
	if cfg.Limits.ConnectionsPerAddress != first.Limits.ConnectionsPerAddress {
		keys = append(keys, "limits.connections_per_address")
	}
	return keys
}
