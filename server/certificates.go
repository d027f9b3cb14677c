package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/route"
)

// certificates answer the visitors' TLS handshakes: from files, or by ACME through
// certmagic, whose storage is the durable link.
type certificates struct {
	log   *slog.Logger
	link  cluster.Link
	mu    sync.RWMutex
	files []tls.Certificate
	acme  *certmagic.Config
	magic *certmagic.ACMEIssuer
	cache *certmagic.Cache
	hosts map[string]bool
}

func newCertificates(link cluster.Link, log *slog.Logger) *certificates {
	return &certificates{link: link, log: log}
}

// use reads the certificates of a configuration. On an error nothing changes.
func (c *certificates) use(ctx context.Context, t config.TLS) error {
	var files []tls.Certificate
	for i, f := range t.Certificates {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return anteroom.Errorf(anteroom.Invalid, "tls.certificates[%d]: %w", i, err)
		}
		if pair.Leaf == nil {
			if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
				return anteroom.Errorf(anteroom.Invalid, "tls.certificates[%d]: %w", i, err)
			}
		}
		if time.Now().After(pair.Leaf.NotAfter) {
			c.log.Error("a certificate has run out", "file", f.Cert, "at", pair.Leaf.NotAfter)
		}
		files = append(files, pair)
	}
	hosts := map[string]bool{}
	for _, h := range t.ACME.Hosts {
		hosts[h] = true
	}
	if len(hosts) > 0 && c.acme == nil {
		c.startACME(t.ACME)
	}
	c.mu.Lock()
	c.files, c.hosts = files, hosts
	c.mu.Unlock()
	if len(hosts) > 0 {
		// In the background: the process serves what it has while certificates are obtained.
		return c.acme.ManageAsync(ctx, t.ACME.Hosts)
	}
	return nil
}

func (c *certificates) startACME(a config.ACME) {
	logger := zap.NewNop()
	c.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return c.acme, nil },
		Logger:           logger,
	})
	c.acme = certmagic.New(c.cache, certmagic.Config{
		Storage: &linkStorage{link: c.link}, Logger: logger,
		OnEvent: func(_ context.Context, event string, data map[string]any) error {
			switch event {
			case "cert_obtained":
				c.log.Info("a certificate was obtained", "host", data["identifier"], "renewal", data["renewal"])
			case "cert_failed":
				c.log.Error("a certificate could not be obtained; it is tried again", "host", data["identifier"], "error", data["error"])
			}
			return nil
		},
	})
	c.magic = certmagic.NewACMEIssuer(c.acme, certmagic.ACMEIssuer{CA: a.CA, Email: a.Email, Agreed: true, Logger: logger})
	c.acme.Issuers = []certmagic.Issuer{c.magic}
}

// config is what the listener speaks: TLS 1.2 and up, HTTP/2 and HTTP/1.1.
func (c *certificates) config() *tls.Config {
	protos := []string{"h2", "http/1.1"}
	if c.acme != nil {
		protos = append(protos, "acme-tls/1")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protos, GetCertificate: c.get}
}

func (c *certificates) get(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.RLock()
	files, acme, ours := c.files, c.acme, c.hosts[strings.ToLower(h.ServerName)]
	c.mu.RUnlock()
	if acme != nil && (ours || len(files) == 0) {
		return acme.GetCertificate(h)
	}
	for i := range files {
		if h.SupportsCertificate(&files[i]) == nil {
			return &files[i], nil
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no certificate")
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

func (c *certificates) close() {
	if c.cache != nil {
		c.cache.Stop()
	}
}

// redirectServer sends plain HTTP to HTTPS and answers ACME's HTTP challenges.
func (s *Server) redirectServer() *http.Server {
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	if s.certs.magic != nil {
		h = s.certs.magic.HTTPChallengeHandler(h)
	}
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 15 * time.Second, MaxHeaderBytes: anteroom.MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
}
