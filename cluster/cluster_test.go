package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/cluster"
)

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"a", "room.3f9a1c07be/state", "A-b_c=d/e.0", "/", strings.Repeat("k", cluster.MaxKey)} {
		if err := cluster.CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", ".", ".a", "a.", "a..b", "a b", "a*", ">", "ä", "a\x00", "a\n", strings.Repeat("k", cluster.MaxKey+1)} {
		if err := cluster.CheckKey(key); !errors.Is(err, cluster.ErrKey) {
			t.Errorf("%q: %v, want ErrKey", key, err)
		}
	}
}

func TestCheckRetention(t *testing.T) {
	if err := cluster.CheckRetention(cluster.DefaultRetention); err != nil {
		t.Error(err)
	}
	if cluster.CheckRetention(cluster.MinRetention-1) == nil || cluster.CheckRetention(cluster.MaxRetention+1) == nil {
		t.Error("retention beyond the bounds is accepted")
	}
}

func TestDamagedErrorNamesWhat(t *testing.T) {
	cause := errors.New("checksum differs")
	err := error(&cluster.DamagedError{What: "key a", Err: cause})
	if got := err.Error(); got != "cluster: damaged: key a: checksum differs" {
		t.Error(got)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
}
