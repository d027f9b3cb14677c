package queueit

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A visitor comes from a connector, is let in while there are seats, and goes back to the page with a token. Others wait on the
// room's page and go back when it is their turn.
func TestThereAndBack(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		start := time.Now()
		first := w.browser()
		res, _ := first.follow(enqueue(page + "?a=1&b=two words'()*!"))
		want := page + "?a=1&b=two%20words'()*!&queueittoken=e_launch1~q_"
		if to := res.Header.Get("Location"); !strings.HasPrefix(to, want) || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Fatalf("%d %v", res.StatusCode, res.Header)
		}
		got := read(res)
		if got["ce"] != "false" || got["cv"] != "3" || got["rt"] != bySafetyNet || until(got).Sub(start) > 4*time.Minute {
			t.Errorf("%v", got)
		}
		w.browser().enter(page)

		third := w.browser()
		res, at := third.follow(enqueue(page))
		if res.StatusCode != http.StatusOK || res.Header.Get("Refresh") == "" || !strings.HasPrefix(at, "/launch1?") {
			t.Fatalf("%s: %d %v", at, res.StatusCode, res.Header)
		}
		// Both others can be in until their tokens are over.
		for time.Since(start) < 4*time.Minute {
			if res := third.get(at); res.StatusCode != http.StatusOK {
				t.Fatalf("let in %v after the others: %v", time.Since(start), res.Header)
			}
			w.pass(2 * time.Second)
		}
		for res.StatusCode == http.StatusOK && time.Since(start) < 5*time.Minute {
			w.pass(time.Second)
			res, at = third.follow(at)
		}
		if got := read(res); got == nil || got["rt"] != byQueue {
			t.Errorf("%v later: %d %v", time.Since(start), res.StatusCode, res.Header)
		}
	})
}

// Addresses as the published connectors write them lead to the same page.
func TestAddressesOfConnectors(t *testing.T) {
	inWorld(t, open(sale), nil, func(w *world) {
		for name, address := range map[string]string{
			"JavaScript 3.7": "/?c=acme&e=launch1&ver=v3-javascript-3.7.10&cver=7&man=checkout%20queue&cid=da-DK&l=Dark%20%26%20Light&t=https%3A%2F%2Fshop.example.com%2Fcheckout%3Fa%3D1%26b%3Dtwo%20words%27%28%29%2a%21",
			"PHP 3.7":        "/?c=acme&e=launch1&ver=v3-php-3.7.4&cver=7&man=checkout%20queue&cid=da-DK&l=Dark%20%26%20Light&t=https%3A%2F%2Fshop.example.com%2Fcheckout%3Fa%3D1%26b%3Dtwo%20words%27%28%29%2A%21",
			"Java 3.7":       "/?c=acme&e=launch1&ver=v3-java-3.7.0&kupver=tomcat&cver=7&man=checkout%20queue&t=https%3A%2F%2Fshop.example.com%2Fcheckout%3Fa%3D1%26b%3Dtwo%20words%27%28%29%2A%21",
			"JavaScript 5.0": "/?c=acme&e=launch1&ver=javascript-5.0.1&cver=7&man=checkout%20queue&icr=ip%2Ccip%3A3139382e35312e3130302e39%2Chip%3Aaf39&enqueuetoken=QT1.abc.def&t=https%3A%2F%2Fshop.example.com%2Fcheckout%3Fa%3D1%26b%3Dtwo%20words%27%28%29%2a%21",
			"an error":       "/error/timestamp/?c=acme&e=launch1&ver=v3-php-3.7.4&cver=-1&man=x&queueittoken=e_launch1~q_x~ts_1~ce_true~rt_queue~h_00&ts=4102440000&t=https%3A%2F%2Fshop.example.com%2Fcheckout%3Fa%3D1%26b%3Dtwo%20words%27%28%29%2A%21",
		} {
			res, _ := w.browser().follow(address)
			if to := res.Header.Get("Location"); !strings.HasPrefix(to, "https://shop.example.com/checkout?a=1&b=two%20words'()*!&queueittoken=e_launch1~q_") || read(res) == nil {
				t.Errorf("%s: %d %s", name, res.StatusCode, to)
			}
		}
	})
}

