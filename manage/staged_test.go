package manage

import (
	"encoding/hex"
	"testing"
)

// TestFormatOfStagedWrites holds the bytes of changes that wait to be finished.
func TestFormatOfStagedWrites(t *testing.T) {
	t.Parallel()
	b := append(frame(write{Key: "room.1", packed: []byte("value")}), frame(write{Key: "gone"})...)
	const want = "0006726f6f6d2e310000000576616c75650004676f6e6500000000"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	got, err := unframe(b)
	if err != nil || len(got) != 2 || got[0].Key != "room.1" || string(got[0].bytes()) != "value" || got[1].Key != "gone" || got[1].bytes() != nil {
		t.Errorf("read %+v, %v", got, err)
	}
	for n := range b {
		if n != 0 && n != 17 {
			if _, err := unframe(b[:n]); err == nil {
				t.Errorf("%d of %d bytes are writes", n, len(b))
			}
		}
	}
}
