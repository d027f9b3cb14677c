package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket"
)

// booth is a gateway with a real node in a bubble of virtual time, without a network: every
// request is one call.
type booth struct {
	t    *testing.T
	h    http.Handler
	gw   *Gateway
	room *node.Room
}

// inBooth runs f in a bubble with one room for every host: one seat, which is taken.
func inBooth(t *testing.T, edit func(*anteroom.Room), f func(booth)) {
	inEmptyBooth(t, edit, func(b booth) {
		if holder := b.guest(); !holder.ask().Admitted {
			t.Fatal("the first visitor waits")
		}
		f(b)
	})
}

// inEmptyBooth is inBooth with a free seat.
func inEmptyBooth(t *testing.T, edit func(*anteroom.Room), f func(booth), more ...func(*Config)) {
	synctest.Test(t, func(t *testing.T) {
		rm := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}},
			Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 600, SessionDuration: 6 * time.Hour, FirstSession: 6 * time.Hour}}
		if edit != nil {
			edit(&rm)
		}
		rm = rm.WithDefaults()
		n, link, stop := runNode(t.Context(), t, rm)
		cfg := Config{Rooms: []anteroom.Room{rm}, Node: n, Keys: ticket.NewKeyring(time.Now())}
		for _, f := range more {
			f(&cfg)
		}
		gw, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		b := booth{t: t, gw: gw, room: n.Room(rm.ID), h: gw.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Origin", "shop")
		}))}
		defer func() {
			stop()
			link.Close()
		}()
		f(b)
	})
}

// pass moves the clock.
func (b booth) pass(d time.Duration) { time.Sleep(d) }

// guest is a visitor of a booth with a cookie jar for one cookie.
type guest struct {
	booth
	from   string // address
	cookie string
	set    int // cookies received
}

func (b booth) guest() *guest { return &guest{booth: b, from: "192.0.2.1"} }

// guestFrom is a visitor at the address of a number: 16 in each /24.
func (b booth) guestFrom(n int) *guest {
	return &guest{booth: b, from: fmt.Sprintf("10.%d.%d.%d", n>>12&255, n>>4&255, 1+n&15)}
}

// enters comes until the room lets the visitor in, and loads a picture then. It returns how long that took; a negative span when it is
// longer than patience.
func (g *guest) enters(patience time.Duration) time.Duration {
	for began := time.Now(); ; {
		p := g.ask()
		took := time.Since(began)
		switch {
		case p.Admitted:
			g.get("/picture.png")
			return took
		case took > patience:
			return -1
		}
		time.Sleep(time.Duration(p.Refresh) * time.Second)
	}
}

// place is the answer to a status question.
type place struct {
	Admitted bool `json:"admitted"`
	Ahead    int  `json:"ahead"`
	Wait     int  `json:"wait"`
	Refresh  int  `json:"refresh"`
	Reason   string
}

func (g *guest) get(target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	r.RemoteAddr = g.from + ":1234"
	if g.cookie != "" {
		r.Header.Set("Cookie", g.cookie)
	}
	rec := httptest.NewRecorder()
	g.h.ServeHTTP(rec, r)
	for _, line := range rec.Header()["Set-Cookie"] {
		g.cookie, _, _ = strings.Cut(line, ";")
		g.set++
	}
	return rec
}

