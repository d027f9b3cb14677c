//go:build !race

package sim

import (
	"context"
	"testing"
)

// TestHundredSites prints what a room with a hundred sites sends: the figures of docs/scale.md.
func TestHundredSites(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	sc, _ := Named("hundred-sites")
	r, err := Run(context.Background(), sc, 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := r.Numbers
	t.Logf("%d arrived, %d admitted; %.2f messages and %.0f bytes a second and site, both ways", n.Arrived, n.Admitted, n.Messages, n.Bytes)
	if n.Messages > 10 || n.OverActive > 0 || n.OverAnyMinute > 0 {
		t.Errorf("%.2f messages a second and site, at most 10 may be; over the limits by %v and %v", n.Messages, n.OverActive, n.OverAnyMinute)
	}
	for _, c := range r.Checks {
		if c.Broken > 0 {
			t.Errorf("%s: broken %d of %d times, first %s", c.Name, c.Broken, c.Looked, c.First)
		}
	}
}
