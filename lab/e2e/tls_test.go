package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate makes a certificate for the loopback address, and for further names, and
// returns the files.
func certificate(t *testing.T, names ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "anteroom e2e"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: append(names, "localhost"),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestOverTLSVisitorsWaitAndGetInByHTTP2(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	plain := freeAddress(t)
	g := startGate(t, oneSeat, fmt.Sprintf("tls:\n  certificates:\n    - cert: %s\n      key: %s\n  redirect_http: %s", cert, key, plain))
	inside := newVisitor(t, g)
	a := inside.get("/")
	if !a.admitted() || a.ProtoMajor != 2 {
		t.Fatalf("%s %s", a.Proto, a.Status)
	}
	for _, c := range a.Cookies() {
		if !c.Secure || !c.HttpOnly {
			t.Errorf("the cookie over TLS: %v", c)
		}
	}
	b := open(t)
	// By the plain address, as people type it.
	b.visit("http://" + plain + "/cart?x=1")
	b.waits()
	address := g.url("/cart?x=1")
	if got := eval[string](b, "location.href"); got != address {
		t.Fatalf("the redirect led to %s", got)
	}
	if r := b.answers(address); len(r) != 1 || r[0].Protocol != "h2" {
		t.Errorf("the page came by %+v", r)
	}
	if c := b.ticket(address); !c.Secure || !c.HTTPOnly || c.SameSite != "Lax" {
		t.Errorf("the cookie over TLS: %+v", c)
	}
	reference := b.reference()
	inside.leave()
	b.becomes(30*time.Second, `document.title.startsWith('Your cart')`)
	if eval[string](b, "location.href") != address {
		t.Errorf("admitted at %s", eval[string](b, "location.href"))
	}
	if got := eval[string](b, opensSocket); got != "open" {
		t.Errorf("a WebSocket over TLS is %s (visitor %s)", got, reference)
	}
	if got := eval[string](b, echoes("over TLS")); got != "over TLS" {
		t.Errorf("came back: %q", got)
	}
}

func TestOldTLSAndPlainTextAreRefused(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	g := startGate(t, oneSeat, fmt.Sprintf("tls:\n  certificates:\n    - cert: %s\n      key: %s", cert, key))
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		conn, err := tls.Dial("tcp", g.host, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if err == nil {
			conn.Close()
			t.Errorf("%s is spoken", tls.VersionName(version))
		}
	}
	res, err := http.Get("http://" + g.host + "/")
	if err == nil {
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("plain text: %s", res.Status)
		}
	} else if !strings.Contains(err.Error(), "malformed") && !strings.Contains(err.Error(), "EOF") {
		t.Error(err)
	}
}
