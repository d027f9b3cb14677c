package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate makes a self-signed certificate for the hosts; the serial number tells
// one from another.
func writeCertificate(t *testing.T, dir, name string, serial int64, hosts ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: hosts, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(dir, name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	mustWrite(t, filepath.Join(dir, name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
}

// serial is the certificate's that the server shows for a name.
func (r *running) serial(name string) int64 {
	r.t.Helper()
	c, err := tls.Dial("tcp", r.s.Addresses().Visitors[0], &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func startTLS(t *testing.T) *running {
	r := prepareServer(t, "")
	writeCertificate(t, r.dir, "a", 1, "a.example.com")
	writeCertificate(t, r.dir, "b", 2, "b.example.com", "*.c.example.com")
	r.write(listenAnywhere + twoCertificates)
	return r.start()
}

const twoCertificates = `
tls:
  certificates: [{cert: a.pem, key: a.key}, {cert: b.pem, key: b.key}]
  redirect_http: "127.0.0.2:0"
`

func TestCertificateIsChosenByName(t *testing.T) {
	r := startTLS(t)
	for name, want := range map[string]int64{"a.example.com": 1, "b.example.com": 2, "B.Example.COM": 2, "x.c.example.com": 2, "unknown.example": 1, "": 1} {
		if got := r.serial(name); got != want {
			t.Errorf("%q: certificate %d, want %d", name, got, want)
		}
	}
	if a := r.admin("GET", "/metrics"); !strings.Contains(a.body, "anteroom_certificate_expiry_seconds") {
		t.Error("the metrics do not tell when certificates run out")
	}
}

func TestProtocolsOfTLS(t *testing.T) {
	r := startTLS(t)
	for _, c := range []struct {
		name   string
		config *tls.Config
		want   string // protocol; empty: refused
	}{
		{"h2", &tls.Config{NextProtos: []string{"h2", "http/1.1"}}, "h2"},
		{"http/1.1", &tls.Config{NextProtos: []string{"http/1.1"}, MaxVersion: tls.VersionTLS12}, "http/1.1"},
		{"TLS 1.1", &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, ""},
		{"a challenge for a host that is not ours", &tls.Config{NextProtos: []string{"acme-tls/1"}}, ""},
	} {
		c.config.InsecureSkipVerify, c.config.ServerName = true, "a.example.com"
		conn, err := tls.Dial("tcp", r.s.Addresses().Visitors[0], c.config)
		if err != nil {
			if c.want != "" {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != c.want {
			t.Errorf("%s: speaks %q, want %q", c.name, got, c.want)
		}
		conn.Close()
	}
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + r.s.Addresses().Visitors[0] + "/page")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.ProtoMajor != 2 || string(body) != "the shop: /page" {
		t.Errorf("%s %q", res.Proto, body)
	}
}

func TestCertificatesChangeWithTheirFiles(t *testing.T) {
	r := startTLS(t)
	mark := r.log.mark()
	writeCertificate(t, r.dir, "a", 3, "a.example.com")
	r.log.await(t, mark, taken)
	if got := r.serial("a.example.com"); got != 3 {
		t.Errorf("certificate %d, want the new one", got)
	}
	mark = r.log.mark()
	mustWrite(t, filepath.Join(r.dir, "b.pem"), "no certificate")
	r.log.await(t, mark, "last good one stays")
	if got := r.serial("b.example.com"); got != 2 {
		t.Errorf("certificate %d, want the last good one", got)
	}
}

func TestTLSIsNotSwitchedOffByAReload(t *testing.T) {
	r := startTLS(t)
	mark := r.log.mark()
	r.write(listenAnywhere)
	if err := r.reload(); err != nil {
		t.Fatal(err)
	}
	r.log.await(t, mark, "next restart\" key=tls")
	if got := r.serial("b.example.com"); got != 2 {
		t.Errorf("certificate %d, want the old ones until the restart", got)
	}
}

func TestRedirectToHTTPS(t *testing.T) {
	r := startTLS(t)
	_, port, _ := strings.Cut(r.s.Addresses().Visitors[0], ":")
	for _, c := range []struct{ host, path, want string }{
		{"a.example.com", "/x?y=%2F", "https://a.example.com:" + port + "/x?y=%2F"},
		{"A.example.com:80", "/", "https://a.example.com:" + port + "/"},
		{"127.0.0.1", "/", "https://127.0.0.1:" + port + "/"},
		{"[::1]:80", "//evil.example/", "https://[::1]:" + port + "//evil.example/"},
	} {
		req, err := http.NewRequest("GET", "http://"+r.s.Addresses().Redirect+c.path, nil)
		req.Host = c.host
		a := r.do(req, err)
		if got := a.Header.Get("Location"); a.StatusCode != 308 || got != c.want {
			t.Errorf("%s%s: %d %s, want 308 %s", c.host, c.path, a.StatusCode, got, c.want)
		}
	}
	req, err := http.NewRequest("GET", "http://"+r.s.Addresses().Redirect, nil)
	req.Host = "a_b..example"
	if a := r.do(req, err); a.StatusCode != 400 {
		t.Errorf("a bad host: %d %s", a.StatusCode, a.Header.Get("Location"))
	}
}
