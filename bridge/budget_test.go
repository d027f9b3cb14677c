package bridge

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// However many networks join, only so many are remembered, and those that are keep their bounds.
func TestABudgetStaysSmall(t *testing.T) {
	var b Budget
	now, first := anteroom.Time(1_764_000_000_000_000), anteroom.Networks{1}
	for range 600 {
		b.Spend(first, now)
	}
	for n := range uint32(2 * maxNetworks) {
		if !b.Spend(anteroom.Networks{2 + n}, now) {
			t.Fatalf("network %d has no budget", n)
		}
	}
	if len(b.back) > maxNetworks || b.Spend(first, now) {
		t.Errorf("%d networks; the first has joined too often", len(b.back))
	}
	now = now.Add(time.Second)
	b.Spend(anteroom.Networks{2}, now)
	if len(b.back) != 2 {
		t.Errorf("a second later %d networks are remembered", len(b.back))
	}
}

// Ids of bridges have the shape of UUIDs, and one spelling.
func TestUUID(t *testing.T) {
	b := [16]byte{0x6f, 0x1e, 0xd2, 0xa1, 0x8f, 0x5c, 0x4c, 0x57, 0x9a, 0x3e, 0x0d, 0x6f, 0x4b, 0x1c, 0x2a, 0x77}
	text := "6f1ed2a1-8f5c-4c57-9a3e-0d6f4b1c2a77"
	if got := UUID(b); got != text {
		t.Errorf("got %s", got)
	}
	if got, ok := ReadUUID(text); !ok || got != b {
		t.Errorf("read %x %v", got, ok)
	}
	for _, other := range []string{"", text[1:], text + "0", "6F1ED2A1-8f5c-4c57-9a3e-0d6f4b1c2a77", "6f1ed2a1_8f5c-4c57-9a3e-0d6f4b1c2a77", "zf1ed2a1-8f5c-4c57-9a3e-0d6f4b1c2a77"} {
		if _, ok := ReadUUID(other); ok {
			t.Errorf("%q is read", other)
		}
	}
}