// Connectors send some visitors round again. Who was admitted goes back at once, as the same visitor, and takes no other seat.
func TestWhoComesBackPassesAtOnce(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		b := w.browser()
		first := b.enter(page)
		w.pass(2 * time.Minute)
		again := b.enter(page)
		if again["q"] != first["q"] || again["rt"] != first["rt"] || w.active() != 1 {
			t.Errorf("%v, then %v; %d active", first, again, w.active())
		}
	})
}

// Every token that was issued is over when its seat comes free, also where sessions are not renewed.
func TestASeatIsHeldForItsTokens(t *testing.T) {
	for name, fixed := range map[string]bool{"renewed": false, "not renewed": true} {
		t.Run(name, func(t *testing.T) {
			room := sale
			room.TotalActiveUsers, room.DisableSessionRenewal = 1, fixed
			inWorld(t, room, nil, func(w *world) {
				b, next := w.browser(), w.browser()
				last := until(b.enter(page))
				res, at := next.follow(enqueue(page))
				for i := 0; res.StatusCode == http.StatusOK; i++ {
					if i > 1000 {
						t.Fatal("nobody else is let in")
					}
					if i%50 == 49 && i < 170 {
						again, _ := b.follow(enqueue(page))
						if got := read(again); got != nil {
							last = until(got)
						}
					}
					w.pass(time.Second)
					res, at = next.follow(at)
				}
				if late := time.Since(last); late < 0 || late > 15*time.Second {
					t.Errorf("the next visitor is let in %v after the last token", late)
				}
			})
		})
	}
}

// Near the end of a session that is not renewed there is no token that would be over in time. The visitor waits for the end, and
// joins again.
func TestASessionThatIsAboutToEnd(t *testing.T) {
	room := open(sale)
	room.SessionDuration, room.DisableSessionRenewal = time.Minute, true
	inWorld(t, room, nil, func(w *world) {
		b := w.browser()
		first := b.enter(page)
		w.pass(52 * time.Second)
		res, at := b.follow(enqueue(page))
		if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Refresh") != "5" {
			t.Fatalf("%d %v", res.StatusCode, res.Header)
		}
		for i := 0; read(res) == nil; i++ {
			if i > 40 {
				t.Fatalf("%d %v", res.StatusCode, res.Header)
			}
			w.pass(5 * time.Second)
			res, at = b.follow(at)
		}
		if got := read(res); got["q"] == first["q"] || got["cv"] != "1" {
			t.Errorf("%v, before %v", got, first)
		}
	})
}

// A browser without cookies would be a new visitor each time: it is told, gets no token and keeps no seat.
func TestNoCookies(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		b := w.browser()
		b.blocks = true
		res, at := b.follow(enqueue(page))
		if res.StatusCode != http.StatusForbidden || strings.Contains(at, "queueittoken") {
			t.Fatalf("%d %s", res.StatusCode, at)
		}
		w.pass(40 * time.Second)
		if n := w.active(); n != 0 {
			t.Errorf("%d seats are taken", n)
		}
		b.blocks = false
		if res, _ := b.follow(strings.Replace(at, "again=1&", "", 1)); read(res) == nil { // the page's link
			t.Errorf("with cookies: %d %v", res.StatusCode, res.Header)
		}
	})
}

// A connector that accepts no token sends its visitors round and round: after some rounds a page stops it, for a minute.
func TestALoopIsBroken(t *testing.T) {
	for _, code := range []string{"hash", "timestamp", "eventid", "ip", "connector/sessionstate"} {
		t.Run(code, func(t *testing.T) {
			inWorld(t, sale, nil, func(w *world) {
				b := w.browser()
				b.enter(page)
				failed := strings.Replace(enqueue(page, "queueittoken", "e_launch1~q_x~ts_1~rt_queue~h_00", "ts", "4102440000"), "/?", "/error/"+code+"/?", 1)
				rounds := 1
				for ; rounds < 20; rounds++ {
					if res, _ := b.follow(failed); read(res) == nil {
						if res.StatusCode != http.StatusTooManyRequests {
							t.Errorf("%d", res.StatusCode)
						}
						break
					}
				}
				if rounds != maxReturns || w.active() != 1 {
					t.Errorf("%d rounds, %d seats", rounds, w.active())
				}
				w.pass(returnsWithin)
				b.enter(page)
			})
		})
	}
}

