//go:build unix

package natslink

import (
	"encoding/hex"
	"reflect"
	"testing"
	"time"
)

// TestFormatOfRecords holds the bytes that stores and copies have on disk.
func TestFormatOfRecords(t *testing.T) {
	t.Parallel()
	e := envelope{number: 258, extra: 0xfedcba9876543210, kind: kindValue, data: []byte("value")}
	r := copyRecord{key: "room.1", revision: 70_000, pos: 70_001, envelope: e.seal("k.room.1")}
	ends := time.Unix(1_800_000_000, 5)
	for _, c := range []struct {
		what, want string
		got        []byte
	}{
		{"envelope", "018ef133180000000000000102fedcba98765432100276616c7565", e.seal("k.room.1")},
		{"lease", "18fae27693b4000500000002540be400686f6c646572", sealLease(ends, 10*time.Second, []byte("holder"))},
		{"copy", "78b01c34060000001b00000000000111700000000000011171726f6f6d2e31018ef133180000000000000102fedcba98765432100276616c7565", r.append([]byte{9})[1:]},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: it is\n%s, want\n%s", c.what, got, c.want)
		}
	}
	if got, err := unseal("k.room.1", e.seal("k.room.1")); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("unsealed %+v, %v", got, err)
	}
	if got, n, ok := cutCopyRecord(append(r.append(nil), 1, 2)); !ok || n != len(r.append(nil)) || !reflect.DeepEqual(got, r) {
		t.Errorf("cut %+v, %d bytes, %v", got, n, ok)
	}
	lease := sealLease(ends, 10*time.Second, nil)
	if got := leaseEnds(lease, ends.Add(-time.Second)); !got.Equal(ends) {
		t.Errorf("the lease ends at %v, want %v", got, ends)
	}
	if got, now := leaseEnds(lease, ends.Add(-time.Minute)), ends.Add(-50*time.Second); !got.Equal(now) {
		t.Errorf("the lease ends at %v, want %v", got, now)
	}
}
