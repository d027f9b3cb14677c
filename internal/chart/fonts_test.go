package chart

import (
	"bytes"
	"testing"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
)

// TestFontsAreTheModules: what is embedded is what the module publishes.
func TestFontsAreTheModules(t *testing.T) {
	t.Parallel()
	for _, c := range [][2][]byte{{regular, liberationsansregular.TTF}, {bold, liberationsansbold.TTF}} {
		if got, err := unzipped(c[0]); err != nil || !bytes.Equal(got, c[1]) {
			t.Errorf("%d bytes, the module has %d: %v", len(got), len(c[1]), err)
		}
	}
}
