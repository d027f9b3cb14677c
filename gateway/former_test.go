package gateway

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
)

// former reads cookies like "12", a position, and "in".
func former(since time.Time) Former {
	return Former{Cookie: "queue", Read: func(value string, client netip.Addr, user string, now time.Time) (t anteroom.Ticket, admitted, ok bool) {
		n, err := strconv.Atoi(strings.Replace(value, "in", "0", 1))
		at := anteroom.TimeOf(now)
		return anteroom.Ticket{ID: anteroom.ID{1, byte(n)}, Arrival: anteroom.TimeOf(since).Add(time.Duration(n) * time.Microsecond), LastCheckIn: at, Next: at}, value == "in", err == nil
	}}
}

// Visitors of another waiting room come first, in its order, and the limits hold for them.
func TestFormerPlacesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, anteroom.Lottery{}, func(r *anteroom.Room) { r.NewUsersPerMinute, r.SessionDuration = 600, time.Minute })
		h.former = map[anteroom.RoomID]Former{h.room.ID: former(time.Now().Add(-10 * time.Second))}
		h.next = shopOfFormer
		h.restart()
		with := func(cookie string) *lotteryBrowser {
			return &lotteryBrowser{h: h, from: "192.0.2.7:4000", cookie: cookie}
		}
		ann := h.browser()
		if !ann.in() {
			t.Fatal("the first visitor is not in the shop")
		}
		bob := h.browser() // came before the others, but after the cut-over
		bob.in()
		carl, dora, forged := with("queue=9"), with("other=1; queue=7"), with("queue=x")
		for _, b := range []*lotteryBrowser{carl, dora, forged, with("queue=9")} { // the last is carl in another tab
			if b.in() {
				t.Fatal("there are two active users with a limit of 1")
			}
		}
		// Each gets the seat when the one before has been away for a session.
		left := []*lotteryBrowser{bob, carl, dora, forged}
		order := ""
		for range 600 {
			time.Sleep(time.Second)
			for i, b := range left {
				if b.in() {
					order += map[*lotteryBrowser]string{bob: "bob ", carl: "carl ", dora: "dora ", forged: "forged "}[b]
					left = slices.Delete(left, i, i+1)
					break
				}
			}
		}
		if order != "dora carl bob forged " {
			t.Errorf("the order is %s", order)
		}
	})
}

// By lottery there are no places: who had been admitted goes on, who waited has the age of the wait.
func TestFormerVisitorsOfALottery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, anteroom.Lottery{LotteryPercent: 1, LotteryMaxWait: 10 * time.Minute}, nil)
		h.former = map[anteroom.RoomID]Former{h.room.ID: former(time.Now().Add(-8 * time.Minute))}
		h.next = shopOfFormer
		h.restart()
		toRound()
		if !(&lotteryBrowser{h: h, from: "192.0.2.7:4000", cookie: "queue=in"}).in() {
			t.Error("an admitted visitor waits")
		}
		waited := &lotteryBrowser{h: h, from: "192.0.2.7:4000", cookie: "queue=5"}
		if _, body, in := waited.ask("GET", "/"); in || !strings.Contains(body, " · 100%") {
			t.Errorf("after nearly ten minutes: %v %s", in, body)
		}
	})
}
