package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// protected is a room that admits five visitors a second and protects its origin.
const protected = `  - name: shop
    host: "*"
    total_active_users: 1000
    new_users_per_minute: 300
    session_duration: 20s
    protect: true
    protect_latency: 300ms`

const perMinute = 300

// guest is a visitor of a load, and what became of him.
type guest struct {
	name     string
	admitted time.Time // the first answer that was not the waiting page; zero: none
	sentBack int       // waiting pages after that
	bare     int       // errors without a page
	retries  int       // pages that try again
	failed   int       // errors of the application itself
	last     time.Time // the last answer of the application
}

// crowd sends visitors to a gate, so many a second, until end is called.
type crowd struct {
	t      *testing.T
	g      *gate
	stop   chan struct{}
	all    sync.WaitGroup
	mu     sync.Mutex
	guests []*guest
}

// gather starts a crowd. Each visitor stays for a while after the admission.
func gather(t *testing.T, g *gate, perSecond int, stays time.Duration) *crowd {
	c := &crowd{t: t, g: g, stop: make(chan struct{})}
	c.all.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-c.stop:
				return
			case <-tick.C:
				one := &guest{name: "v" + strconv.Itoa(n)}
				v := newVisitor(t, g)
				c.mu.Lock()
				c.guests = append(c.guests, one)
				c.mu.Unlock()
				c.all.Go(func() { c.live(v, one, stays) })
			}
		}
	})
	t.Cleanup(c.end)
	return c
}

// live is a visitor's life: wait, enter, look around, leave.
func (c *crowd) live(v *visitor, one *guest, stays time.Duration) {
	for {
		a, err := v.try(http.MethodGet, "/", "", "X-Visitor", one.name)
		if err != nil {
			select {
			case <-c.stop: // the gate has ended
			default:
				c.t.Errorf("%s: %v", one.name, err)
			}
			return
		}
		now := time.Now()
		pause := 700 * time.Millisecond
		c.mu.Lock()
		switch mark := a.Header.Get(appMark); {
		case mark != "":
			if one.last = now; mark != "200" {
				one.failed++
			}
		case a.StatusCode == http.StatusServiceUnavailable && a.Header.Get("Refresh") != "":
			one.retries++
			pause = after(a)
		case a.StatusCode >= 500:
			one.bare++
		default:
			if pause = after(a); !one.admitted.IsZero() {
				one.sentBack++
			}
			now = time.Time{}
		}
		if one.admitted.IsZero() {
			one.admitted = now
		}
		over := !one.admitted.IsZero() && time.Since(one.admitted) > stays
		c.mu.Unlock()
		if over {
			return
		}
		select {
		case <-c.stop:
			return
		case <-time.After(pause):
		}
	}
}

// after is when a page wants to be asked again.
func after(a answer) time.Duration {
	n, _ := strconv.Atoi(a.Header.Get("Refresh"))
	return time.Duration(max(1, n)) * time.Second
}

// end stops the crowd and returns its visitors.
func (c *crowd) end() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.all.Wait()
}

// sum adds something up over all visitors.
func (c *crowd) sum(of func(*guest) int) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.guests {
		n += of(one)
	}
	return n
}

// admittedBetween counts visitors by the moment of their admission.
func (c *crowd) admittedBetween(from, to time.Time) int {
	return c.sum(func(one *guest) int {
		if one.admitted.After(from) && one.admitted.Before(to) {
			return 1
		}
		return 0
	})
}

