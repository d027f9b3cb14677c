package sim

// Whether visitors are told how long they will wait.

import (
	"fmt"
	"math"
	"reflect"

	"github.com/anteroom/anteroom"
)

// leastWaits is how many waits of 30 s and more a median is taken of.
const leastWaits = 50

// saysTrue holds the waits that were told first to those that came, in a line by arrival where nothing happens that nobody can foresee. Half
// of them are off by at most a twentieth. When sessions end is a matter of chance, the more so the fewer they are, and at first nothing is known of them.
func (j *judge) saysTrue() {
	n, w := &j.numbers, j.w
	if n.EtaTold < leastWaits || !w.foreseeable() {
		return
	}
	off := 0.05
	if n.PeakActive >= j.set.TotalActiveUsers {
		off = 0.2 + 3/math.Sqrt(float64(n.EtaTold))
	}
	j.look(checkTold, n.EtaError <= off, func() string {
		return fmt.Sprintf("half of %d waits are off by more than %.0f %% of what was told, at most %.0f %% may be", n.EtaTold, 100*n.EtaError, 100*off)
	})
}

// foreseeable says that a forecast can know all that happens in the world, but for chance: nothing fails, and everybody who has a place
// is there when the turn comes.
func (w *world) foreseeable() bool {
	sc, v := &w.sc, w.sc.Visitors
	surprises := v.LeavePerMinute + v.Sleeps + v.Freezes + v.Roams + v.Clones + v.Replays + v.Quits + v.Bare + v.Returns + v.NoCookies + v.LostCookies + v.Parallel
	return surprises == 0 && reflect.ValueOf(sc.Faults).IsZero() && len(sc.Changes)+len(sc.Acts)+len(sc.Lanes) == 0 && !sc.Protect &&
		sc.QueueingMethod == anteroom.FIFO && !shut(sc.Settings) && !sc.Suspended && sc.NewUsersPerMinute > 0 && sc.Pass == 0
}
