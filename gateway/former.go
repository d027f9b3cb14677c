package gateway

import (
	"net/netip"
	"time"

	"github.com/anteroom/anteroom"
)

// Former is another waiting room, from which visitors come with its cookie.
type Former struct {
	Cookie string // its name
	// Read returns the waiting ticket of a cookie's visitor, and whether the visitor had been admitted there; false if the cookie is
	// not good. User is what the header auth-user-id says.
	Read func(value string, client netip.Addr, user string, now time.Time) (t anteroom.Ticket, admitted, ok bool)
}

// formerPlace returns the place that a visitor has from another waiting room. In a room by lottery, which has no places, those who
// had been admitted there have a chance of 100% at once.
func (x *exchange) formerPlace() (t anteroom.Ticket, ok bool) {
	f := x.room.former
	if f == nil {
		return t, false
	}
	tried, admitted := 0, false
	eachCookie(x.cookies, f.Cookie, func(value string) {
		if tried++; !ok && tried <= 4 { // a browser sends one for each domain and path
			t, admitted, ok = f.Read(value, x.client, x.r.Header.Get("Auth-User-Id"), x.start)
		}
	})
	if admitted && x.room.LotteryPercent > 0 {
		t.Told = anteroom.ChanceOfOne
	}
	return t, ok
}
