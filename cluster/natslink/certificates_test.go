//go:build unix

package natslink

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// company is an authority of an operator's own.
type company struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string
}

func newCompany(t *testing.T) *company {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "company"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c := &company{key: key, file: filepath.Join(t.TempDir(), "ca.pem")}
	if c.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	writePEM(t, c.file, "CERTIFICATE", der)
	return c
}

// files are a certificate for processes on loopback.
func (c *company) files(t *testing.T) TLSFiles {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, c.cert, key.Public(), c.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := TLSFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: c.file}
	writePEM(t, f.Cert, "CERTIFICATE", der)
	writePEM(t, f.Key, "PRIVATE KEY", secret)
	return f
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOwnCertificates: nodes with certificates of the operator's authority find each other,
// and a certificate of it without the secret is not enough.
func TestOwnCertificates(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	ours, theirs := newCompany(t), newCompany(t)
	cores := members(t, "dublin")
	for i := range cores {
		cores[i].TLS = ours.files(t)
	}
	startSite(t, cores...)
	far := single(t, "paris")
	far.TLS, far.Hub = ours.files(t), []string{cores[0].Listen}
	within(t, 20*time.Second, startSite(t, far)[0].hubReady)
	edge := edgeOf(t, cores...)
	edge.TLS = ours.files(t)
	within(t, 20*time.Second, start(t, edge).ready)

	for name, cfg := range map[string]ClusterConfig{
		"of the company, another secret": {Cluster: "shop", Node: "n", Secret: otherSecret, TLS: ours.files(t)},
		"of the company, no secret":      {Cluster: "shop", Node: "n", TLS: ours.files(t)},
		"of another company":             {Cluster: "shop", Node: "n", Secret: testSecret, TLS: theirs.files(t)},
		"derived":                        {Cluster: "shop", Node: "n", Secret: testSecret},
	} {
		c, err := newCredentials(cfg, false)
		if err != nil {
			t.Fatal(err)
		}
		config := c.config("", coreName("shop"))
		config.RootCAs.AddCert(ours.cert) // it would believe the core
		nc, err := nats.Connect("tls://"+cores[0].Listen, nkey(t, c, purposeSite), nats.Secure(config), nats.TLSHandshakeFirst())
		if err == nil {
			nc.Close()
			t.Errorf("%s: it is let in", name)
		} else if cfg.TLS.CA == ours.file && !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	good := newCompany(t).files(t)
	none := filepath.Join(t.TempDir(), "none.pem")
	text := filepath.Join(t.TempDir(), "text.pem")
	write(t, text, "hello")
	for want, f := range map[string]TLSFiles{
		"needed together":   {Cert: good.Cert},
		"no such file":      {Cert: none, Key: good.Key, CA: good.CA},
		"no PEM block":      {Cert: good.Cert, Key: good.Key, CA: text},
		"holds no certific": {Cert: good.Cert, Key: good.Key, CA: good.Key},
	} {
		_, err := newCredentials(ClusterConfig{Cluster: "shop", TLS: f}, true)
		wantText(t, err, want)
	}
}