// What else connectors and others ask for.
func TestOtherAddresses(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		b := w.browser()
		for _, c := range []struct {
			method, address string
			status          int
		}{
			{"GET", "/error/qidlimit/?c=acme&e=launch1", http.StatusForbidden},
			{"GET", "/error/other/?c=acme&e=launch1", http.StatusNotFound},
			{"GET", enqueue(page, "e", "other"), http.StatusNotFound},
			{"GET", enqueue(page, "c", "other"), http.StatusNotFound},
			{"GET", "/", http.StatusNotFound},
			{"GET", "/elsewhere", http.StatusNotFound},
			{"POST", enqueue(page), http.StatusMethodNotAllowed},
			{"GET", enqueue(page + "?" + strings.Repeat("a", 8<<10)), http.StatusRequestURITooLong},
			{"GET", "/launch1?t=" + page + "/" + strings.Repeat("a", 8<<10), http.StatusRequestURITooLong},
			{"GET", "/cancel/acme", http.StatusNotFound},
			{"GET", "/cancel/acme/other/" + queueID, http.StatusNotFound},
			{"GET", "/cancel/acme/launch1/" + queueID + "?r=https://evil.example", http.StatusBadRequest},
			{"GET", "/cancel/multiple/acme?wrl=" + strings.Repeat("launch1_", maxCanceled) + "launch1", http.StatusNotFound},
			{"GET", "/status/integrationconfig/other", http.StatusNotFound},
			{"GET", "/status/other/acme", http.StatusNotFound},
		} {
			if res := b.send(c.method, c.address); res.StatusCode != c.status || res.Header.Get("Location") != "" {
				t.Errorf("%s %.80s: %d %v", c.method, c.address, res.StatusCode, res.Header)
			}
		}
		if n := w.active(); n != 0 || len(b.cookies) != 0 {
			t.Errorf("%d seats, cookies %v", n, b.cookies)
		}
		// The names of customer and event have no case, as in most connectors.
		if res, _ := w.browser().follow(enqueue(page, "c", "Acme", "e", "LAUNCH1")); read(res) == nil {
			t.Errorf("upper case: %d", res.StatusCode)
		}
	})
}

// HEAD and prefetches get no place, no seat and no token.
func TestNobodyIsThere(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		b := w.browser()
		for _, headers := range [][]string{{"Sec-Purpose", "prefetch"}, {"Purpose", "prefetch"}, {"X-Moz", "prefetch"}} {
			res := b.get("/launch1?t="+url.QueryEscape(page), headers...)
			if to := res.Header.Get("Location"); to != "" || w.active() != 0 {
				t.Errorf("%v: %d %s", headers, res.StatusCode, to)
			}
		}
		if res := b.send("HEAD", enqueue(page)); res.StatusCode != http.StatusFound || w.active() != 0 {
			t.Errorf("HEAD: %d, %d active", res.StatusCode, w.active())
		}
	})
}