// paceOf is what /-/status says of the pace of the only room.
func paceOf(g *gate) (pace int, why string) {
	g.t.Helper()
	status, body := g.ask("/-/status")
	var page struct {
		Rooms []struct {
			Pace   int    `json:"pace_per_minute"`
			Reason string `json:"pace_reason"`
		}
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != http.StatusOK || len(page.Rooms) != 1 {
		g.t.Fatalf("/-/status: %d %v %s", status, err, body)
	}
	return page.Rooms[0].Pace, page.Rooms[0].Reason
}

// waitPace waits for a reason of the pace and returns the pace.
func waitPace(g *gate, within time.Duration, reasons ...string) (pace int) {
	g.t.Helper()
	eventually(g.t, within, func() string {
		now, why := paceOf(g)
		if pace = now; slices.Contains(reasons, why) {
			return ""
		}
		return fmt.Sprintf("the pace is %d: %q, want %q", now, why, reasons)
	})
	return pace
}

// enough waits until so many visitors have been admitted.
func (c *crowd) enough(n int) {
	c.t.Helper()
	eventually(c.t, 40*time.Second, func() string {
		if now := c.admittedBetween(time.Time{}, time.Now()); now < n {
			return fmt.Sprintf("%d visitors were admitted, want %d", now, n)
		}
		return ""
	})
}

// judgeLog holds the application's log to the limit: nobody's first request comes in a minute in which as many
// others' did.
func judgeLog(t *testing.T, a *app) {
	t.Helper()
	var first []time.Time
	for _, at := range a.requested() {
		first = append(first, at[0])
	}
	slices.SortFunc(first, time.Time.Compare)
	for i := perMinute; i < len(first); i++ {
		if d := first[i].Sub(first[i-perMinute]); d < time.Minute {
			t.Errorf("%d visitors entered within %v", perMinute+1, d)
			return
		}
	}
}

func startProtected(t *testing.T, rooms string) (*gate, *app) {
	t.Helper()
	a := startApp(t)
	g := newGate(t, rooms, "limits: {connections_per_address: 0}")
	g.origin.url, g.environment = "http://"+a.address, []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	g.configure(rooms)
	g.start()
	t.Cleanup(g.end)
	return g, a
}

// A real application is killed under load and comes back. With protect nobody is admitted into the dead one but in
// its first second, nobody sees a bare error, every session goes on; without it, visitors go on entering.
func TestKilledOriginAdmitsNobody(t *testing.T) {
	t.Parallel()
	for name, rooms := range map[string]string{"protected": protected, "bare": strings.Replace(protected, "protect: true", "protect: false", 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, a := startProtected(t, rooms)
			c := gather(t, g, 8, 40*time.Second)
			c.enough(30)
			if name == "protected" {
				if out := g.command("doctor", "--api", g.operators(), "--token", operatorToken); !strings.Contains(out, "no problems found") {
					t.Errorf("doctor: %s", out)
				}
			}
			died := time.Now()
			a.kill()
			if name == "protected" {
				waitPace(g, 5*time.Second, "origin_down")
				out, err := exec.Command(os.Getenv(binaryVariable), "doctor", "--api", g.operators(), "--token", operatorToken).Output()
				if err == nil || !strings.Contains(string(out), "the only origin of * does not answer: http://"+a.address) {
					t.Errorf("doctor: %v %s", err, out)
				}
			}
			c.enoughTime(8 * time.Second)
			back := time.Now()
			entered, late := c.admittedBetween(died, back), c.admittedBetween(died.Add(time.Second), back)
			a.start()
			inside := c.insideAt(died)
			if name == "protected" {
				waitPace(g, 5*time.Second, "origin_recovering")
			}
			eventually(t, 15*time.Second, func() string {
				now := c.insideAt(died) // with the newest answers
				for _, one := range now {
					if one.last.Before(back) {
						return fmt.Sprintf("%s of %d has not reached the application since it is back", one.name, len(now))
					}
				}
				return ""
			})
			c.end()
			bare, retries, sentBack := c.sum(func(o *guest) int { return o.bare }), c.sum(func(o *guest) int { return o.retries }), c.sum(func(o *guest) int { return o.sentBack })
			t.Logf("%s: %d admitted while the origin was dead for %v, %d of them after its first second; %d bare errors, %d pages that try again, %d inside before",
				name, entered, back.Sub(died).Round(time.Second), late, bare, retries, len(inside))
			judgeLog(t, a)
			if sentBack > 0 {
				t.Errorf("%d waiting pages within a session", sentBack)
			}
			switch {
			case name == "bare" && late == 0:
				t.Error("without protection nobody was admitted into the dead origin: the story shows nothing")
			case name == "protected" && (late > 0 || bare > 0 || retries == 0):
				t.Errorf("%d admitted late, %d bare errors, %d pages that try again", late, bare, retries)
			}
		})
	}
}

// A real application becomes slow, then half of its answers are errors: the room admits fewer each time, never more than its limit, and
// recovers.
func TestSlowOriginIsAdmittedFewer(t *testing.T) {
	t.Parallel()
	g, a := startProtected(t, protected)
	c := gather(t, g, 8, 10*time.Second)
	c.enough(30)
	a.speed(60*time.Millisecond, 0)
	slow := waitPace(g, 40*time.Second, "origin_slow")
	if slow >= perMinute {
		t.Errorf("a pace of %d", slow)
	}
	a.speed(2*time.Millisecond, 0)
	waitPace(g, 40*time.Second, "origin_recovering")
	a.speed(2*time.Millisecond, 2)
	failing := waitPace(g, 30*time.Second, "origin_errors")
	a.speed(2*time.Millisecond, 0)
	waitPace(g, 30*time.Second, "origin_recovering")
	eventually(t, 30*time.Second, func() string {
		if now, _ := paceOf(g); now <= failing {
			return fmt.Sprintf("the pace is %d, as while it failed", now)
		}
		return ""
	})
	c.end()
	t.Logf("slow: %d a minute; failing: %d a minute; %d errors of the application", slow, failing, c.sum(func(o *guest) int { return o.failed }))
	judgeLog(t, a)
	if n := c.sum(func(o *guest) int { return o.sentBack }); n > 0 {
		t.Errorf("%d waiting pages within a session", n)
	}
}

