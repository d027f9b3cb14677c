package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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

// TestShardOf: it is part of what nodes of different versions must agree on.
func TestShardOf(t *testing.T) {
	for room, want := range map[string]int{"": 5, "a": 12, "3f9a1c07be3f9a1c07be3f9a1c07be00": 2} {
		if got := cluster.ShardOf(room); got != want {
			t.Errorf("ShardOf(%q) = %d, want %d", room, got, want)
		}
	}
}

func TestCheckLease(t *testing.T) {
	for ttl, ok := range map[time.Duration]bool{time.Second: true, 3 * time.Second: true, 0: false, -time.Second: false,
		1500 * time.Millisecond: false, cluster.MaxRetention + time.Second: false} {
		if err := cluster.CheckLease(ttl); (err == nil) != ok {
			t.Errorf("%v: %v", ttl, err)
		}
	}
}

func TestCheckMessage(t *testing.T) {
	if err := cluster.CheckMessage("a.b", make([]byte, cluster.MaxMessage)); err != nil {
		t.Error(err)
	}
	if err := cluster.CheckMessage("a.b", make([]byte, cluster.MaxMessage+1)); !errors.Is(err, cluster.ErrTooLarge) {
		t.Error(err)
	}
	if err := cluster.CheckMessage("a.*", nil); !errors.Is(err, cluster.ErrKey) {
		t.Error(err)
	}
}

func TestCheckPrefix(t *testing.T) {
	for prefix, ok := range map[string]bool{"": true, "a": true, "a.": true, "a.b": true, ".": false, "a..": false, "*": false} {
		if err := cluster.CheckPrefix(prefix); (err == nil) != ok {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	if cluster.CheckJournal("") != nil || cluster.CheckJournal("site.03") != nil || cluster.CheckJournal("a.") == nil {
		t.Error("names of journals")
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
