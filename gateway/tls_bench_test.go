package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// roleCertificate is a new certificate for the test's host, with an ECDSA key, as most sites have.
func roleCertificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{testHost}, NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// startSecureNginx is the nginx of peers behind TLS, with HTTP/2.
func startSecureNginx(b *testing.B, origin string) role {
	b.Helper()
	dir, cert := b.TempDir(), roleCertificate()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		b.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := os.WriteFile(filepath.Join(dir, "both.pem"), text, 0o600); err != nil {
		b.Fatal(err)
	}
	p := peers["nginx"]
	return startPeerIn(b, "nginx", dir, p.file, p.args, func(port int) string {
		listen := fmt.Sprintf("listen 127.0.0.1:%d", port)
		return strings.Replace(p.text(port, origin), listen, listen+" ssl http2; ssl_certificate both.pem; ssl_certificate_key both.pem", 1)
	})
}

// BenchmarkPeersTLS is BenchmarkPeers and BenchmarkQueued behind TLS, over HTTP/2 and over HTTP/1.1, on connections that stay
// open: each visitor has one, with one request at a time. The ratios are of times: h2/h1 of 1.6 says that an answer over HTTP/2
// needs 1.6 times what it needs over HTTP/1.1.
func BenchmarkPeersTLS(b *testing.B) {
	over := func(r role, protocol string) role {
		r.over = protocol
		return r
	}
	run := func(b *testing.B, connections int, roles map[string]role, ratios ...[2]string) {
		for b.Loop() {
			m := rounds(b, 3200, connections, roles)
			for _, of := range ratios {
				var list []float64
				for i, t := range m.of(of[0]) {
					list = append(list, float64(t)/float64(m[of[1]][i].cpu))
				}
				slices.Sort(list)
				b.ReportMetric(list[len(list)/2], of[0]+"/"+of[1])
			}
		}
	}
	b.Run("1kB", func(b *testing.B) {
		origin := startRole(b, "bare 1024").addr
		on, nginx := startRole(b, "tls room-on "+origin), startSecureNginx(b, origin)
		nginx.cookies = on.cookies
		run(b, 64, map[string]role{"h2": over(on, "h2"), "h1": over(on, "http/1.1"), "nginx-h2": over(nginx, "h2"), "nginx-h1": over(nginx, "http/1.1")},
			[2]string{"h2", "h1"}, [2]string{"h2", "nginx-h2"}, [2]string{"h1", "nginx-h1"}, [2]string{"nginx-h2", "nginx-h1"})
	})
	for kind, headers := range map[string]string{"page": "", "json": "Accept: application/json\r\n"} {
		b.Run(kind, func(b *testing.B) {
			queued := over(startRole(b, "tls queued"), "h2")
			queued.headers = headers
			bare := startRole(b, fmt.Sprint("tls bare ", queued.answer(b, 0).ContentLength))
			bare.cookies, bare.headers = queued.cookies, headers
			run(b, 32, map[string]role{"h2": queued, "h1": over(queued, "http/1.1"), "bare-h2": over(bare, "h2"), "bare-h1": over(bare, "http/1.1")},
				[2]string{"h2", "h1"}, [2]string{"h2", "bare-h2"}, [2]string{"h1", "bare-h1"}, [2]string{"bare-h2", "bare-h1"})
		})
	}
}