// Visitors go back to a host of the room and nowhere else.
func TestNoOpenRedirect(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		for _, bad := range []string{
			"https://evil.example/", "//evil.example/", "javascript:alert(1)", "data:text/html,x", "ftp://shop.example.com/", "https:shop.example.com", "https:///shop.example.com",
			"https://shop.example.com@evil.example/", "https://shop.example.com:x@evil.example/", "https://user@shop.example.com/", `https://evil.example\@shop.example.com/`,
			`https://shop.example.com\.evil.example/`, `https:\\shop.example.com`, "https://shop.example.com.evil.example/", "https://xshop.example.com/", "https://shop.example.com%2eevil.example/",
			"https://shop.example.com%00.evil.example/", "https://shop.example.com\t.evil.example/", "https://shop.example.com/\r\nSet-Cookie: a=b", "https://shop.example.com/\x7f",
			"\thttps://shop.example.com/", " https://shop.example.com/", "/checkout", "checkout", "https://[::1]/", "https://shop.example.com:99999/", "*", "https://*/",
			"https%3A%2F%2Fevil.example%2F",
		} {
			for _, address := range []string{enqueue(bad), "/launch1?t=" + url.QueryEscape(bad), "/error/hash/" + enqueue(bad)[1:], "/cancel/acme/launch1?r=" + url.QueryEscape(bad)} {
				res, _ := w.browser().follow(address)
				if to := res.Header.Get("Location"); to != "" || res.StatusCode != http.StatusBadRequest {
					t.Errorf("%q: %d %s", address, res.StatusCode, to)
				}
			}
		}
		for asked, want := range map[string]string{
			"":                                     page + "?",
			"https://SHOP.example.com/":            "https://SHOP.example.com/?",
			"HTTP://shop.example.com:8080":         "HTTP://shop.example.com:8080?",
			"https://shop.example.com/a?b=c#d":     "https://shop.example.com/a?b=c&",
			"https://shop.example.com/æ \"<x>":     "https://shop.example.com/%C3%A6%20%22%3Cx%3E?",
			"https%3A%2F%2Fshop.example.com%2Fa":   "https://shop.example.com/a?", // escaped twice, as scripts do
			"https://shop.example.com/a%0d%0ab":    "https://shop.example.com/a%0d%0ab?",
			"https://shop.example.com/?t=//x.test": "https://shop.example.com/?t=//x.test&",
		} {
			w.apply(open(sale))
			res, _ := w.browser().follow(enqueue(asked))
			if to := res.Header.Get("Location"); !strings.HasPrefix(to, want+"queueittoken=") {
				t.Errorf("%q: %d %s", asked, res.StatusCode, to)
			}
		}
	})
}

// open returns a room with seats for everybody.
func open(room anteroom.Room) anteroom.Room {
	room.TotalActiveUsers, room.NewUsersPerMinute = 1000, 1000
	return room
}

// Applications read from the token how their visitors came.
func TestWaysIn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *anteroom.Room, now time.Time)
		want   string
	}{
		"at once":    {func(*anteroom.Room, time.Time) {}, bySafetyNet},
		"suspended":  {func(r *anteroom.Room, _ time.Time) { r.Suspended = true }, byDisabled},
		"in shadow":  {func(r *anteroom.Room, _ time.Time) { r.Shadow, r.QueueAll = true, true }, byBypass},
		"before":     {func(r *anteroom.Room, now time.Time) { r.Events = eventAt(now.Add(time.Hour)) }, byIdle},
		"during":     {func(r *anteroom.Room, now time.Time) { r.Events = eventAt(now.Add(-time.Minute)) }, bySafetyNet},
		"afterwards": {func(r *anteroom.Room, now time.Time) { r.Events = eventAt(now.Add(-3 * time.Hour)) }, byAfterEvent},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, open(sale), nil, func(w *world) {
				room := w.room
				c.change(&room, time.Now())
				w.apply(room)
				got := w.browser().enter(page)
				if got["rt"] != c.want {
					t.Errorf("%v", got)
				}
				if (c.want == byDisabled || c.want == byBypass) && (got["cv"] != "1" || w.active() != 0) {
					t.Errorf("%v; %d active", got, w.active())
				}
			})
		})
	}
}

// eventAt is an event of two hours.
func eventAt(start time.Time) []anteroom.Event {
	return []anteroom.Event{{ID: "e1", Name: "launch", Start: anteroom.StampOf(start), End: anteroom.StampOf(start.Add(2 * time.Hour))}}
}

// Before an event everybody waits; its first visitors enter when it starts.
func TestPrequeue(t *testing.T) {
	inWorld(t, open(sale), nil, func(w *world) {
		room := w.room
		room.Events = eventAt(time.Now().Add(10 * time.Minute))
		room.Events[0].Prequeue = anteroom.StampOf(time.Now().Add(-time.Minute))
		w.apply(room)
		b := w.browser()
		res, at := b.follow(enqueue(page))
		for range 9 * 60 / 5 {
			if res.StatusCode != http.StatusOK {
				t.Fatalf("let in before the start: %v", res.Header)
			}
			w.pass(5 * time.Second)
			res, at = b.follow(at)
		}
		for i := 0; res.StatusCode == http.StatusOK && i < 60; i++ {
			w.pass(5 * time.Second)
			res, at = b.follow(at)
		}
		if got := read(res); got["rt"] != byQueue {
			t.Errorf("%d %v", res.StatusCode, got)
		}
	})
}

