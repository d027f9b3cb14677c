package gateway

import (
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
)

// busyOrigin holds requests until it is told to answer one, and knows how many it has.
type busyOrigin struct {
	arrived, answer chan struct{}

	mu         sync.Mutex
	open, most int
}

func newBusyOrigin() *busyOrigin {
	return &busyOrigin{arrived: make(chan struct{}, 1000), answer: make(chan struct{}, 1000)}
}

func (b *busyOrigin) ServeHTTP(http.ResponseWriter, *http.Request) {
	b.mu.Lock()
	b.open++
	b.most = max(b.most, b.open)
	b.mu.Unlock()
	b.arrived <- struct{}{}
	<-b.answer
	b.mu.Lock()
	b.open--
	b.mu.Unlock()
}

// TestRequestsUnderWayAreBounded sends more requests than may be under way: the origin never has
// more, and all are answered.
func TestRequestsUnderWayAreBounded(t *testing.T) {
	own := session()
	for name, bound := range map[string]func(*Config){
		"of an address": func(c *Config) { c.MaxPerAddress = 3 },
		"of a session":  func(c *Config) { c.MaxPerSession = 3 },
		"to an origin":  func(c *Config) { c.Sites[0].MaxConnections = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBusyOrigin()
			w := newWorld(t, admit, withOrigin(b.ServeHTTP), withConfig(bound))
			cookie := w.seal(own)
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if res, body := w.do("GET", "/", header("Cookie", cookie)); res.StatusCode != 200 {
						t.Errorf("status %d: %s", res.StatusCode, body)
					}
				})
			}
			for range 20 {
				<-b.arrived
				b.answer <- struct{}{}
			}
			all.Wait()
			if b.most > 3 {
				t.Errorf("the origin had %d requests at once", b.most)
			}
		})
	}
}

func TestBoundsAreForOneAddressAndOneSession(t *testing.T) {
	b := newBusyOrigin()
	w := newWorld(t, admit, withOrigin(b.ServeHTTP), withConfig(func(c *Config) {
		c.MaxPerAddress, c.MaxPerSession = 2, 1
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}))
	var all sync.WaitGroup
	for _, from := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2", "", "", ""} {
		ask := []string{"Cookie", w.seal(session())}
		if from != "" { // otherwise the proxy does not say whose request it is
			ask = append(ask, "X-Forwarded-For", from)
		}
		all.Go(func() { w.do("GET", "/", header(ask...)) })
	}
	for range 6 {
		<-b.arrived // all at once
	}
	for range 6 {
		b.answer <- struct{}{}
	}
	all.Wait()
}

// TestRequestsBeyondTheBoundAreRefusedInTime: a visitor whose requests wait too long is told so, and
// keeps the session.
func TestRequestsBeyondTheBoundAreRefusedInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for name, c := range map[string]struct {
		bound  func(*Config)
		status int
	}{
		"of an address": {func(c *Config) { c.MaxPerAddress = 1 }, 429},
		"of a session":  {func(c *Config) { c.MaxPerSession = 1 }, 429},
		"to an origin":  {func(c *Config) { c.Sites[0].MaxConnections = 1 }, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBusyOrigin()
			own := session()
			w := newWorld(t, func(v anteroom.Visit) anteroom.Decision {
				d := admit(v)
				d.SetCookie = true
				return d
			}, withOrigin(b.ServeHTTP), withConfig(c.bound))
			first := make(chan struct{})
			go func() { defer close(first); w.do("GET", "/", header("Cookie", w.seal(own))) }()
			<-b.arrived
			res, _ := w.do("GET", "/", header("Cookie", w.seal(own)))
			if res.StatusCode != c.status || res.Header.Get("Retry-After") == "" || !strings.Contains(res.Header.Get("Set-Cookie"), "__cfwaitingroom=") {
				t.Errorf("status %d, %q", res.StatusCode, res.Header)
			}
			b.answer <- struct{}{}
			<-first
		})
	}
}

// What is measured after a wait reads the clock again: the wait is not the origin's time.
func TestAWaitMakesAReadingOfTheClockOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiters[int]()
		began := time.Now()
		at := began
		p := patience{by: began.Add(limiterTime), count: new(atomic.Int64), clock: &at}
		if l.enter(7, 1, p); at != began {
			t.Errorf("without a wait, the reading is %v", at)
		}
		time.AfterFunc(time.Second, func() { l.leave(7) })
		if !l.enter(7, 1, p) || !at.IsZero() {
			t.Errorf("after a wait, the reading is %v", at)
		}
	})
}

func TestLaneKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiters[int]()
		by, gone, waiting := time.Now().Add(limiterTime), make(chan struct{}), new(atomic.Int64)
		l.enter(7, 1, patience{by: by, count: waiting})
		var mu sync.Mutex
		var order []string
		wait := func(name string, gone chan struct{}) {
			go func() {
				if !l.enter(7, 1, patience{by: by, gone: gone, count: waiting}) {
					name += " in vain"
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		wait("one", nil)
		wait("left", gone)
		wait("two", nil)
		wait("three", nil)
		if n := waiting.Load(); n != 4 {
			t.Errorf("%d wait, want 4", n)
		}
		close(gone)
		synctest.Wait()
		l.leave(7)
		synctest.Wait()
		l.leave(7)
		synctest.Wait()
		<-time.After(limiterTime)
		synctest.Wait()
		if got := strings.Join(order, ", "); got != "left in vain, one, two, three in vain" || waiting.Load() != 0 {
			t.Error(got, waiting.Load())
		}
		l.leave(7)
		for i := range l.parts {
			if n := len(l.parts[i].open); n != 0 {
				t.Errorf("%d limiters are left", n)
			}
		}
	})
}

func TestLaneHasAnEnd(t *testing.T) {
	for most, waits := range map[int]int{1: limiterLeast, 1000: 1000} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiters[int]()
			wait := patience{by: time.Now().Add(limiterTime), count: new(atomic.Int64)}
			for range most + waits {
				go l.enter(1, most, wait)
			}
			synctest.Wait()
			if n := wait.count.Load(); n != int64(waits) {
				t.Errorf("%d wait behind %d, want %d", n, most, waits)
			}
			began := time.Now()
			if l.enter(1, most, wait) || time.Since(began) > 0 {
				t.Errorf("the last one waited %v", time.Since(began))
			}
			if !l.enter(2, 1, wait) {
				t.Error("another limiter is full as well")
			}
			<-time.After(limiterTime)
		})
	}
}

func TestBodyOfAByteASecondIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := make(chan time.Duration, 1)
		visitor, end := slowWorld(func(_ http.ResponseWriter, r *http.Request) {
			began := time.Now()
			io.Copy(io.Discard, r.Body)
			took <- time.Since(began)
		})
		defer end()
		go io.Copy(io.Discard, visitor)
		io.WriteString(visitor, "POST / HTTP/1.1\r\nHost: "+testHost+"\r\nContent-Length: 1000000\r\n\r\n")
		for {
			if _, err := visitor.Write([]byte{'a'}); err != nil {
				break
			}
			<-time.After(time.Second)
		}
		if d := <-took; d > bodyGrace+time.Second {
			t.Errorf("the origin had the request for %v", d)
		}
	})
}

// TestSlowUploadsArrive: a phone that sends 30 kB/s, and nothing for half a minute in a tunnel, is
// not cut.
func TestSlowUploadsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parts = 600
		got := make(chan int64, 1)
		visitor, end := slowWorld(func(_ http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			got <- n
		})
		defer end()
		go io.Copy(io.Discard, visitor)
		io.WriteString(visitor, "POST / HTTP/1.1\r\nHost: "+testHost+"\r\nContent-Length: 18000000\r\n\r\n")
		for i := range parts {
			if _, err := visitor.Write(make([]byte, 30_000)); err != nil {
				t.Fatalf("after %d s: %v", i, err)
			}
			<-time.After(time.Second)
			if i == 100 {
				<-time.After(30 * time.Second)
			}
		}
		if n := <-got; n != 18_000_000 {
			t.Errorf("%d bytes arrived", n)
		}
	})
}

func TestBodiesHaveAnEnd(t *testing.T) {
	s := &setup{Config: Config{Timeouts: Timeouts{}.withDefaults()}, bodyRate: 500}
	b := s.newBodyReader(nil, nil)
	b.got = 1 << 50
	now := b.end.Add(-time.Second)
	if by := b.deadline(now); by != b.end {
		t.Errorf("the next read may take %v", by.Sub(now))
	}
}
