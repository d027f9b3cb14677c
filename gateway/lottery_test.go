package gateway

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
)

// hall is a room by lottery in front of a shop, in a bubble of virtual time.
type hall struct {
	t    *testing.T
	g    *Gateway
	n    *node.Node
	room anteroom.Room
	keys *ticket.Keyring
	next http.Handler

	former map[anteroom.RoomID]Former
}

// shopOfFormer is a shop that may see the cookies of another waiting room.
var shopOfFormer = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("the shop")) })

func newHall(t *testing.T, l anteroom.Lottery, edit func(*anteroom.Room)) *hall {
	t.Helper()
	h := &hall{t: t, keys: ticket.NewKeyring(time.Now()), next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" {
			t.Errorf("the shop sees the cookie %q", r.Header.Get("Cookie"))
		}
		w.Write([]byte("the shop"))
	})}
	h.room = anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}}, Lottery: l, Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1}}
	if edit != nil {
		edit(&h.room)
	}
	if f := h.room.Check(); len(f) > 0 {
		t.Fatal(f)
	}
	h.room = h.room.WithDefaults()
	h.n, _ = bubbleGateway(t, h.room, h.next)
	h.restart()
	return h
}

// restart is another process: it has the room and the keys, and has seen nobody.
func (h *hall) restart() {
	h.t.Helper()
	g, err := New(Config{Rooms: []anteroom.Room{h.room}, Node: h.n, Keys: h.keys, Former: h.former})
	if err != nil {
		h.t.Fatal(err)
	}
	h.g = g
}

// set changes the room while it is served.
func (h *hall) set(edit func(*anteroom.Room)) {
	h.t.Helper()
	edit(&h.room)
	put, ok := h.g.PrepareRooms([]RoomChange{{Room: h.room}})
	if !ok {
		h.t.Fatal("the change is refused")
	}
	put()
}

// browser keeps a cookie.
type lotteryBrowser struct {
	h      *hall
	from   string
	cookie string
}

func (h *hall) browser() *lotteryBrowser { return &lotteryBrowser{h: h, from: "192.0.2.7:4000"} }

// ask sends a request and keeps the cookie of the answer. It reports whether the shop has answered.
func (b *lotteryBrowser) ask(method, target string, more ...string) (*http.Response, string, bool) {
	b.h.t.Helper()
	r := httptest.NewRequest(method, "http://"+testHost+target, nil)
	r.RemoteAddr = b.from
	header(more...)(r)
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	rec := httptest.NewRecorder()
	b.h.g.Middleware(b.h.next).ServeHTTP(rec, r)
	if line := rec.Header().Get("Set-Cookie"); line != "" {
		b.cookie, _, _ = strings.Cut(line, ";")
	}
	body := rec.Body.String()
	return rec.Result(), body, body == "the shop"
}

// in reports whether a page request reaches the shop.
func (b *lotteryBrowser) in() bool {
	b.h.t.Helper()
	_, _, in := b.ask("GET", "/")
	return in
}

// toRound sleeps until the next round begins, and a second more.
func toRound() {
	now := time.Now()
	time.Sleep(now.Truncate(30 * time.Second).Add(31 * time.Second).Sub(now))
}

