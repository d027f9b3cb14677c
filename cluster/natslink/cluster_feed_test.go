//go:build unix

package natslink

import (
	"sync"
	"testing"
)

// Announcements come while the copy moves on; only those that are behind twice in a row say that the hub lost something.
func TestACopyThatMovesIsOfTheStoreItFollows(t *testing.T) {
	c := fill(t, t.TempDir())
	t.Cleanup(func() { c.close() })
	f := &feed{j: &joined{}, copy: c, store: "store"}
	done := make(chan struct{})
	var moving sync.WaitGroup
	moving.Go(func() {
		for pos := uint64(101); ; pos++ {
			select {
			case <-done:
				return
			default:
				c.reached(pos)
			}
		}
	})
	for range 20_000 {
		pos, _ := c.position()
		f.told("store", pos)
		if err := c.foreign(); err != nil {
			t.Errorf("at %d: %v", pos, err)
			break
		}
	}
	close(done)
	moving.Wait()

	f.told("store", 5)
	if err := c.foreign(); err != nil {
		t.Errorf("after one announcement that is behind: %v", err)
	}
	f.told("store", 6)
	if c.foreign() == nil {
		t.Error("two announcements in a row are behind, and nothing is said")
	}
}
