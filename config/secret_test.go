package config

import (
	"log"
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