// A room by lottery from the first request to the end of the session.
func TestTheStoryOfALottery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, anteroom.Lottery{LotteryPercent: 50}, nil)
		toRound()
		var all []*lotteryBrowser
		for range 60 {
			b := h.browser()
			res, body, in := b.ask("GET", "/cart", "Accept", "text/html")
			if in || res.StatusCode != 200 || !strings.Contains(body, "there is no line") || !strings.Contains(body, "50%") || strings.Contains(body, "You are in line") {
				t.Fatalf("%d, in the shop: %v, %.2000s", res.StatusCode, in, body)
			}
			if age := res.Header.Get("Set-Cookie"); !strings.Contains(age, "Max-Age=3959;") { // 59 s to the next round but one, place_hold, and an hour
				t.Fatalf("the cookie is %q", age)
			}
			all = append(all, b)
		}
		// Before the ticket has matured, nothing changes, however often anybody asks, and nobody gets in.
		first := all[0].cookie
		for range 20 {
			if res, _, in := all[0].ask("GET", "/"); in || res.Header["Set-Cookie"] != nil || all[0].cookie != first {
				t.Fatal("an early request changes something")
			}
		}
		_, status, _ := all[0].ask("GET", "/?__anteroom=status.")
		for _, part := range []string{`"state":"lottery"`, `"chance":" · 50%"`, `"reason":"early"`, `"ahead":null`} {
			if !strings.Contains(status, part) {
				t.Errorf("no %s in %s", part, status)
			}
		}
		if res, _, _ := all[0].ask("GET", "/?__anteroom=stream"); res.StatusCode != http.StatusNoContent {
			t.Errorf("a stream: %d", res.StatusCode)
		}

		toRound()
		toRound()
		var winners, losers []*lotteryBrowser
		for _, b := range all {
			held := b.cookie
			in := b.in()
			// The same ticket has the same outcome: again, in another process, by HEAD, later in the round, and with other keys.
			for i := range 4 {
				again := &lotteryBrowser{h: h, from: b.from, cookie: held}
				method := "GET"
				switch i {
				case 1:
					h.restart()
				case 2:
					method = "HEAD"
				}
				res, _, same := again.ask(method, "/")
				if method == "HEAD" {
					same = res.Header.Get("Refresh") == ""
				}
				if same != in {
					t.Fatalf("the outcome was %v, and then %v (%d)", in, same, i)
				}
			}
			if in {
				winners = append(winners, b)
			} else {
				losers = append(losers, b)
			}
		}
		// 60 coins: fewer than 10 or more than 50 heads come once in ten million worlds.
		if len(winners) < 10 || len(losers) < 10 {
			t.Fatalf("%d win, %d do not", len(winners), len(losers))
		}
		// Nobody else is asked: the limits of the room are 1, and its node knows of nobody.
		if s := h.n.Room(h.room.ID).Status(); s.ActiveUsers != 0 || s.Waiting != 0 {
			t.Errorf("the node knows %d active users, %d waiting", s.ActiveUsers, s.Waiting)
		}
		in := 0
		toRound()
		toRound()
		for _, b := range losers { // they have another try
			if b.in() {
				in++
			}
		}
		if in == 0 || in == len(losers) {
			t.Errorf("%d of %d win in the next round", in, len(losers))
		}
		// A session lasts five minutes from the last request, by the cookie alone.
		ann := winners[0]
		ann.in() // a minute after she won
		for range 4 {
			time.Sleep(4 * time.Minute)
			if !ann.in() {
				t.Fatal("the session has ended while it was used")
			}
		}
		// Requests that are no page renew it when half of it is over.
		time.Sleep(3 * time.Minute)
		if res, _, in := ann.ask("GET", "/api", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "cors"); !in || len(res.Header["Set-Cookie"]) != 1 {
			t.Errorf("in the shop: %v, cookies %q", in, res.Header["Set-Cookie"])
		}
		old := ann.cookie
		time.Sleep(5*time.Minute + time.Second)
		if ann.in() {
			t.Error("the session goes on when it is over")
		}
		// Whatever was held before is worth nothing: an expired session, and an expired ticket.
		for _, cookie := range []string{old, first} {
			if b := (&lotteryBrowser{h: h, from: ann.from, cookie: cookie}); b.in() {
				t.Error("an expired cookie opens the room")
			}
		}
	})
}

