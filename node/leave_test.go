package node

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A node that is stopped in good order, and does not come back, tells its site that it admits nobody any more: the seats of its
// visitors come free when their sessions end, whichever roles the node held. Seats of a node that is killed are held for longer.
func TestANodeThatLeavesHoldsNoSeats(t *testing.T) {
	room := shop
	room.TotalActiveUsers = 1
	for name, which := range map[string]func(g *group) *peer{
		"which decided": func(g *group) *peer { return g.holder("dublin") },
		"which asked":   func(g *group) *peer { return g.other("dublin", g.holder("dublin")) },
	} {
		t.Run(name, func(t *testing.T) {
			together(t, room, "dublin-1 dublin-2", func(t *testing.T, g *group) {
				gone := which(g)
				stays := g.other("dublin", gone)
				first := newGuest()
				first.want(t, gone, anteroom.Admit)
				last := time.Now()
				gone.leave()
				first.want(t, gone, anteroom.Wait) // or the seat would be another's while the visitor is inside
				next := newGuest()
				for next.at(t, stays).Verdict != anteroom.Admit {
					pass(time.Second)
					if time.Since(last) > 5*time.Minute {
						t.Fatal("nobody is admitted any more")
					}
				}
				if took := time.Since(last); took < room.SessionDuration || took > room.SessionDuration+10*time.Second {
					t.Errorf("the seat came free %v after the last request, and the session lasts %v", took, room.SessionDuration)
				}
			})
		})
	}
}
