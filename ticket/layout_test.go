package ticket

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// TestLayout holds what is sealed: tickets of one release open in another.
func TestLayout(t *testing.T) {
	t.Parallel()
	waiting := anteroom.Ticket{ID: anteroom.ID{1, 2, 3, 15: 16}, Arrival: 1_800_000_000_123_456, Lane: 3, LastCheckIn: 1_800_000_060_000_000,
		Next: 1_800_000_080_000_000, Refresh: 20 * time.Second, Bind: 0xbeef, Told: 77}
	solved := waiting
	solved.Solved = true
	moved := waiting
	moved.Moved = 2
	accepted := waiting
	accepted.AcceptedAt, accepted.Told, accepted.Home = 1_800_000_070_000_000, 0, 0xcafe
	for _, c := range []struct {
		ticket anteroom.Ticket
		want   string
	}{
		{waiting, "0102030000000000000000000000001000066517289a624003000665172c2c0700000665172d5d340000004e200000000000000000beef0000004d"},
		{solved, "0102030000000000000000000000001000066517289a624003000665172c2c0700000665172d5d340000004e200000000000000000beef8000004d"},
		{moved, "0102030000000000000000000000001000066517289a624003000665172c2c0700000665172d5d340002004e200000000000000000beef0000004d"},
		{accepted, "0102030000000000000000000000001000066517289a624003000665172c2c0700000665172d5d340000004e20000665172cc49d80beef0000cafe"},
	} {
		b := putBody(nil, c.ticket)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("it is\n%s, want\n%s", got, c.want)
		}
		if got := body(b); got != c.ticket {
			t.Errorf("read %+v, want %+v", got, c.ticket)
		}
	}
	const aad = "010000000b6578616d706c652e636f6d000000027231000000045f5f6366"
	if got := hex.EncodeToString(NewKeyring(time.Unix(0, 0)).Sealer("example.com", "r1", "__cf").aad); got != aad {
		t.Errorf("the additional data are\n%s, want\n%s", got, aad)
	}
}