func TestLotteryCookies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, anteroom.Lottery{LotteryPercent: 99}, nil)
		toRound()
		// A visitor without a cookie never has a try, however often it asks: nobody wins at the first request.
		for range 400 {
			if h.browser().in() {
				t.Fatal("a visitor without a ticket is in the shop")
			}
			time.Sleep(time.Second)
		}
		b := h.browser()
		b.in()
		name, value, _ := strings.Cut(b.cookie, "=")
		toRound()
		toRound()
		// Each byte counts.
		for i := range value {
			forged := []byte(value)
			forged[i] ^= 1
			if other := (&lotteryBrowser{h: h, from: b.from, cookie: name + "=" + string(forged)}); other.in() {
				t.Fatalf("a cookie with another byte %d opens the room", i)
			}
		}
		// A session of the room's queue is none of its lottery, and the other way round.
		queue := h.keys.Sealer(h.room.Zone, h.room.ID, name)
		now := anteroom.TimeOf(time.Now())
		session := anteroom.Ticket{ID: ticket.NewID(), Arrival: now, AcceptedAt: now, LastCheckIn: now}
		if other := (&lotteryBrowser{h: h, from: b.from, cookie: name + "=" + string(queue.Seal(nil, session))}); other.in() {
			t.Error("a session of the queue is in the shop")
		}
		if _, result := queue.Open(value); result != ticket.Forged {
			t.Errorf("to the queue, the ticket is %v", result)
		}
		// Parts of a page and prefetches get no ticket.
		for _, more := range [][]string{{"Sec-Fetch-Dest", "image", "Sec-Fetch-Mode", "no-cors"}, {"Sec-Purpose", "prefetch"}} {
			if res, _, in := h.browser().ask("GET", "/", more...); in || res.Header["Set-Cookie"] != nil {
				t.Errorf("%q: in the shop: %v, cookies %q", more, in, res.Header["Set-Cookie"])
			}
		}
		// HEAD gets one and the headers of the page.
		if res, body, _ := h.browser().ask("HEAD", "/"); res.StatusCode != 200 || body != "" || res.Header["Set-Cookie"] == nil || res.Header.Get("Refresh") == "" {
			t.Errorf("HEAD: %d, %d bytes, %q", res.StatusCode, len(body), res.Header)
		}
	})
}

// A rotation changes no outcome: the current key becomes a previous one, and opens.
func TestLotteryOutlivesItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, anteroom.Lottery{LotteryPercent: 50}, nil)
		toRound()
		var all []*lotteryBrowser
		for range 30 {
			b := h.browser()
			b.in()
			all = append(all, b)
		}
		toRound()
		toRound()
		before := make([]bool, len(all))
		for i, b := range all {
			before[i] = (&lotteryBrowser{h: h, from: b.from, cookie: b.cookie}).in()
		}
		h.keys = rotated(t, h.keys)
		h.restart()
		for i, b := range all {
			old := b.cookie
			if b.in() != before[i] {
				t.Errorf("the outcome of visitor %d is another one", i)
			}
			if b.cookie == old {
				t.Error("there is no new cookie")
			}
		}
		// Without the key, a ticket is nothing: the visitor begins anew.
		h.keys = ticket.NewKeyring(time.Now())
		h.restart()
		for _, b := range all {
			if b.in() {
				t.Error("a ticket of unknown keys opens the room")
			}
		}
	})
}

// rotated returns the ring after a rotation, with the same secrets.
func rotated(t *testing.T, k *ticket.Keyring) *ticket.Keyring {
	t.Helper()
	next, err := k.Rotate(time.Now(), ticket.DefaultKeep)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// What an operator does to the room.
func TestLotteryObeysOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, anteroom.Lottery{LotteryPercent: 100}, nil)
		toRound()
		ann, bob := h.browser(), h.browser()
		if !ann.in() {
			t.Fatal("100 percent are not everyone")
		}
		h.set(func(r *anteroom.Room) { r.LotteryPercent = 1; r.Controls.Paused = true })
		if _, body, in := bob.ask("GET", "/"); in || !strings.Contains(body, ` · 0%`) {
			t.Errorf("paused: %v %s", in, body)
		}
		if !ann.in() {
			t.Error("a pause ends a session")
		}
		h.set(func(r *anteroom.Room) { r.Controls.Paused = false; r.QueueingMethod = anteroom.Reject })
		if res, body, in := bob.ask("GET", "/"); in || !strings.Contains(body, "Not available right now") || res.Header.Get("Refresh") != "" {
			t.Errorf("denied: %v %q %s", in, res.Header, body)
		}
		h.set(func(r *anteroom.Room) { r.QueueingMethod, r.Shadow = anteroom.FIFO, true })
		if !bob.in() {
			t.Error("shadow mode keeps a visitor out")
		}
		h.set(func(r *anteroom.Room) { r.Shadow, r.Suspended = false, true })
		if !h.browser().in() {
			t.Error("a suspended room keeps a visitor out")
		}
		// Back to the queue, which has one seat: sessions of the lottery are none there.
		h.set(func(r *anteroom.Room) { r.Suspended, r.Lottery.LotteryPercent = false, 0 })
		if !h.browser().in() {
			t.Error("the first visitor does not get the seat")
		}
		if ann.in() {
			t.Error("there are two active users with a limit of 1")
		}
		if _, body, _ := h.browser().ask("GET", "/"); !strings.Contains(body, "You are in line") {
			t.Error("the queue does not say so")
		}
	})
}