func (g *guest) ask() (p place) {
	g.t.Helper()
	rec := g.get("/?__anteroom=status")
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		g.t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
	}
	return p
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestFloods: requests without cookies take no more seats than their networks may, and everybody who comes back is admitted within
// two seconds while seats are free.
func TestFloods(t *testing.T) {
	for name, c := range map[string]struct {
		perSecond, addresses int
		most                 int // of 300 sessions a minute and 100 at a time
	}{
		"20 a second from one address":      {20, 1, 12},
		"1000 a second from one address":    {1000, 1, 12},
		"100 a second from 1,000 addresses": {100, 1000, 50},
	} {
		t.Run(name, func(t *testing.T) {
			inBooth(t, func(r *anteroom.Room) {
				r.TotalActiveUsers, r.NewUsersPerMinute, r.SessionDuration = 100, 300, 10*time.Second
			}, func(b booth) {
				const seconds = 55
				taken, n := 0, 0
				var honest sync.WaitGroup
				for second := range seconds {
					honest.Go(func() {
						if took := b.guestFrom(1<<18 + 16*second).enters(2 * time.Second); took < 0 {
							t.Errorf("visitor %d waits for more than 2 s", second)
						}
					})
					for range c.perSecond {
						if g := b.guestFrom(16 * (n % c.addresses)); g.ask().Admitted {
							taken++
						}
						n++
					}
					time.Sleep(time.Second)
				}
				honest.Wait()
				if taken > c.most || taken < min(c.most, 10) {
					t.Errorf("%d requests of the flood were admitted, %d may be", taken, c.most)
				}
				if took := b.guestFrom(1 << 19).enters(2 * time.Second); took < 0 {
					t.Error("the room is shut after the flood")
				}
			})
		})
	}
}

// TestFloodsOfOtherRequests: a request does not get past the bound by what it says it is, nor with a ticket that is worth nothing any more.
func TestFloodsOfOtherRequests(t *testing.T) {
	for name, request := range map[string]func(old string) *http.Request{
		"parts of a page": func(string) *http.Request {
			r := httptest.NewRequest("GET", "/logo.png", nil)
			r.Header.Set("Sec-Fetch-Dest", "image")
			return r
		},
		"streams": func(string) *http.Request {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return httptest.NewRequestWithContext(ctx, "GET", "/?__anteroom=stream", nil)
		},
		"a ticket whose place has lapsed": func(old string) *http.Request {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Cookie", old)
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBooth(t, func(r *anteroom.Room) {
				r.TotalActiveUsers, r.NewUsersPerMinute, r.SessionDuration, r.PlaceHold = 100, 300, time.Hour, 30*time.Second
			}, func(b booth) {
				waits := b.guestFrom(0)
				for range 20 { // until one of them is told to come back
					if waits = b.guestFrom(0); !waits.ask().Admitted {
						break
					}
				}
				time.Sleep(3 * time.Minute) // the place has lapsed, and first requests of before count no more
				before := b.room.Status().ActiveUsers
				for range 90 {
					r := request(waits.cookie)
					r.RemoteAddr = "10.0.0.1:1234"
					b.h.ServeHTTP(httptest.NewRecorder(), r)
				}
				time.Sleep(time.Second)
				if n := b.room.Status().ActiveUsers - before; n > 12 {
					t.Errorf("%d seats are taken, 12 may be", n)
				}
			})
		})
	}
}

// TestSchool: three hundred people behind one address get in nearly as fast as three hundred from everywhere.
func TestSchool(t *testing.T) {
	took := func(t *testing.T, from func(i int) int) (last time.Duration) {
		inBooth(t, func(r *anteroom.Room) {
			r.TotalActiveUsers, r.NewUsersPerMinute, r.SessionDuration = 1000, 300, time.Hour
		}, func(b booth) {
			var all sync.WaitGroup
			began := time.Now()
			for i := range 300 {
				g := b.guestFrom(from(i))
				all.Go(func() {
					time.Sleep(time.Duration(i) * 10 * time.Millisecond)
					if g.enters(5*time.Minute) < 0 {
						t.Errorf("pupil %d waits for more than 5 min", i)
					}
				})
			}
			all.Wait()
			last = time.Since(began)
		})
		return last
	}
	school := took(t, func(int) int { return 1 })
	world := took(t, func(i int) int { return 16 * i })
	t.Logf("the last of the school is in after %v, of all the world after %v", school, world)
	if float64(world) < 0.8*float64(school) {
		t.Errorf("a school takes %v, 300 networks take %v: less than 80 %% of the pace", school, world)
	}
}

