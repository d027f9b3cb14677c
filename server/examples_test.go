package server

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/config"
)

// The configurations below examples/, which documents show, start as they are, given the certificates and secrets that they
// name.
func TestConfigurationsOfTheExamples(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, "shop", 1, "shop.example.com")
	var names []string
	for _, pattern := range []string{"*.yaml", "nginx/*.yaml", "edges/*.yaml", "tls/*.yaml", "compose/*.yaml", "cluster/*.yaml", "aws/*.yaml", "queue-it/*.yaml", "sign-in/*.yaml", "fastly/*.yaml", "zones/*.yaml", "lanes/*.yaml"} {
		found, err := filepath.Glob("../examples/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		names = append(names, found...)
	}
	for _, name := range names {
		open := func(file string) (io.ReadCloser, error) {
			switch {
			case strings.HasPrefix(file, "/etc/anteroom/shop."):
				return os.Open(filepath.Join(dir, filepath.Base(file)))
			case filepath.Base(file) == "secret", filepath.Base(file) == "keys":
				return io.NopCloser(bytes.NewReader(bytes.Repeat([]byte("5e"), 32))), nil
			}
			return os.Open(file)
		}
		cfg, err := config.Load(config.LoadOptions{File: name, Open: open, Check: Check})
		if err != nil || len(cfg.Warnings) > 0 {
			t.Errorf("%v %q", err, cfg.Warnings)
		}
	}
}
