package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/gateway/route"
)

// certificates answer the visitors' TLS handshakes: from files, or by ACME through
// certmagic, whose storage is the durable link.
type certificates struct {
	log   *slog.Logger
	acme  *certmagic.Config
	magic *certmagic.ACMEIssuer
	cache *certmagic.Cache
	stop  sync.Once

	mu    sync.RWMutex
	files []tls.Certificate
	hosts map[string]bool // that ACME is for
}

// newCertificates prepares ACME; nothing is obtained before a configuration names hosts.
func (s *Server) newCertificates(a config.ACME) *certificates {
	c := &certificates{log: s.log}
	logger := zap.NewNop()
	c.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return c.acme, nil },
		Logger:           logger,
	})
	c.acme = certmagic.New(c.cache, certmagic.Config{
		Storage: &linkStorage{link: s.link}, Logger: logger,
		OnEvent: func(_ context.Context, event string, data map[string]any) error {
			switch event {
			case "cert_obtained":
				c.log.Info("certificate obtained", "host", data["identifier"], "renewal", data["renewal"])
			case "cached_managed_cert":
				c.log.Info("certificate in use", "hosts", data["sans"])
			case "cert_failed":
				c.log.Error("certificate could not be obtained; retrying", "host", data["identifier"], "error", data["error"])
			}
			return nil
		},
	})
	// The authority asks at ports 443 and 80; what arrives there arrives at our listeners.
	issuer := certmagic.ACMEIssuer{CA: a.CA, Email: a.Email, Agreed: true, Logger: logger, TrustedRoots: s.opts.acmeRoots,
		DisableHTTPChallenge: s.redirect == nil}
	issuer.ListenHost, issuer.AltTLSALPNPort = hostAndPort(s.visitors[0])
	if s.redirect != nil {
		_, issuer.AltHTTPPort = hostAndPort(s.redirect)
	}
	c.magic = certmagic.NewACMEIssuer(c.acme, issuer)
	c.acme.Issuers = []certmagic.Issuer{c.magic}
	return c
}

func hostAndPort(l net.Listener) (host string, port int) {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "", 0
	}
	return a.IP.String(), a.Port
}

// loadedCertificates are what a configuration says about TLS, with the files read.
type loadedCertificates struct {
	files []tls.Certificate
	hosts []string
}

func loadCertificates(t config.TLS, log *slog.Logger) (out loadedCertificates, err error) {
	for i, f := range t.Certificates {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return out, anteroom.Errorf(anteroom.Invalid, "tls.certificates[%d]: %w", i, err)
		}
		if time.Now().After(pair.Leaf.NotAfter) {
			log.Error("certificate expired", "file", f.Cert, "at", pair.Leaf.NotAfter)
		}
		out.files = append(out.files, pair)
	}
	for _, h := range t.ACME.Hosts {
		out.hosts = append(out.hosts, strings.ToLower(h))
	}
	return out, nil
}

// use puts certificates in force. With none at all, the old ones stay: switching TLS off
// takes a restart, and until then visitors speak TLS.
func (c *certificates) use(ctx context.Context, l loadedCertificates) {
	if len(l.files) == 0 && len(l.hosts) == 0 {
		return
	}
	hosts := map[string]bool{}
	for _, h := range l.hosts {
		hosts[h] = true
	}
	c.mu.Lock()
	gone := c.hosts
	c.files, c.hosts = l.files, hosts
	c.mu.Unlock()
	for h := range gone {
		if !hosts[h] {
			c.cache.RemoveManaged([]certmagic.SubjectIssuer{{Subject: h}})
		}
	}
	if len(l.hosts) == 0 {
		return
	}
	// In the background: the process serves what it has while certificates are obtained.
	if err := c.acme.ManageAsync(ctx, l.hosts); err != nil {
		c.log.Error("certificates cannot be managed", "hosts", l.hosts, "error", err)
	}
}

// config is what the listener speaks: TLS 1.2 and up, HTTP/2 and HTTP/1.1, and to the
// authority alone its challenge (RFC 8737).
func (c *certificates) config() *tls.Config {
	challenge := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"acme-tls/1"}, GetCertificate: c.get}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: c.get,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			if slices.Equal(h.SupportedProtos, challenge.NextProtos) && c.manages(h.ServerName) {
				return challenge, nil
			}
			return nil, nil
		}}
}

func (c *certificates) manages(host string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.hosts[strings.ToLower(host)]
}

func (c *certificates) get(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.manages(h.ServerName) {
		return c.acme.GetCertificate(h)
	}
	c.mu.RLock()
	files := c.files
	c.mu.RUnlock()
	for i := range files {
		if h.SupportsCertificate(&files[i]) == nil {
			return &files[i], nil
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no certificate for %.100q", h.ServerName)
	}
	return &files[0], nil
}

// expires is when the first of the certificates from files runs out; zero without any.
func (c *certificates) expires() (first time.Time) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, f := range c.files {
		if first.IsZero() || f.Leaf.NotAfter.Before(first) {
			first = f.Leaf.NotAfter
		}
	}
	return first
}

func (c *certificates) close() { c.stop.Do(c.cache.Stop) }

// redirectServer sends plain HTTP to HTTPS and answers ACME's HTTP challenges.
func (s *Server) redirectServer() *http.Server {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, err := route.Host(r.Host)
		if err != nil {
			http.Error(w, "The host is not valid", http.StatusBadRequest)
			return
		}
		if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
			host = "[" + host + "]"
		}
		if _, port, err := net.SplitHostPort(s.visitors[0].Addr().String()); err == nil && port != "443" {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, "https://"+host+r.URL.RequestURI(), http.StatusPermanentRedirect)
	})
	return &http.Server{Handler: s.certs.magic.HTTPChallengeHandler(h), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 15 * time.Second, MaxHeaderBytes: anteroom.MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
}