// TestCookielessFlood is T17: requests without cookies take places that nobody comes back to.
// Those before them notice nothing, those behind them for one interval and the grace.
func TestCookielessFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const flood = 100_000
	inBooth(t, nil, func(b booth) {
		honest := []*guest{b.guest(), b.guest(), b.guest()}
		shown := make([]int, len(honest))
		for i, g := range honest {
			if shown[i] = g.ask().Ahead; shown[i] != i {
				t.Fatalf("visitor %d: %d ahead", i, shown[i])
			}
			g.ask() // comes back, so that the place counts
		}
		before, most := heap(), 0
		const atOnce = 500
		for i := range flood / atOnce {
			if i == flood/atOnce/2 {
				time.Sleep(time.Second) // positions are counted by seconds of arrival: this one is the visitor's own
				honest = append(honest, b.guest())
				shown = append(shown, honest[3].ask().Ahead)
				honest[3].ask()
				time.Sleep(time.Second)
			}
			var wg sync.WaitGroup
			for range atOnce {
				g := b.guest()
				wg.Go(func() {
					if rec := g.get("/"); rec.Code != 200 {
						t.Errorf("status %d", rec.Code)
					}
				})
			}
			wg.Wait()
			most = max(most, b.room.Status().Waiting)
			for _, g := range honest {
				g.ask()
			}
		}
		if grown := int64(heap()) - int64(before); grown > 64<<20 {
			t.Errorf("%d bytes for each request of the flood", grown/flood)
		}
		time.Sleep(time.Second) // the site reports in steps
		if n := b.room.Status().Waiting; max(n, most) < 1000 {
			t.Fatalf("%d waiting at most: the flood was not there", max(n, most))
		}
		poll := func(until time.Duration) {
			for end := time.Now().Add(until); time.Now().Before(end); time.Sleep(time.Second) {
				for i, g := range honest {
					p := g.ask()
					if p.Admitted || p.Ahead > shown[i] {
						t.Errorf("visitor %d: admitted %v, %d ahead after %d", i, p.Admitted, p.Ahead, shown[i])
					}
					shown[i] = p.Ahead
				}
			}
		}
		poll(engine.FirstInterval + engine.ProveBy + 2*time.Second)
		if s := b.room.Status(); s.Waiting != len(honest) {
			t.Errorf("%d waiting when nobody of the flood has come back", s.Waiting)
		}
		if shown[3] != 3 {
			t.Errorf("the visitor amid the flood is shown %d ahead", shown[3])
		}
		poll(anteroom.DefaultPlaceHold + 10*time.Second)
		if s := b.room.Status(); s.Dormant != 0 || s.Waiting != len(honest) {
			t.Errorf("after the place hold: %+v", s)
		}
	})
}

// TestQueueStuffing is T18: programs that confirm their places and then stop are gone as soon
// as everybody else who stops would be.
func TestQueueStuffing(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const bots = 5_000
	inBooth(t, nil, func(b booth) {
		stuffed := make([]*guest, bots)
		for i := range stuffed {
			stuffed[i] = b.guest()
			stuffed[i].ask()
		}
		late := b.guest()
		late.ask()
		for range 3 {
			time.Sleep(engine.MaxInterval * 115 / 100)
			for _, g := range append(stuffed, late) {
				g.ask()
			}
		}
		if n := b.room.Status().Waiting; n != bots+1 {
			t.Fatalf("%d confirmed places", n)
		}
		for end := time.Now().Add(engine.MaxInterval*115/100 + engine.Grace + 5*time.Second); time.Now().Before(end); time.Sleep(time.Second) {
			late.ask()
		}
		if p := late.ask(); p.Ahead != 0 {
			t.Errorf("%d ahead of the only one who is there", p.Ahead)
		}
	})
}

