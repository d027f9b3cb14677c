package server

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anteroom/anteroom/ticket"
)

// TestSecretsStayOutOfLogsAndStore runs visits at the most talkative log level and looks
// for tickets, proofs and keys in everything that was logged or stored.
func TestSecretsStayOutOfLogsAndStore(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	var proof atomic.Pointer[string]
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.Header.Get("X-Anteroom-Assertion")
		proof.Store(&p)
		w.Write([]byte("the shop"))
	}))
	defer origin.Close()
	r := startServer(t, "log: {level: debug}\nsites: [{hosts: \"*\", origins: \""+origin.URL+"\"}]\n"+oneRoom)
	var secrets []string
	var inside, outside []*http.Cookie
	for range 3 {
		for _, who := range []*[]*http.Cookie{&inside, &outside} {
			a := r.visit("/page?token=secret-in-the-query", *who...)
			if c := a.Cookies(); len(c) > 0 {
				*who = c
				secrets = append(secrets, c[0].Value)
			}
		}
	}
	if len(secrets) < 2 || proof.Load() == nil {
		t.Fatalf("%d tickets, proof %v", len(secrets), proof.Load())
	}
	// Cookies that are none, old ones, and what the operator asks for.
	r.visit("/", &http.Cookie{Name: "__cfwaitingroom", Value: secrets[0][:40]}, &http.Cookie{Name: "other", Value: "another-secret"})
	keys := filepath.Join(r.dir, "data", "keys.json")
	if _, err := ticket.RotateFile(keys, r.s.started, 0); err != nil {
		t.Fatal(err)
	}
	if err := r.reload(); err != nil {
		t.Fatal(err)
	}
	r.visit("/", inside...)
	answers := r.admin("GET", "/-/status").body + r.admin("GET", "/metrics").body
	mustWrite(t, keys, "{broken")
	r.reload()
	r.end()

	secrets = append(secrets, *proof.Load(), secrets[0][:40], "secret-in-the-query", "another-secret")
	if len(*proof.Load()) < 100 {
		t.Fatalf("proof %q", *proof.Load())
	}
	places := map[string][]byte{"the log": []byte(r.log.String()), "status and metrics": []byte(answers)}
	err := filepath.WalkDir(filepath.Join(r.dir, "data"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && name != keys {
			places[name], err = os.ReadFile(name)
		}
		return err
	})
	if err != nil || len(places) < 5 {
		t.Fatalf("%d places, %v", len(places), err)
	}
	for name, content := range places {
		for _, s := range secrets {
			if bytes.Contains(content, []byte(s)) {
				t.Errorf("%s holds %.20q…", name, s)
			}
		}
	}
}

// TestKeySecretsStayInTheKeyFile looks for the keys themselves.
func TestKeySecretsStayInTheKeyFile(t *testing.T) {
	r := startServer(t, "log: {level: debug}\n"+oneRoom)
	r.visit("/")
	var file struct {
		Keys []struct{ Secret string }
	}
	if err := json.Unmarshal(mustRead(t, filepath.Join(r.dir, "data", "keys.json")), &file); err != nil || len(file.Keys) == 0 {
		t.Fatal(err, file)
	}
	everything := r.log.String() + r.admin("GET", "/-/status").body + r.admin("GET", "/metrics").body
	for _, k := range file.Keys {
		if len(k.Secret) < 20 || strings.Contains(everything, k.Secret) {
			t.Errorf("a key of %d characters is in log, status or metrics", len(k.Secret))
		}
	}
}
