package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const saysOffline = `!document.getElementById('note').hidden && document.getElementById('note').textContent.startsWith('Connection lost')`

func TestKillNineWhileWaitingKeepsThePlace(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	inside := newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/cart?x=1#y"))
	b.waits()
	reference := b.reference()
	behind := newVisitor(t, g).wait()
	g.kill()
	b.becomes(30*time.Second, saysOffline)
	g.start()
	b.becomes(60*time.Second, "!("+saysOffline+")")
	if got := b.reference(); got != reference || b.text("#ahead") != "0" {
		t.Errorf("the place %s became %s, ahead %s", reference, got, b.text("#ahead"))
	}
	if p := behind.place("/"); p.Admitted || p.Ahead == nil || *p.Ahead != 1 {
		t.Errorf("who came later has %v", p)
	}
	if a := inside.get("/"); !a.admitted() {
		t.Errorf("the session inside is lost")
	}
	if p := newVisitor(t, g).wait().place("/"); p.Ahead == nil || *p.Ahead != 2 {
		t.Errorf("a newcomer has %v", p)
	}
	inside.leave()
	b.becomes(40*time.Second, `document.title.startsWith('Your cart')`)
	if got := eval[string](b, "location.pathname + location.search + location.hash"); got != "/cart?x=1#y" {
		t.Errorf("admitted at %s", got)
	}
	if r := g.room("shop"); r.Active != 1 {
		t.Errorf("active users: %+v", r)
	}
}

func TestKillNineWhileAdmittedKeepsTheSession(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	b := open(t)
	b.visit(g.url("/"))
	b.getsIn()
	g.kill()
	g.start()
	for range 3 {
		b.visit(g.url("/cart"))
		b.getsIn()
	}
	if a := newVisitor(t, g).get("/"); a.admitted() {
		t.Error("after the restart the seat was given away a second time")
	}
	if r := g.room("shop"); r.Active != 1 {
		t.Errorf("active users: %+v", r)
	}
}

// stream sends requests from several clients until it is told to stop and counts what
// failed.
type stream struct {
	done   atomic.Int64
	failed atomic.Int64
	mu     sync.Mutex
	why    []string
	stop   chan struct{}
	all    sync.WaitGroup
}

func startStream(t *testing.T, g *gate, clients int) *stream {
	t.Helper()
	s := &stream{stop: make(chan struct{})}
	for i := range clients {
		v := newVisitor(t, g)
		v.client.Transport.(*http.Transport).DisableKeepAlives = i%2 == 1
		if a := v.get("/headers"); !a.admitted() {
			t.Fatalf("no seat was free: %s", a.Status)
		}
		s.all.Go(func() {
			for {
				select {
				case <-s.stop:
					return
				default:
				}
				a, err := v.try(http.MethodGet, "/headers", "")
				s.done.Add(1)
				if err == nil && a.StatusCode == http.StatusOK && a.admitted() {
					continue
				}
				s.failed.Add(1)
				s.mu.Lock()
				if err == nil {
					err = fmt.Errorf("%s: %.200s", a.Status, a.body)
				}
				s.why = append(s.why, err.Error())
				s.mu.Unlock()
			}
		})
	}
	return s
}

// reach waits until so many requests were answered.
func (s *stream) reach(t *testing.T, n int64) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		if got := s.done.Load(); got < n {
			return fmt.Sprintf("%d requests were answered, want %d", got, n)
		}
		return ""
	})
}

func TestHandOverLosesNoRequest(t *testing.T) {
	t.Parallel()
	g := startGate(t, strings.Replace(oneSeat, "total_active_users: 1", "total_active_users: 8", 1))
	s := startStream(t, g, 8)
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	reference := b.reference()
	s.reach(t, 600)
	g.signal(syscall.SIGUSR2)
	g.waitLog(`"msg":"serving"`, 2)
	first := s.done.Load()
	s.reach(t, max(first+1000, 2400))

	close(s.stop)
	s.all.Wait()
	if n := s.failed.Load(); n != 0 {
		t.Errorf("%d of %d requests failed, like: %q", n, s.done.Load(), s.why[:min(len(s.why), 3)])
	}
	t.Logf("%d requests, %d of them after the hand-over", s.done.Load(), s.done.Load()-first)
	if code := g.process.waitEnd(t); code != 0 {
		t.Errorf("the old process ended with %v", g.process.err)
	}
	if got := b.reference(); got != reference {
		t.Errorf("the place %s became %s", reference, got)
	}
	if r := g.room("shop"); r.Active != 8 || r.Waiting != 1 {
		t.Errorf("after the hand-over: %+v", r)
	}
}

func TestTermFinishesRequestsAndKeepsEverything(t *testing.T) {
	t.Parallel()
	g := startGate(t, strings.Replace(oneSeat, "total_active_users: 1", "total_active_users: 2", 1))
	inside, slow := newVisitor(t, g).enter(), newVisitor(t, g).enter()
	waiting := newVisitor(t, g).wait()
	place := waiting.place("/")
	result := make(chan error, 1)
	go func() {
		a, err := slow.try(http.MethodGet, "/cart?delay=2s", "")
		if err == nil && (a.StatusCode != http.StatusOK || !a.admitted()) {
			err = fmt.Errorf("%s", a.Status)
		}
		result <- err
	}()
	eventually(t, 10*time.Second, func() string {
		if len(g.origin.seen("GET", "/cart?delay=2s")) == 0 {
			return "the slow request has not reached the origin"
		}
		return ""
	})
	g.signal(syscall.SIGTERM)
	if err := <-result; err != nil {
		t.Errorf("the request under way failed: %v", err)
	}
	if code := g.process.waitEnd(t); code != 0 {
		t.Errorf("ended with %v, want exit code 0", g.process.err)
	}
	if l := g.log(); !strings.Contains(l, "stopping") || !strings.Contains(l, "sessions and places are kept") {
		t.Errorf("the log does not say what happened:\n%s", tail(l, 1000))
	}
	g.start()
	if a := inside.get("/"); !a.admitted() {
		t.Error("the session is lost")
	}
	if p := waiting.place("/"); p.Ref != place.Ref || p.Admitted || *p.Ahead != 0 {
		t.Errorf("the place was %v and is %v", place, p)
	}
}