// TestCookiesDisabled: a browser without cookies is a new visitor each time. It is told so,
// comes back as slowly as anybody, gets in by no number of tries, and what it leaves behind
// goes away.
func TestCookiesDisabled(t *testing.T) {
	// The script has the words too; this is what is shown without it.
	const hint = `<p class="quiet">Please allow cookies for this site`
	inBooth(t, nil, func(b booth) {
		first := b.guest()
		first.ask()
		for range 20 {
			rec := b.guest().get("/")
			if !strings.Contains(rec.Body.String(), hint) {
				t.Fatal("the page does not say that cookies are needed")
			}
			var seconds int
			if fmt.Sscan(rec.Header().Get("Refresh"), &seconds); seconds < int(engine.FirstSoon.Seconds()) {
				t.Fatalf("Refresh %q", rec.Header().Get("Refresh"))
			}
			time.Sleep(time.Duration(seconds) * time.Second)
		}
		if p := first.ask(); p.Admitted || p.Ahead != 0 {
			t.Errorf("who keeps the cookie: %+v", p)
		}
		if n := b.room.Status().Waiting; n > 20 {
			t.Errorf("%d waiting", n)
		}
		if rec := first.get("/"); strings.Contains(rec.Body.String(), hint) {
			t.Error("a visitor whose cookie came back is told to allow cookies")
		}
	})
}

// TestPollingFasterGainsNothing is T9: a thousand early questions are answered with the same
// place and the same ticket. That they draw no lots either is engine.TestDrawIgnoresPolling.
func TestPollingFasterGainsNothing(t *testing.T) {
	for _, method := range []anteroom.QueueingMethod{anteroom.FIFO, anteroom.Random} {
		t.Run(string(method), func(t *testing.T) {
			inBooth(t, func(r *anteroom.Room) { r.QueueingMethod, r.Refresh = method, 20*time.Second }, func(b booth) {
				before, eager, behind := b.guest(), b.guest(), b.guest()
				for _, g := range []*guest{before, eager, behind} {
					g.ask()
				}
				ticket, set := eager.cookie, eager.set
				for i := range 1000 {
					p := eager.ask()
					if p.Admitted || method == anteroom.FIFO && p.Ahead != 1 {
						t.Fatalf("question %d: %+v", i, p)
					}
					time.Sleep(time.Millisecond)
				}
				if eager.cookie != ticket || eager.set != set {
					t.Error("an early question brought a new ticket")
				}
				if s := b.room.Status(); s.Waiting != 3 || s.ActiveUsers != 1 {
					t.Errorf("%+v", s)
				}
				if p := before.ask(); method == anteroom.FIFO && p.Ahead != 0 {
					t.Errorf("the one before: %+v", p)
				}
				if p := behind.ask(); method == anteroom.FIFO && p.Ahead != 2 {
					t.Errorf("the one behind: %+v", p)
				}
				rec := eager.get("/")
				if rec.Header().Get("Refresh") == "" || rec.Header()["Set-Cookie"] != nil {
					t.Errorf("an early page: %q", rec.Header())
				}
			})
		})
	}
}

// TestNetworksOfTheListHaveNoBound: a list of networks may take all seats by first requests; the limits of the room hold.
func TestNetworksOfTheListHaveNoBound(t *testing.T) {
	lists, err := rules.NewLists([]anteroom.List{{Name: "schools", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "10.0.0.0/16"}}}})
	if err != nil {
		t.Fatal(err)
	}
	schools, fault := lists.Networks("schools")
	if fault != nil {
		t.Fatal(fault)
	}
	inEmptyBooth(t, func(r *anteroom.Room) { r.TotalActiveUsers, r.NewUsersPerMinute = 100, 300 }, func(b booth) {
		admitted := map[bool]int{}
		for n := range 200 {
			listed := n%2 == 0
			g := b.guestFrom(1 << 18)
			if listed {
				g = b.guestFrom(0)
			}
			if g.ask().Admitted {
				admitted[listed]++
			}
		}
		if admitted[true] < 80 || admitted[false] != 12 || admitted[true]+admitted[false] > 100 {
			t.Errorf("%d requests of the list and %d of one other address were admitted, want most of 100 and 12", admitted[true], admitted[false])
		}
	}, func(c *Config) { c.Unbounded = map[anteroom.RoomID]*rules.Networks{c.Rooms[0].ID: schools} })
}
