package node

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// TestFormatOfJournal holds the bytes of records that journals have on disk.
func TestFormatOfJournal(t *testing.T) {
	t.Parallel()
	m := mark{at: 1_800_000_000_000_000, boot: [16]byte{1, 15: 2}, up: 77 * time.Second}
	e := engine.Event{Kind: engine.EventDoor, Lane: 3, ID: anteroom.ID{5, 15: 6}, At: 1_800_000_000_000_001, Key: 1_700_000_000_000_000}
	rec := append(appendMark(nil, m), entryStart, 0, 0, 1, 0, 0, 0, 0, 0)
	rec = append(append(rec, entryRoom), make([]byte, 15)...)
	rec = appendEvent(append(rec, 0xab), e)
	const want = "0100809828176506000100000000000000000000000000000200c28eed11000000f10000010000000000f0000000000000000000000000000000ab0f0305000000000000000000000000000006018098281765060000401e18240a0600"
	if got := hex.EncodeToString(rec); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	var told []string
	began, err := readRecord(rec, func(d time.Duration) { told = append(told, d.String()) },
		func(room anteroom.RoomID, got engine.Event) { told = append(told, fmt.Sprint(room, got == e)) })
	if got := strings.Join(told, " "); err != nil || began != m || got != "65.536µs 000000000000000000000000000000abtrue" {
		t.Errorf("read %+v %s, %v", began, got, err)
	}
	for n := range rec {
		if n == headBytes || n == headBytes+9 || n == headBytes+26 {
			continue // between entries
		}
		if _, err := readRecord(rec[:n], func(time.Duration) {}, func(anteroom.RoomID, engine.Event) {}); err == nil {
			t.Errorf("%d of %d bytes are a record", n, len(rec))
		}
	}
}