// A room whose tickets are bound to a network binds its tokens to the address.
func TestATokenOfAnAddress(t *testing.T) {
	room := sale
	room.Bind = anteroom.BindIPPrefix
	inWorld(t, room, nil, func(w *world) {
		b := w.browser()
		if got := b.enter(page)["hip"]; got != mac(secret, "198.51.100.9") {
			t.Errorf("hip %s", got)
		}
		b.from = "[2001:db8::1]:1" // another network: the ticket is not good there
		if got := b.enter(page)["hip"]; got != mac(secret, "2001:db8::1") || w.active() != 2 {
			t.Errorf("hip %s, %d active", got, w.active())
		}
		b.from = "[2001:db8::2]:1" // of the same network
		if got := b.enter(page)["hip"]; got != mac(secret, "2001:db8::2") || w.active() != 2 {
			t.Errorf("hip %s, %d active", got, w.active())
		}
	})
}

// A connector cancels a session in either form: where the operator allows it, the seat is free, once. Unknown, foreign and repeated names change nothing, and
// everybody goes back.
func TestCancel(t *testing.T) {
	back := "https://shop.example.com/thanks"
	for _, form := range []string{"/cancel/acme/launch1/%s?c=acme&e=launch1&ver=v3-javascript-3.7.10&cver=7&man=done&r=", "/cancel/multiple/acme?wrl=launch1~%s&r=", "/cancel/multiple/acme?wrl=launch1_launch1~%s&r="} {
		inWorld(t, sale, func(e *Event) { e.FreeCanceled = true }, func(w *world) {
			a, other := w.browser(), w.browser()
			mine := a.enter(page)["q"]
			other.enter(page)
			cancel := strings.Replace(form, "%s", mine, 1) + url.QueryEscape(back)
			for _, c := range []struct {
				method, address string
				headers         []string
				status, active  int
			}{
				{"HEAD", cancel, nil, http.StatusForbidden, 2},
				{"GET", cancel, []string{"Sec-Purpose", "prefetch"}, http.StatusForbidden, 2},
				{"POST", cancel, nil, http.StatusMethodNotAllowed, 2},
				{"GET", strings.Replace(cancel, mine, queueID, 1), nil, http.StatusFound, 2},
				{"GET", strings.Replace(cancel, mine, "x", 1), nil, http.StatusFound, 2},
				{"GET", cancel, nil, http.StatusFound, 1},
				{"GET", cancel, nil, http.StatusFound, 1},
			} {
				res := a.send(c.method, c.address, c.headers...)
				if to := res.Header.Get("Location"); res.StatusCode != c.status || c.status == http.StatusFound && to != back || w.active() != c.active {
					t.Errorf("%s %s: %d to %s, %d active", c.method, c.address, res.StatusCode, to, w.active())
				}
			}
			w.pass(2 * time.Second)
			w.browser().enter(page)
		})
	}
}

// Anybody can write the address of a cancellation, so that it frees no seat unless the operator says so.
func TestCanceledSeatsAreKept(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		b := w.browser()
		if res := b.get("/cancel/acme/launch1/" + b.enter(page)["q"]); res.StatusCode != http.StatusFound || w.active() != 1 {
			t.Errorf("%d, %d active", res.StatusCode, w.active())
		}
	})
}

// A network cancels as often as it may join.
func TestCancellationsAreBounded(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		b := w.browser()
		for i := range 700 {
			if res := b.get("/cancel/acme/launch1/" + queueID); res.StatusCode == http.StatusTooManyRequests {
				if i != 600 {
					t.Errorf("%d", i)
				}
				return
			}
		}
		t.Error("no bound")
	})
}
