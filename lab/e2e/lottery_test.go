package e2e

import (
	"fmt"
	"testing"
	"time"
)

const drawnRoom = `  - name: shop
    host: 127.0.0.1
    total_active_users: 1
    new_users_per_minute: 1
    session_duration: 5m
    lottery_percent: 40
    lottery_round: 5s
    lottery_max_wait: 20s
`

// A room by lottery: nobody gets in at the first request, tries have the outcome that the ticket has, whichever process is asked,
// and the longest wait is kept. A browser waits, is told its chance, and gets in by itself.
func TestVisitorsAreDrawnByLottery(t *testing.T) {
	t.Parallel()
	g := startGate(t, drawnRoom)
	began := time.Now()
	waiting := map[*visitor]bool{}
	for range 24 {
		waiting[newVisitor(t, g).wait()] = true
	}
	b := open(t)
	b.visit(g.url("/product/dawn-mug"))
	b.becomes(10*time.Second, `document.querySelector('h1').textContent == 'Please wait' && /[0-9]\s*%/.test(document.body.innerText)`)

	g.kill()
	g.start()
	inside, copied := 0, newVisitor(t, g)
	for rounds := 0; len(waiting) > 0; rounds++ {
		if time.Since(began) > 60*time.Second {
			t.Fatalf("%d of 24 still wait after a minute", len(waiting))
		}
		<-time.After(500 * time.Millisecond)
		for v := range waiting {
			copied.hold(v.ticketValue())
			a, err := v.try("GET", "/", "")
			if err != nil {
				continue // on a connection to the process that was killed
			}
			again := copied.get("/")
			if a.admitted() && !again.admitted() {
				t.Errorf("a ticket won, and its copy lost: %s", again.Status)
			}
			if a.admitted() {
				delete(waiting, v)
				inside++
			}
		}
		// The chance is 40 % for each, so that some wait for a second round: all at once would be no lottery.
		if took := time.Since(began); inside == 24 && took < 9*time.Second {
			t.Errorf("all were drawn within %v", took)
		}
	}
	if took := time.Since(began); took > 20*time.Second+5*time.Second {
		t.Errorf("somebody waited for %v, longer than lottery_max_wait and the time for a try", took)
	}
	b.becomes(30*time.Second, fmt.Sprintf(`location.href == %q && !document.querySelector('#ref')`, g.url("/product/dawn-mug")))
}