// A real application dies again and again: no session is lost and nobody is admitted into it after the first second of each time.
func TestFlappingOriginLosesNobody(t *testing.T) {
	t.Parallel()
	g, a := startProtected(t, protected)
	c := gather(t, g, 8, time.Minute)
	c.enough(20)
	late := 0
	for range 4 {
		died := time.Now()
		a.kill()
		c.enoughTime(4 * time.Second)
		late += c.admittedBetween(died.Add(time.Second), time.Now())
		a.start()
		before := c.admittedBetween(time.Time{}, time.Now())
		c.enough(before + 2)
	}
	c.end()
	t.Logf("%d admitted into the dead origin after its first second, %d pages that try again", late, c.sum(func(o *guest) int { return o.retries }))
	judgeLog(t, a)
	if bare, back := c.sum(func(o *guest) int { return o.bare }), c.sum(func(o *guest) int { return o.sentBack }); bare > 0 || back > 0 || late > 0 {
		t.Errorf("%d bare errors, %d waiting pages within a session, %d admitted late", bare, back, late)
	}
}

// A visitor who closes the page of a dead application comes back after the session and is admitted before one who has waited all the time.
func TestInterruptedVisitorIsAdmittedFirst(t *testing.T) {
	t.Parallel()
	g, a := startProtected(t, `  - name: shop
    host: "*"
    total_active_users: 1
    new_users_per_minute: 60
    session_duration: 5s
    protect: true
    protect_return: 1m`)
	ann, bob := newVisitor(t, g), newVisitor(t, g)
	inside := func(v *visitor) bool { return v.get("/").Header.Get(appMark) != "" }
	if !inside(ann) || inside(bob) {
		t.Fatal("ann is not admitted, or bob is")
	}
	a.kill()
	for range 3 {
		ann.get("/")
	}
	always(t, 8*time.Second, func() string { // ann has gone
		bob.get("/")
		return ""
	})
	if back := ann.get("/"); back.StatusCode != http.StatusOK {
		t.Fatalf("after the session: %s", back.Status)
	}
	a.start()
	first := ""
	eventually(t, 20*time.Second, func() string {
		switch {
		case inside(bob):
			first = "bob"
		case inside(ann):
			first = "ann"
		default:
			return "nobody is admitted"
		}
		return ""
	})
	if first != "ann" {
		t.Errorf("%s is admitted first", first)
	}
}

// enoughTime lets the story go on for a while.
func (c *crowd) enoughTime(d time.Duration) { always(c.t, d, func() string { return "" }) }

// insideAt are copies of the visitors who had been admitted by a moment.
func (c *crowd) insideAt(at time.Time) (out []guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.guests {
		if !one.admitted.IsZero() && one.admitted.Before(at) {
			out = append(out, *one)
		}
	}
	return out
}

// What people see: the visitor inside gets a page that comes back by itself when nginx does, with the session; the operator reads why
// nobody is admitted.
func TestOriginThatIsGoneInTheBrowser(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.zone = o.newZone("127.0.0.1")
	o.newRoom(fields{"name": "checkout", "host": "127.0.0.1", "total_active_users": 5, "new_users_per_minute": 5, "protect": true})
	visitor := open(t)
	visitor.visit(o.url("/"))
	visitor.getsIn()
	d := sitDown(t, o, operatorToken)
	d.goes("/rooms/127.0.0.1/checkout")
	d.says("Healthy")
	o.gate.origin.stop()
	for range 3 { // connections that fail
		newVisitor(t, o.gate).get("/")
	}
	visitor.visit(o.url("/"))
	visitor.becomes(5*time.Second, `document.querySelector('h1').innerText == 'The site is not responding' && document.querySelector('svg.door')`)
	d.says("No origin answers: no new visitors are admitted until one does.")
	d.says("Not answering")
	newcomer := open(t)
	newcomer.visit(o.url("/"))
	newcomer.waits()
	o.gate.origin.startNginx(t)
	visitor.getsIn()
	d.says("The origin is recovering")
	newcomer.getsIn()
}