// A wait has an end where the room says so, for every visitor.
func TestLotteryLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, anteroom.Lottery{LotteryPercent: 1, LotteryMaxWait: 3 * time.Minute}, nil)
		toRound()
		var all []*lotteryBrowser
		for range 20 {
			all = append(all, h.browser())
		}
		for began := time.Now(); len(all) > 0; time.Sleep(10 * time.Second) {
			left := all[:0]
			for _, b := range all {
				if !b.in() {
					left = append(left, b)
				}
			}
			if all = left; time.Since(began) > 3*time.Minute && len(all) > 0 {
				t.Fatalf("%d visitors wait longer than three minutes", len(all))
			}
		}
	})
}

// A room that follows its limits: the chance comes down when too many try, and goes up again when they do not.
func TestLotteryFollowsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, anteroom.Lottery{LotteryPercent: 80, LotteryFollow: true}, func(r *anteroom.Room) {
			r.TotalActiveUsers, r.NewUsersPerMinute = 1000, 20
		})
		toRound()
		chance := func() string {
			t.Helper()
			_, body, _ := h.browser().ask("GET", "/?__anteroom=status")
			_, rest, _ := strings.Cut(body, `"chance":" · `)
			said, _, _ := strings.Cut(rest, `"`)
			return said
		}
		if got := chance(); got != "80%" {
			t.Errorf("nobody has tried, and the chance is %s", got)
		}
		var all []*lotteryBrowser
		// Visitors are counted by the bits that their ids have in a map (lottery.Control). In some runs two of a hundred have the same.
		for bits := map[uint64]bool{}; len(all) < 100; {
			b := h.browser()
			b.in()
			_, body, _ := b.ask("GET", "/?__anteroom=status")
			_, ref, _ := strings.Cut(body, `"ref":"`)
			id, err := strconv.ParseUint(ref[:5]+ref[6:9], 16, 32)
			if err != nil {
				t.Fatal(err, body)
			}
			if bit := id % (64 << 12); !bits[bit] {
				bits[bit], all = true, append(all, b)
			}
		}
		toRound()
		toRound()
		for _, b := range all {
			b.in()
		}
		if got := chance(); got != "80%" {
			t.Errorf("within the round, the chance is %s", got)
		}
		toRound()
		if got := chance(); got != "10%" { // 10 per round of those 100
			t.Errorf("a hundred have tried, and the chance is %s", got)
		}
		toRound()
		if got := chance(); got != "80%" {
			t.Errorf("nobody has tried since, and the chance is %s", got)
		}
	})
}

// A proxy that keeps the traffic hears the same.
func TestLotteryVerdicts(t *testing.T) {
	everyDialect(t, func(t *testing.T, name string) {
		for percent, want := range map[int]string{1: "wait", 100: "admit"} {
			w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.LotteryPercent = percent }))
			if !dialects[name].page && percent == 1 {
				want = "refuse" // the page that Anteroom shows gives the ticket
			}
			if !dialects[name].page && percent == 100 {
				continue // likewise
			}
			says(t, w.asks(question(name, "GET", testHost, "/cart")), want)
			if n := len(w.door.seen()); n != 0 {
				t.Errorf("the room was asked %d times", n)
			}
		}
	})
}
