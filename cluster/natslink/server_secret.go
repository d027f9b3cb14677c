package natslink

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
)

// minSecret is the least length of a cluster's secret in bytes. 16 bytes of chance cannot be
// tried out, even by somebody who has a certificate that follows from them.
const minSecret = 16

// CheckSecret returns nil for a secret that can protect a cluster, and for that of an edge where the process is none of the
// cores; else an error that says how to make one. It never repeats the secret.
func CheckSecret(secret string, core bool) error {
	if IsEdgeSecret(secret) {
		if core {
			return errors.New("cluster secret is that of an edge: a core needs the secret of the cluster")
		}
		_, err := parseEdge(secret)
		return err
	}
	const way = "make one with: openssl rand -hex 32"
	if len(secret) < minSecret {
		return fmt.Errorf("cluster secret has %d bytes, at least %d are needed; %s", len(secret), minSecret, way)
	}
	distinct, steady := map[byte]bool{}, 0
	for i := range len(secret) {
		distinct[secret[i]] = true
		if i > 0 && (secret[i] == secret[i-1] || secret[i] == secret[i-1]+1 || secret[i] == secret[i-1]-1) {
			steady++
		}
	}
	switch n := len(secret); {
	case len(distinct) < 8:
		return fmt.Errorf("cluster secret has only %d different characters; %s", len(distinct), way)
	case steady > n/2:
		return fmt.Errorf("cluster secret is easy to guess; %s", way)
	case strings.Contains((secret + secret)[1:2*n-1], secret):
		return fmt.Errorf("cluster secret repeats itself; %s", way)
	}
	return nil
}

// identity is what follows from one secret and the cluster's name: who knows both has the
// same, and nobody else has anything of it.
type identity struct {
	root ed25519.PrivateKey
	ca   *x509.Certificate
}

// deriveIdentity never fails for a reason that depends on the secret.
func deriveIdentity(secret, cluster string) (*identity, error) {
	seed, err := derive(secret, cluster, "certificate authority", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	root := ed25519.NewKeyFromSeed(seed)
	id := sha256.Sum256(root.Public().(ed25519.PublicKey))
	// Everything in it is fixed, and so is its signature: all processes make the same.
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "anteroom cluster " + cluster},
		SubjectKeyId:          id[:20],
		NotBefore:             time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(nil, template, template, root.Public(), root)
	if err != nil {
		return nil, fmt.Errorf("natslink: certificate of the cluster: %w", err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("natslink: certificate of the cluster: %w", err)
	}
	return &identity{root: root, ca: ca}, nil
}

// derive returns n bytes for a purpose.
func derive(secret, cluster, purpose string, n int) ([]byte, error) {
	b, err := hkdf.Key(sha256.New, []byte(secret), nil, "anteroom/1/"+cluster+"/"+purpose, n)
	if err != nil {
		return nil, fmt.Errorf("natslink: keys of the cluster: %w", err)
	}
	return b, nil
}

// Names in certificates. A certificate says what a process is, not where.
func coreName(cluster string) string        { return "core." + cluster + ".anteroom.internal" }
func siteCoreName(cluster, s string) string { return s + ".core." + cluster + ".anteroom.internal" }
func edgeName(cluster string) string        { return "edge." + cluster + ".anteroom.internal" }

// certificate makes a new key that never leaves this process and signs it. It does not
// expire by itself: the key ends with the process, and clocks may be wrong.
func (id *identity) certificate(node string, names ...string) (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("natslink: certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("natslink: certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: node},
		NotBefore:    id.ca.NotBefore,
		NotAfter:     id.ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     names,
	}, id.ca, public, id.root)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("natslink: certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}

// credentials are what a process shows to others and what it takes from them.
type credentials struct {
	cluster, site string
	own           tls.Certificate
	authorities   *x509.CertPool
	derived       bool // from the secret; else the operator's own certificates
	edge          bool // the secrets are those of edges
	secrets       []string
	shutOut       []string // edges that may not connect
}

// newCredentials reads and makes what the configuration says. A core is given its site.
func newCredentials(cfg ClusterConfig, core bool) (*credentials, error) {
	if IsEdgeSecret(cfg.Secret) || IsEdgeSecret(cfg.OtherSecret) {
		return edgeCredentials(cfg)
	}
	c := &credentials{cluster: cfg.Cluster, site: cfg.Site, secrets: []string{cfg.Secret}, shutOut: cfg.ShutOut}
	if cfg.OtherSecret != "" {
		c.secrets = append(c.secrets, cfg.OtherSecret)
	}
	if cfg.TLS != (TLSFiles{}) {
		return c, c.load(cfg.TLS)
	}
	c.derived, c.authorities = true, x509.NewCertPool()
	for i, secret := range c.secrets {
		id, err := deriveIdentity(secret, cfg.Cluster)
		if err != nil {
			return nil, err
		}
		c.authorities.AddCert(id.ca)
		if i > 0 {
			continue
		}
		names := []string{edgeName(cfg.Cluster)}
		if core {
			names = []string{coreName(cfg.Cluster), siteCoreName(cfg.Cluster, cfg.Site)}
		}
		if c.own, err = id.certificate(cfg.Node, names...); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *credentials) load(f TLSFiles) error {
	if f.Cert == "" || f.Key == "" || f.CA == "" {
		return errors.New("cluster tls: cert, key and ca are needed together")
	}
	var err error
	if c.own, err = tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
		return fmt.Errorf("cluster tls: certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return fmt.Errorf("cluster tls: ca: %w", err)
	}
	c.authorities = x509.NewCertPool()
	if !c.authorities.AppendCertsFromPEM(text) {
		if block, _ := pem.Decode(text); block == nil {
			return fmt.Errorf("cluster tls: ca %s holds no PEM block; give the authority's certificate", f.CA)
		}
		return fmt.Errorf("cluster tls: ca %s holds no certificate", f.CA)
	}
	return nil
}

// config is for both directions: whoever connects and whoever answers must show a
// certificate of an authority of ours, and where certificates are derived it must be for
// one of the names.
func (c *credentials) config(server string, peers ...string) *tls.Config {
	config := &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{c.own},
		RootCAs:      c.authorities,
		ClientCAs:    c.authorities,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		// A resumed session would not show its certificate again.
		SessionTicketsDisabled: true,
	}
	if c.derived {
		config.ServerName = server
	}
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("no certificate")
		}
		if who := s.PeerCertificates[0].Subject.CommonName; slices.Contains(c.shutOut, who) {
			return fmt.Errorf("%q is in cluster.shut_out", who)
		}
		if !c.derived {
			return nil
		}
		for _, name := range peers {
			if s.PeerCertificates[0].VerifyHostname(name) == nil {
				return nil
			}
		}
		return fmt.Errorf("certificate of %q is for %q, not for any of %q",
			s.PeerCertificates[0].Subject.CommonName, s.PeerCertificates[0].DNSNames, peers)
	}
	return config
}

