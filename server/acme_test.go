package server

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/anteroom/anteroom/internal/freeport"
)

// TestCertificatesFromAnAuthority lets Pebble, Let's Encrypt's own test authority, check
// and sign: once by the TLS challenge at the visitors' listener, once by the HTTP
// challenge at the redirecting one.
func TestCertificatesFromAnAuthority(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	pebble := filepath.Join(t.TempDir(), "pebble")
	build := exec.Command("go", "build", "-o", pebble, "github.com/letsencrypt/pebble/v2/cmd/pebble")
	build.Dir = filepath.Join("testdata", "pebble")
	build.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building Pebble: %v\n%s", err, out)
	}
	for _, c := range []struct{ name, tls, http string }{
		{"by TLS", "tls", "nobody"},
		{"by HTTP", "nobody", "http"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := prepareServer(t, "")
			ports := map[string]int{"tls": freeport.Port(t, 1), "http": freeport.Port(t, 1), "nobody": freeport.Port(t, 1)}
			a := startAuthority(t, pebble, r.dir, ports[c.tls], ports[c.http])
			redirect := ""
			if c.http == "http" {
				redirect = fmt.Sprintf("  redirect_http: 127.0.0.1:%d\n", ports["http"])
			}
			r.write(fmt.Sprintf("listen: 127.0.0.1:%d\nadmin: localhost:0\ndata: data\ntls:\n%s  acme: {hosts: [shop.example.com], email: ops@example.com, ca: %q}\n", ports["tls"], redirect, a.url))
			o := r.options()
			o.acmeRoots = a.roots
			s, err := New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			r.serve(s)
			r.log.await(t, 0, "certificate in use")
			issuer := func() string {
				conn, err := tls.Dial("tcp", r.s.Addresses().Visitors[0], &tls.Config{ServerName: "shop.example.com", InsecureSkipVerify: true})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				cert := conn.ConnectionState().PeerCertificates[0]
				if err := cert.VerifyHostname("shop.example.com"); err != nil {
					t.Error(err)
				}
				return cert.Issuer.CommonName
			}
			if got := issuer(); !strings.Contains(got, "Pebble") {
				t.Errorf("issued by %q", got)
			}
			// It is in the store: a restart needs no authority.
			r.end()
			a.stop()
			mark := r.log.mark()
			r.start()
			r.log.await(t, mark, "certificate in use")
			if got := issuer(); !strings.Contains(got, "Pebble") {
				t.Errorf("after the restart: issued by %q", got)
			}
		})
	}
}

type authority struct {
	url   string
	roots *x509.CertPool
	stop  func()
}

// startAuthority starts Pebble, which asks at the two ports of 127.0.0.1 whatever the name.
func startAuthority(t *testing.T, pebble, dir string, tlsPort, httpPort int) authority {
	t.Helper()
	writeCertificate(t, dir, "authority", 1, "localhost")
	port := freeport.Port(t, 1)
	type settings map[string]any
	raw, err := json.Marshal(settings{"pebble": settings{
		"listenAddress": fmt.Sprintf("127.0.0.1:%d", port),
		"certificate":   filepath.Join(dir, "authority.pem"), "privateKey": filepath.Join(dir, "authority.key"),
		"tlsPort": tlsPort, "httpPort": httpPort, "keyAlgorithm": "ecdsa",
		"profiles": settings{"default": settings{"description": "usual", "validityPeriod": 7776000}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(dir, "pebble.json"), string(raw))
	cmd := exec.Command(pebble, "-config", filepath.Join(dir, "pebble.json"), "-dnsserver", everyNameIsHere(t))
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0", "PEBBLE_AUTHZREUSE=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done, ready := make(chan struct{}), make(chan bool, 1)
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			if strings.Contains(s.Text(), "ACME directory available at") {
				ready <- true
			}
		}
		select {
		case ready <- false:
		default:
		}
		cmd.Wait()
	}()
	a := authority{url: fmt.Sprintf("https://localhost:%d/dir", port), roots: x509.NewCertPool(), stop: func() { cmd.Process.Kill(); <-done }}
	t.Cleanup(a.stop)
	if !<-ready {
		t.Fatal("Pebble did not start")
	}
	a.roots.AppendCertsFromPEM(mustRead(t, filepath.Join(dir, "authority.pem")))
	return a
}

// everyNameIsHere is a name server (RFC 1035) for which every name is 127.0.0.1. It speaks
// over UDP and TCP and knows addresses only.
func everyNameIsHere(t *testing.T) string {
	t.Helper()
	var l net.Listener
	var p net.PacketConn
	for p == nil {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if p, err = net.ListenPacket("udp", l.Addr().String()); err != nil {
			l.Close()
			if !errors.Is(err, syscall.EADDRINUSE) { // else somebody else has the UDP port of that number
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() { l.Close(); p.Close() })
	answer := func(q []byte) []byte {
		end := 12
		for end < len(q) && q[end] != 0 {
			end += int(q[end]) + 1
		}
		if end += 5; len(q) < end {
			return nil
		}
		a := append([]byte(nil), q[:end]...)
		binary.BigEndian.PutUint16(a[2:], 0x8180)
		copy(a[6:12], []byte{0, 0, 0, 0, 0, 0})
		if binary.BigEndian.Uint16(q[end-4:]) == 1 { // A
			a[7] = 1
			a = append(a, 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
		}
		return a
	}
	go func() {
		for b := make([]byte, 1500); ; {
			n, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			p.WriteTo(answer(b[:n]), from)
		}
	}()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for {
					var n [2]byte
					if _, err := io.ReadFull(c, n[:]); err != nil {
						return
					}
					q := make([]byte, binary.BigEndian.Uint16(n[:]))
					if _, err := io.ReadFull(c, q); err != nil {
						return
					}
					a := answer(q)
					c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...))
				}
			}()
		}
	}()
	return l.Addr().String()
}
