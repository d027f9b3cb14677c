package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/gateway/push"
	"github.com/anteroom/anteroom/gateway/push/pushtest"
)

// A host gets a part of the slots, others get the rest, first attempts go before retries, and nobody waits for longer than asked.
func TestSlotsOfPushServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := pushSlots{hosts: map[string]int{}}
		var order []string
		line := func(host string, retry bool) {
			go func() {
				if err := slots.take(t.Context(), host, retry); err != nil {
					t.Error(err)
				}
				order = append(order, host)
			}()
			synctest.Wait()
		}
		for range pushesPerHost {
			line("silent.test", false)
		}
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := slots.take(soon, "silent.test", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a host has %d slots: %v", slots.hosts["silent.test"], err)
		}
		for i := pushesPerHost; i < pushesAtOnce; i++ {
			line("host"+strconv.Itoa(i)+".test", false)
		}
		if len(order) != pushesAtOnce {
			t.Fatalf("%d of %d slots", len(order), pushesAtOnce)
		}
		line("silent.test", false)
		line("again.test", true)
		line("first.test", false)
		for i := pushesPerHost; i < pushesPerHost+2; i++ {
			slots.give("host" + strconv.Itoa(i) + ".test")
			synctest.Wait()
		}
		slots.give("silent.test")
		synctest.Wait()
		if got := order[pushesAtOnce:]; len(got) != 3 || got[0] != "first.test" || got[1] != "again.test" || got[2] != "silent.test" {
			t.Errorf("slots went to %v", got)
		}
		for i := pushesPerHost + 2; i < pushesAtOnce; i++ {
			slots.give("host" + strconv.Itoa(i) + ".test")
		}
		slots.give("first.test")
		slots.give("again.test")
		for range pushesPerHost {
			slots.give("silent.test")
		}
		if slots.under != 0 || len(slots.hosts) != 0 || len(slots.waiting[0])+len(slots.waiting[1]) != 0 {
			t.Errorf("left over: %d, %v, %v", slots.under, slots.hosts, slots.waiting)
		}
	})
}

func TestSlotHosts(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://push.example.net/p/1": "push.example.net", "https://PUSH.example.net.:8443/p": "push.example.net", "https://[2001:DB8::1]:1/": "2001:db8::1",
	} {
		if got := slotHost(endpoint); got != want {
			t.Errorf("%s: %s", endpoint, got)
		}
	}
}

// Visitors whose push service never answers do not make others late, and each attempt ends soon.
func TestASilentPushServiceDelaysNobodyElse(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	took := make(chan time.Duration, 100)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		io.Copy(io.Discard, r.Body) // only then net/http notices a client that hangs up
		<-r.Context().Done()
		took <- time.Since(begun)
	}))
	t.Cleanup(silent.Close)
	service := pushtest.Serve(t)
	r := newQueue(t, pushRoom, here)
	other := strings.Replace(silent.URL, "127.0.0.1", "localhost", 1) // another host
	const ahead = pushesPerHost + 4
	for range ahead {
		r.waits(pushtest.NewBrowser(t, other+"/p"))
	}
	r.waits(service.Browser())
	eventually(t, "streams are not held", func() bool { return r.room("shop").Streams == ahead+1 })
	begun := time.Now()
	r.seats(pushRoom, "50")
	next(t, service)
	if late := time.Since(begun); late > 8*time.Second {
		t.Errorf("told after %v", late)
	}
	select {
	case d := <-took:
		if d > pushTime+2*time.Second {
			t.Errorf("an attempt took %v", d)
		}
	case <-time.After(pushTime + 5*time.Second):
		t.Error("attempts do not end")
	}
}

// A visitor who enters while the message waits for a slot is not told any more, nor is one whose turn ends meanwhile.
func TestATurnThatIsOverIsNotTold(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	service := pushtest.Serve(t)
	r := newQueue(t, pushRoom, here)
	slots := &r.s.pushes.slots
	hosts := func(do func(host string)) {
		for i := range pushesAtOnce {
			do("host" + strconv.Itoa(i))
		}
	}
	hosts(func(host string) {
		if err := slots.take(t.Context(), host, false); err != nil {
			t.Fatal(err)
		}
	})
	cookies := r.waits(service.Browser())
	r.seats(pushRoom, "2")
	eventually(t, "nobody waits for a slot", func() bool {
		slots.mu.Lock()
		defer slots.mu.Unlock()
		return len(slots.waiting[0]) == 1
	})
	eventually(t, "the visitor is not let in", func() bool { return r.visit("/", cookies...).isIn() })
	hosts(slots.give)
	eventually(t, "the subscription stays", func() bool { return r.s.pushes.book.Len() == 0 })
	if got := service.Tries(); got != 0 {
		t.Errorf("told %d times", got)
	}
	b := service.Browser()
	e := &push.Entry{Subscription: push.Subscription{Endpoint: b.Endpoint, P256DH: b.P256DH, Auth: b.Auth}}
	room := r.s.node.Room(r.s.Config().Rooms[0].ID)
	if answer, _, err := r.s.pushes.attempt(t.Context(), room, e, time.Now(), false, nil); err == nil || answer != push.Never {
		t.Errorf("%d %v", answer, err)
	}
	if got := service.Tries(); got != 0 {
		t.Errorf("told %d times", got)
	}
}
