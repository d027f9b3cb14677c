package natslink

import (
	"strings"
	"testing"
)

func wantText(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v; want it to say %q", err, part)
	}
}
