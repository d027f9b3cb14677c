package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain takes from others what a checkout lets them read.
func TestMain(m *testing.M) {
	for _, name := range []string{"testdata/good/secret", "testdata/bad/short-secret"} {
		if err := os.Chmod(name, 0o600); err != nil {
			log.Fatal(err)
		}
	}
	os.Exit(m.Run())
}

func TestSecretOfOthersIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o440: false, 0o640: false, 0o644: true, 0o660: true, 0o604: true, 0o666: true} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		_, _, err := Cluster{SecretFile: name}.Secrets()
		if refused != (err != nil) {
			t.Errorf("%04o: %v", mode, err)
		}
		if refused && !strings.Contains(err.Error(), "chmod g-w,o= "+name) {
			t.Errorf("%04o: %v does not say what to do", mode, err)
		}
	}
}

// Files with other secrets are accepted as they are, and warned of: in the log and by anteroom validate.
func TestSecretsOfOthersAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	const conf = `sites: [{hosts: [shop.example.com], origins: "http://127.0.0.1:9"}]
admin_tls: {cert: cert, key: key}
tls: {certificates: [{cert: cert, key: key}]}
sign_in: {issuer: "https://login.example.com", client_id: a, client_secret_file: secret, url: "https://a.example.com", roles: [{value: a, permission: read}]}
challenge: {provider: turnstile, site_key: a, secret_file: secret}
cluster: {name: shop, listen: "127.0.0.1:7222", secret_file: own, nats: {credentials: secret, shared_credentials: secret}}
rooms:
  - {name: a, host: shop.example.com, path: /a, total_active_users: 1, new_users_per_minute: 1}
  - {name: q, host: q.example.com, total_active_users: 1, new_users_per_minute: 1}
  - {name: f, host: shop.example.com, path: /f, total_active_users: 1, new_users_per_minute: 1}
aws: [{event_id: a, room: a, url: "https://a.example.com/a", client_secret_file: secret, redirect_uris: ["https://b.example.com/"]}]
queue_it: [{customer_id: a, event_id: q, room: q, url: "https://q.example.org", secret_file: secret}]
fastly: [{room: f, starter: compute, secret_file: secret, since: 2026-11-28T10:00:00Z}]
`
	at := []string{"admin_tls.key", "tls.certificates[0].key", "sign_in.client_secret_file", "challenge.secret_file", "cluster.nats.credentials", "cluster.nats.shared_credentials", "aws[0].client_secret_file",
		"queue_it[0].secret_file", "fastly[0].secret_file"}
	write("c.yaml", conf, 0o644) // no secret
	write("cert", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})), 0o644)
	write("own", strings.Repeat("0123456789abcdef", 4), 0o600)
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o440: false, 0o640: false, 0o644: true, 0o660: true, 0o444: true} {
		write("key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), mode)
		write("secret", strings.Repeat("s", 32), mode)
		c, err := Load(LoadOptions{File: filepath.Join(dir, "c.yaml")})
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(c.Warnings, "\n")
		for _, path := range at {
			if got := strings.Contains(said, " "+path+": "); got != warned {
				t.Errorf("%04o: %s warned of: %v\n%s", mode, path, got, said)
			}
		}
		if n := len(c.Warnings); warned && (n != len(at) || strings.Count(said, "chmod g-w,o= "+dir) != n) {
			t.Errorf("%04o: %d warnings of %d say what to do:\n%s", mode, n, len(at), said)
		}
	}
}