// Purposes of keys.
const (
	purposeSite   = "user of a site's account" // of edges with the secret of the cluster, as are those of earlier releases
	purposeShared = "user of the shared account"
	purposeEdge   = "edge in a site's account"
	purposeEdges  = "edge in the shared account"
	purposeLeaf   = "link of another site"
	purposeRoute  = "link between cores of site "
)

// key is the key of a purpose that this process signs with.
func (c *credentials) key(purpose string) (nkeys.KeyPair, error) {
	return deriveKey(c.secrets[0], c.cluster, purpose)
}

// accepted are the public keys of a purpose, of every secret that is accepted.
func (c *credentials) accepted(purpose string) ([]string, error) {
	var keys []string
	for _, secret := range c.secrets {
		if purpose == purposeEdge || purpose == purposeEdges {
			var err error
			if secret, err = EdgeKey(secret, c.cluster); err != nil {
				return nil, err
			}
		}
		key, err := deriveKey(secret, c.cluster, purpose)
		if err != nil {
			return nil, err
		}
		public, err := key.PublicKey()
		if err != nil {
			return nil, fmt.Errorf("natslink: key: %w", err)
		}
		keys = append(keys, public)
	}
	return keys, nil
}

func deriveKey(secret, cluster, purpose string) (nkeys.KeyPair, error) {
	seed, err := derive(secret, cluster, purpose, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	encoded, err := nkeys.EncodeSeed(nkeys.PrefixByteUser, seed)
	if err != nil {
		return nil, fmt.Errorf("natslink: key: %w", err)
	}
	key, err := nkeys.FromSeed(encoded)
	if err != nil {
		return nil, fmt.Errorf("natslink: key: %w", err)
	}
	return key, nil
}

// passwords of a purpose: the one to use, and the others that are accepted.
func (c *credentials) passwords(purpose string) ([]string, error) {
	var all []string
	for _, secret := range c.secrets {
		b, err := derive(secret, c.cluster, purpose, 32)
		if err != nil {
			return nil, err
		}
		all = append(all, hex.EncodeToString(b))
	}
	return all, nil
}

func equalSecret(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
