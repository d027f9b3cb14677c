package server

import (
	"time"

	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/manage"
)

// machine is what this process knows of what events need beside their settings.
func (s *Server) machine() manage.Machine {
	cfg := s.Config()
	return manage.Machine{Challenge: cfg.Challenge.Provider != "" && cfg.Challenge.Provider != config.ChallengeNone, Clock: systemClock(),
		TLS: s.first.Load().TLS.On(), Certificate: s.certs.validity}
}

// validity returns when the certificate for a host ends, and whether it is renewed without an operator; "*" is the one that
// ends first. No time means that there is none.
func (c *certificates) validity(host string) (ends time.Time, renewed bool) {
	found := func(at time.Time, byACME bool) {
		if ends.IsZero() || at.Before(ends) {
			ends, renewed = at, byACME
		}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if host == "*" {
		for _, f := range c.files {
			found(f.Leaf.NotAfter, false)
		}
		for h := range c.hosts {
			for _, m := range c.cache.AllMatchingCertificates(h) {
				found(m.Leaf.NotAfter, true)
			}
		}
		return ends, renewed
	}
	if c.hosts[host] {
		for _, m := range c.cache.AllMatchingCertificates(host) {
			if at := m.Leaf.NotAfter; at.After(ends) {
				ends, renewed = at, true
			}
		}
		return ends, true
	}
	for _, f := range c.files {
		if f.Leaf.VerifyHostname(host) == nil {
			return f.Leaf.NotAfter, false // that handshakes get: the first
		}
	}
	return time.Time{}, false
}
