package natslink

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// The oldest NATS that has everything: time to live of one key came with 2.11, schedules
// and the counters of a stream with 2.12, which is the oldest that is still looked after.
const minMajor, minMinor = 2, 12

// checkExternal refuses an external NATS that cannot be meant.
func checkExternal(cfg ClusterConfig) error {
	e := cfg.External
	if len(e.URLs) == 0 {
		return errors.New("cluster: nats without url: give the addresses of your NATS servers, as tls://nats-1.example.com:4222")
	}
	for _, text := range e.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return errors.New("cluster: a nats url is not of the form nats://host:port or tls://host:port")
		}
		if u.User != nil {
			return fmt.Errorf("cluster: the nats url of %s holds a user: give a credentials file instead", u.Host)
		}
		a := address{host: u.Hostname()}
		if e.SiteCredentials == "" && e.SharedCredentials == "" && cfg.TLS == (TLSFiles{}) && !a.loopback() {
			return fmt.Errorf("cluster: nats at %s without credentials or tls: anyone who reaches it could change everything; set site_credentials", u.Host)
		}
	}
	switch e.Replicas {
	case 0, 1, 3, 5:
	default:
		return fmt.Errorf("cluster: nats replicas %d: 1, 3 or 5", e.Replicas)
	}
	return nil
}

// connectExternal connects to the operator's own NATS.
func (a *attachment) connectExternal() error {
	e := a.cfg.External
	a.hubDomain, a.hub = e.SharedDomain, e.Hub
	a.sharedName = "anteroom_" + a.cfg.Cluster
	a.siteName = a.sharedName + "_" + a.cfg.Site
	var secure []nats.Option
	if f := a.cfg.TLS; f != (TLSFiles{}) {
		config, err := externalTLS(f)
		if err != nil {
			return err
		}
		secure = []nats.Option{nats.Secure(config)}
	}
	for _, conn := range []struct {
		to                 **nats.Conn
		watcher            **watcher
		what               string
		credentials, other string
	}{
		{&a.site, &a.siteWatch, "site", e.SiteCredentials, e.SharedCredentials},
		{&a.shared, &a.sharedWatch, "shared", e.SharedCredentials, e.SiteCredentials},
	} {
		w := &watcher{a: a, what: conn.what}
		*conn.watcher = w
		options := append(w.options(), secure...)
		file := cmp.Or(conn.credentials, conn.other)
		if file != "" {
			if _, err := os.ReadFile(file); err != nil {
				return fmt.Errorf("cluster: nats credentials: %w", err)
			}
			options = append(options, nats.UserCredentials(file))
		}
		var err error
		if *conn.to, err = nats.Connect(strings.Join(e.URLs, ","), options...); err != nil {
			return fmt.Errorf("cluster: nats: %w", err)
		}
	}
	return nil
}

// externalTLS is for servers of the operator's: cert and key are shown where they ask, and
// theirs must be of the authority, or of one that the machine believes.
func externalTLS(f TLSFiles) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Cert != "" || f.Key != "" {
		own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("cluster tls: certificate %s with key %s: %w", f.Cert, f.Key, err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("cluster tls: ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("cluster tls: ca %s holds no certificate", f.CA)
		}
	}
	return config, nil
}

// learnExternal refuses servers that lack something, and finds out how many copies there
// are to be.
func (a *attachment) learnExternal() error {
	for _, nc := range []*nats.Conn{a.site, a.shared} {
		if !nc.IsConnected() {
			continue // ready asks for the site's, hubReady for the shared
		}
		if err := checkVersion(nc.ConnectedServerVersion()); err != nil {
			return permanent{fmt.Errorf("cluster: nats at %s: %w", nc.ConnectedAddr(), err)}
		}
		if size := nc.MaxPayload(); size < leastPayload {
			return permanent{fmt.Errorf("cluster: nats at %s takes messages of up to %d bytes, %d are needed: set max_payload there", nc.ConnectedAddr(), size, leastPayload)}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.cfg.External.Replicas > 0:
		a.replicas = a.cfg.External.Replicas
	case a.site.ConnectedClusterName() != "":
		a.replicas = 3
	default:
		a.replicas = 1
	}
	return nil
}

func checkVersion(version string) error {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) == 3 {
		major, err1 := strconv.Atoi(parts[0])
		minor, err2 := strconv.Atoi(parts[1])
		if err1 == nil && err2 == nil && (major > minMajor || major == minMajor && minor >= minMinor) {
			return nil
		}
	}
	return fmt.Errorf("version %q: %d.%d or later is needed", version, minMajor, minMinor)
}
